//! Whose certificate is accepted.

use std::{fs, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
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
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Config(format!("TLS can't be set up: {error}")))?;
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        TlsTrust::Any => Arc::new(AnyCertificate { provider }),
        TlsTrust::System => Arc::new(Verifier::new(provider).map_err(|error| {
            Error::Config(format!(
                "the system's certificate authorities can't be read: {error}"
            ))
        })?),
        TlsTrust::CaFile(path) => Arc::new(OnlyThese::read(path, provider)?),
    };
    let verifier = match judge {
        Some(judge) => Arc::new(Judged {
            inner: verifier,
            judge: Arc::clone(judge),
        }),
        None => verifier,
    };
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    if judge.is_some() {
        // A resumed session shows no certificate, and each connection is to be judged.
        config.resumption = Resumption::disabled();
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Any certificate is accepted, but the server must hold its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What another verifier accepts, if the judge does, too.
#[derive(Debug)]
struct Judged {
    inner: Arc<dyn ServerCertVerifier>,
    judge: Arc<dyn CertificateJudge>,
}

impl Judged {
    /// After the signature, so that nobody's certificate is remembered who only played it back. Every handshake has one, as
    /// there is no resumption.
    fn judged(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let refused = |refusal| CertificateError::Other(OtherError(Arc::new(refusal)));
        self.judge
            .judge(Fingerprint::of(certificate))
            .map_err(|refusal| refused(refusal).into())
    }
}

impl ServerCertVerifier for Judged {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.inner
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let valid = self
            .inner
            .verify_tls12_signature(message, certificate, signature)?;
        self.judged(certificate)?;
        Ok(valid)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let valid = self
            .inner
            .verify_tls13_signature(message, certificate, signature)?;
        self.judged(certificate)?;
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Only what the certificates of one PEM file vouch for.
///
/// An appliance's self-signed certificate usually calls itself an authority (that is what `openssl req -x509` makes), and WebPKI
/// refuses an authority as a server's own certificate. So the very certificate of the file is accepted, too, if its dates and
/// its name are right.
#[derive(Debug)]
struct OnlyThese {
    certificates: Vec<CertificateDer<'static>>,
    inner: Arc<WebPkiServerVerifier>,
}

impl OnlyThese {
    fn read(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let wrong = |why: String| {
            Error::Config(format!(
                "the CA file {} can't be used: {why}",
                path.display()
            ))
        };
        let pem = fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong(
                "there is no certificate in it (PEM is expected)".into(),
            ));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| wrong(error.to_string()))?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            certificates,
            inner,
        })
    }
}

impl ServerCertVerifier for OnlyThese {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // WebPKI has looked at the dates before it gets to this (an authority used as a server).
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.certificates.iter().any(|known| known == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What the judge said, where it was the judge that refused.
pub(crate) fn refusal(error: &CertificateError) -> Option<&CertificateRefusal> {
    match error {
        CertificateError::Other(OtherError(inner)) => inner.downcast_ref(),
        _ => None,
    }
}

/// What to do about a certificate that was not accepted.
pub(crate) fn advice(error: &CertificateError) -> String {
    let what_to_do = match error {
        CertificateError::UnknownIssuer => {
            "it is signed by no authority that is trusted here. Appliances come with a self-signed certificate: \
             give its PEM file as the CA file (ca_file), or accept any certificate (verify_tls: false)"
        }
        CertificateError::BadSignature => {
            "it is not signed by the authority that it names, as that is known here (has it been renewed since?), or the server \
             does not hold its key. Give its present PEM file as the CA file (ca_file), once you know it to be right"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is made out to another name. Use a name or address of the certificate in the URL, \
             or accept any certificate (verify_tls: false)"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "it is not valid at this time. Renew it on the appliance, and check the clock of this machine"
        }
        _ => "renew it on the appliance, or accept any certificate (verify_tls: false)",
    };
    format!("{error}: {what_to_do}")
}
