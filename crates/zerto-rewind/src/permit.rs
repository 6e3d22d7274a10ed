//! A person's word at this terminal, with the approver's passphrase where one is set.
use std::path::Path;

use rewind_core::{Error, ErrorCode, approver::Approver};

use crate::{commands::run, interrupt::Interrupt, terminal};

/// Asks for the approver's passphrase, if one is set for this state folder or for the user. Whoever else has a terminal of theirs
/// can type a yes.
///
/// # Errors
/// `confirmation_required` without a terminal, `declined` where none is typed, `passphrase_refused`, `state`.
pub async fn passphrase(state_dir: &Path) -> Result<(), Error> {
    let approver = Approver::of(state_dir);
    if !approver.is_set()? {
        return Ok(());
    }
    if !terminal::is_there() {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            "the approver's passphrase is needed, and there is no terminal here (stdin and stderr)",
        )
        .with_next("Run the command in a terminal."));
    }
    approver.may_be_tried()?;
    let typed = match terminal::secret("Approver's passphrase:").await {
        Some(Ok(typed)) => typed,
        Some(Err(problem)) => return Err(untyped(&format!("what was typed {problem}"))),
        None => {
            return Err(untyped(
                "no passphrase was typed, or the terminal can't hide it",
            ));
        }
    };
    // It takes its time, on purpose.
    tokio::task::spawn_blocking(move || approver.check(&typed))
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorCode::Cancelled, "the program is ending")))
}

/// Before a question that the passphrase follows: nobody answers one in vain.
///
/// # Errors
/// `passphrase_refused`: none is accepted for a while; `state`.
pub fn may_be_tried(state_dir: &Path) -> Result<(), Error> {
    Approver::of(state_dir).may_be_tried()
}

fn untyped(why: &str) -> Error {
    Error::new(ErrorCode::Declined, why).with_next("Run it again to be asked again.")
}

/// As [`passphrase`], until the person interrupts it.
///
/// # Errors
/// As there, and `cancelled`.
pub async fn passphrase_until(state_dir: &Path, interrupt: &Interrupt) -> Result<(), Error> {
    tokio::select! {
        permitted = passphrase(state_dir) => permitted,
        () = interrupt.token().cancelled_owned() => Err(Error::new(
            ErrorCode::Cancelled,
            "interrupted before the passphrase was typed; nothing was done",
        )),
    }
}

/// As [`passphrase`], for a command without a runtime of its own.
///
/// # Errors
/// As there, and `cancelled`.
pub fn blocking(state_dir: &Path) -> Result<(), Error> {
    if !Approver::of(state_dir).is_set()? {
        return Ok(());
    }
    let runtime = run::runtime()?;
    let permitted = runtime.block_on(async {
        let interrupt = Interrupt::watch();
        passphrase_until(state_dir, &interrupt).await
    });
    // A read of the terminal can't be cancelled: don't wait for it.
    runtime.shutdown_background();
    permitted
}
