//! Standard input and output as rmcp has them, with an answer to what rmcp passes over in silence.
use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use rmcp::{
    ErrorData, RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        Transport,
        async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH},
    },
};
use serde::de::IgnoredAny;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// So many answers wait at most; what is more gets none. A client that sends garbage and reads nothing costs nothing.
const ANSWERS_WAITING: usize = 64;

/// Lines of JSON-RPC, in and out. A line that is no JSON is answered with a parse error; it has no id, as nobody can tell
/// which request it was.
pub struct LineTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, Watched<R>, W>,
    unreadable: mpsc::Receiver<ErrorData>,
    ended: CancellationToken,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Over a pair of streams. `ended` is cancelled as soon as the input ends: the service loop alone would let calls run
    /// on for a while.
    pub fn new(input: R, output: W, ended: CancellationToken) -> Self {
        let (found, unreadable) = mpsc::channel(ANSWERS_WAITING);
        let input = Watched {
            inner: input,
            line: Vec::new(),
            too_long: false,
            found,
        };
        Self {
            inner: AsyncRwTransport::new_server(input, output),
            unreadable,
            ended,
        }
    }

    /// Sends `first` and the answers that wait behind it, as a task: a receiver that is dropped must not take them along.
    fn answer(&mut self, first: Option<ErrorData>) -> JoinHandle<()> {
        let mut sending = Vec::new();
        let mut next = first.or_else(|| self.unreadable.try_recv().ok());
        while let Some(error) = next {
            let answer = TxJsonRpcMessage::<RoleServer>::error(error, None);
            sending.push(self.inner.send(answer));
            next = self.unreadable.try_recv().ok();
        }
        tokio::spawn(async move {
            for answer in sending {
                if let Err(error) = answer.await {
                    tracing::debug!(%error, "a line that can't be read was not answered");
                }
            }
        })
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = tokio::select! {
                biased;
                Some(error) = self.unreadable.recv() => {
                    self.answer(Some(error));
                    continue;
                }
                message = self.inner.receive() => message,
            };
            if message.is_none() {
                if let Err(error) = self.answer(None).await {
                    tracing::debug!(%error, "answering broke down");
                }
                self.ended.cancel();
            }
            return message;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// An input whose lines are looked at as they pass.
struct Watched<R> {
    inner: R,
    line: Vec<u8>,
    too_long: bool,
    found: mpsc::Sender<ErrorData>,
}

impl<R> Watched<R> {
    fn pass(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.too_long || self.line.len() + piece.len() > DEFAULT_MAX_LINE_LENGTH {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = mem::take(&mut self.line);
                let problem = match mem::take(&mut self.too_long) {
                    true => Some(ErrorData::invalid_request(
                        format!("The line is longer than {DEFAULT_MAX_LINE_LENGTH} bytes"),
                        None,
                    )),
                    false => not_json(&line),
                };
                if let Some(problem) = problem
                    && self.found.try_send(problem).is_err()
                {
                    tracing::debug!("too many lines that can't be read; this one gets no answer");
                }
            }
        }
    }
}

fn not_json(line: &[u8]) -> Option<ErrorData> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return None;
    }
    let problem = match str::from_utf8(line) {
        Ok(text) => serde_json::from_str::<IgnoredAny>(text).err()?.to_string(),
        Err(error) => error.to_string(),
    };
    let message = format!("The line is no JSON: {problem}");
    Some(ErrorData::parse_error(message, None))
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Some(new) = buffer.filled().get(before..) {
            self.pass(new);
        }
        poll
    }
}
