//! Streamable HTTP: a server behind a URL, offered over standard streams or over HTTP again.
mod bridge;
mod doors;
mod events;
mod exchange;
mod headers;
mod listen;
mod sessions;
mod upstream;

pub use bridge::bridge;
pub use listen::{CannotListen, Listener};
pub use upstream::{UnusableUpstream, Upstream, extra_headers};
