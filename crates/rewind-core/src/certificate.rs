//! Which certificate the ZVM must show, where no authority is asked about it: the one that the configuration pins, else the one that
//! is remembered, as SSH does it with host keys.
use crate::{
    Error, ErrorCode,
    config::{Config, FirstUse, Tls},
    state::{KnownCertificate, State, StateError},
    warnings::Warnings,
};
use std::sync::Arc;
use url::Url;
use zvm_client::{CertificateJudge, CertificateRefusal, Timeouts, TlsTrust};

pub use zvm_client::Fingerprint;

/// Who judges the certificate. None where authorities do, and nothing else is asked for.
pub(crate) fn judge(
    config: &Config,
    state: &State,
    warnings: &Warnings,
) -> Option<Arc<dyn CertificateJudge>> {
    match (config.tls.fingerprint, config.tls.verify) {
        (Some(expected), _) => Some(Arc::new(Pinned {
            expected,
            configured: true,
        })),
        (None, true) => None,
        (None, false) => Some(Arc::new(Remembered {
            state: state.clone(),
            zvm: config.zvm(),
            first_use: config.tls.first_use,
            warnings: warnings.clone(),
        })),
    }
}

/// Who accepts this one alone, and neither looks at the state nor writes to it.
pub(crate) fn only(expected: Fingerprint) -> Arc<dyn CertificateJudge> {
    Arc::new(Pinned {
        expected,
        configured: false,
    })
}

impl From<&Tls> for TlsTrust {
    fn from(tls: &Tls) -> Self {
        match (&tls.ca_file, tls.verify) {
            (Some(file), true) => Self::CaFile(file.clone()),
            (None, true) => Self::System,
            (_, false) => Self::Any,
        }
    }
}

/// One that is known from the start.
#[derive(Debug)]
struct Pinned {
    expected: Fingerprint,
    /// The configuration names it.
    configured: bool,
}

impl CertificateJudge for Pinned {
    fn judge(&self, shown: Fingerprint) -> Result<(), CertificateRefusal> {
        same(self.expected, shown, self.configured)
    }
}

/// By the state, which is looked at in every handshake: what another process remembers or a person accepts counts at once.
#[derive(Debug)]
struct Remembered {
    state: State,
    /// The key under which the state remembers this ZVM.
    zvm: String,
    first_use: FirstUse,
    warnings: Warnings,
}

impl CertificateJudge for Remembered {
    fn judge(&self, shown: Fingerprint) -> Result<(), CertificateRefusal> {
        let undecided = |error: StateError| CertificateRefusal::Undecided {
            reason: error.advice(),
        };
        if let Some(known) = self.state.certificate(&self.zvm).map_err(undecided)? {
            return same(known.sha256, shown, false);
        }
        if self.first_use == FirstUse::Refuse {
            return Err(CertificateRefusal::FirstUse { shown });
        }
        let (known, first) = self
            .state
            .certificate_first_seen(&self.zvm, shown)
            .map_err(undecided)?;
        if first {
            self.warnings.add(first_use(&self.zvm, shown));
        }
        same(known, shown, false)
    }
}

fn first_use(zvm: &str, shown: Fingerprint) -> String {
    format!(
        "{zvm} was never spoken to before, and its certificate is verified by nobody: it is trusted from now on. Compare its SHA-256 \
         with the one that the appliance shows: {shown}"
    )
}

fn same(
    expected: Fingerprint,
    shown: Fingerprint,
    configured: bool,
) -> Result<(), CertificateRefusal> {
    if expected == shown {
        return Ok(());
    }
    Err(CertificateRefusal::Changed {
        expected,
        shown,
        configured,
    })
}

/// The certificate of the configured ZVM, for a person who has to decide on it. No credential is used.
#[derive(Clone, Debug)]
pub struct Certificate {
    state: State,
    zvm: String,
    url: Url,
    pinned: Option<Fingerprint>,
}

impl Certificate {
    /// That of this configuration's ZVM.
    ///
    /// # Errors
    /// `configuration`: `verify_tls` is on, so that there is nothing to decide.
    pub fn of(config: &Config) -> Result<Self, Error> {
        if config.tls.verify {
            let file = config.file.display();
            return Err(Error::new(
                ErrorCode::Configuration,
                format!("{file}: `verify_tls` is true, so authorities vouch for the certificate, and none is remembered"),
            )
            .with_next("Name another authority in `ca_file`, or set `verify_tls` to false."));
        }
        Ok(Self {
            state: State::new(&config.state_dir),
            zvm: config.zvm(),
            url: config.zerto_url.clone(),
            pinned: config.tls.fingerprint,
        })
    }

    /// Host and port.
    #[must_use]
    pub fn zvm(&self) -> &str {
        &self.zvm
    }

    /// The one that the configuration pins: it alone counts, where there is one.
    #[must_use]
    pub fn pinned(&self) -> Option<Fingerprint> {
        self.pinned
    }

    /// The one that the ZVM shows now. Nothing is sent to it.
    ///
    /// # Errors
    /// `zvm_unreachable`, and `certificate_refused` where the server does not hold its key.
    pub async fn shown(&self) -> Result<Fingerprint, Error> {
        Ok(zvm_client::shown_certificate(&self.url, &TlsTrust::Any, Timeouts::default()).await?)
    }

    /// The one that is remembered.
    ///
    /// # Errors
    /// `state`.
    pub fn known(&self) -> Result<Option<KnownCertificate>, Error> {
        Ok(self.state.certificate(&self.zvm)?)
    }

    /// Accepts this one from now on, because a person at a terminal said so.
    ///
    /// # Errors
    /// `state`.
    pub fn accept(&self, certificate: Fingerprint, by: &str) -> Result<(), Error> {
        Ok(self
            .state
            .certificate_accepted(&self.zvm, certificate, by)?)
    }

    /// Remembers this one as at a first use. What a person should know of it then; none where one is known by now.
    ///
    /// # Errors
    /// `state`.
    pub fn first_seen(&self, certificate: Fingerprint) -> Result<Option<String>, Error> {
        let (_, first) = self.state.certificate_first_seen(&self.zvm, certificate)?;
        Ok(first.then(|| first_use(&self.zvm, certificate)))
    }

    /// What is wrong with this one, while another one is expected.
    #[must_use]
    pub fn changed(&self, expected: Fingerprint, shown: Fingerprint) -> Error {
        zvm_client::Error::Untrusted {
            host: self.zvm.clone(),
            refusal: CertificateRefusal::Changed {
                expected,
                shown,
                configured: self.pinned.is_some(),
            },
        }
        .into()
    }
}
