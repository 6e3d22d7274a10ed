//! Sending what a download URL stands for.

mod zipped;

use std::io::Read;
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::mpsc;

use super::reply::{Failure, Payload, Reply};
use super::request::Call;
use super::spoil::damage_body;
use crate::app::App;
use crate::flr::{Download, Item, Status};
use crate::switches::{Damage, DownloadToken, SingleFile};

/// Bytes read and sent at once.
const PIECE: usize = 512 * 1024;

/// Pieces that wait for the connection.
const AHEAD: usize = 4;

pub(super) type Pieces = mpsc::Sender<std::io::Result<Bytes>>;

/// A running download of a session.
struct Running {
    app: Arc<App>,
    session: String,
}

impl Running {
    fn start(app: &Arc<App>, session: &str) -> Self {
        if let Some(session) = app.world().session(session) {
            session.running += 1;
        }
        app.tell();
        Self {
            app: Arc::clone(app),
            session: session.to_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(session) = self.app.world().session(&self.session) {
            session.running = session.running.saturating_sub(1);
        }
        self.app.tell();
    }
}

pub(super) fn send(app: &Arc<App>, call: &Call, name: &str) -> Result<Reply, Failure> {
    let (download, single_file, damage, with_length) = {
        let mut world = app.world();
        let switches = &world.switches;
        if switches.download_token == DownloadToken::Needed {
            let token = call.bearer();
            let now = app.clock.now();
            if !token.is_some_and(|token| world.realm.accepts(token, now, switches)) {
                return Err(Failure::unauthorized(token.is_some()));
            }
        }
        let chosen = (
            switches.single_file,
            switches.download_damage,
            switches.download_length,
        );
        (take(app, &mut world, name)?, chosen.0, chosen.1, chosen.2)
    };
    let running = Running::start(app, &download.session);
    Ok(match download.items.as_slice() {
        [only] if only.size.is_some() && single_file == SingleFile::Raw => {
            raw(only.clone(), damage, with_length, running)
        }
        items => {
            let name = match items {
                [only] => format!("{}.zip", only.name),
                _ => "download.zip".to_owned(),
            };
            let items = items.to_vec();
            let body = produce(running, move |pieces| zipped::write(&items, pieces));
            reply("application/zip", &name, damage_body(body, damage))
        }
    })
}

fn take(app: &App, world: &mut crate::world::World, name: &str) -> Result<Download, Failure> {
    let gone = || Failure::not_found("The download was not found.");
    let now = app.clock.now();
    let download = if world.switches.download_single_use {
        world.downloads.remove(name)
    } else {
        world.downloads.get(name).cloned()
    };
    let download = download
        .filter(|download| now < download.expires)
        .ok_or_else(gone)?;
    let mounted = world
        .session(&download.session)
        .is_some_and(|session| session.status == Status::Mounted);
    if mounted { Ok(download) } else { Err(gone()) }
}

fn raw(item: Item, damage: Damage, with_length: bool, running: Running) -> Reply {
    let name = item.name.clone();
    let size = item.size.unwrap_or(0);
    let body = produce(running, move |pieces| copy(&item, pieces));
    let reply = reply("application/octet-stream", &name, damage_body(body, damage));
    if with_length {
        reply.header(header::CONTENT_LENGTH, &size.to_string())
    } else {
        reply
    }
}

/// Runs a producer of pieces beside the connection, at most [`AHEAD`] pieces before it.
fn produce(
    running: Running,
    work: impl FnOnce(&Pieces) -> std::io::Result<()> + Send + 'static,
) -> futures::stream::BoxStream<'static, std::io::Result<Bytes>> {
    let (pieces, received) = mpsc::channel(AHEAD);
    let tracker = running.app.work.clone();
    tracker.spawn_blocking(move || {
        let _running = running;
        if let Err(error) = work(&pieces) {
            tracing::debug!(%error, "a download ended early");
            // Nobody hears it if it was the client that went away.
            let _ = pieces.blocking_send(Err(error));
        }
    });
    futures::stream::unfold(received, |mut received| async move {
        received.recv().await.map(|piece| (piece, received))
    })
    .boxed()
}

fn copy(item: &Item, pieces: &Pieces) -> std::io::Result<()> {
    let mut file = item
        .volume
        .view
        .open(&item.path)
        .map_err(std::io::Error::other)?;
    loop {
        let mut piece = BytesMut::zeroed(PIECE);
        let mut filled = 0;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                read => filled += read,
            }
        }
        let last = filled < PIECE;
        piece.truncate(filled);
        if filled > 0 {
            push(pieces, piece.freeze())?;
        }
        if last {
            return Ok(());
        }
    }
}

pub(super) fn push(pieces: &Pieces, piece: Bytes) -> std::io::Result<()> {
    pieces
        .blocking_send(Ok(piece))
        .map_err(|_| std::io::ErrorKind::BrokenPipe.into())
}

fn reply(
    kind: &'static str,
    name: &str,
    body: futures::stream::BoxStream<'static, std::io::Result<Bytes>>,
) -> Reply {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && !matches!(c, '"' | '\\') || c == ' ' {
                c
            } else {
                '_'
            }
        })
        .collect();
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    Reply {
        status: StatusCode::OK,
        headers: vec![(header::CONTENT_TYPE, HeaderValue::from_static(kind))],
        body: Payload::Stream(body),
    }
    .header(
        header::CONTENT_DISPOSITION,
        &format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"),
    )
}
