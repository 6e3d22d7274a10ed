//! What stands between a client and the simulated ZVM and breaks connections. Each request of the client has a connection of its own.
use crate::{
    clock::Clock,
    step::{Request, Step},
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
    time::sleep,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server::TlsStream};

/// How long nothing listens where a connection is refused once: shorter than until the next try.
const MOMENT: Duration = Duration::from_millis(200);
const DRIP_EVERY: Duration = Duration::from_secs(5);

/// What is done to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Nothing listens.
    Refuse,
    /// It is reset, before the request has arrived.
    Reset,
    /// Nothing arrives and nothing is answered.
    Swallow,
    /// The body of the answer comes a byte at a time.
    Drip,
    /// The answer breaks off in the middle of its body.
    CutBody,
}

struct Plan {
    harm: Harm,
    step: Step,
    lasting: bool,
    /// The answers after which the step's request comes, and how often it was made.
    answers: usize,
    requests: u32,
}

/// How new connections are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Open,
    /// Nobody listens.
    Shut,
    Resets,
    Swallows,
}

struct Shared {
    door: watch::Sender<Door>,
    /// Whether somebody listens.
    listening: watch::Sender<bool>,
    plan: Mutex<Option<Plan>>,
    /// How often harm was done.
    met: AtomicUsize,
    /// Requests that did not get to the simulator.
    lost: AtomicUsize,
    clock: Clock,
    sim: SocketAddr,
    accepts: TlsAcceptor,
    connects: TlsConnector,
    /// A connection to the simulator, for the next request.
    upstream: Mutex<Option<client::TlsStream<TcpStream>>>,
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
    /// Keeps the port while nobody listens on it.
    _port: TcpSocket,
}

impl Proxy {
    /// Before the simulator at `url`, with its certificate.
    pub fn start(url: &str, certificate: &Path, clock: Clock) -> Self {
        let port = socket();
        port.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = port.local_addr().unwrap();
        let shared = Arc::new(Shared {
            door: watch::Sender::new(Door::Open),
            listening: watch::Sender::new(false),
            plan: Mutex::new(None),
            met: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            clock,
            sim: url.strip_prefix("https://").unwrap().parse().unwrap(),
            accepts: TlsAcceptor::from(Arc::new(server_config(certificate))),
            connects: TlsConnector::from(Arc::new(client_config(certificate))),
            upstream: Mutex::new(None),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(Arc::clone(&shared), address));
        Self {
            address,
            shared,
            _accepting: accepting,
            _port: port,
        }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Harms the connections of a step: the first, or, where it is lasting, all of its, and where it is one of the network,
    /// every later one, too.
    pub async fn harm(&self, harm: Harm, step: Step, lasting: bool) {
        let at_once = harm == Harm::Refuse && step.after.is_none();
        *self.shared.plan.lock().unwrap() = Some(Plan {
            harm,
            step,
            lasting,
            answers: 0,
            requests: 0,
        });
        if at_once {
            self.shared.shut(step, lasting).await;
        }
    }

    /// Harms nothing any more.
    pub fn heal(&self) {
        *self.shared.plan.lock().unwrap() = None;
        self.shared.door.send_replace(Door::Open);
    }

    /// How often harm was done.
    pub fn met(&self) -> usize {
        self.shared.met.load(Ordering::Relaxed)
    }

    /// How many of these requests arrived here and not at the simulator.
    pub fn lost(&self, request: Request) -> usize {
        let plan = self.shared.plan.lock().unwrap();
        let lost = self.shared.lost.load(Ordering::Relaxed);
        plan.as_ref()
            .filter(|plan| plan.step.request == request)
            .map_or(0, |_| lost)
    }
}

impl Shared {
    /// What befalls this request.
    fn befalls(&self, method: &str, path: &str) -> Option<(Harm, bool)> {
        let mut plan = self.plan.lock().unwrap();
        let plan = plan.as_mut()?;
        if plan.harm == Harm::Refuse || !plan.step.request.is(method, path) {
            return None;
        }
        plan.requests += 1;
        let nth = plan.requests.checked_sub(plan.step.skip)?;
        let befalls = nth == 1 || (nth > 1 && plan.lasting);
        befalls.then(|| {
            self.met.fetch_add(1, Ordering::Relaxed);
            (plan.harm, plan.lasting)
        })
    }

    /// Whether connections are to be refused from this answer on.
    fn refuses_after(&self, method: &str, path: &str) -> Option<(Step, bool)> {
        let mut plan = self.plan.lock().unwrap();
        let plan = plan.as_mut().filter(|plan| plan.harm == Harm::Refuse)?;
        let (request, nth) = plan.step.after?;
        if !request.is(method, path) {
            return None;
        }
        plan.answers += 1;
        (plan.answers == nth).then_some((plan.step, plan.lasting))
    }

    async fn shut(self: &Arc<Self>, step: Step, lasting: bool) {
        self.met.fetch_add(1, Ordering::Relaxed);
        self.door.send_replace(Door::Shut);
        let mut listening = self.listening.subscribe();
        let _ = listening.wait_for(|listening| !listening).await;
        if !lasting {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                sleep(step.pause + MOMENT).await;
                shared.door.send_replace(Door::Open);
            });
        }
    }

    async fn serve(self: &Arc<Self>, tcp: TcpStream) -> io::Result<()> {
        let door = *self.door.borrow();
        match door {
            Door::Open | Door::Shut => {}
            Door::Resets => return tcp.set_zero_linger(),
            Door::Swallows => return swallow(tcp).await,
        }
        let mut tls = self.accepts.accept(tcp).await?;
        let Some(message) = Message::read(&mut tls).await? else {
            return Ok(());
        };
        let harm = self.befalls(&message.method, &message.path);
        if matches!(harm, Some((Harm::Reset | Harm::Swallow, _))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        match harm {
            Some((Harm::Reset, lasting)) => {
                if lasting {
                    self.door.send_replace(Door::Resets);
                }
                return tls.get_ref().0.set_zero_linger();
            }
            Some((Harm::Swallow, lasting)) => {
                if lasting {
                    self.door.send_replace(Door::Swallows);
                }
                return swallow(tls).await;
            }
            _ => {}
        }
        let answer = self.forward(&message).await?;
        if let Some((step, lasting)) = self.refuses_after(&message.method, &message.path) {
            self.shut(step, lasting).await;
        }
        match harm {
            Some((Harm::Drip, _)) => self.drip(&mut tls, &answer).await,
            Some((Harm::CutBody, _)) => {
                let body = body_of(&answer);
                tls.write_all(&answer[..body + (answer.len() - body) / 2])
                    .await?;
                tls.flush().await
            }
            _ => {
                tls.write_all(&answer).await?;
                tls.shutdown().await
            }
        }
    }

    async fn forward(&self, message: &Message) -> io::Result<Vec<u8>> {
        let kept = self.upstream.lock().unwrap().take();
        let mut tls = match kept {
            Some(tls) => tls,
            None => {
                let tcp = TcpStream::connect(self.sim).await?;
                let name = ServerName::from(self.sim.ip());
                self.connects.connect(name, tcp).await?
            }
        };
        tls.write_all(&message.bytes).await?;
        let mut answer = Vec::new();
        while !is_complete(&answer) {
            if tls.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        *self.upstream.lock().unwrap() = Some(tls);
        let status = answer.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1;
        answer.splice(status..status, *b"connection: close\r\n");
        Ok(answer)
    }

    async fn drip(&self, tls: &mut TlsStream<TcpStream>, answer: &[u8]) -> io::Result<()> {
        let (head, body) = answer.split_at(body_of(answer));
        tls.write_all(head).await?;
        tls.flush().await?;
        let _push = self.clock.push();
        for byte in body.chunks(1) {
            sleep(DRIP_EVERY).await;
            tls.write_all(byte).await?;
            tls.flush().await?;
        }
        Ok(())
    }
}

async fn accept(shared: Arc<Shared>, address: SocketAddr) {
    let mut door = shared.door.subscribe();
    let mut connections = JoinSet::new();
    let mut listener = None::<TcpListener>;
    loop {
        let shut = *door.borrow_and_update() == Door::Shut;
        if shut {
            listener = None;
        } else if listener.is_none() {
            listener = Some(listen(address));
        }
        shared.listening.send_replace(listener.is_some());
        let next = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = door.changed() => if changed.is_err() { return },
            accepted = next => {
                let (tcp, _) = accepted.unwrap();
                let shared = Arc::clone(&shared);
                connections.spawn(async move { shared.serve(tcp).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Takes what comes and answers nothing, until the other side has enough.
async fn swallow(mut from: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut buffer = [0; 1024];
    while from.read(&mut buffer).await? > 0 {}
    Ok(())
}

struct Message {
    method: String,
    path: String,
    bytes: Vec<u8>,
}

impl Message {
    /// None: the connection was closed without one.
    async fn read(tls: &mut TlsStream<TcpStream>) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        while body_of(&bytes) == bytes.len() && !bytes.ends_with(b"\r\n\r\n") {
            if tls.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
        let body = body_of(&bytes);
        let head = head_of(&bytes);
        let mut first = head.lines().next().unwrap_or_default().split(' ');
        let method = first.next().unwrap_or_default().to_owned();
        let target = first.next().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let length = length_in(&head).unwrap_or(0);
        while bytes.len() < body + length {
            if tls.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(Self {
            method,
            path,
            bytes,
        }))
    }
}

/// Where the body begins; the end, where it has not come yet.
fn body_of(message: &[u8]) -> usize {
    message
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map_or(message.len(), |end| end + 4)
}

fn head_of(message: &[u8]) -> String {
    String::from_utf8_lossy(&message[..body_of(message)]).into_owned()
}

fn length_in(head: &str) -> Option<usize> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map(|(_, length)| length.parse().unwrap())
}

fn is_complete(answer: &[u8]) -> bool {
    let body = body_of(answer);
    let head = head_of(answer);
    match length_in(&head) {
        _ if !head.ends_with("\r\n\r\n") => false,
        Some(length) => answer.len() >= body + length,
        None if head.contains("chunked") => answer.ends_with(b"\r\n0\r\n\r\n"),
        None => true,
    }
}

fn socket() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    #[cfg(unix)]
    socket.set_reuseport(true).unwrap();
    socket
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = socket();
    socket.bind(address).unwrap();
    socket.listen(64).unwrap()
}

fn server_config(certificate: &Path) -> ServerConfig {
    let key = PrivateKeyDer::from_pem_file(certificate.with_file_name("zvm.key")).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(certificate).unwrap()],
            key,
        )
        .unwrap()
}

fn client_config(certificate: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).unwrap())
        .unwrap();
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
