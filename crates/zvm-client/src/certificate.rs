//! Which certificate a ZVM is known by, beside what authorities say.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

/// SHA-256 of a certificate's DER form. Shown as `openssl x509 -fingerprint` shows it: capital hexadecimal digits and colons.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// A text that is not the 64 hexadecimal digits of a SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no SHA-256 fingerprint")]
pub struct NoFingerprint;

impl Fingerprint {
    /// Of a certificate in DER.
    pub(crate) fn of(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    /// Hexadecimal digits in either case, with or without colons and spaces.
    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let digits: String = text
            .chars()
            .filter(|c| *c != ':' && !c.is_whitespace())
            .collect();
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NoFingerprint);
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let two = digits.get(2 * index..2 * index + 2).ok_or(NoFingerprint)?;
            *byte = u8::from_str_radix(two, 16).map_err(|_| NoFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

/// Why a certificate is not the right one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateRefusal {
    /// Another one is expected.
    #[error(
        "is not the one {}: expected SHA-256 {expected}, shown SHA-256 {shown}",
        if *configured { "that the configuration pins" } else { "that was remembered" }
    )]
    Changed {
        /// The one that is expected.
        expected: Fingerprint,
        /// The one that the server shows.
        shown: Fingerprint,
        /// The configuration itself names the expected one.
        configured: bool,
    },
    /// None is known yet, and the first one is not accepted without a person.
    #[error("was never accepted by a person: shown SHA-256 {shown}")]
    FirstUse {
        /// The one that the server shows.
        shown: Fingerprint,
    },
    /// What is known could not be found out.
    #[error("can't be compared with the one that is remembered: {reason}")]
    Undecided {
        /// Why.
        reason: String,
    },
}

/// Asked in every TLS handshake, once the server has proved that it holds the certificate's key, and before anything is sent
/// (blocking calls: short). It comes on top of what [`crate::TlsTrust`] asks for.
pub trait CertificateJudge: fmt::Debug + Send + Sync {
    /// Is this the right one?
    ///
    /// # Errors
    /// Why not: the connection is given up.
    fn judge(&self, shown: Fingerprint) -> Result<(), CertificateRefusal>;
}

/// Accepts none: whoever is asked says which one is shown.
#[derive(Debug)]
pub(crate) struct Look;

impl CertificateJudge for Look {
    fn judge(&self, shown: Fingerprint) -> Result<(), CertificateRefusal> {
        Err(CertificateRefusal::FirstUse { shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_people_write_them() {
        let shown = Fingerprint::of(b"a certificate").to_string();
        assert_eq!(shown.len(), 95);
        let plain = shown.replace(':', "");
        for text in [
            shown.clone(),
            plain.clone(),
            plain.to_lowercase(),
            format!(" {} \n", shown.to_lowercase()),
        ] {
            assert_eq!(
                text.parse(),
                Ok(Fingerprint::of(b"a certificate")),
                "{text}"
            );
        }
        for wrong in [
            "",
            "AB:CD",
            &plain[1..],
            &plain.replace('A', "G"),
            &format!("{plain}00"),
            &"é".repeat(32),
        ] {
            if wrong != plain {
                assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
            }
        }
    }
}
