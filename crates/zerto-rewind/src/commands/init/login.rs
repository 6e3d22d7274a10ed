//! Who logs in, and whether the ZVM accepts it.
use rewind_core::{
    Error, ErrorCode, Rewind, Site,
    config::{Config, one_line},
};
use secrecy::{SecretString, zeroize::Zeroizing};

use super::{
    Draft, InitArgs, Store,
    draft::{Given, SECRET, Source, in_arguments},
    reach::{Decided, PINNED, no_answer},
    tell, usage,
};
use crate::{interrupt::Interrupt, output::Output, session::Session, terminal};

const CORRECT: &str = "Correct them here; Ctrl-C ends it. After three refusals the same ones are not tried again, as the account would be locked.";

/// What came of it.
pub struct Login {
    /// Where the arguments say that the secret is. None: it was typed, or came on stdin.
    pub given: Option<Source>,
    /// The secret, where it was needed or has to be kept.
    pub secret: Option<SecretString>,
    /// The ZVM that accepted it.
    pub site: Option<Site>,
}

/// Gets account and secret, and tries them: until the ZVM accepts them, where a person can correct them.
pub async fn run(
    draft: &mut Draft,
    given: Given,
    args: &InitArgs,
    person: bool,
    certificate: Option<&Decided>,
    interrupt: &Interrupt,
) -> Result<Login, Error> {
    let mut ask_account = draft.account.is_empty();
    loop {
        if ask_account {
            draft.account = account(draft).await?;
        }
        let secret = match &given.source {
            // Whether it can be had is seen when it is tried.
            Some(_) if args.no_test => None,
            Some(source) => Some(get(draft, source).await?),
            None if given.stdin => Some(from_stdin(draft).await?),
            None => Some(typed(draft).await?),
        };
        let tried = match &secret {
            Some(secret) if !args.no_test => {
                let mut config = draft.config(secret)?;
                if let Some(certificate) = certificate {
                    certificate.pin(&mut config);
                }
                site(config, interrupt).await.map(Some)
            }
            _ => Ok(None),
        };
        let typed = person && given.source.is_none();
        let site = match tried {
            Ok(site) => site,
            Err(error) if typed && error.code == ErrorCode::LoginRefused => {
                Output::new(false).error(&error.with_next(CORRECT));
                let (user, secret) = (draft.account_name(), draft.secret_name());
                tell(&format!(
                    "\nFirst the {}, which is shown; then the {}, which is not.",
                    user.to_lowercase(),
                    secret.to_lowercase()
                ));
                ask_account = true;
                continue;
            }
            Err(error) if person && error.code != ErrorCode::Cancelled => {
                let error = in_place(error, draft, &given);
                Output::new(false).error(&error);
                match terminal::agrees("Write the configuration all the same?").await {
                    true => None,
                    false => return Err(error),
                }
            }
            Err(error) => return Err(in_place(error, draft, &given)),
        };
        if let (Some(site), true) = (&site, person) {
            let version = site.version.as_deref().unwrap_or("of unknown version");
            tell(&format!(
                "  {} is logged in to {}, ZVM {version}.\n",
                draft.account, site.name
            ));
        }
        return Ok(Login {
            given: given.source,
            secret,
            site,
        });
    }
}

/// What is to be corrected is where it came from: nothing is written yet.
fn in_place(error: Error, draft: &Draft, given: &Given) -> Error {
    match error.code {
        ErrorCode::LoginRefused => {}
        ErrorCode::CertificateChanged => return error.with_next(PINNED),
        _ => return error,
    }
    let name = draft.secret_name().to_lowercase();
    let origin = match &given.source {
        Some(source) => format!("the {name} in {}", source.described(draft)),
        None => format!("the {name} on stdin"),
    };
    error.with_next(format!(
        "Correct {:?} or {origin}. After three refusals the same ones are not tried again, as the account would be locked.",
        draft.account
    ))
}

/// Where the secret will be. Puts it into the keyring where it has to be there.
pub async fn keep(
    draft: &Draft,
    args: &InitArgs,
    person: bool,
    given: Option<Source>,
    secret: Option<&SecretString>,
) -> Result<Source, Error> {
    if let Some(source) = given {
        return Ok(source);
    }
    match args.store {
        Some(Store::File) => Ok(Source::File(SECRET.into())),
        Some(Store::Config) => Ok(Source::Config),
        #[cfg(feature = "keyring")]
        Some(Store::Keyring) => in_keyring(draft, secret).await,
        #[cfg(not(feature = "keyring"))]
        Some(Store::Keyring) => Err(super::no_keyring()),
        None => offered(draft, person, secret).await,
    }
}

#[cfg(not(feature = "keyring"))]
async fn offered(_: &Draft, _: bool, _: Option<&SecretString>) -> Result<Source, Error> {
    Ok(Source::Config)
}

#[cfg(feature = "keyring")]
async fn offered(
    draft: &Draft,
    person: bool,
    secret: Option<&SecretString>,
) -> Result<Source, Error> {
    use rewind_core::keyring;
    let available = || tokio::task::spawn_blocking(keyring::is_available);
    if !person || !available().await.unwrap_or(false) {
        return Ok(Source::Config);
    }
    let question = format!(
        "Keep the {} in the system's keyring, instead of the configuration?",
        draft.secret_name().to_lowercase()
    );
    match terminal::agrees(&question).await {
        true => in_keyring(draft, secret).await,
        false => Ok(Source::Config),
    }
}

#[cfg(feature = "keyring")]
async fn in_keyring(draft: &Draft, secret: Option<&SecretString>) -> Result<Source, Error> {
    use rewind_core::keyring;
    let service = format!("zerto-rewind/{}", draft.without_login()?.zvm());
    let secret = secret.cloned().unwrap_or_default();
    let (entry, account) = (service.clone(), draft.account.clone());
    let kept = tokio::task::spawn_blocking(move || keyring::keep(&entry, &account, &secret)).await;
    match kept.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => Ok(Source::Keyring(service)),
        Err(problem) => Err(Error::new(
            ErrorCode::Configuration,
            format!("the system's keyring {problem}"),
        )
        .with_next("Unlock it, or keep the secret elsewhere: --store file, --store config.")),
    }
}

async fn account(draft: &Draft) -> Result<String, Error> {
    let name = draft.account_name();
    loop {
        let question = match &*draft.account {
            "" => format!("{name}:"),
            before => format!("{name} [Enter keeps {before}]:"),
        };
        match terminal::ask(&question).await.ok_or_else(no_answer)? {
            same if same.is_empty() && draft.account.is_empty() => {}
            same if same.is_empty() => return Ok(draft.account.clone()),
            account => match draft.check_account(&account) {
                Ok(()) => return Ok(account),
                Err(mistake) => tell(&format!("  {mistake}")),
            },
        }
    }
}

async fn typed(draft: &Draft) -> Result<SecretString, Error> {
    loop {
        let question = format!("{} (not shown):", draft.secret_name());
        match terminal::secret(&question).await.ok_or_else(no_answer)? {
            Ok(secret) => return Ok(secret),
            Err(problem) => tell(&format!("  it {problem}")),
        }
    }
}

async fn from_stdin(draft: &Draft) -> Result<SecretString, Error> {
    let read = tokio::task::spawn_blocking(terminal::secret_from_stdin).await;
    let read = read.unwrap_or_else(|error| Err(error.to_string()));
    let name = draft.secret_name().to_lowercase();
    read.map_err(|problem| {
        usage(format!("--password-stdin: the {name} on stdin {problem}"))
            .with_next("Give it as one line, such as from a password manager: `pass show zvm | zerto-rewind init --password-stdin …`.")
    })
}

/// From where it will come later, too.
async fn get(draft: &Draft, source: &Source) -> Result<SecretString, Error> {
    if let Source::Environment = source {
        let variable = draft.variable();
        // That it is set was looked at in the beginning.
        let secret = Zeroizing::new(std::env::var(variable).unwrap_or_default());
        return one_line(secret.as_bytes()).map_err(|problem| {
            usage(format!("--password-env: {variable} {problem}")).with_next("Set it anew.")
        });
    }
    let config = Config::parse(&draft.text(source, None), &draft.file).map_err(in_arguments)?;
    let secret = config.credentials.secret().clone();
    let got = tokio::task::spawn_blocking(move || secret.get()).await;
    match got {
        Ok(secret) => secret.map_err(in_arguments),
        Err(error) => Err(Error::new(ErrorCode::Configuration, error.to_string())),
    }
}

/// Logs in, with all that holds for other commands, such as the count of refused logins.
async fn site(config: Config, interrupt: &Interrupt) -> Result<Site, Error> {
    let session = Session::with(Rewind::new(config)?, interrupt);
    session
        .run(async |rewind, call| rewind.site(&call).await)
        .await
}
