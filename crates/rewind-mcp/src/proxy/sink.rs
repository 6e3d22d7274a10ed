//! One end to which several write whole lines.
use std::{
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex},
};

use super::gate::lock;

struct Out {
    writer: BufWriter<Box<dyn Write + Send>>,
    /// What was written last has no line end.
    mid_line: bool,
}

/// Writes lines one at a time. Writing blocks, as the reader at the other end does: that is how it slows its writer down.
#[derive(Clone)]
pub struct Sink(Arc<Mutex<Option<Out>>>);

impl Sink {
    /// Writes to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let writer = BufWriter::with_capacity(64 * 1024, Box::new(out) as Box<dyn Write + Send>);
        Self(Arc::new(Mutex::new(Some(Out {
            writer,
            mid_line: false,
        }))))
    }

    /// Writes a line as it came. It may stay in the buffer until [`Self::flush`].
    ///
    /// # Errors
    /// Those of the writer, and where it was closed.
    pub fn write(&self, line: &[u8]) -> io::Result<()> {
        open(&mut lock(&self.0))?.line(line)
    }

    /// Writes out what is in the buffer.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn flush(&self) -> io::Result<()> {
        open(&mut lock(&self.0))?.writer.flush()
    }

    /// Writes a line if `admit` says so at the moment when nobody else can write, and all of the buffer. Returns what it said.
    ///
    /// # Errors
    /// As [`Self::write`]; the line may have been written in part.
    pub fn write_if(&self, line: &[u8], admit: impl FnOnce() -> bool) -> io::Result<bool> {
        let mut out = lock(&self.0);
        let out = open(&mut out)?;
        if !admit() {
            return Ok(false);
        }
        out.line(line)?;
        out.writer.flush()?;
        Ok(true)
    }

    /// Writes a line of ours, and a line end.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn line(&self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        self.write_if(&line, || true).map(drop)
    }

    /// Writes out what is in the buffer, and lets go of the writer.
    pub fn close(&self) {
        if let Some(mut out) = lock(&self.0).take() {
            // Nobody reads any more: nothing is lost by that.
            let _ = out.writer.flush();
        }
    }
}

impl Out {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.mid_line {
            self.writer.write_all(b"\n")?;
        }
        self.mid_line = line.last() != Some(&b'\n');
        self.writer.write_all(line)
    }
}

fn open(out: &mut Option<Out>) -> io::Result<&mut Out> {
    out.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// Runs something that blocks on a thread of its own, so that neither the runtime nor its shutdown waits for a peer
/// that does not read.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, finished) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("write".into())
        .spawn(move || {
            let _ = done.send(work());
        })?;
    finished
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the writing thread broke off")))
}
