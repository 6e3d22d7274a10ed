//! What faults and damage do to answers.

use std::path::Path;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::Cut;
use super::reply::{Payload, Reply};
use crate::faults::{Fault, Outcome};
use crate::switches::Damage;

type Bodies = BoxStream<'static, std::io::Result<Bytes>>;

/// The answer that a fault leaves, or a cut. `reply` is there if the request was carried out.
pub(super) fn spoil(fault: &Fault, reply: Option<Reply>) -> Result<Reply, Cut> {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let spoilt = match (fault.outcome, reply) {
        (Outcome::Cut, _) => return Err(Cut),
        (Outcome::Answer, Some(reply)) => return Ok(reply),
        (Outcome::CutBody, Some(reply)) => return Ok(damaged(reply, Damage::Cut)),
        (Outcome::Stall, Some(reply)) => return Ok(damaged(reply, Damage::Stalls)),
        (Outcome::TruncatedJson, Some(reply)) => return Ok(halved(reply)),
        (Outcome::BareString, Some(reply)) => return Ok(bare(reply)),
        (Outcome::Html, _) => Reply::html(status),
        (Outcome::Message, _) => Reply::message(status, &fault.text),
        (Outcome::Problem, _) => Reply::problem(status, &fault.text),
        (Outcome::Text, _) => Reply::json_with(status, fault.text.clone().into_bytes()),
        (Outcome::Huge, _) => huge(status, fault.huge_bytes),
        (Outcome::File, _) => file(status, &fault.file),
        (Outcome::Empty, _) | (_, None) => Reply::empty(status),
    };
    let spoilt = match fault.retry_after {
        Some(seconds) => spoilt.header(header::RETRY_AFTER, &seconds.to_string()),
        None => spoilt,
    };
    Ok(fault.headers.iter().fold(spoilt, with_header))
}

/// A header that can't be one is left out.
fn with_header(mut reply: Reply, (name, value): (&String, &String)) -> Reply {
    let Ok(name) = name.parse::<HeaderName>() else {
        return reply;
    };
    reply.headers.retain(|(known, _)| *known != name);
    reply.header(name, value)
}

/// A file that can't be read is an error of the simulated ZVM.
fn file(status: StatusCode, path: &Path) -> Reply {
    match std::fs::read(path) {
        Ok(bytes) => {
            let kind = HeaderValue::from_static("application/octet-stream");
            Reply::typed(status, kind, bytes)
        }
        Err(error) => Reply::message(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("{}: {error}", path.display()),
        ),
    }
}

fn damaged(mut reply: Reply, damage: Damage) -> Reply {
    let body = match reply.body {
        Payload::Whole(bytes) => stream::iter([Ok(bytes)]).boxed(),
        Payload::Stream(stream) => stream,
    };
    reply.body = Payload::Stream(damage_body(body, damage));
    reply
}

fn halved(mut reply: Reply) -> Reply {
    if let Payload::Whole(bytes) = &mut reply.body {
        bytes.truncate(bytes.len() / 2);
    }
    reply
}

fn bare(reply: Reply) -> Reply {
    match &reply.body {
        Payload::Whole(bytes) => match serde_json::from_slice::<String>(bytes) {
            Ok(text) => {
                let kind = HeaderValue::from_static("text/plain; charset=utf-8");
                Reply::typed(reply.status, kind, text.into_bytes())
            }
            Err(_) => reply,
        },
        Payload::Stream(_) => reply,
    }
}

fn huge(status: StatusCode, bytes: u64) -> Reply {
    const PIECE: usize = 64 * 1024;
    let piece = Bytes::from(b"null,".repeat(PIECE / 5));
    let pieces = usize::try_from(bytes / PIECE as u64).unwrap_or(usize::MAX);
    let body = stream::iter([Bytes::from_static(b"[")])
        .chain(stream::repeat(piece).take(pieces))
        .chain(stream::iter([Bytes::from_static(b"null]")]))
        .map(Ok)
        .boxed();
    let mut reply = Reply::json_with(status, Vec::new());
    reply.body = Payload::Stream(body);
    reply
}

/// Damages the bytes of a body.
pub(super) fn damage_body(body: Bodies, damage: Damage) -> Bodies {
    match damage {
        Damage::None => body,
        Damage::Truncated => without_last_byte(body),
        Damage::Longer => body
            .chain(stream::iter([Ok(Bytes::from_static(b"\0"))]))
            .boxed(),
        Damage::Wrong => body
            .enumerate()
            .map(|(index, piece)| match index {
                0 => piece.map(flip_first),
                _ => piece,
            })
            .boxed(),
        Damage::Cut => {
            // The pause lets the connection send what it has before it ends.
            let cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("the connection is cut"))
            });
            first_half(body).chain(cut).boxed()
        }
        Damage::Stalls => first_half(body).chain(stream::pending()).boxed(),
    }
}

fn first_half(body: Bodies) -> Bodies {
    body.take(1)
        .map(|piece| {
            piece.map(|mut bytes| {
                bytes.truncate(bytes.len() / 2);
                bytes
            })
        })
        .boxed()
}

fn flip_first(bytes: Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first ^= 0xff;
    }
    bytes.into()
}

fn without_last_byte(body: Bodies) -> Bodies {
    stream::unfold(
        (body.fuse(), None::<Bytes>),
        |(mut body, held)| async move {
            let mut held = held;
            loop {
                match (body.next().await, held.take()) {
                    (Some(Ok(next)), None) => held = Some(next),
                    (Some(Ok(next)), Some(before)) => {
                        return Some((Ok(before), (body, Some(next))));
                    }
                    (Some(Err(error)), _) => return Some((Err(error), (body, None))),
                    (None, Some(mut last)) => {
                        last.truncate(last.len().saturating_sub(1));
                        return Some((Ok(last), (body, None)));
                    }
                    (None, None) => return None,
                }
            }
        },
    )
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(pieces: &[&'static str], damage: Damage) -> (String, bool) {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
            .collect();
        let mut body = damage_body(stream::iter(pieces).boxed(), damage);
        let (mut text, mut failed) = (Vec::new(), false);
        while let Some(piece) = body.next().await {
            match piece {
                Ok(bytes) => text.extend_from_slice(&bytes),
                Err(_) => failed = true,
            }
        }
        (String::from_utf8_lossy(&text).into_owned(), failed)
    }

    #[tokio::test]
    async fn each_damage() {
        let pieces = ["abcd", "ef"];
        let whole = |text: &str| (text.to_owned(), false);
        assert_eq!(run(&pieces, Damage::None).await, whole("abcdef"));
        assert_eq!(run(&pieces, Damage::Truncated).await, whole("abcde"));
        assert_eq!(run(&[], Damage::Truncated).await, whole(""));
        assert_eq!(run(&pieces, Damage::Longer).await, whole("abcdef\0"));
        assert_eq!(
            run(&pieces, Damage::Wrong).await.0.len(),
            "\u{fffd}bcdef".len()
        );
        assert_eq!(run(&pieces, Damage::Cut).await, ("ab".to_owned(), true));
    }
}
