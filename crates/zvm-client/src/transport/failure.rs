//! Why there is no answer, and whether the request may have arrived.

use std::{error::Error as StdError, io, time::Duration};

use reqwest::StatusCode;

use crate::{CertificateRefusal, Error, Timeouts, decode, tls};

/// How a request failed for which no answer of the ZVM itself came.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Not a byte of the request was sent.
    Unsent(String),
    /// The certificate was not accepted; nothing was sent.
    Certificate(String),
    /// The certificate is not the one that is known; nothing was sent.
    Untrusted(CertificateRefusal),
    /// The request may have been sent; no answer came.
    Lost(String),
    /// The answer broke off.
    Cut(String),
    /// 429: it was not carried out.
    Busy {
        message: String,
        retry_after: Option<Duration>,
    },
    /// 502, 503, 504: somebody answered in the ZVM's place.
    Gateway {
        status: StatusCode,
        message: String,
        retry_after: Option<Duration>,
    },
    /// An answer that leads elsewhere.
    Redirect { status: StatusCode, to: String },
    /// The answer is over the limit.
    TooLarge { limit: u64 },
}

/// What a request does on the ZVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it reads.
    None,
    /// It changes something: where its answer is lost, its effect is unknown.
    Change,
}

impl Failure {
    /// No response came.
    pub(super) fn of_send(error: &reqwest::Error, timeouts: &Timeouts) -> Self {
        if let Some(certificate) = certificate_error(error) {
            return match tls::refusal(certificate) {
                Some(refusal) => Self::Untrusted(refusal.clone()),
                None => Self::Certificate(tls::advice(certificate)),
            };
        }
        if error.is_builder() {
            return Self::Unsent(innermost(error));
        }
        if !error.is_connect() {
            return Self::Lost(if error.is_timeout() {
                format!("nothing came for {}", seconds(timeouts.idle))
            } else {
                innermost(error)
            });
        }
        Self::Unsent(if error.is_timeout() {
            format!("no connection within {}", seconds(timeouts.connect))
        } else if error.is_dns() {
            format!("the name can't be resolved ({})", innermost(error))
        } else {
            innermost(error)
        })
    }

    /// A body broke off after `received` bytes.
    pub(crate) fn of_body(error: &reqwest::Error, received: u64, timeouts: &Timeouts) -> Self {
        Self::Cut(if error.is_timeout() {
            format!(
                "nothing more came for {} after {}",
                seconds(timeouts.idle),
                in_bytes(received)
            )
        } else {
            format!(
                "it broke off after {} ({})",
                in_bytes(received),
                innermost(error)
            )
        })
    }

    /// With `change` made to what a server said.
    pub(crate) fn with_said(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Busy {
                message,
                retry_after,
            } => Self::Busy {
                message: change(message),
                retry_after,
            },
            Self::Gateway {
                status,
                message,
                retry_after,
            } => Self::Gateway {
                status,
                message: change(message),
                retry_after,
            },
            Self::Redirect { status, to } => Self::Redirect {
                status,
                to: change(to),
            },
            silent @ (Self::Unsent(_)
            | Self::Certificate(_)
            | Self::Untrusted(_)
            | Self::Lost(_)
            | Self::Cut(_)
            | Self::TooLarge { .. }) => silent,
        }
    }

    /// The request was surely not looked at, whatever it is.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self, Self::Unsent(_) | Self::Busy { .. })
    }

    /// A request with this effect may be sent again after this.
    pub(crate) fn is_passing(&self, effect: Effect) -> bool {
        let lost = matches!(self, Self::Lost(_) | Self::Cut(_) | Self::Gateway { .. });
        self.is_untouched() || (effect == Effect::None && lost)
    }

    /// When to send again, by what was answered.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } | Self::Gateway { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// As the caller is told.
    pub(crate) fn into_error(self, what: &str, host: &str, effect: Effect) -> Error {
        let what = what.to_owned();
        let host = host.to_owned();
        match (self, effect) {
            (Self::Certificate(detail), _) => Error::Certificate { host, detail },
            (Self::Untrusted(refusal), _) => Error::Untrusted { host, refusal },
            (Self::Unsent(detail), _) | (Self::Lost(detail), Effect::None) => {
                Error::Unreachable { what, host, detail }
            }
            (Self::Lost(detail), Effect::Change) => Error::Unknown { what, detail },
            (Self::Cut(detail), Effect::None) => Error::Unreadable { what, detail },
            (Self::Cut(detail), Effect::Change) => Error::Unknown { what, detail },
            (Self::Busy { message, .. }, _) => Error::Refused {
                what,
                status: StatusCode::TOO_MANY_REQUESTS.as_u16(),
                message,
            },
            (
                Self::Gateway {
                    status, message, ..
                },
                Effect::None,
            ) => Error::Refused {
                what,
                status: status.as_u16(),
                message,
            },
            (
                Self::Gateway {
                    status, message, ..
                },
                Effect::Change,
            ) => Error::Unknown {
                what,
                detail: format!("a gateway answered {}: {message}", status.as_u16()),
            },
            (Self::Redirect { status, to }, _) => Error::Refused {
                what,
                status: status.as_u16(),
                message: format!(
                    "it redirects to {to}, which is not followed; check the URL of the ZVM"
                ),
            },
            (Self::TooLarge { limit }, Effect::None) => Error::TooLarge {
                what,
                limit,
                unit: "bytes",
            },
            (Self::TooLarge { limit }, Effect::Change) => Error::Unknown {
                what,
                detail: format!("the answer is larger than {limit} bytes"),
            },
        }
    }
}

pub(crate) fn in_bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The certificate error below an error.
fn certificate_error<'a>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a rustls::CertificateError> {
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(certificate)) => Some(certificate),
        _ => None,
    }
}

/// The error of TLS below an error. An `io::Error` hides what it wraps from `source`.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// The error at the bottom, in words: the others only say that there is one below.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    if let Some(tls) = tls_error(error) {
        return tls::in_words(tls);
    }
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    match last.downcast_ref::<io::Error>().map(io::Error::kind) {
        // rustls has a whole story about this, with a link.
        Some(io::ErrorKind::UnexpectedEof) => "the connection was closed".into(),
        _ => {
            let said = decode::line(&last.to_string());
            let name = said.strip_prefix("failed to lookup address information: ");
            name.map(str::to_owned).unwrap_or(said)
        }
    }
}
