use std::path::PathBuf;

/// A scenario that can't be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file can't be read.
    #[error("scenario {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or not a scenario.
    #[error("scenario: {0}")]
    Parse(#[from] toml::de::Error),
    /// A VPG names a VM that is not there.
    #[error("VPG \"{vpg}\" names the VM \"{vm}\", which no [[vm]] has as its key or name")]
    UnknownVm {
        /// The VPG.
        vpg: String,
        /// The name.
        vm: String,
    },
    /// A VPG names a site that is not there.
    #[error("VPG \"{vpg}\" names the site \"{site}\", which is neither [site] nor a [[peer]]")]
    UnknownSite {
        /// The VPG.
        vpg: String,
        /// The name.
        site: String,
    },
    /// A name that the ZVM has no number for.
    #[error("VPG \"{vpg}\": {field} = \"{value}\" is not known; give its number instead")]
    UnknownName {
        /// The VPG.
        vpg: String,
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// Switches for a VPG that is not there, or with a state that is not known.
    #[error("switches: {0}")]
    Switches(String),
    /// Two VMs with one key, or two VPGs with one name.
    #[error("{what} \"{name}\" is there twice; give one of them another key")]
    Twice {
        /// VM or VPG.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A key or folder that can't be a folder's name.
    #[error("{what} \"{name}\" can't be the name of a folder")]
    BadFolder {
        /// Of what.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A file of the initial tree that can't be made.
    #[error("VM \"{vm}\", file \"{path}\": {reason}")]
    BadEntry {
        /// The VM.
        vm: String,
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Automatic checkpoints too close together.
    #[error("timings.auto_checkpoint is {0:?}; the shortest is 20 ms")]
    TooFast(std::time::Duration),
}
