//! Files of the simulated guests, and of nothing else.
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use zvm_sim::Scenario;

use super::Order;

/// The longest text that is read or written, in bytes.
const MAX_TEXT: usize = 1024 * 1024;

/// The guests' folders on this machine.
pub struct Guests {
    scenario: Scenario,
    folder: PathBuf,
}

impl Guests {
    /// The guests of this scenario, below this folder.
    pub fn new(scenario: Scenario, folder: PathBuf) -> Self {
        Self { scenario, folder }
    }

    /// Does it. What was read or done, or why not.
    pub fn obey(&self, order: &Order) -> Result<String, String> {
        match order {
            Order::Read { vm, path } => read(&self.locate(vm, path)?).map_err(at(path)),
            Order::Write { vm, path, content } => {
                let file = self.locate(vm, path)?;
                write(&file, content).map_err(at(path))?;
                Ok(format!("wrote {} bytes to {path}", content.len()))
            }
            Order::Move { vm, path, to } => {
                let (from, place) = (self.locate(vm, path)?, self.locate(vm, to)?);
                absent(&place).map_err(at(to))?;
                fs::rename(from, place).map_err(at(path))?;
                Ok(format!("moved {path} to {to}"))
            }
            Order::Delete { vm, path } => {
                fs::remove_file(self.locate(vm, path)?).map_err(at(path))?;
                Ok(format!("deleted {path}"))
            }
        }
    }

    /// Where a guest path is on this machine. Nothing in it leads out of the guest's folder: no `..`, no link.
    fn locate(&self, vm: &str, path: &str) -> Result<PathBuf, String> {
        let guest = self
            .scenario
            .vms
            .iter()
            .find(|own| own.key() == vm)
            .ok_or_else(|| format!("there is no VM {vm:?} here"))?;
        if !path.starts_with('/') || !path.split('/').all(is_plain) {
            return Err(format!(
                "{path:?} is not an absolute path, without . and .."
            ));
        }
        let host = guest
            .host_path(&self.folder, path)
            .ok_or_else(|| format!("{vm} has no disk for {path}"))?;
        let own = self.folder.join(vm);
        let below = host.strip_prefix(&own).map_err(|error| error.to_string())?;
        let mut step = own.clone();
        for part in below {
            step.push(part);
            if step.is_symlink() {
                return Err(format!(
                    "{path} leads over a link, and links are not followed"
                ));
            }
        }
        Ok(host)
    }
}

/// Whether this part of a path is empty or a name, on every system.
fn is_plain(part: &str) -> bool {
    let mut components = Path::new(part).components();
    match (components.next(), components.next()) {
        (None, None) => true,
        (Some(Component::Normal(name)), None) => name == part && !part.contains(['\\', '\0']),
        _ => false,
    }
}

fn at(path: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{path}: {error}")
}

fn read(file: &Path) -> io::Result<String> {
    if fs::metadata(file)?.len() > MAX_TEXT as u64 {
        return Err(io::Error::other(format!("longer than {MAX_TEXT} bytes")));
    }
    fs::read_to_string(file)
}

fn write(file: &Path, content: &str) -> io::Result<()> {
    if content.len() > MAX_TEXT {
        return Err(io::Error::other(format!("longer than {MAX_TEXT} bytes")));
    }
    fs::write(file, content)
}

fn absent(file: &Path) -> io::Result<()> {
    match fs::symlink_metadata(file) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VM: &str = "app01";

    /// Two partitions, the second one for `/home`.
    fn guests() -> (tempfile::TempDir, Guests) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("app01/0/etc")).unwrap();
        fs::create_dir_all(folder.path().join("app01/1/justin")).unwrap();
        fs::write(folder.path().join("app01/0/etc/hosts"), "old").unwrap();
        fs::write(folder.path().join("outside"), "secret").unwrap();
        let guests = Guests::new(Scenario::default(), folder.path().to_owned());
        (folder, guests)
    }

    fn reading(path: &str) -> Order {
        Order::Read {
            vm: VM.into(),
            path: path.into(),
        }
    }

    fn moving(path: &str, to: &str) -> Order {
        Order::Move {
            vm: VM.into(),
            path: path.into(),
            to: to.into(),
        }
    }

    #[test]
    fn files_are_on_the_partition_that_leads_to_them() {
        let (folder, guests) = guests();
        let path = "/home/justin/new.txt";
        let write = Order::Write {
            vm: VM.into(),
            path: path.into(),
            content: "x".into(),
        };
        guests.obey(&write).unwrap();
        assert!(folder.path().join("app01/1/justin/new.txt").exists());
        assert_eq!(guests.obey(&reading(path)).unwrap(), "x");
        guests.obey(&moving(path, "/etc/new.txt")).unwrap();
        assert!(folder.path().join("app01/0/etc/new.txt").exists());
        let why = guests
            .obey(&moving("/etc/new.txt", "/etc/hosts"))
            .unwrap_err();
        assert!(why.contains("/etc/hosts"), "{why}");
        let delete = Order::Delete {
            vm: VM.into(),
            path: "/etc/new.txt".into(),
        };
        guests.obey(&delete).unwrap();
        assert!(guests.obey(&delete).is_err());
        assert_eq!(guests.obey(&reading("/etc/hosts")).unwrap(), "old");
    }

    #[test]
    fn nothing_outside_of_the_guest_is_reached() {
        let (folder, guests) = guests();
        for path in [
            "/../outside",
            "/../../outside",
            "/etc/../../../outside",
            "/home/../../outside",
            "/./etc/hosts",
            "etc/hosts",
            "",
            "/etc\\..\\..\\..\\outside",
            "/etc/hosts\0",
        ] {
            assert!(guests.obey(&reading(path)).is_err(), "{path:?}");
            assert!(
                guests.obey(&moving("/etc/hosts", path)).is_err(),
                "{path:?}"
            );
        }
        for vm in ["", "..", "../app01", "app01/0", "web", "nobody"] {
            let order = Order::Read {
                vm: vm.into(),
                path: "/etc/hosts".into(),
            };
            assert!(guests.obey(&order).is_err(), "{vm:?}");
        }
        assert_eq!(fs::read(folder.path().join("outside")).unwrap(), b"secret");
        assert_eq!(guests.obey(&reading("/etc/hosts")).unwrap(), "old");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let (folder, guests) = guests();
        symlink(folder.path(), folder.path().join("app01/0/etc/up")).unwrap();
        symlink(
            folder.path().join("outside"),
            folder.path().join("app01/0/etc/link"),
        )
        .unwrap();
        for path in ["/etc/up/outside", "/etc/link"] {
            let why = guests.obey(&reading(path)).unwrap_err();
            assert!(why.contains("link"), "{why}");
        }
    }
}
