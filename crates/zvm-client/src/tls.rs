//! Whose certificate is accepted.

use std::{fmt, fs, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use rustls_platform_verifier::Verifier;

use crate::{CertificateJudge, CertificateRefusal, Error, Fingerprint, TlsTrust};

/// The TLS configuration. Reads files: not for an async thread.
pub(crate) fn client_config(
    trust: &TlsTrust,
    judge: Option<&Arc<dyn CertificateJudge>>,
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = CertificateVerifier {
        algorithms: provider.signature_verification_algorithms,
        authority: Authority::of(trust, &provider)?,
        judge: judge.cloned(),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Config(format!("TLS can't be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    if judge.is_some() {
        // A resumed session shows no certificate, and each connection is to be judged.
        config.resumption = Resumption::disabled();
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// How many certificates a PEM file has that authorities are taken from. Reads the file.
///
/// # Errors
/// `Config`: it can't be read, or is not one.
pub fn authorities(file: &Path) -> Result<usize, Error> {
    certificates(file).map(|certificates| certificates.len())
}

/// Verifies what an authority vouches for, that the server holds the certificate's key, and what the judge says, if there is one.
#[derive(Debug)]
struct CertificateVerifier {
    authority: Authority,
    judge: Option<Arc<dyn CertificateJudge>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Who vouches for a certificate.
#[derive(Debug)]
enum Authority {
    /// Nobody: any certificate will do.
    Nobody,
    /// The system's roots.
    System(Verifier),
    /// The certificates of one PEM file.
    ///
    /// An appliance's self-signed certificate usually calls itself an authority (that is what `openssl req -x509` makes), and
    /// WebPKI refuses an authority as a server's own certificate. So the very certificate of the file is accepted, too, if its
    /// dates and its name are right.
    These {
        certificates: Vec<CertificateDer<'static>>,
        verifier: Arc<WebPkiServerVerifier>,
    },
}

impl Authority {
    fn of(trust: &TlsTrust, provider: &Arc<CryptoProvider>) -> Result<Self, Error> {
        let provider = Arc::clone(provider);
        match trust {
            TlsTrust::Any => Ok(Self::Nobody),
            TlsTrust::System => Verifier::new(provider).map(Self::System).map_err(|error| {
                Error::Config(format!(
                    "the system's certificate authorities can't be read: {error}"
                ))
            }),
            TlsTrust::CaFile(file) => {
                let certificates = certificates(file)?;
                let mut roots = RootCertStore::empty();
                for certificate in &certificates {
                    roots
                        .add(certificate.clone())
                        .map_err(|error| unusable(file, error))?;
                }
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|error| unusable(file, error))?;
                Ok(Self::These {
                    certificates,
                    verifier,
                })
            }
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let pem = fs::read(file).map_err(|error| unusable(file, error))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(file, error))?;
    if certificates.is_empty() {
        let why = "there is no certificate in it (PEM is expected)";
        return Err(unusable(file, why));
    }
    Ok(certificates)
}

fn unusable(file: &Path, why: impl fmt::Display) -> Error {
    Error::Config(format!(
        "the CA file {} can't be used: {why}",
        file.display()
    ))
}

impl CertificateVerifier {
    /// After the signature, so that nobody's certificate is remembered who only played it back. Every handshake has one, as
    /// there is no resumption.
    fn judged(
        &self,
        certificate: &CertificateDer<'_>,
        valid: HandshakeSignatureValid,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let Some(judge) = &self.judge else {
            return Ok(valid);
        };
        match judge.judge(Fingerprint::of(certificate)) {
            Ok(()) => Ok(valid),
            Err(refusal) => Err(CertificateError::Other(OtherError(Arc::new(refusal))).into()),
        }
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verifier: &dyn ServerCertVerifier = match &self.authority {
            Authority::Nobody => return Ok(ServerCertVerified::assertion()),
            Authority::System(verifier) => verifier,
            Authority::These { verifier, .. } => &**verifier,
        };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match (&self.authority, verified) {
            // WebPKI has looked at the dates before it gets to this (an authority used as a server).
            (
                Authority::These { certificates, .. },
                Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))),
            ) if certificates.iter().any(|known| known == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            (_, verified) => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let valid = verify_tls12_signature(message, certificate, signature, &self.algorithms)?;
        self.judged(certificate, valid)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let valid = verify_tls13_signature(message, certificate, signature, &self.algorithms)?;
        self.judged(certificate, valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What the judge said, where it was the judge that refused.
pub(crate) fn refusal(error: &CertificateError) -> Option<&CertificateRefusal> {
    match error {
        CertificateError::Other(OtherError(inner)) => inner.downcast_ref(),
        _ => None,
    }
}

/// What is wrong with a certificate that was not accepted, and what to do about it.
pub(crate) fn advice(error: &CertificateError) -> String {
    const PIN: &str = "or let this very certificate be remembered instead (verify_tls: false)";
    match error {
        CertificateError::UnknownIssuer => format!(
            "it is signed by no authority that is trusted here. Appliances come with a self-signed certificate: give its PEM file as \
             the CA file (ca_file), {PIN}"
        ),
        CertificateError::BadSignature => {
            "it is not signed by the authority that it names, as that is known here (has it been renewed since?), or the server does \
             not hold its key. Give its present PEM file as the CA file (ca_file), once you know it to be right"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "it is made out to another name. Use a name or address of the certificate in the URL, {PIN}"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired. Renew it on the appliance, and check the clock of this machine".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet. Check the clocks of this machine and of the appliance".to_owned()
        }
        CertificateError::Revoked => {
            "its authority has revoked it. Renew it on the appliance".to_owned()
        }
        CertificateError::BadEncoding => {
            format!("it can't be read as a certificate. Renew it on the appliance, {PIN}")
        }
        other => format!("it can't be verified ({other}). Renew it on the appliance, {PIN}"),
    }
}

/// Why there is no TLS, but for certificates, and what to do about it.
pub(crate) fn in_words(error: &rustls::Error) -> String {
    use rustls::AlertDescription as Alert;
    const NO_TLS: &str =
        "it does not speak TLS: is this the right port? ZVMs listen on 9669 or 443";
    const OLD: &str = "it speaks no version of TLS that is safe: 1.2 or 1.3 is needed";
    match error {
        rustls::Error::InvalidMessage(_) => NO_TLS.to_owned(),
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(
            Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity,
        ) => OLD.to_owned(),
        rustls::Error::AlertReceived(Alert::UnrecognisedName) => {
            "it does not go by this name: use the name that it knows itself by".to_owned()
        }
        rustls::Error::AlertReceived(Alert::CertificateRequired) => {
            "it asks for a certificate of the client, which a ZVM does not: is this the right port?"
                .to_owned()
        }
        rustls::Error::AlertReceived(alert) => {
            format!("it broke off the TLS handshake ({alert:?}): is this the right port?")
        }
        other => format!(
            "TLS with it failed ({})",
            crate::decode::line(&other.to_string())
        ),
    }
}
