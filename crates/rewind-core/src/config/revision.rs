//! Which content a configuration came from.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// A file of certificates larger than this is not one.
const CA_FILE_MAX_BYTES: u64 = 16 << 20;

/// A digest of everything that a configuration was read from. It is of a secret, too, so it is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Revision([u8; 32]);

impl Revision {
    /// A file of certificates that can't be read is an error where it is used, not here.
    pub(super) fn of(text: &str, secret: Option<&SecretString>, ca_file: Option<&Path>) -> Self {
        let mut hash = Sha256::new();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
        let secret = secret.map(ExposeSecret::expose_secret).unwrap_or_default();
        hash.update((secret.len() as u64).to_be_bytes());
        hash.update(secret);
        if let Some(file) = ca_file.and_then(|file| File::open(file).ok())
            && let Err(error) = io::copy(&mut file.take(CA_FILE_MAX_BYTES), &mut Hashing(&mut hash))
        {
            tracing::debug!(%error, "the file of certificates can't be read");
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Revision")
    }
}

struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
