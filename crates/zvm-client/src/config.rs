//! What the client must be told.

use std::{path::PathBuf, sync::Arc, time::Duration};

use url::Url;

use crate::{CertificateJudge, Error, Secret};

/// One ZVM and how to log in to it.
///
/// A proxy is taken from the environment (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), as by other command line tools; TLS is
/// spoken through it, so that it sees no password and no answer. A ZVM on this machine is always spoken to directly.
#[derive(Clone, Debug)]
pub struct ZvmConfig {
    /// `https://host[:port]/`
    pub url: Url,
    /// Who logs in.
    pub credentials: Credentials,
    /// What makes the appliance's certificate acceptable.
    pub tls: TlsTrust,
    /// Who is asked about the certificate besides, if anybody.
    pub judge: Option<Arc<dyn CertificateJudge>>,
    /// Time limits.
    pub timeouts: Timeouts,
}

/// Which grant is used at the token endpoint.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Password grant with the public client `zerto-client`.
    Password {
        /// The user's name in the realm `zerto`.
        username: String,
        /// The user's password.
        password: Secret,
    },
    /// Client-credentials grant with a client that an administrator made.
    Client {
        /// The client's id in the realm `zerto`.
        client_id: String,
        /// The client's secret.
        client_secret: Secret,
    },
}

impl Credentials {
    /// User name or client id: who a message is about.
    pub(crate) fn account(&self) -> &str {
        match self {
            Self::Password { username, .. } => username,
            Self::Client { client_id, .. } => client_id,
        }
    }

    pub(crate) fn secret(&self) -> &Secret {
        match self {
            Self::Password { password, .. } => password,
            Self::Client { client_secret, .. } => client_secret,
        }
    }
}

/// What makes the appliance's certificate acceptable.
#[derive(Clone, Debug)]
pub enum TlsTrust {
    /// Any certificate that the judge accepts (`verify_tls: false`). Its owner still has to prove that it holds the key.
    Any,
    /// The system's roots, and the name must match.
    System,
    /// Only certificates that this PEM file vouches for (as their issuer, or by holding the very certificate), and the name
    /// must match.
    CaFile(PathBuf),
}

/// Time limits of single steps; the caller's deadline is separate ([`crate::Zvm::by`]).
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP and TLS (default 10 s).
    pub connect: Duration,
    /// Nothing arrives (default 30 s). Beside it, less than 64 KiB within 30 s is too slow. A download that has begun has no other limits.
    pub idle: Duration,
    /// A whole call other than a download, its login and retries included (default 100 s).
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(100),
        }
    }
}

/// The appliance's root, `https://host[:port]/`, and its name in messages, `host[:port]`.
pub(crate) fn base(url: &Url) -> Result<(Url, String), Error> {
    let wrong = |why: &str| {
        Err(Error::Config(format!(
            "the URL of the ZVM must look like https://zvm.example.com/ (with :port if it is not 443): {why}"
        )))
    };
    let Some(host) = url.host_str() else {
        return wrong("it names no host");
    };
    if url.scheme() != "https" {
        return wrong("it does not begin with https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("user and password don't belong into it");
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return wrong("nothing may follow host and port");
    }
    let name = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Ok((url.clone(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(url: &str) -> Result<(Url, String), Error> {
        super::base(&Url::parse(url).unwrap())
    }

    #[test]
    fn urls_that_can_never_work_are_told_at_once() {
        for (url, why) in [
            ("http://zvm/", "https://"),
            ("https://user:secret@zvm/", "user and password"),
            ("https://zvm/v1", "nothing may follow"),
            ("https://zvm/?a=b", "nothing may follow"),
            ("https://zvm/#a", "nothing may follow"),
            ("data:text/plain,zvm", "names no host"),
        ] {
            let error = base(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_port_is_named_where_it_is_not_the_usual_one() {
        for (url, name) in [
            ("https://zvm", "zvm"),
            ("https://ZVM.example.com:443/", "zvm.example.com"),
            ("https://10.0.0.1:9669/", "10.0.0.1:9669"),
            ("https://[::1]:8443/", "[::1]:8443"),
        ] {
            assert_eq!(base(url).unwrap().1, name);
        }
    }
}
