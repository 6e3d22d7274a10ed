//! What to do next, where the usual advice is for an agent and a person sits here.
use rewind_core::{Error, ErrorCode};

/// The error, with advice for whoever sits at the terminal. What was said for the case itself stays.
pub fn told(error: &Error) -> Error {
    let error = error.clone();
    match next(error.code) {
        Some(next) if error.next == error.code.next() => error.with_next(next),
        _ => error,
    }
}

fn next(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::ConfirmationRequired => {
            "Run the command in a terminal, and read there what it is about."
        }
        ErrorCode::PlanForeign => {
            "Check the id: `zerto-rewind approvals` lists the plans that have not expired. One of another user, or of another ZVM's \
             configuration, is not among them."
        }
        ErrorCode::Declined => {
            "Nothing comes of it any more: a decision is final. If it is wanted after all, have the agent ask again, which makes a new \
             plan; or recover it yourself: `zerto-rewind recover VM PATH --at CHECKPOINT`."
        }
        ErrorCode::PlanDecided => {
            "The first decision counts: `zerto-rewind approvals` shows what it was. If another one is wanted, have the agent ask \
             again, which makes a new plan; or recover it yourself: `zerto-rewind recover VM PATH --at CHECKPOINT`."
        }
        ErrorCode::PlanUsed => {
            "Nothing has to be done: `zerto-rewind audit list` shows what came of it. If it is wanted once more, recover it yourself: \
             `zerto-rewind recover VM PATH --at CHECKPOINT`."
        }
        ErrorCode::PlanExpired | ErrorCode::PlanChanged => {
            "Have the agent ask again, which makes a new plan; or recover it yourself: `zerto-rewind recover VM PATH --at CHECKPOINT`."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_advice_is_for_a_person_and_other_advice_stays() {
        let declined = Error::new(ErrorCode::Declined, "plan p-1: declined");
        assert_ne!(told(&declined).next, declined.next);
        let own = declined.with_next("Run it again.");
        assert_eq!(told(&own).next, "Run it again.");
        let other = Error::new(ErrorCode::VmNotFound, "no VM");
        assert_eq!(told(&other).next, other.next);
    }
}
