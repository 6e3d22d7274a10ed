//! The proxy: it stands before another MCP server, and a listed tool call does not pass it without a guard.
//!
//! The decisions about the protocol are in `proxy/README.md`.
mod answer;
mod call;
mod child;
mod conversation;
mod enforcement;
mod gate;
mod held;
mod http;
mod lines;
mod message;
mod signals;
mod sink;
mod splice;
mod stdio;
mod waiting;

pub use answer::{RECEIPT_KEY, REFUSAL_KEY};
pub use call::unambiguous;
pub use child::NotStarted;
pub use conversation::{Conversation, FromClient, FromServer};
pub use enforcement::{Enforcement, Evidence, Ruling};
pub use gate::Gate;
pub use http::{CannotListen, Listener, UnusableUpstream, Upstream, bridge, extra_headers};
pub use lines::{Line, Lines, split_end};
pub use message::Head;
pub use splice::with_meta;
pub use stdio::relay;

/// The longest message that is passed on, in bytes.
pub const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// What a proxy is told about its place.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's name for the catalog; else the one that the server reports.
    pub name: Option<String>,
    /// The longest message that is passed on, in bytes; [`MAX_MESSAGE`] if nothing speaks against it.
    pub longest: usize,
}
