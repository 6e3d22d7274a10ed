//! Bytes out of a mounted checkpoint.

use std::{fmt, sync::atomic::AtomicBool};

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use reqwest::{Response, StatusCode, header};
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use crate::{
    Error, FlrSessionId, Timeouts, Zvm,
    auth::Token,
    bodies,
    client::{Call, OBJECT},
    decode,
    transport::{Effect, Failure, Pace, Reply, error_body, redirect_target},
};

/// Bytes on their way.
pub struct Download {
    /// From Content-Length, where it was sent.
    pub length: Option<u64>,
    /// Name from Content-Disposition, if any (untrusted).
    pub file_name: Option<String>,
    /// Content-Type, if any (untrusted).
    pub content_type: Option<String>,
    what: String,
    host: String,
    timeouts: Timeouts,
    received: u64,
    pace: Pace,
    response: Response,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The response would show its URL, which is a key to the bytes.
        f.debug_struct("Download")
            .field("length", &self.length)
            .field("file_name", &self.file_name)
            .field("content_type", &self.content_type)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

impl Zvm {
    /// Asks for a download URL (`POST /v1/flrs/{id}/download`) and opens it. One URL, one use: there is no resuming, and to try
    /// again is to ask for another. One file comes as it is; a folder or several paths come as a zip.
    ///
    /// The deadline of [`Zvm::by`] holds until the bytes begin to flow.
    ///
    /// # Errors
    /// [`Error::ForeignHost`] where the URL leads to another host than the one in the configuration (an appliance that gives its
    /// other name is refused, too: use that name in the configuration); else those of a GET.
    pub async fn download(
        &self,
        session: &FlrSessionId,
        paths: &[&str],
    ) -> Result<Download, Error> {
        let what = match paths {
            [path] => format!("download {}", decode::line(path)),
            paths => format!("download {} paths", paths.len()),
        };
        let url = self.url(&what, "v1/flrs/{}/download", &[&session.0])?;
        let call = Call::ask(&what, url, json!({ "pathList": paths }), OBJECT);
        let body = self.call(&call).await?;
        let url = bodies::download_url(self.transport().base(), &body)
            .map_err(|why| call.unreadable(why))?;
        let url = same_host(&what, self.transport().base(), url)?;
        let limit = self.limit();
        self.within(
            limit,
            &what,
            &AtomicBool::new(false),
            self.open(&what, url, limit.until),
        )
        .await
    }

    async fn open(&self, what: &str, url: Url, until: Instant) -> Result<Download, Error> {
        let transport = self.transport();
        let token = self.auth().token(until).await?;
        let mut response = self.ask_for(what, &url, &token).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            // The URL was not used: the token has expired since it was asked for, or was revoked.
            let token = self.auth().other_than(&token, until).await?;
            response = self.ask_for(what, &url, &token).await?;
        }
        let status = response.status();
        if status.is_redirection() {
            let to = redirect_target(&response);
            let failure = Failure::Redirect { status, to };
            return Err(failure.into_error(what, self.host(), Effect::None));
        }
        if !status.is_success() {
            let body = error_body(&mut response).await;
            self.success(what, &Reply { status, body })?;
        }
        let text = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        Ok(Download {
            length: response.content_length(),
            file_name: response
                .headers()
                .get(header::CONTENT_DISPOSITION)
                .and_then(|value| file_name(value.as_bytes())),
            content_type: text(header::CONTENT_TYPE).map(decode::line),
            what: what.to_owned(),
            host: self.host().to_owned(),
            timeouts: *transport.timeouts(),
            received: 0,
            pace: Pace::default(),
            response,
        })
    }

    async fn ask_for(&self, what: &str, url: &Url, token: &Token) -> Result<Response, Error> {
        let transport = self.transport();
        let client = transport.client().await?;
        let request = client.get(url.clone()).bearer_auth(token.access());
        let sent = transport.send(request).await;
        sent.map_err(|failure| failure.into_error(what, self.host(), Effect::None))
    }
}

impl Download {
    /// The next bytes; None at the end.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where the bytes break off: fewer than announced, a broken connection, nothing for the idle time, or less
    /// than 64 KiB within 30 s.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let began = Instant::now();
        let failure = match self.response.chunk().await {
            Ok(Some(chunk)) => {
                self.received += chunk.len() as u64;
                match self.pace.came(chunk.len(), began.elapsed()) {
                    Ok(()) => return Ok(Some(chunk)),
                    Err(failure) => failure,
                }
            }
            Ok(None) => return Ok(None),
            Err(error) => Failure::of_body(&error, self.received, &self.timeouts),
        };
        Err(failure.into_error(&self.what, &self.host, Effect::None))
    }
}

/// The URL that a ZVM named: absolute or relative, with slashes of either kind.
pub(crate) fn resolve(base: &Url, text: &str) -> Result<Url, String> {
    let text = decode::url_text(text);
    if text.is_empty() {
        return Err("it names no download URL".into());
    }
    let url = base
        .join(&text)
        .map_err(|error| format!("it names a download URL that is none ({error})"))?;
    if !url.has_host() || !url.username().is_empty() || url.password().is_some() {
        return Err("it names a download URL that is not one of a web server".into());
    }
    Ok(url)
}

/// The token goes to this scheme, host and port alone, and bytes from elsewhere are not what the ZVM holds.
fn same_host(what: &str, base: &Url, url: Url) -> Result<Url, Error> {
    if url.origin() == base.origin() {
        return Ok(url);
    }
    let host = match (url.host() == base.host(), url.scheme() == base.scheme()) {
        (true, _) => url.origin().ascii_serialization(),
        (false, true) => {
            let host = url.host_str().unwrap_or_default();
            url.port()
                .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
        }
        (false, false) => url.origin().ascii_serialization(),
    };
    Err(Error::ForeignHost {
        what: what.to_owned(),
        host: decode::line(&host),
    })
}

/// The name in a Content-Disposition header: `filename*` (RFC 8187) before `filename`.
fn file_name(header: &[u8]) -> Option<String> {
    let header = String::from_utf8_lossy(header);
    let (mut plain, mut extended) = (None, None);
    for part in parts(&header) {
        let Some((name, value)) = part.split_once('=') else {
            continue;
        };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "filename" => plain = Some(unquoted(value)),
            "filename*" => {
                extended = value.split_once("''").map(|(_, encoded)| {
                    percent_decode_str(encoded).decode_utf8_lossy().into_owned()
                });
            }
            _ => {}
        }
    }
    extended.or(plain).filter(|name| !name.is_empty())
}

/// Split at semicolons that are not in quotes.
fn parts(header: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    header
        .split(|c| {
            let was_escaped = std::mem::take(&mut escaped);
            match c {
                '\\' if quoted && !was_escaped => escaped = true,
                '"' if !was_escaped => quoted = !quoted,
                ';' if !quoted => return true,
                _ => {}
            }
            false
        })
        .collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}
