//! The ways into guests, tried as a recovery takes them. Nothing is written in a guest.
use super::{Check, id};
use crate::{
    Error,
    config::{Config, Guest},
    guest::{Connection, GuestError},
    text,
};
use futures::{StreamExt as _, stream};
use std::time::Duration;
use tokio::time::timeout;

/// `ssh` itself gives up on a host that does not answer after 20 s.
const LIMIT: Duration = Duration::from_secs(25);
const AT_ONCE: usize = 16;
const NAME_MAX_LEN: usize = 100;

/// One for each guest, in the order of their names.
pub(super) async fn checks(config: &Config) -> Vec<Check> {
    if config.guests.is_empty() {
        return vec![Check::ok(
            id::GUESTS,
            "none is configured: files are recovered to this host",
        )];
    }
    stream::iter(&config.guests)
        .map(|(vm, guest)| check(vm, guest))
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
    let Error {
        message,
        next,
        code,
        ..
    } = error.into();
    let message = format!("{name}: {message}");
    match is_down {
        true => Check::warning(id::GUESTS, message, next),
        false => Check::of_error(id::GUESTS, Error::new(code, message).with_next(next)),
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
