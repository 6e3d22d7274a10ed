//! A simulated Zerto Virtual Manager: a miniature Zerto, not a mock.
//!
//! It speaks HTTPS with a certificate of its own, has a Keycloak token endpoint, journals that fill and roll off, tasks that
//! take time, and guests whose folders on the host become real ext4 disks at every checkpoint, so that a file-level
//! restore reads what was there at that moment. Its README documents scenarios, switches and controls.

mod app;
mod clock;
pub mod disk;
mod faults;
mod flr;
mod guest;
mod held;
mod http;
mod inventory;
mod journal;
mod names;
mod realm;
mod record;
mod render;
pub mod scenario;
mod sim;
mod spread;
pub mod switches;
mod sync;
mod tasks;
mod tls;
mod view;
mod world;

pub use faults::{Fault, Outcome};
pub use guest::GuestError;
pub use held::HeldRequest;
pub use http::{OPERATIONS, Operation};
pub use names::Code;
pub use record::RequestRecord;
pub use scenario::{Credentials, Scenario, ScenarioError};
pub use sim::{Access, Sim, SimBuilder, SimError};
pub use spread::Spread;
pub use switches::{Switches, VpgSwitches};
pub use tls::TlsError;
pub use view::{FlrSession, FlrState, JournalEntry, View};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
