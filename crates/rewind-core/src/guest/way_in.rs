//! Which way into a VM's guest the configuration has.
use super::{Connection, GuestError, leftovers::remove_leftovers};
use crate::{
    Error, ErrorCode,
    config::{Config, Guest},
    protection,
    recovery::close_interrupted,
    rewind::Core,
    text,
};

/// The way into the guest of one VM.
#[derive(Clone, Debug)]
pub(crate) struct WayIn {
    pub guest: Guest,
    vm_identifier: String,
}

impl WayIn {
    /// None where none is configured. A VM is meant by its identifier, or by its name where no other VM has it.
    pub async fn find(core: &Core, vm: &str, vm_identifier: &str) -> Result<Option<Self>, Error> {
        let way = |guest: &Guest| Self {
            guest: guest.clone(),
            vm_identifier: vm_identifier.to_owned(),
        };
        let guests = &core.config.guests;
        if let Some(guest) = guests.get(vm_identifier) {
            return Ok(Some(way(guest)));
        }
        let Some(guest) = guests.get(vm) else {
            return Ok(None);
        };
        // The name must not lead into another VM of that name.
        match protection::find(&core.zvm, vm).await {
            Ok(found) if found.vm_identifier == vm_identifier => Ok(Some(way(guest))),
            Ok(_) => Err(ambiguous(&core.config, vm)),
            Err(error) if error.code == ErrorCode::VmAmbiguous => Err(ambiguous(&core.config, vm)),
            Err(error) => Err(error),
        }
    }

    /// As [`find`](Self::find), where one is needed.
    pub async fn require(core: &Core, vm: &str, vm_identifier: &str) -> Result<Self, Error> {
        Self::find(core, vm, vm_identifier).await?.ok_or_else(|| {
            let vm = text::display(vm, 100);
            Error::new(
                ErrorCode::GuestNotConfigured,
                format!("no way into the guest of {vm} is configured"),
            )
        })
    }

    /// As it is shown.
    pub fn shown(&self) -> &str {
        &self.guest.ssh
    }

    /// Connects, removes what earlier restores left there, and says what that was.
    pub async fn connect(&self, core: &Core) -> Result<(Connection, Vec<String>), Error> {
        let connection = Connection::open(&self.guest)
            .await
            .map_err(|error| self.about(error))?;
        // Before what a process that died has left here is looked at: so it is told once, by whoever knows most.
        close_interrupted(core).await?;
        let notes = remove_leftovers(core, &connection, &self.vm_identifier).await?;
        Ok((connection, notes))
    }

    /// Says which guest.
    fn about(&self, error: GuestError) -> Error {
        let hint = error.hint(&self.guest);
        let mut error = Error::from(error);
        if let Some(hint) = hint {
            error.next = hint.to_owned();
        }
        error.message = format!("{}: {}", self.guest.ssh, error.message);
        error
    }
}

fn ambiguous(config: &Config, vm: &str) -> Error {
    let (file, vm) = (config.file.display(), text::display(vm, 100));
    Error::new(
        ErrorCode::VmAmbiguous,
        format!("{file}: `guests` names \"{vm}\", and more than one VM has that name"),
    )
    .with_next("Write the VM's identifier instead of its name in `guests`.")
}

/// The path as the guest has it.
pub(crate) fn posix_path(path: &str) -> Result<&str, Error> {
    if path.starts_with('/') {
        return Ok(path);
    }
    Err(Error::new(
        ErrorCode::InvalidArgument,
        format!(
            "{} names no place in a running guest",
            text::named_exactly(path, 300)
        ),
    )
    .with_next("Give the path as the guest has it, such as /etc/hosts. In Windows guests nothing is written: leave `restore` out, and the file is downloaded."))
}
