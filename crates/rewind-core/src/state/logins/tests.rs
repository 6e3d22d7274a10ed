use super::*;
use std::cell::Cell;

const ZVM: &str = "zvm:443";

/// A clock that stands still, but that whoever logs in lets some seconds pass first.
struct Ledger {
    state: State,
    now: Cell<Timestamp>,
    _dir: tempfile::TempDir,
}

impl Ledger {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            state: State::new(dir.path().join("state")),
            now: Cell::new("2026-09-21T17:00:00Z".parse().unwrap()),
            _dir: dir,
        }
    }

    fn wait(&self, time: SignedDuration) {
        self.now.set(self.now.get() + time);
    }

    fn ask_for(&self, secret: &str) -> Result<LoginAttempt, LoginBlocked> {
        self.wait(SPACING);
        self.ask_at_once_for(secret)
    }

    fn ask_at_once_for(&self, secret: &str) -> Result<LoginAttempt, LoginBlocked> {
        match self
            .state
            .login_permitted_at(ZVM, "admin", &secret.into(), self.now.get())
        {
            Ok(attempt) => Ok(attempt),
            Err(LoginError::Blocked(blocked)) => Err(blocked),
            Err(LoginError::State(error)) => panic!("{error}"),
        }
    }

    fn end(&self, attempt: LoginAttempt, outcome: LoginOutcome) {
        self.state
            .login_ended_at(attempt, outcome, self.now.get())
            .unwrap();
    }

    fn attempt(&self, secret: &str, outcome: LoginOutcome) -> Result<(), LoginBlocked> {
        self.ask_for(secret)
            .map(|attempt| self.end(attempt, outcome))
    }

    fn refused(&self, secret: &str, times: usize) {
        for _ in 0..times {
            self.attempt(secret, LoginOutcome::Refused).unwrap();
        }
    }

    fn ask(&self) {
        self.state
            .person_asked_at(ZVM, "admin", self.now.get())
            .unwrap();
    }
}

#[test]
fn after_a_refusal_every_secret_waits_and_the_same_one_in_vain() {
    let ledger = Ledger::new();
    ledger.refused("wrong", 1);
    let too_soon = |millis, same_secret| {
        Err(LoginBlocked::TooSoon {
            retry_after: Duration::from_millis(millis),
            same_secret,
        })
    };
    assert_eq!(ledger.ask_at_once_for("wrong"), too_soon(3_000, true));
    ledger.wait(SignedDuration::from_millis(1_200));
    assert_eq!(ledger.ask_at_once_for("wrong"), too_soon(1_800, true));
    assert_eq!(ledger.ask_at_once_for("other"), too_soon(1_800, false));
    let said = ledger.ask_at_once_for("wrong").unwrap_err().to_string();
    assert!(
        said.contains("another 2 s") && !said.contains("wrong"),
        "{said}"
    );
    ledger.wait(SignedDuration::from_millis(1_800));
    ledger.end(
        ledger.ask_at_once_for("other").unwrap(),
        LoginOutcome::Unknown,
    );
    assert_eq!(ledger.ask_at_once_for("other"), too_soon(3_000, false));
}

#[test]
fn while_a_secret_that_was_never_accepted_is_judged_no_other_is_sent() {
    let ledger = Ledger::new();
    let attempt = ledger.ask_for("new").unwrap();
    for secret in ["new", "other"] {
        assert!(matches!(
            ledger.ask_at_once_for(secret),
            Err(LoginBlocked::Busy { .. })
        ));
    }
    ledger.end(attempt, LoginOutcome::Accepted);
    let (_one, _two) = (
        ledger.ask_at_once_for("new").unwrap(),
        ledger.ask_at_once_for("new").unwrap(),
    );
    // A process that died while it logged in does not keep the others waiting for ever.
    let ledger = Ledger::new();
    let _died = ledger.ask_for("new").unwrap();
    let _ = ledger.ask_for("new").unwrap();
}

#[test]
fn an_accepted_login_ends_the_waiting_and_a_persons_asking_does_not() {
    let ledger = Ledger::new();
    ledger.refused("wrong", 1);
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    let _ = ledger.ask_at_once_for("right").unwrap();

    let ledger = Ledger::new();
    ledger.refused("wrong", 3);
    ledger.ask();
    let too_soon = LoginBlocked::TooSoon {
        retry_after: Duration::from_secs(3),
        same_secret: false,
    };
    assert_eq!(ledger.ask_at_once_for("wrong"), Err(too_soon));
    let _ = ledger.ask_for("wrong").unwrap();
}

#[test]
fn a_secret_that_is_not_tried_again_says_what_to_do() {
    let ledger = Ledger::new();
    ledger.refused("wrong", 3);
    let said = ledger.ask_for("wrong").unwrap_err().to_string();
    assert!(
        said.contains("refused this same secret 3 times") && said.contains("in the configuration"),
        "{said}"
    );
    assert!(!said.contains("wrong"));
}

#[test]
fn a_secret_is_refused_three_times_and_never_tried_again() {
    let ledger = Ledger::new();
    ledger.refused("wrong", 2);
    ledger.wait(SignedDuration::from_mins(5));
    ledger.refused("wrong", 1);
    let blocked = LoginBlocked::SameSecret {
        refused: 3,
        last: ledger.now.get(),
    };
    assert_eq!(ledger.ask_for("wrong"), Err(blocked.clone()));
    ledger.wait(SignedDuration::from_hours(24 * 365));
    assert_eq!(ledger.ask_for("wrong"), Err(blocked));
}

#[test]
fn refusals_of_one_secret_add_up_over_any_time() {
    let ledger = Ledger::new();
    for _ in 0..3 {
        ledger.refused("wrong", 1);
        ledger.wait(SignedDuration::from_hours(48));
    }
    assert!(matches!(
        ledger.ask_for("wrong"),
        Err(LoginBlocked::SameSecret { refused: 3, .. })
    ));
}

#[test]
fn a_new_secret_gets_one_attempt_at_three_and_none_at_four() {
    let ledger = Ledger::new();
    let first = ledger.now.get() + SPACING;
    ledger.refused("a", 1);
    ledger.wait(SignedDuration::from_hours(1));
    ledger.refused("b", 2);
    ledger.refused("c", 1);
    let hours = SignedDuration::from_hours;
    // "c" was tried, so it waits until less than three are left; "d" was not, so it waits until less than four are.
    assert_eq!(
        ledger.ask_for("c"),
        Err(LoginBlocked::TooMany {
            failed: 4,
            until: first + hours(13) + SPACING
        })
    );
    assert_eq!(
        ledger.ask_for("d"),
        Err(LoginBlocked::TooMany {
            failed: 4,
            until: first + hours(12)
        })
    );
    ledger.now.set(first + hours(12));
    ledger.refused("d", 1);
    assert!(matches!(
        ledger.ask_for("e"),
        Err(LoginBlocked::TooMany { failed: 4, .. })
    ));
    ledger.now.set(first + hours(13));
    ledger.refused("e", 1);
}

#[test]
fn an_accepted_login_starts_the_count_anew() {
    let ledger = Ledger::new();
    ledger.refused("old", 2);
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    for _ in 0..5 {
        ledger.refused("right", 2);
        ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    }
    ledger.refused("typo", 3);
    // But "old" itself was never accepted.
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    ledger.refused("old", 1);
    assert!(matches!(
        ledger.ask_for("old"),
        Err(LoginBlocked::SameSecret { refused: 3, .. })
    ));
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
}

#[test]
fn a_person_gets_one_more_each_time() {
    let ledger = Ledger::new();
    ledger.refused("wrong", 3);
    ledger.ask();
    ledger.refused("wrong", 1);
    assert!(ledger.ask_for("wrong").is_err());
    ledger.ask();
    ledger.wait(SignedDuration::from_mins(16));
    assert!(
        ledger.ask_for("wrong").is_err(),
        "an asking does not hold for ever"
    );
    ledger.ask();
    ledger.attempt("wrong", LoginOutcome::Accepted).unwrap();
    ledger.refused("wrong", 3);
    assert!(ledger.ask_for("wrong").is_err());
}

#[test]
fn attempts_under_way_count_until_their_outcome_is_known() {
    let ledger = Ledger::new();
    let attempts: Vec<_> = (0..3).map(|_| ledger.ask_for("x").unwrap()).collect();
    assert!(matches!(
        ledger.ask_for("x"),
        Err(LoginBlocked::Busy { .. })
    ));
    let [first, second, third] = attempts.try_into().unwrap();
    ledger.end(first, LoginOutcome::Refused);
    ledger.end(second, LoginOutcome::Unsent);
    let fourth = ledger.ask_for("x").unwrap();
    assert!(matches!(
        ledger.ask_for("x"),
        Err(LoginBlocked::Busy { .. })
    ));
    ledger.end(third, LoginOutcome::Accepted);
    ledger.end(fourth, LoginOutcome::Accepted);
    ledger.attempt("x", LoginOutcome::Accepted).unwrap();
}

#[test]
fn many_secrets_at_once_stay_below_the_lock() {
    let ledger = Ledger::new();
    let permitted: Vec<_> = (0..20)
        .filter_map(|n| ledger.ask_for(&format!("secret {n}")).ok())
        .collect();
    assert_eq!(permitted.len(), 4);
}

#[test]
fn old_refusals_leave_less_room_for_attempts_at_once() {
    let ledger = Ledger::new();
    ledger.refused("x", 2);
    ledger.wait(SignedDuration::from_hours(13));
    let _last = ledger.ask_for("x").unwrap();
    assert!(matches!(
        ledger.ask_for("x"),
        Err(LoginBlocked::Busy { .. })
    ));
}

#[test]
fn an_attempt_without_an_outcome_counts_as_refused_for_twelve_hours() {
    let ledger = Ledger::new();
    for _ in 0..2 {
        let _died = ledger.ask_for("x").unwrap();
    }
    ledger.attempt("x", LoginOutcome::Unknown).unwrap();
    assert!(matches!(
        ledger.ask_for("x"),
        Err(LoginBlocked::Busy { .. })
    ));
    ledger.wait(SignedDuration::from_mins(3));
    assert!(matches!(
        ledger.ask_for("x"),
        Err(LoginBlocked::TooMany { failed: 3, .. })
    ));
    ledger.wait(SignedDuration::from_hours(12));
    ledger.attempt("x", LoginOutcome::Accepted).unwrap();
}

#[test]
fn a_secret_that_was_accepted_outlives_lost_answers() {
    let ledger = Ledger::new();
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    for _ in 0..20 {
        ledger.attempt("right", LoginOutcome::Unknown).unwrap();
    }
    let _died = ledger.ask_for("right").unwrap();
    ledger.wait(SignedDuration::from_mins(3));
    // Changed on the ZVM.
    ledger.refused("right", 1);
    ledger.wait(SignedDuration::from_hours(13));
    ledger.refused("right", 2);
    assert!(ledger.ask_for("right").is_err());
}

#[test]
fn what_was_not_sent_does_not_count() {
    let ledger = Ledger::new();
    for _ in 0..20 {
        ledger.attempt("x", LoginOutcome::Unsent).unwrap();
    }
    ledger.refused("x", 3);
}

#[test]
fn the_first_outcome_counts() {
    let ledger = Ledger::new();
    for _ in 0..3 {
        let attempt = ledger.ask_for("x").unwrap();
        ledger.end(attempt, LoginOutcome::Refused);
        ledger.end(attempt, LoginOutcome::Accepted);
    }
    assert!(ledger.ask_for("x").is_err());
}

#[test]
fn accounts_and_zvms_are_counted_apart() {
    let ledger = Ledger::new();
    ledger.refused("x", 3);
    let secret = SecretString::from("x");
    assert!(
        ledger
            .state
            .login_permitted_at(ZVM, "other", &secret, ledger.now.get())
            .is_ok()
    );
    assert!(
        ledger
            .state
            .login_permitted_at("zvm2:443", "admin", &secret, ledger.now.get())
            .is_ok()
    );
}

#[test]
fn a_clock_that_jumps_back_forgets_nothing() {
    let ledger = Ledger::new();
    ledger.refused("a", 2);
    ledger.attempt("b", LoginOutcome::Unknown).unwrap();
    let _died = ledger.ask_for("c").unwrap();
    ledger.wait(SignedDuration::from_hours(-1000));
    assert!(matches!(
        ledger.ask_for("a"),
        Err(LoginBlocked::TooMany { failed: 4, .. })
    ));
    assert!(matches!(
        ledger.ask_for("d"),
        Err(LoginBlocked::TooMany { failed: 4, .. })
    ));
}

#[test]
fn the_file_does_not_contain_the_secret() {
    let ledger = Ledger::new();
    ledger
        .attempt("correct horse battery", LoginOutcome::Refused)
        .unwrap();
    for entry in std::fs::read_dir(ledger.state.dir()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(13).any(|window| window == b"correct horse"));
    }
}

/// A process that dies before the ZVM's answer.
fn dies_logging_in(ledger: &Ledger, secret: &str) {
    ledger.wait(SPACING);
    let dead = State::new(ledger.state.dir());
    let _attempt = dead
        .login_permitted_at(ZVM, "admin", &secret.into(), ledger.now.get())
        .unwrap();
}

#[test]
fn the_login_of_a_process_that_died_keeps_nobody_waiting() {
    let ledger = Ledger::new();
    ledger.attempt("right", LoginOutcome::Accepted).unwrap();
    for _ in 0..=LIMIT {
        dies_logging_in(&ledger, "right");
    }
    assert!(ledger.ask_at_once_for("right").is_ok());
    // A living one's is waited for.
    let living: Vec<_> = (0..2).map(|_| ledger.ask_at_once_for("right")).collect();
    assert!(living.iter().all(Result::is_ok), "{living:?}");
    let busy = ledger.ask_at_once_for("right");
    assert!(matches!(busy, Err(LoginBlocked::Busy { .. })), "{busy:?}");
}

#[test]
fn a_secret_that_was_never_accepted_counts_as_refused_where_its_processes_died() {
    let ledger = Ledger::new();
    for _ in 0..LIMIT {
        dies_logging_in(&ledger, "new");
    }
    let blocked = ledger.ask_for("new");
    assert!(
        matches!(blocked, Err(LoginBlocked::TooMany { .. })),
        "{blocked:?}"
    );
}
