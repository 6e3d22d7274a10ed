//! The ways into guests, tried as a recovery takes them. Nothing is written in a guest.
use super::{Check, Status, id, zvm::soon};
use crate::{
    Error, ErrorCode,
    config::{Config, Guest},
    guest::{Connection, GuestError},
    protection, text,
};
use futures::{StreamExt as _, stream};
use std::time::Duration;
use tokio::time::timeout;
use zvm_client::Zvm;

/// `ssh` itself gives up on a host that does not answer after 20 s.
const LIMIT: Duration = Duration::from_secs(25);
const AT_ONCE: usize = 16;
const NAME_MAX_LEN: usize = 100;
const REACH: &str =
    "Make sure that `ssh` reaches the guest from here, as this user; it may be down just now.";

/// One for each guest, in the order of their names. Which VM a name means is said where the ZVM can be asked.
pub(super) async fn checks(config: &Config, zvm: Option<&Zvm>) -> Vec<Check> {
    if config.guests.is_empty() {
        return vec![Check::ok(
            id::GUESTS,
            "none is configured: files are recovered to this host",
        )];
    }
    stream::iter(&config.guests)
        .map(|(vm, guest)| async move {
            let (check, nowhere) = tokio::join!(check(vm, guest), Nowhere::of(zvm, vm));
            match nowhere {
                Some(nowhere) => nowhere.added_to(check),
                None => check,
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await
}

async fn check(vm: &str, guest: &Guest) -> Check {
    let name = format!("{} ({})", text::display(vm, NAME_MAX_LEN), guest.ssh);
    let error = match in_time(look(guest)).await {
        Ok(found) => return judged(&name, guest, found),
        Err(error) => error,
    };
    // It may be down just now, as a VPG may be: that is nothing that a person has set up wrong.
    let is_down = error.is_lost();
    let hint = error.hint(guest).unwrap_or(REACH);
    let Error {
        message,
        next,
        code,
        ..
    } = error.into();
    let message = format!("{name}: {message}");
    match is_down {
        true => Check::warning(id::GUESTS, message, hint),
        false => Check::of_error(id::GUESTS, Error::new(code, message).with_next(next)),
    }
}

/// A name in `guests` that leads into no VM.
struct Nowhere {
    why: String,
    fix: &'static str,
    candidates: Vec<String>,
}

impl Nowhere {
    /// None: it leads into one, or the ZVM could not be asked.
    async fn of(zvm: Option<&Zvm>, vm: &str) -> Option<Self> {
        let error = match Box::pin(protection::find(&soon(zvm?), vm)).await {
            Ok(found) if found.vm == vm || found.vm_identifier == vm => return None,
            Ok(found) => {
                return Some(Self {
                    why: format!("the ZVM calls this VM {}", found.told()),
                    fix: "Write its name in `guests` exactly as the ZVM has it.",
                    candidates: Vec::new(),
                });
            }
            Err(error) => error,
        };
        let (why, fix) = match error.code {
            ErrorCode::VmNotFound | ErrorCode::InvalidArgument => (
                "no VM of the ZVM has this name or identifier",
                "Correct the VM's name in `guests`; `zerto-rewind find VM` knows which there are.",
            ),
            ErrorCode::VmNotProtected => (
                "no VPG protects this VM",
                "Put the VM into a VPG, or leave it out of `guests`.",
            ),
            ErrorCode::VmAmbiguous => (
                "more than one VM of the ZVM has this name",
                "Write the VM's identifier instead of its name in `guests`.",
            ),
            _ => return None,
        };
        Some(Self {
            why: why.to_owned(),
            fix,
            candidates: error.candidates,
        })
    }

    /// What is wrong with the way in comes first.
    fn added_to(self, mut check: Check) -> Check {
        let why = format!("{}, so that it leads into none", self.why);
        check.message = format!("{}; but {why}", check.message);
        check.fix = Some(match check.fix {
            Some(fix) => format!("{fix} {}", self.fix),
            None => self.fix.to_owned(),
        });
        check.status = check.status.max(Status::Warning);
        check.with_details(self.candidates)
    }
}

async fn in_time<T>(look: impl Future<Output = Result<T, GuestError>>) -> Result<T, GuestError> {
    let silent = || GuestError::Unreachable(format!("no answer within {} s", LIMIT.as_secs()));
    timeout(LIMIT, look).await.unwrap_or_else(|_| Err(silent()))
}

struct Found {
    can_replace: bool,
}

async fn look(guest: &Guest) -> Result<Found, GuestError> {
    let connection = Connection::open(guest).await?;
    // Not only the greeting: something has to be answered.
    connection.real_path("/").await?;
    Ok(Found {
        can_replace: connection.can_replace(),
    })
}

fn judged(name: &str, guest: &Guest, found: Found) -> Check {
    let how = match guest.sudo {
        true => "SFTP works, under `sudo -n`",
        false => "SFTP works",
    };
    match found.can_replace {
        true => Check::ok(id::GUESTS, format!("{name}: {how}")),
        false => Check::warning(
            id::GUESTS,
            format!("{name}: {how}, but its server can't replace a file in one step"),
            "Restore beside the file instead of replacing it, or use OpenSSH's SFTP server in the guest.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_guest_that_says_nothing_is_not_waited_for() {
        let began = Instant::now();
        let error = in_time(std::future::pending::<Result<(), _>>())
            .await
            .unwrap_err();
        assert!(error.is_lost() && error.to_string().contains("25 s"));
        assert_eq!(began.elapsed(), LIMIT);
    }
}
