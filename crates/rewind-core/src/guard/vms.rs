//! Several VMs of one call.
use super::{Receipt, run::Guarding};
use crate::{Done, Error, ErrorCode, catalog::Unprotected, protection::Found, text};
use futures::future::join_all;
use tokio::sync::Semaphore;

/// How many VMs are worked on at once.
const AT_ONCE: usize = 8;
const SHOWN_MAX_LEN: usize = 100;

/// The VMs of a call, each once.
pub(crate) struct Vms {
    pub found: Vec<Found>,
    /// Those that no VPG protects, where that is let pass.
    pub not_protected: Vec<String>,
}

impl Guarding<'_> {
    /// Finds every VM of a call. Nothing was inserted where one of them can't be guarded.
    pub async fn find_all(&self, names: &[String], unprotected: Unprotected) -> Result<Vms, Error> {
        let results = at_once(names, |name| self.find(name)).await;
        let mut vms = Vms {
            found: Vec::new(),
            not_protected: Vec::new(),
        };
        for (name, result) in names.iter().zip(results) {
            match result {
                Ok(found) if vms.found.iter().any(|known| known.is(&found)) => {}
                Ok(found) => vms.found.push(found),
                Err(error)
                    if error.code == ErrorCode::VmNotProtected
                        && unprotected == Unprotected::Pass =>
                {
                    vms.not_protected.push(text::display(name, SHOWN_MAX_LEN));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(vms)
    }
}

/// Works on all, [`AT_ONCE`] at a time; the results in the same order.
pub(crate) async fn at_once<'a, T, F: Future>(
    items: &'a [T],
    work: impl Fn(&'a T) -> F,
) -> Vec<F::Output> {
    let turns = Semaphore::new(AT_ONCE);
    join_all(items.iter().map(|item| {
        let work = work(item);
        async {
            // Never closed.
            let _turn = turns.acquire().await;
            work.await
        }
    }))
    .await
}

/// The first failure speaks for all, and every pin that was taken is told.
pub(crate) fn all_or_failed<T>(
    results: Vec<Result<T, Error>>,
    receipt: impl Fn(&T) -> &Receipt,
) -> Result<Vec<T>, Error> {
    if results.iter().all(Result::is_ok) {
        return Ok(results.into_iter().flatten().collect());
    }
    let (mut failure, mut done) = (None::<Error>, Vec::new());
    for result in results {
        match result {
            Ok(guarded) => done.extend(pinned(receipt(&guarded))),
            Err(mut error) => {
                done.append(&mut error.done);
                match &mut failure {
                    None => failure = Some(error),
                    Some(first) => first.message = format!("{} {}", first.message, error.message),
                }
            }
        }
    }
    let failure = failure.unwrap_or_else(|| Error::new(ErrorCode::ZvmError, "a guard failed"));
    Err(failure.with_done(done))
}

/// What a receipt says was done.
pub(crate) fn pinned(receipt: &Receipt) -> impl Iterator<Item = Done> {
    receipt.pins.iter().map(|pin| Done::Pinned {
        vpg: pin.vpg.clone(),
        checkpoint: pin.checkpoint.clone(),
        tag: pin.tag.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn all_are_worked_on_and_not_too_many_at_once() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..30).collect();
        let results = at_once(&items, async |item| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            *item
        })
        .await;
        assert_eq!(results, items);
        assert_eq!(most.into_inner(), AT_ONCE);
    }
}
