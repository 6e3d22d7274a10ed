//! The way to the ZVM: name, TCP, TLS, certificate.
use super::{Check, LOCAL, REMOTE, Report, check::Step, id, on_this_host, timeouts};
use crate::{
    Call, Error, ErrorCode,
    certificate::{self, Fingerprint},
    config::{Config, FirstUse, Tls},
    error::NEXT_TO_PROXY,
    state::{KnownCertificate, State},
};
use futures::future::{self, FutureExt as _};
use std::{fmt, io, net::SocketAddr, sync::Arc};
use tokio::{net, time::timeout};
use url::{Host, Url};
use zvm_client::{CertificateJudge, CertificateRefusal, TlsTrust};

/// Whom a connection is made to: the ZVM, or the proxy before it.
struct Peer {
    host: String,
    port: u16,
    /// It is a proxy from the environment.
    proxy: bool,
}

impl Peer {
    fn of(url: &Url) -> Self {
        if let Some((host, port)) = zvm_client::proxy_of(url) {
            return Self {
                host,
                port,
                proxy: true,
            };
        }
        let host = match url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            _ => url.host_str().unwrap_or_default().to_owned(),
        };
        Self {
            host,
            port: url.port_or_known_default().unwrap_or(443),
            proxy: false,
        }
    }

    fn unreachable(&self, message: String, next: &str) -> Error {
        let next = match self.proxy {
            true => NEXT_TO_PROXY,
            false => next,
        };
        Error::new(ErrorCode::ZvmUnreachable, message).with_next(next)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proxy = if self.proxy { "the proxy " } else { "" };
        write!(f, "{proxy}{}", self.host)
    }
}

/// The way to a ZVM, as far as it can be gone without a login: what was found, and the certificate that it shows.
///
/// # Errors
/// `cancelled` alone.
pub async fn reach(
    url: &Url,
    tls: &Tls,
    call: &Call,
) -> Result<(Vec<Check>, Option<Fingerprint>), Error> {
    let mut report = Report::new();
    let shown = way(url, tls, &mut report, call).await?;
    Ok((report.checks, shown.ok()))
}

pub(super) async fn run(
    config: &Config,
    report: &mut Report,
    call: &Call,
) -> Result<Step<Fingerprint>, Error> {
    way(&config.zerto_url, &config.tls, report, call).await
}

async fn way(
    url: &Url,
    tls: &Tls,
    report: &mut Report,
    call: &Call,
) -> Result<Step<Fingerprint>, Error> {
    let watch = call.watch();
    let peer = Peer::of(url);
    let resolve = name(&peer).map(Ok);
    let found = watch
        .during(|| format!("looking up {peer}"), resolve)
        .await?;
    let addresses = report.step(found);
    let connected = match addresses {
        Ok(addresses) => {
            let connect = tcp(&peer, addresses).map(Ok);
            let found = watch
                .during(|| format!("connecting to {peer}"), connect)
                .await?;
            report.step(found)
        }
        Err(cause) => report.skip(id::TCP, cause),
    };
    match connected {
        Ok(()) => {
            let look = handshake(url, tls).map(Ok);
            let found = watch
                .during(|| "looking at the certificate".to_owned(), look)
                .await?;
            Ok(report.step(found))
        }
        Err(cause) => Ok(report.skip(id::TLS, cause)),
    }
}

async fn name(peer: &Peer) -> (Check, Option<Vec<SocketAddr>>) {
    const NEXT: &str = "Check the host in `zerto_url`, and this host's DNS.";
    let failed = |why: String| {
        let error = peer.unreachable(format!("{peer} has no address: {why}"), NEXT);
        (Check::of_error(id::NAME, error), None)
    };
    let looked_up = timeout(LOCAL, net::lookup_host((&*peer.host, peer.port)));
    let addresses: Vec<_> = match looked_up.await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let why = error.to_string();
            let words = why.strip_prefix("failed to lookup address information: ");
            return failed(words.unwrap_or(&why).to_owned());
        }
        Err(_) => return failed(format!("no answer within {} s", LOCAL.as_secs())),
    };
    if addresses.is_empty() {
        return failed("its name resolves to nothing".to_owned());
    }
    let shown = match peer.host.parse::<std::net::IpAddr>() {
        Ok(_) => format!("{peer} is an address"),
        Err(_) => format!("{peer} is {}", joined(addresses.iter().map(SocketAddr::ip))),
    };
    (Check::ok(id::NAME, shown), Some(addresses))
}

async fn tcp(peer: &Peer, addresses: Vec<SocketAddr>) -> (Check, Option<()>) {
    const NEXT: &str =
        "Check the port in `zerto_url`, that the ZVM is up, and the firewalls between.";
    let attempts = addresses.iter().map(|address| {
        async move {
            let connected = timeout(LOCAL, net::TcpStream::connect(address)).await;
            let timed_out = |_| Err(io::ErrorKind::TimedOut.into());
            connected
                .unwrap_or_else(timed_out)
                .map(|_| *address)
                .map_err(|error| format!("{address}: {error}"))
        }
        .boxed()
    });
    let mut attempts: Vec<_> = attempts.collect();
    let mut failures = Vec::new();
    while !attempts.is_empty() {
        let (outcome, _, others) = future::select_all(attempts).await;
        match outcome {
            Ok(address) => return (Check::ok(id::TCP, format!("{address} answers")), Some(())),
            Err(failure) => failures.push(failure),
        }
        attempts = others;
    }
    let error = peer.unreachable(
        format!("{peer} can't be connected to: {}", joined(failures)),
        NEXT,
    );
    (Check::of_error(id::TCP, error), None)
}

async fn handshake(url: &Url, tls: &Tls) -> (Check, Option<Fingerprint>) {
    let trust = TlsTrust::from(tls);
    let shown = zvm_client::shown_certificate(url, &trust, timeouts());
    let error = match timeout(REMOTE, shown).await {
        Ok(Ok(shown)) => {
            let vouched = match &trust {
                TlsTrust::Any => {
                    "an encrypted connection; no authority is asked (`verify_tls` is false)"
                }
                TlsTrust::System => {
                    "the system's authorities vouch for the certificate and its name"
                }
                TlsTrust::CaFile(_) => "`ca_file` vouches for the certificate and its name",
            };
            return (Check::ok(id::TLS, vouched), Some(shown));
        }
        Ok(Err(error)) => error.into(),
        Err(_) => Error::new(
            ErrorCode::ZvmUnreachable,
            format!("no TLS within {} s", REMOTE.as_secs()),
        ),
    };
    let error = match error.code {
        // Where a proxy stands between, the error speaks of it.
        ErrorCode::ZvmUnreachable if zvm_client::proxy_of(url).is_none() => {
            error.with_next("Check that `zerto_url` has the port of the ZVM's HTTPS (443 on an appliance, 9669 on others), and that the ZVM is up.")
        }
        _ => error,
    };
    (Check::of_error(id::TLS, error), None)
}

/// Whether it is the one that the ZVM is known by, and who will judge the connections of this run. Nothing is remembered.
pub(super) async fn certificate(
    config: &Config,
    state: &State,
    shown: Fingerprint,
) -> (Check, Option<Option<Arc<dyn CertificateJudge>>>) {
    let this = Some(Some(certificate::only(shown)));
    let found = |message: String| Check::ok(id::CERTIFICATE, format!("{message}: SHA-256 {shown}"));
    let changed = |expected, configured| {
        let refusal = CertificateRefusal::Changed {
            expected,
            shown,
            configured,
        };
        (refused(config, refusal), None)
    };
    match (config.tls.fingerprint, config.tls.verify) {
        (Some(pinned), _) if pinned == shown => {
            return (
                found("is the one that `tls_fingerprint` pins".to_owned()),
                this,
            );
        }
        (Some(pinned), _) => return changed(pinned, true),
        (None, true) => {
            let message = "is not pinned, as authorities vouch for it".to_owned();
            return (found(message), Some(None));
        }
        (None, false) => {}
    }
    let (state, zvm) = (state.clone(), config.zvm());
    let known = match on_this_host(LOCAL, move || state.certificate(&zvm)).await {
        None => return (Check::silent(id::CERTIFICATE, "the state"), None),
        Some(Err(error)) => return (Check::of_error(id::CERTIFICATE, error.into()), None),
        Some(Ok(known)) => known,
    };
    match known {
        Some(known) if known.sha256 == shown => (found(remembered(&known)), this),
        Some(known) => changed(known.sha256, false),
        None if config.tls.first_use == FirstUse::Refuse => (
            refused(config, CertificateRefusal::FirstUse { shown }),
            None,
        ),
        None => (
            Check::warning(
                id::CERTIFICATE,
                format!(
                    "was never seen before, and nobody vouches for it: the first command that works with the ZVM will trust it. SHA-256 {shown}"
                ),
                "Compare it with the SHA-256 that the appliance itself shows, and accept it: run `zerto-rewind trust`.",
            ),
            this,
        ),
    }
}

fn remembered(known: &KnownCertificate) -> String {
    let since = known.since;
    match &known.accepted_by {
        Some(by) => format!("is the one that {by} accepted at {since:.0}"),
        None => format!("is the one that is remembered since {since:.0}"),
    }
}

fn refused(config: &Config, refusal: CertificateRefusal) -> Check {
    let error = zvm_client::Error::Untrusted {
        host: config.zvm(),
        refusal,
    };
    Check::of_error(id::CERTIFICATE, error.into())
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}
