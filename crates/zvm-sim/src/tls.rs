//! The appliance's own certificate.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};

/// The certificate could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Making it failed.
    #[error("can't make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Using it failed.
    #[error("can't use the certificate: {0}")]
    Use(#[from] rustls::Error),
    /// Its file can't be read or written.
    #[error("certificate {path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// A certificate with its key, ready to serve.
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) ca_file: PathBuf,
    /// SHA-256 of the certificate's DER, in small hexadecimal letters.
    pub(crate) fingerprint: String,
}

/// Takes the certificate that the folder has, or makes one.
pub(crate) fn identity(folder: &Path, listen: IpAddr) -> Result<Identity, TlsError> {
    let (certificate_file, key_file) = files(folder);
    if certificate_file.exists() && key_file.exists() {
        load(certificate_file, &key_file)
    } else {
        renew(folder, listen)
    }
}

fn files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("zvm.crt"), folder.join("zvm.key"))
}

/// Makes a new certificate in place of the one that the folder may have.
pub(crate) fn renew(folder: &Path, listen: IpAddr) -> Result<Identity, TlsError> {
    let mut names: Vec<String> = ["localhost", "zvm.local", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .into();
    if !listen.is_unspecified() && !listen.is_loopback() {
        names.push(listen.to_string());
    }
    let mut parameters = CertificateParams::new(names)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, "Simulated ZVM");
    let day = |date: jiff::civil::Date| {
        rcgen::date_time_ymd(
            i32::from(date.year()),
            u8::try_from(date.month()).unwrap_or(1),
            u8::try_from(date.day()).unwrap_or(1),
        )
    };
    let today = jiff::tz::Offset::UTC
        .to_datetime(jiff::Timestamp::now())
        .date();
    let (from, until) = (
        today.saturating_sub(jiff::Span::new().days(1)),
        today.saturating_add(jiff::Span::new().days(365)),
    );
    parameters.not_before = day(from);
    parameters.not_after = day(until);
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    let (certificate_file, key_file) = files(folder);
    write(&certificate_file, &certificate.pem())?;
    write(&key_file, &key.serialize_pem())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    serve(certificate.der().clone(), key, certificate_file)
}

fn load(certificate_file: PathBuf, key_file: &Path) -> Result<Identity, TlsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error: rustls::pki_types::pem::Error| TlsError::File {
            path,
            reason: error.to_string(),
        }
    };
    let certificate =
        CertificateDer::from_pem_file(&certificate_file).map_err(unreadable(&certificate_file))?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(unreadable(key_file))?;
    serve(certificate, key, certificate_file)
}

fn write(path: &Path, text: &str) -> Result<(), TlsError> {
    let failed = |error: std::io::Error| TlsError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    std::fs::write(path, text).map_err(failed)
}

fn serve(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    ca_file: PathBuf,
) -> Result<Identity, TlsError> {
    let fingerprint = Sha256::digest(&certificate)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    // A cut connection is the point of some faults, so each request has a connection of its own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Identity {
        config: Arc::new(config),
        ca_file,
        fingerprint,
    })
}
