//! Folders and several files, as a zip that is written while it is sent.

use std::collections::HashSet;
use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{PIECE, Pieces, push};
use crate::disk::{Entry, EntryKind};
use crate::flr::Item;
use crate::guest::Volume;

/// A file of this size or more gets the 64-bit fields: deflate may make it a little longer.
const LARGE: u64 = 0xf000_0000;

type Zip = ZipWriter<zip::write::StreamWriter<Out>>;

/// Writes the items; links and special files in folders are left out.
pub(super) fn write(items: &[Item], pieces: &Pieces) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(Out {
        pieces: pieces.clone(),
        buffer: BytesMut::with_capacity(PIECE),
        closed: false,
    });
    let mut names = HashSet::new();
    for item in items {
        let name = unique(&item.name, &mut names);
        let entry = item
            .volume
            .view
            .entry(&item.path)
            .map_err(io::Error::other)?;
        add(&mut zip, &item.volume, &item.path, &name, &entry)?;
    }
    let mut out = zip.finish().map_err(io::Error::other)?.into_inner();
    out.send()
}

/// Items of the same name from different folders get a number.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name} ({number})");
        number += 1;
    }
    candidate
}

fn add(zip: &mut Zip, volume: &Volume, path: &str, name: &str, entry: &Entry) -> io::Result<()> {
    match entry.kind {
        EntryKind::Folder => {
            zip.add_directory(name, options(entry))
                .map_err(io::Error::other)?;
            for inner in volume.view.list(path).map_err(io::Error::other)? {
                let (path, name) = (
                    format!("{path}/{}", inner.name),
                    format!("{name}/{}", inner.name),
                );
                add(zip, volume, &path, &name, &inner)?;
            }
        }
        EntryKind::File => {
            zip.start_file(name, options(entry))
                .map_err(io::Error::other)?;
            let mut file = volume.view.open(path).map_err(io::Error::other)?;
            io::copy(&mut file, zip)?;
        }
        EntryKind::Link | EntryKind::Other => {}
    }
    Ok(())
}

fn options(entry: &Entry) -> SimpleFileOptions {
    let modified = jiff::tz::Offset::UTC.to_datetime(entry.modified);
    let part = |value: i8| u8::try_from(value).unwrap_or(0);
    let stamp = zip::DateTime::from_date_and_time(
        u16::try_from(modified.year()).unwrap_or(0),
        part(modified.month()),
        part(modified.day()),
        part(modified.hour()),
        part(modified.minute()),
        part(modified.second()),
    )
    .unwrap_or_default();
    SimpleFileOptions::default()
        // Fast; the level below makes what can't be compressed longer.
        .compression_level(Some(2))
        .large_file(entry.size >= LARGE)
        .unix_permissions(entry.mode & 0o777)
        .last_modified_time(stamp)
}

/// Collects what the zip writes into pieces.
struct Out {
    pieces: Pieces,
    buffer: BytesMut,
    /// The client is gone. What the zip still writes while it is taken down goes nowhere.
    closed: bool,
}

impl Out {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece: Bytes = self.buffer.split().freeze();
        push(&self.pieces, piece).inspect_err(|_| self.closed = true)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.closed {
            self.buffer.extend_from_slice(bytes);
            if self.buffer.len() >= PIECE {
                self.send()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
