//! One request, and its answer in bounded memory. Nothing is retried here and nothing is followed.

mod failure;
mod pace;
mod retry;

pub(crate) use failure::{Effect, Failure, in_bytes, seconds};
pub(crate) use pace::Pace;
pub(crate) use retry::Retrying;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, RequestBuilder, Response, StatusCode, header, redirect};
use tokio::{sync::OnceCell, time::Instant};
use url::{Host, Url};

use crate::{
    CertificateJudge, CertificateRefusal, Error, Fingerprint, Timeouts, TlsTrust, ZvmConfig,
    certificate::Look, config, decode, tls,
};

/// Of an answer that is no success.
const ERROR_BODY: usize = 64 << 10;

/// A connection that idles for longer is not used again: appliances close theirs after a minute or so, and a POST that meets
/// the closing is a POST whose fate is unknown.
const POOL_IDLE: Duration = Duration::from_secs(20);

/// The connections to one ZVM. TLS is set up at the first use.
#[derive(Debug)]
pub(crate) struct Transport {
    base: Url,
    host: String,
    tls: TlsTrust,
    judge: Option<Arc<dyn CertificateJudge>>,
    timeouts: Timeouts,
    client: OnceCell<Client>,
}

/// An answer that is a success, and its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Transport {
    pub(crate) fn new(config: &ZvmConfig) -> Result<Self, Error> {
        let (base, host) = config::base(&config.url)?;
        Ok(Self {
            base,
            host,
            tls: config.tls.clone(),
            judge: config.judge.clone(),
            timeouts: config.timeouts,
            client: OnceCell::new(),
        })
    }

    /// `https://host[:port]/`
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Host and port, as messages name it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The HTTP client; built where files may be read.
    pub(crate) async fn client(&self) -> Result<&Client, Error> {
        let build = || build_beside(&self.tls, self.judge.as_ref(), &self.timeouts, &self.base);
        self.client.get_or_try_init(build).await
    }

    /// Sends a request once and reads its whole answer, of at most `limit` bytes.
    pub(crate) async fn exchange(
        &self,
        request: RequestBuilder,
        limit: u64,
    ) -> Result<Reply, Failure> {
        self.read(self.send(request).await?, limit).await
    }

    /// As [`exchange`](Self::exchange), for a question: where nothing comes for half of the time that silence is waited for, it is sent once
    /// more beside the first, over another connection, and the first answer counts. A connection that died does so quietly.
    pub(crate) async fn ask(&self, request: RequestBuilder, limit: u64) -> Result<Reply, Failure> {
        self.read(self.answer(request).await?, limit).await
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let again = request.try_clone();
        let first = self.send(request);
        tokio::pin!(first);
        tokio::select! {
            answer = &mut first => return answer,
            () = tokio::time::sleep(self.timeouts.idle / 2) => {}
        }
        let Some(again) = again else {
            return first.await;
        };
        tokio::select! {
            answer = &mut first => answer,
            Ok(answer) = self.send(again) => Ok(answer),
        }
    }

    async fn read(&self, mut response: Response, limit: u64) -> Result<Reply, Failure> {
        let status = response.status();
        if !status.is_success() {
            let body = error_body(&mut response).await;
            return match status {
                StatusCode::TOO_MANY_REQUESTS => Err(Failure::Busy {
                    message: decode::reason(&body),
                    retry_after: retry_after(&response),
                }),
                StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => Err(Failure::Gateway {
                    status,
                    message: decode::said_by(&body),
                    retry_after: retry_after(&response),
                }),
                status if status.is_redirection() => Err(Failure::Redirect {
                    status,
                    to: redirect_target(&response),
                }),
                status => Ok(Reply { status, body }),
            };
        }
        let body = self.body(&mut response, limit).await?;
        Ok(Reply { status, body })
    }

    /// Sends a request once; the body is yet to be read.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        request
            .send()
            .await
            .map_err(|error| Failure::of_send(&error, &self.timeouts))
    }

    async fn body(&self, response: &mut Response, limit: u64) -> Result<Bytes, Failure> {
        let announced = response.content_length().unwrap_or(0);
        if announced > limit {
            return Err(Failure::TooLarge { limit });
        }
        // What is announced need not come: no more than this is reserved at once.
        let mut body = Vec::with_capacity(usize::try_from(announced.min(32 << 20)).unwrap_or(0));
        let mut pace = Pace::default();
        loop {
            let began = Instant::now();
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    pace.came(chunk.len(), began.elapsed())?;
                    if (body.len() + chunk.len()) as u64 > limit {
                        return Err(Failure::TooLarge { limit });
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(None) => return Ok(body.into()),
                Err(error) => {
                    return Err(Failure::of_body(&error, body.len() as u64, &self.timeouts));
                }
            }
        }
    }
}

/// The certificate that a ZVM shows now and that `trust` accepts, whatever is known of it. Only TLS is spoken: nothing is sent.
///
/// # Errors
/// `Unreachable`; `Certificate` where `trust` does not accept it, or the server does not hold its key; `Config` for a URL or a CA
/// file that can never work.
pub async fn shown_certificate(
    url: &Url,
    trust: &TlsTrust,
    timeouts: Timeouts,
) -> Result<Fingerprint, Error> {
    const WHAT: &str = "look at the certificate";
    let (base, host) = config::base(url)?;
    let judge: Arc<dyn CertificateJudge> = Arc::new(Look);
    let client = build_beside(trust, Some(&judge), &timeouts, &base).await?;
    match client.head(base).send().await {
        Ok(_) => Err(Error::Unreadable {
            what: WHAT.into(),
            detail: "no certificate was shown".into(),
        }),
        Err(error) => match Failure::of_send(&error, &timeouts) {
            Failure::Untrusted(CertificateRefusal::FirstUse { shown }) => Ok(shown),
            failure => Err(failure.into_error(WHAT, &host, Effect::None)),
        },
    }
}

/// The proxy that the environment names for a ZVM (`HTTPS_PROXY` and so on), as host and port. None: it is spoken to directly.
#[must_use]
pub fn proxy_of(url: &Url) -> Option<(String, u16)> {
    if is_loopback(url) {
        return None;
    }
    let proxy = Matcher::from_system().intercept(&url.as_str().parse().ok()?)?;
    let uri = proxy.uri();
    let port = uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    });
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), port))
}

/// [`build`] where files may be read.
async fn build_beside(
    trust: &TlsTrust,
    judge: Option<&Arc<dyn CertificateJudge>>,
    timeouts: &Timeouts,
    base: &Url,
) -> Result<Client, Error> {
    let (trust, judge, timeouts) = (trust.clone(), judge.cloned(), *timeouts);
    let direct = is_loopback(base);
    tokio::task::spawn_blocking(move || build(&trust, judge.as_ref(), &timeouts, direct))
        .await
        .map_err(|error| Error::Config(format!("TLS can't be set up: {error}")))?
}

fn build(
    trust: &TlsTrust,
    judge: Option<&Arc<dyn CertificateJudge>>,
    timeouts: &Timeouts,
    direct: bool,
) -> Result<Client, Error> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::client_config(trust, judge)?)
        // One request at a time per connection: a download is not slowed by flow control, and there is no request that a server
        // may refuse after it was sent.
        .http1_only()
        // Underneath, hyper still moves a request to another connection when the pooled one was closed before a byte of it was
        // written. Nothing that was sent is sent again.
        .retry(reqwest::retry::never())
        .redirect(redirect::Policy::none())
        .https_only(true)
        .referer(false)
        .user_agent(concat!("zerto-rewind/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeouts.connect)
        .read_timeout(timeouts.idle)
        .pool_idle_timeout(POOL_IDLE);
    let builder = if direct { builder.no_proxy() } else { builder };
    builder
        .build()
        .map_err(|error| Error::Config(format!("the HTTP client can't be set up: {error}")))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// As much of it as is worth reading; the status is known, so a body that breaks off is no failure.
pub(crate) async fn error_body(response: &mut Response) -> Bytes {
    let (mut body, mut pace) = (Vec::new(), Pace::default());
    while body.len() < ERROR_BODY {
        let began = Instant::now();
        match response.chunk().await {
            Ok(Some(chunk)) if pace.came(chunk.len(), began.elapsed()).is_ok() => {
                body.extend_from_slice(&chunk);
            }
            _ => break,
        }
    }
    body.truncate(ERROR_BODY);
    body.into()
}

fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The host (or the path on this one) that a redirect leads to.
pub(crate) fn redirect_target(response: &Response) -> String {
    let location = response
        .headers()
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok());
    match location {
        Some(location) => match response.url().join(location) {
            Ok(url) if url.host() != response.url().host() => {
                decode::line(url.host_str().unwrap_or(url.scheme()))
            }
            Ok(url) => decode::line(url.path()),
            Err(_) => decode::line(location),
        },
        None => "nowhere".into(),
    }
}
