use super::*;

const ZVM: &str = "zvm:443";

struct Ledger {
    state: State,
    now: Timestamp,
    _dir: tempfile::TempDir,
}

impl Ledger {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            state: State::new(dir.path().join("state")),
            now: "2026-09-21T17:00:00Z".parse().unwrap(),
            _dir: dir,
        }
    }

    fn wait(&mut self, time: SignedDuration) {
        self.now += time;
    }

    fn ask_for(&self, secret: &str) -> Result<LoginAttempt, LoginBlocked> {
        match self
            .state
            .login_permitted_at(ZVM, "admin", &secret.into(), self.now)
        {
            Ok(attempt) => Ok(attempt),
            Err(LoginError::Blocked(blocked)) => Err(blocked),
            Err(LoginError::State(error)) => panic!("{error}"),
        }
    }

    fn end(&self, attempt: LoginAttempt, outcome: LoginOutcome) {
        self.state
            .login_ended_at(attempt, outcome, self.now)
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
}

#[test]
fn a_secret_is_refused_three_times_and_never_tried_again() {
    let mut ledger = Ledger::new();
    ledger.refused("wrong", 2);
    ledger.wait(SignedDuration::from_mins(5));
    ledger.refused("wrong", 1);
    let blocked = LoginBlocked::SameSecret {
        refused: 3,
        last: ledger.now,
    };
    assert_eq!(ledger.ask_for("wrong"), Err(blocked.clone()));
    ledger.wait(SignedDuration::from_hours(24 * 365));
    assert_eq!(ledger.ask_for("wrong"), Err(blocked));
}

#[test]
fn refusals_of_one_secret_add_up_over_any_time() {
    let mut ledger = Ledger::new();
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
    let mut ledger = Ledger::new();
    let first = ledger.now;
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
            until: first + hours(13)
        })
    );
    assert_eq!(
        ledger.ask_for("d"),
        Err(LoginBlocked::TooMany {
            failed: 4,
            until: first + hours(12)
        })
    );
    ledger.now = first + hours(12);
    ledger.refused("d", 1);
    assert!(matches!(
        ledger.ask_for("e"),
        Err(LoginBlocked::TooMany { failed: 4, .. })
    ));
    ledger.now = first + hours(13);
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
    let mut ledger = Ledger::new();
    let ask = |ledger: &Ledger| {
        ledger
            .state
            .person_asked_at(ZVM, "admin", ledger.now)
            .unwrap()
    };
    ledger.refused("wrong", 3);
    ask(&ledger);
    ledger.refused("wrong", 1);
    assert!(ledger.ask_for("wrong").is_err());
    ask(&ledger);
    ledger.wait(SignedDuration::from_mins(16));
    assert!(
        ledger.ask_for("wrong").is_err(),
        "an asking does not hold for ever"
    );
    ask(&ledger);
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
    let mut ledger = Ledger::new();
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
    let mut ledger = Ledger::new();
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
    let mut ledger = Ledger::new();
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
            .login_permitted_at(ZVM, "other", &secret, ledger.now)
            .is_ok()
    );
    assert!(
        ledger
            .state
            .login_permitted_at("zvm2:443", "admin", &secret, ledger.now)
            .is_ok()
    );
}

#[test]
fn a_clock_that_jumps_back_forgets_nothing() {
    let mut ledger = Ledger::new();
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
