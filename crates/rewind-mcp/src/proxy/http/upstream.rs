//! The server behind a URL.
use std::{net::IpAddr, time::Duration};

use reqwest::{
    Client, Method, RequestBuilder, Response, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use url::Host;

use super::events::{Event, Parser, TooLong};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The environment variables that add headers start with this.
const HEADER_VARIABLE: &str = "ZERTO_REWIND_PROXY_HEADER_";

/// A server that speaks streamable HTTP.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: Client,
    url: Url,
    extra: HeaderMap,
}

/// A URL or a header that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableUpstream {
    /// Not a URL.
    #[error("{url:?} is no URL of an MCP server: {why}")]
    Url {
        /// As it was given, without what may be secret.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// A header from the environment.
    #[error("{variable}: {why}")]
    Header {
        /// The variable's name; its value may be secret.
        variable: String,
        /// What is wrong.
        why: String,
    },
    /// Secrets would be sent in the clear.
    #[error(
        "extra headers are sent over https only, and to loopback addresses: {0} is neither. Use https, or take the {HEADER_VARIABLE}… variables away"
    )]
    InTheClear(String),
    /// The HTTP client could not be made.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// The headers that the environment adds to each request to the server: `ZERTO_REWIND_PROXY_HEADER_X_API_KEY` is
/// `x-api-key`.
///
/// # Errors
/// Where one can't be a header, or is one that the protocol itself sets.
pub fn extra_headers(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<HeaderMap, UnusableUpstream> {
    let mut headers = HeaderMap::new();
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix(HEADER_VARIABLE) else {
            continue;
        };
        let unusable = |why: &str| UnusableUpstream::Header {
            variable: variable.clone(),
            why: why.into(),
        };
        let name = HeaderName::try_from(name.to_lowercase().replace('_', "-"))
            .map_err(|_| unusable("not the name of a header"))?;
        if is_ours(&name) {
            return Err(unusable("this header belongs to the protocol"));
        }
        let mut value =
            HeaderValue::try_from(value).map_err(|_| unusable("not the value of a header"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-")
        || is_of_one_hop(name)
        || [
            header::ACCEPT,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            super::headers::LAST_EVENT_ID,
        ]
        .contains(name)
}

/// Headers that are about one connection, not about the message.
pub fn is_of_one_hop(name: &HeaderName) -> bool {
    const OTHERS: [&str; 2] = ["keep-alive", "proxy-connection"];
    [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::HOST,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        // What comes back compressed could not be read here.
        header::ACCEPT_ENCODING,
    ]
    .contains(name)
        || OTHERS.contains(&name.as_str())
}

impl Upstream {
    /// The server at `url`, to which each request carries the `extra` headers.
    ///
    /// # Errors
    /// Where the URL can't be used, or `extra` headers would travel in the clear.
    pub fn new(url: &str, extra: HeaderMap) -> Result<Self, UnusableUpstream> {
        let unusable = |why: String| UnusableUpstream::Url {
            url: url.split('?').next().unwrap_or_default().into(),
            why,
        };
        let parsed = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(UnusableUpstream::Url {
                url: "…@…".into(),
                why: format!(
                    "secrets don't belong into arguments; use {HEADER_VARIABLE}AUTHORIZATION"
                ),
            });
        }
        let loopback = match parsed.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => return Err(unusable("no host".into())),
        };
        match parsed.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" if extra.is_empty() => {
                tracing::warn!(url = %parsed.as_str().split('?').next().unwrap_or_default(), "calls and results travel in the clear");
            }
            "http" => {
                return Err(UnusableUpstream::InTheClear(
                    parsed.host_str().unwrap_or_default().into(),
                ));
            }
            scheme => return Err(unusable(format!("{scheme} is not http or https"))),
        }
        // Another part of the program may have set it already, to the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .connect_timeout(CONNECT_TIME)
            .redirect(redirect::Policy::none());
        if loopback {
            client = client.no_proxy();
        }
        Ok(Self {
            client: client.build()?,
            url: parsed,
            extra,
        })
    }

    /// The path under which the server is.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// The server, for messages to people: without a query, which may be secret.
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    /// A request with these headers, and the extra ones in place of those of the same name.
    pub fn request(&self, method: Method, mut headers: HeaderMap) -> RequestBuilder {
        for (name, value) in &self.extra {
            headers.insert(name, value.clone());
        }
        self.client
            .request(method, self.url.clone())
            .headers(headers)
    }
}

/// Why an answer could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The connection broke.
    #[error("{0}")]
    Broken(#[from] reqwest::Error),
    /// Longer than allowed.
    #[error("{0}")]
    EventTooLong(#[from] TooLong),
    /// Longer than allowed.
    #[error("a body with more than {0} bytes")]
    BodyTooLong(usize),
    /// It is compressed, although that was not asked for.
    #[error("a body with the content encoding {0:?}, which was not asked for")]
    Encoded(String),
}

/// The media type of an answer, without parameters.
pub fn media_type(headers: &HeaderMap) -> &str {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
}

/// Whether an answer is a stream of events.
pub fn is_events(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("text/event-stream")
}

/// Whether an answer is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("application/json")
}

/// An answer that can be read as it comes.
///
/// # Errors
/// Where it is compressed.
pub fn plain(response: Response) -> Result<Response, Unreadable> {
    match response.headers().get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(Unreadable::Encoded(
            String::from_utf8_lossy(encoding.as_bytes()).into(),
        )),
        _ => Ok(response),
    }
}

/// The whole body of an answer.
///
/// # Errors
/// Where it breaks off, or is longer than `longest` bytes.
pub async fn body(mut response: Response, longest: usize) -> Result<Vec<u8>, Unreadable> {
    let mut body = Vec::new();
    while let Some(bytes) = response
        .chunk()
        .await
        .map_err(reqwest::Error::without_url)?
    {
        if body.len() + bytes.len() > longest {
            return Err(Unreadable::BodyTooLong(longest));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// The events of an answer.
pub struct Events {
    response: Response,
    parser: Parser,
    ready: std::collections::VecDeque<Event>,
}

impl Events {
    /// Of events of at most `longest` bytes.
    pub fn new(response: Response, longest: usize) -> Self {
        Self {
            response,
            parser: Parser::new(longest),
            ready: Default::default(),
        }
    }

    /// The next one; None at the end.
    ///
    /// # Errors
    /// Where the stream breaks off, or an event is too long.
    pub async fn next(&mut self) -> Result<Option<Event>, Unreadable> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self
                .response
                .chunk()
                .await
                .map_err(reqwest::Error::without_url)?
            {
                Some(bytes) => self.ready.extend(self.parser.take(&bytes)?),
                None => return Ok(None),
            }
        }
    }

    /// What came after the last complete event.
    pub fn rest(self) -> Vec<u8> {
        self.parser.rest()
    }
}

/// Whether an address is only reachable from this host.
pub fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Result<HeaderMap, UnusableUpstream> {
        extra_headers(
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn headers_come_from_the_environment_and_are_not_shown() {
        let found = headers(&[
            ("PATH", "x"),
            ("ZERTO_REWIND_PROXY_HEADER_AUTHORIZATION", "Bearer s3cret"),
            ("ZERTO_REWIND_PROXY_HEADER_X_API_KEY", "s3cret"),
        ])
        .unwrap();
        assert_eq!(found["authorization"], "Bearer s3cret");
        assert_eq!(found["x-api-key"], "s3cret");
        assert!(!format!("{found:?}").contains("s3cret"));
        for name in [
            "MCP_METHOD",
            "MCP_SESSION_ID",
            "HOST",
            "CONTENT_LENGTH",
            "ACCEPT",
            "A B",
            "",
        ] {
            let variable = format!("ZERTO_REWIND_PROXY_HEADER_{name}");
            assert!(headers(&[(&variable, "x")]).is_err(), "{variable}");
        }
        let error = headers(&[("ZERTO_REWIND_PROXY_HEADER_X", "s3\ncret")]).unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
    }

    #[test]
    fn secrets_do_not_travel_in_the_clear() {
        let secret = || headers(&[("ZERTO_REWIND_PROXY_HEADER_X", "y")]).unwrap();
        for url in [
            "https://example.com/mcp",
            "http://127.0.0.1:80/mcp",
            "http://[::1]/mcp",
            "http://localhost:1/",
        ] {
            assert!(Upstream::new(url, secret()).is_ok(), "{url}");
        }
        for url in [
            "http://example.com/mcp",
            "http://localhost.example.com/mcp",
            "http://192.168.0.7/mcp",
        ] {
            assert!(
                matches!(
                    Upstream::new(url, secret()),
                    Err(UnusableUpstream::InTheClear(_))
                ),
                "{url}"
            );
            assert!(Upstream::new(url, HeaderMap::new()).is_ok(), "{url}");
        }
        for url in [
            "",
            "mcp",
            "ftp://x/",
            "file:///x",
            "https://u:s3cret@example.com/",
        ] {
            let error = Upstream::new(url, HeaderMap::new()).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let shown = Upstream::new("https://example.com/mcp?key=s3cret", HeaderMap::new())
            .unwrap()
            .shown();
        assert_eq!(shown, "https://example.com/mcp");
    }
}
