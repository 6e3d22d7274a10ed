//! Whose certificate is accepted, and what is said about others.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};
use url::Url;
use zvm_client::{
    CertificateJudge, CertificateRefusal, Error, Fingerprint, NoLoginGate, Timeouts, TlsTrust, Zvm,
    ZvmConfig, authorities, shown_certificate,
};

use crate::server::{Server, Step, builder, config, ok, server_config};

const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

async fn serving(params: &CertificateParams) -> Server {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    Server::with(
        server_config(vec![certificate.clone()], &key),
        certificate,
        |_| site(),
    )
    .await
}

fn site() -> crate::server::Reply {
    // One answer for the token and for the site.
    ok(r#"{"access_token":"a","expires_in":300,"SiteIdentifier":"s"}"#)
}

fn pem(path: &Path, certificate: &CertificateDer<'_>) -> TlsTrust {
    let base64 = {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        certificate
            .chunks(3)
            .flat_map(|chunk| {
                let bits = chunk
                    .iter()
                    .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                    << (8 * (3 - chunk.len()));
                (0..4).map(move |place| match place <= chunk.len() {
                    true => char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]),
                    false => '=',
                })
            })
            .collect::<String>()
    };
    std::fs::write(
        path,
        format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n"),
    )
    .unwrap();
    TlsTrust::CaFile(path.to_owned())
}

async fn ask(url: Url, tls: TlsTrust) -> Result<(), Error> {
    let zvm = Zvm::new(ZvmConfig { tls, ..config(url) }, Arc::new(NoLoginGate))?;
    zvm.local_site().await.map(drop)
}

/// By name.
fn by_name(server: &Server) -> Url {
    Url::parse(&format!("https://localhost:{}/", server.address.port())).unwrap()
}

#[tokio::test]
async fn any_certificate_serves_by_name_and_by_address() {
    for server in [
        serving(&params(&NAMES)).await,
        serving(&params(&["elsewhere.example"])).await,
    ] {
        ask(server.url(), TlsTrust::Any).await.unwrap();
        ask(by_name(&server), TlsTrust::Any).await.unwrap();
    }
    let mut old = params(&NAMES);
    old.not_after = date_time_ymd(2001, 1, 1);
    ask(serving(&old).await.url(), TlsTrust::Any).await.unwrap();
}

/// Accepts one, and keeps what it was asked about.
#[derive(Debug)]
struct Only(Fingerprint, Mutex<Vec<Fingerprint>>);

impl Only {
    fn this(expected: Fingerprint) -> Arc<Self> {
        Arc::new(Self(expected, Mutex::default()))
    }

    fn asked(&self) -> Vec<Fingerprint> {
        self.1.lock().unwrap().clone()
    }
}

impl CertificateJudge for Only {
    fn judge(&self, shown: Fingerprint) -> Result<(), CertificateRefusal> {
        self.1.lock().unwrap().push(shown);
        if shown == self.0 {
            return Ok(());
        }
        Err(CertificateRefusal::Changed {
            expected: self.0,
            shown,
            configured: true,
        })
    }
}

async fn ask_judge(url: Url, tls: TlsTrust, judge: &Arc<Only>, times: usize) -> Result<(), Error> {
    let config = ZvmConfig {
        tls,
        judge: Some(judge.clone()),
        ..config(url)
    };
    let zvm = Zvm::new(config, Arc::new(NoLoginGate))?;
    for _ in 0..times {
        zvm.local_site().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_judge_is_asked_in_every_handshake_before_anything_is_sent() {
    let key = KeyPair::generate().unwrap();
    let certificate = params(&NAMES).self_signed(&key).unwrap().der().clone();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
        tls.send_tls13_tickets = 2;
        // Every answer ends its connection, so that each request needs another one.
        let server = Server::with(tls, certificate.clone(), |_| {
            let mut reply = site();
            reply.push(Step::Close);
            reply
        })
        .await;

        let shown = shown_certificate(&server.url(), &TlsTrust::Any, Timeouts::default())
            .await
            .unwrap();
        assert!(server.seen().is_empty());
        let judge = Only::this(shown);
        ask_judge(server.url(), TlsTrust::Any, &judge, 3)
            .await
            .unwrap();
        let asked = judge.asked();
        assert!(asked.len() >= 4, "a login and three calls: {asked:?}");
        assert!(asked.iter().all(|asked| *asked == shown));

        let before = server.seen().len();
        let judge = Only::this(Fingerprint([7; 32]));
        let error = ask_judge(server.url(), TlsTrust::Any, &judge, 1)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, Error::Untrusted { refusal: CertificateRefusal::Changed { shown: other, .. }, .. } if *other == shown),
            "{error}"
        );
        for fingerprint in [shown, Fingerprint([7; 32])] {
            assert!(
                error.to_string().contains(&fingerprint.to_string()),
                "{error}"
            );
        }
        assert_eq!(server.seen().len(), before, "something was sent");
        assert_eq!(judge.asked().len(), 1, "it is not tried again");
    }
}

#[tokio::test]
async fn a_judge_comes_on_top_of_what_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (server, other) = (
        serving(&params(&NAMES)).await,
        serving(&params(&NAMES)).await,
    );
    let shown = shown_certificate(&server.url(), &TlsTrust::Any, Timeouts::default())
        .await
        .unwrap();
    let file = folder.path().join("zvm.pem");
    let judge = Only::this(shown);
    ask_judge(server.url(), pem(&file, &server.certificate), &judge, 1)
        .await
        .unwrap();
    // The judge would accept it, the authority does not.
    let error = ask_judge(server.url(), pem(&file, &other.certificate), &judge, 1)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");
    // What is looked at is looked at with the same eyes.
    for (certificate, accepted) in [(&server.certificate, true), (&other.certificate, false)] {
        let trust = pem(&file, certificate);
        assert_eq!(authorities(&file).unwrap(), 1);
        let looked = shown_certificate(&server.url(), &trust, Timeouts::default()).await;
        assert_eq!(looked.ok(), accepted.then_some(shown));
    }
    pem(&file, &server.certificate);
    // The other way round.
    let judge = Only::this(Fingerprint([0; 32]));
    let error = ask_judge(server.url(), pem(&file, &server.certificate), &judge, 1)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
}

#[tokio::test]
async fn any_certificate_still_means_that_the_server_holds_its_key() {
    #[derive(Debug)]
    struct Fixed(Arc<CertifiedKey>);
    impl rustls::server::ResolvesServerCert for Fixed {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = params(&NAMES).self_signed(&key).unwrap().der().clone();
    let stolen =
        any_supported_type(&PrivateKeyDer::try_from(other.serialize_der()).unwrap()).unwrap();
    let resolver = Fixed(Arc::new(CertifiedKey::new(
        vec![certificate.clone()],
        stolen,
    )));
    let server = Server::with(
        builder().with_cert_resolver(Arc::new(resolver)),
        certificate,
        |_| site(),
    )
    .await;
    let error = ask(server.url(), TlsTrust::Any).await.unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");
    // Nobody is asked about a certificate that was only played back: it must not be remembered.
    let judge = Only::this(Fingerprint([0; 32]));
    let error = ask_judge(server.url(), TlsTrust::Any, &judge, 1)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");
    assert!(judge.asked().is_empty());
    shown_certificate(&server.url(), &TlsTrust::Any, Timeouts::default())
        .await
        .unwrap_err();
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn the_system_does_not_vouch_for_a_self_signed_certificate() {
    let server = serving(&params(&NAMES)).await;
    let error = ask(server.url(), TlsTrust::System).await.unwrap_err();
    match &error {
        Error::Certificate { host, detail } => {
            assert_eq!(*host, format!("127.0.0.1:{}", server.address.port()));
            assert!(
                detail.contains("ca_file") && detail.contains("verify_tls"),
                "{detail}"
            );
        }
        // A machine without any authority can't verify at all, and says so.
        Error::Config(why) => assert!(why.contains("certificate authorities"), "{why}"),
        _ => panic!("{error}"),
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_ca_file_vouches_for_what_it_signed() {
    let folder = tempfile::tempdir().unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = params(&["Our Authority"]);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let trust = pem(&folder.path().join("ca.pem"), ca_certificate.der());
    let issuer = Issuer::new(ca, ca_key);

    let key = KeyPair::generate().unwrap();
    let certificate = params(&NAMES)
        .signed_by(&key, &issuer)
        .unwrap()
        .der()
        .clone();
    let server = Server::with(
        server_config(vec![certificate.clone()], &key),
        certificate,
        |_| site(),
    )
    .await;
    ask(server.url(), trust.clone()).await.unwrap();
    ask(by_name(&server), trust.clone()).await.unwrap();

    // A stranger, and one that claims to be signed by the authority.
    let mut named = params(&NAMES);
    named
        .distinguished_name
        .push(DnType::CommonName, "Somebody");
    for (params, says) in [
        (named, "no authority that is trusted"),
        (params(&NAMES), "renewed"),
    ] {
        let stranger = serving(&params).await;
        let error = ask(stranger.url(), trust.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Certificate { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(stranger.seen().is_empty());
    }
}

/// The appliance's own certificate as the CA file; `openssl req -x509` makes it an authority.
#[tokio::test]
async fn a_ca_file_vouches_for_the_certificate_that_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zvm.pem");
    let mut authority = params(&NAMES);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for params in [params(&NAMES), authority.clone()] {
        let server = serving(&params).await;
        let trust = pem(&file, &server.certificate);
        ask(server.url(), trust.clone()).await.unwrap();
        ask(by_name(&server), trust).await.unwrap();
    }

    // Another one of the same names, another name, another time.
    let (server, other) = (serving(&authority).await, serving(&authority).await);
    let error = ask(server.url(), pem(&file, &other.certificate))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");

    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut elsewhere = params(&["elsewhere.example"]);
        elsewhere.is_ca = is_ca;
        let server = serving(&elsewhere).await;
        let error = ask(server.url(), pem(&file, &server.certificate))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Certificate { .. }), "{error}");
        assert!(error.to_string().contains("another name"), "{error}");

        let (mut old, mut young) = (params(&NAMES), params(&NAMES));
        old.not_after = date_time_ymd(2001, 1, 1);
        young.not_before = date_time_ymd(3000, 1, 1);
        young.not_after = date_time_ymd(3001, 1, 1);
        for (mut params, says) in [(old, "has expired"), (young, "not valid yet")] {
            params.is_ca = is_ca;
            let server = serving(&params).await;
            let error = ask(server.url(), pem(&file, &server.certificate))
                .await
                .unwrap_err();
            assert!(matches!(error, Error::Certificate { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[tokio::test]
async fn a_ca_file_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let url = Url::parse("https://127.0.0.1:1/").unwrap();
    for content in [
        None,
        Some("hello"),
        Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let error = ask(url.clone(), TlsTrust::CaFile(file.clone()))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error}");
        assert!(error.to_string().contains("ca.pem"), "{error}");
    }
}

#[tokio::test]
async fn a_port_that_does_not_speak_tls_is_not_about_certificates() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("https://{}/", listener.local_addr().unwrap())).unwrap();
    let plain = async {
        loop {
            let (mut tcp, _): (TcpStream, _) = listener.accept().await.unwrap();
            tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await
                .ok();
        }
    };
    let error = tokio::select! {
        error = ask(url, TlsTrust::Any) => error.unwrap_err(),
        () = plain => unreachable!(),
    };
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}
