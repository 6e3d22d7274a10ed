//! The calls, by family.

mod checkpoints;
mod flr;
mod sites;
mod tasks;
mod vms;
mod vpgs;
