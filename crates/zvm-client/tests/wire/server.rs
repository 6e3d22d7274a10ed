//! A TLS server that answers as it is told.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use url::Url;
use zvm_client::{Credentials, NoLoginGate, Timeouts, TlsTrust, Zvm, ZvmConfig};

pub const TOKEN_PATH: &str = "/auth/realms/zerto/protocol/openid-connect/token";
pub const TOKEN: &str = r#"{"access_token":"access-1","expires_in":300,"refresh_expires_in":1800,"refresh_token":"refresh-1"}"#;

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// With the query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn is_token(&self) -> bool {
        self.target == TOKEN_PATH
    }

    /// `METHOD target`
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// What the server does about a request.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    /// Waits for the test.
    Wait(Arc<Notify>),
    /// Says nothing more, and keeps the connection.
    Hang,
    /// Ends the connection, with a proper goodbye of TLS.
    Close,
    /// Ends the connection without one.
    Drop,
}

pub type Reply = Vec<Step>;

/// A whole answer; the connection stays.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    vec![Step::Send([head.as_bytes(), body].concat())]
}

pub fn ok(body: impl AsRef<[u8]>) -> Reply {
    answer(
        200,
        &[("content-type", "application/json; charset=utf-8")],
        body,
    )
}

pub fn raw(bytes: impl AsRef<[u8]>, end: Step) -> Reply {
    vec![Step::Send(bytes.as_ref().to_vec()), end]
}

pub struct Server {
    pub address: SocketAddr,
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
    seen: Arc<Mutex<Vec<Request>>>,
    hung_up: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers token requests with [`TOKEN`] and every other request as `handler` says.
    pub async fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::plain(move |request| {
            if request.is_token() {
                ok(TOKEN)
            } else {
                handler(request)
            }
        })
        .await
    }

    /// Answers every request as `handler` says.
    pub async fn plain(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let config = server_config(vec![certificate.clone()], &key);
        Self::with(config, certificate, handler).await
    }

    pub async fn with(
        config: rustls::ServerConfig,
        certificate: CertificateDer<'static>,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let handler = Arc::new(handler);
        let (hung_up, watching) = watch::channel(false);
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                let mut connections = tokio::task::JoinSet::new();
                loop {
                    let (tcp, _) = listener.accept().await.unwrap();
                    let (acceptor, seen, handler) =
                        (acceptor.clone(), Arc::clone(&seen), Arc::clone(&handler));
                    let mut watching = watching.clone();
                    connections.spawn(async move {
                        let talk = async {
                            // A client that does not like the certificate hangs up; what it did is for the test to see.
                            if let Ok(mut tls) = acceptor.accept(tcp).await {
                                while serve(&mut tls, &seen, &*handler).await.is_some() {}
                            }
                        };
                        tokio::select! {
                            biased;
                            _ = watching.wait_for(|hung_up| *hung_up) => {}
                            () = talk => {}
                        }
                    });
                }
            }
        });
        Self {
            address,
            certificate,
            seen,
            hung_up,
            task,
        }
    }

    /// Ends every connection, and new ones before TLS. The port stays taken: another test can't get it.
    pub fn hang_up(&self) {
        self.hung_up.send_replace(true);
    }

    pub fn url(&self) -> Url {
        Url::parse(&format!("https://{}/", self.address)).unwrap()
    }

    pub fn config(&self) -> ZvmConfig {
        config(self.url())
    }

    pub fn zvm(&self) -> Zvm {
        Zvm::new(self.config(), Arc::new(NoLoginGate)).unwrap()
    }

    /// With limits that a test can wait for.
    pub fn zvm_with(&self, timeouts: Timeouts) -> Zvm {
        Zvm::new(
            ZvmConfig {
                timeouts,
                ..self.config()
            },
            Arc::new(NoLoginGate),
        )
        .unwrap()
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests for a token.
    pub fn logins(&self) -> Vec<Request> {
        self.seen().into_iter().filter(Request::is_token).collect()
    }

    /// All others.
    pub fn calls(&self) -> Vec<Request> {
        self.seen()
            .into_iter()
            .filter(|request| !request.is_token())
            .collect()
    }
}

pub fn config(url: Url) -> ZvmConfig {
    ZvmConfig {
        url,
        credentials: Credentials::Password {
            username: "admin".into(),
            password: "p&ss wörd".into(),
        },
        tls: TlsTrust::Any,
        judge: None,
        timeouts: Timeouts::default(),
    }
}

pub fn timeouts(idle: Duration, total: Duration) -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(5),
        idle,
        total,
    }
}

pub fn server_config(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> rustls::ServerConfig {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    builder().with_single_cert(chain, key).unwrap()
}

pub fn builder() -> rustls::ConfigBuilder<rustls::ServerConfig, rustls::server::WantsServerCert> {
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
}

type Tls = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;

/// One request and its answer; None where the connection is over.
async fn serve(
    tls: &mut Tls,
    seen: &Mutex<Vec<Request>>,
    handler: &(dyn Fn(&Request) -> Reply + Send + Sync),
) -> Option<()> {
    let request = read(tls).await?;
    // What has been seen can be counted before the answer is out.
    seen.lock().unwrap().push(request.clone());
    for step in handler(&request) {
        match step {
            Step::Send(bytes) => {
                tls.write_all(&bytes).await.ok()?;
                tls.flush().await.ok()?;
            }
            Step::Wait(notify) => notify.notified().await,
            Step::Hang => std::future::pending().await,
            Step::Close => {
                tls.shutdown().await.ok()?;
                return None;
            }
            Step::Drop => return None,
        }
    }
    Some(())
}

async fn read(tls: &mut Tls) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if tls.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (
        first.next().unwrap().to_owned(),
        first.next().unwrap().to_owned(),
    );
    let headers: Vec<(String, String)> = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
    let mut request = Request {
        method,
        target,
        headers,
        body: String::new(),
    };
    let length: usize = request
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while bytes.len() < end + 4 + length {
        if tls.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    request.body = String::from_utf8(bytes[end + 4..end + 4 + length].to_vec()).unwrap();
    Some(request)
}
