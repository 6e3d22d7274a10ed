//! Looks at everything that a guard or a recovery needs, and says what is wrong and what to do about it.
//!
//! Nothing is changed on the ZVM: what it is asked are GETs, after one login that the login gate has permitted. Nothing is
//! remembered of its certificate either: a first one is shown, and accepted for this one look alone; the first command that
//! works with the ZVM remembers it, or `zerto-rewind trust`.
//!
//! Each step is bounded in time. What depends on a check that failed is skipped, and says so.
mod approver;
mod check;
mod connection;
mod files;
mod folders;
mod guests;
mod rights;
mod sessions;
mod zvm;

pub use check::{Check, Report, Status, VpgState};
pub use connection::reach;

use crate::{
    Call, Error,
    config::{Config, Credentials, default_state_dir},
    login_gate::StateGate,
    rewind::zvm_config,
};
use secrecy::SecretString;
use std::{path::PathBuf, sync::Arc, time::Duration};
use zvm_client::{CertificateJudge, Timeouts, Zvm};

/// For one thing on this host: it may lie on a file system whose server is gone.
const LOCAL: Duration = Duration::from_secs(10);
/// For one thing that is asked over the network.
const REMOTE: Duration = Duration::from_secs(20);

/// The checks, in the order in which they are made and shown.
pub mod id {
    /// The configuration is there, and all of it makes sense.
    pub const CONFIGURATION: &str = "configuration";
    /// Only those who may can read and change its file.
    pub const CONFIG_FILE: &str = "config_file";
    /// There is a password or client secret.
    pub const SECRET: &str = "secret";
    /// The file of authorities can be used.
    pub const CA_FILE: &str = "ca_file";
    /// The catalog has no mistake.
    pub const CATALOG: &str = "catalog";
    /// The state folder is private, and its database works.
    pub const STATE_FOLDER: &str = "state_folder";
    /// Files can be locked in it.
    pub const LOCKS: &str = "locks";
    /// Recovered files can be placed.
    pub const RECOVER_FOLDER: &str = "recover_folder";
    /// No stop is in force.
    pub const STOP: &str = "stop";
    /// Whether the approver's passphrase is set, and is accepted.
    pub const PASSPHRASE: &str = "passphrase";
    /// The ZVM's name has an address.
    pub const NAME: &str = "name";
    /// Somebody answers there.
    pub const TCP: &str = "tcp";
    /// TLS is spoken, and those vouch for the certificate who have to.
    pub const TLS: &str = "tls";
    /// It is the certificate that the ZVM is known by.
    pub const CERTIFICATE: &str = "certificate";
    /// The ZVM accepts the login.
    pub const LOGIN: &str = "login";
    /// Which ZVM it is.
    pub const SITE: &str = "site";
    /// Its clock.
    pub const CLOCK: &str = "clock";
    /// Its VPGs can be tagged.
    pub const VPGS: &str = "vpgs";
    /// It is the site that its VPGs are protected at.
    pub const PROTECTED_SITE: &str = "protected_site";
    /// The account may list VMs and VPGs.
    pub const RIGHT_TO_LIST: &str = "right_to_list";
    /// The account may insert tagged checkpoints.
    pub const RIGHT_TO_TAG: &str = "right_to_tag";
    /// The account may mount, browse and download.
    pub const RIGHT_TO_MOUNT: &str = "right_to_mount";
    /// No FLR session was left behind.
    pub const SESSIONS: &str = "sessions";
    /// No guard or recovery was interrupted lately.
    pub const INTERRUPTED: &str = "interrupted";

    /// The ways into guests work: one check for each.
    pub const GUESTS: &str = "guests";

    /// All of them.
    pub const ALL: [&str; 25] = [
        CONFIGURATION,
        CONFIG_FILE,
        SECRET,
        CA_FILE,
        CATALOG,
        STATE_FOLDER,
        LOCKS,
        RECOVER_FOLDER,
        STOP,
        PASSPHRASE,
        NAME,
        TCP,
        TLS,
        CERTIFICATE,
        LOGIN,
        SITE,
        CLOCK,
        VPGS,
        PROTECTED_SITE,
        RIGHT_TO_LIST,
        RIGHT_TO_TAG,
        RIGHT_TO_MOUNT,
        SESSIONS,
        INTERRUPTED,
        GUESTS,
    ];
}

/// Makes every check, with this file as the configuration; or says in the first one why there is none.
///
/// # Errors
/// `cancelled` alone: everything else is what the report is about.
pub async fn run(file: Result<PathBuf, Error>, call: &Call) -> Result<Report, Error> {
    let watch = call.watch();
    let looking = |what: &str| format!("looking at {what}");
    let mut report = Report::new();
    let inspected = match file {
        Err(error) => Err(vec![Check::of_error(id::CONFIGURATION, error)]),
        Ok(file) => {
            report.configuration = Some(file.clone());
            let inspect = async { Ok(files::inspect(file).await) };
            watch
                .during(|| looking("the configuration"), inspect)
                .await?
        }
    };
    let (config, readable) = match inspected {
        Ok((config, checks, readable)) => {
            checks.into_iter().for_each(|check| report.add(check));
            (config, readable)
        }
        Err(checks) => {
            without_configuration(checks, &mut report).await;
            return Ok(report);
        }
    };
    report.zvm = Some(config.zvm());

    let secret = match readable {
        Ok(()) => {
            let get = async { Ok(files::secret(&config).await) };
            let got = watch
                .during(|| "getting the secret".to_owned(), get)
                .await?;
            report.step(got)
        }
        Err(cause) => report.skip(id::SECRET, cause),
    };
    let local = async {
        let mut checks = files::ca_file(&config)
            .await
            .into_iter()
            .collect::<Vec<_>>();
        checks.push(files::catalog(&config).await);
        Ok(checks)
    };
    let checks = watch.during(|| looking("files"), local).await?;
    checks.into_iter().for_each(|check| report.add(check));

    let folders = async { Ok(folders::state(&config).await) };
    let (state, locks) = watch
        .during(|| looking("the state folder"), folders)
        .await?;
    let state = report.step(state);
    report.add(locks);
    let recover = async {
        Ok((
            folders::recover(&config).await,
            folders::stop(config.state_dir.clone()).await,
        ))
    };
    let (recover, stop) = watch
        .during(|| looking("the recovery folder"), recover)
        .await?;
    report.add(recover);
    report.add(stop);
    let passphrase = match &state {
        Ok(_) => {
            let look = async { Ok(approver::check(config.state_dir.clone()).await) };
            watch.during(|| looking("the state folder"), look).await?
        }
        Err(cause) => Check::skipped_after(id::PASSPHRASE, cause),
    };
    report.add(passphrase);

    let shown = connection::run(&config, &mut report, call).await?;
    let judge = match (shown, state.clone()) {
        (Ok(shown), Ok(state)) => {
            report.step(connection::certificate(&config, &state, shown).await)
        }
        (Err(cause), _) | (_, Err(cause)) => report.skip(id::CERTIFICATE, cause),
    };
    let zvm = match (secret, state.clone(), judge) {
        (Ok(secret), Ok(state), Ok(judge)) => {
            let gate = StateGate::new(state, config.zvm());
            Ok(client(&config, secret, judge, gate))
        }
        (Err(cause), _, _) | (_, Err(cause), _) | (_, _, Err(cause)) => Err(cause),
    };
    let zvm = zvm::run(&config, zvm, state, &mut report, call).await?;
    let guests = async { Ok(guests::checks(&config, zvm.as_ref()).await) };
    let guests = watch
        .during(|| "connecting to the guests".to_owned(), guests)
        .await?;
    guests.into_iter().for_each(|check| report.add(check));
    Ok(report)
}

/// These checks, and what can be said all the same.
async fn without_configuration(mut checks: Vec<Check>, report: &mut Report) {
    for id in id::ALL {
        let made = checks.iter().position(|check| check.id == id);
        let check = match (made, default_state_dir()) {
            (Some(made), _) => checks.swap_remove(made),
            (None, Some(folder)) if id == id::STOP => {
                // It may name a folder, and so a stop of its own.
                let hidden = report.configuration.is_some();
                folders::stop_of_user(folder, hidden).await
            }
            _ => Check::skipped_after(id, id::CONFIGURATION),
        };
        report.add(check);
    }
}

/// The ZVM, with the secret that was got, and to be known by this certificate.
fn client(
    config: &Config,
    secret: SecretString,
    judge: Option<Arc<dyn CertificateJudge>>,
    gate: StateGate,
) -> Result<Zvm, Error> {
    let mut config = config.clone();
    match &mut config.credentials {
        Credentials::Password { password, .. } => *password = secret.into(),
        Credentials::Client { client_secret, .. } => *client_secret = secret.into(),
    }
    let mut settings = zvm_config(&config, judge)?;
    settings.timeouts = timeouts();
    Ok(Zvm::new(settings, Arc::new(gate))?)
}

fn timeouts() -> Timeouts {
    Timeouts {
        connect: LOCAL,
        idle: LOCAL,
        total: REMOTE,
    }
}

/// Does blocking work on this host, for as long as it may take. None: it is still not done, or ended early.
async fn on_this_host<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let work = tokio::task::spawn_blocking(work);
    tokio::time::timeout(limit, work).await.ok()?.ok()
}
