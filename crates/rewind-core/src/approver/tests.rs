use super::*;
use jiff::{SignedDuration, Timestamp};
use std::sync::Mutex;

#[derive(Debug)]
struct Hand(Mutex<Timestamp>);

impl Hand {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new("2026-01-01T00:00:00Z".parse().unwrap())))
    }

    fn forward(&self, by: SignedDuration) {
        let mut now = self.0.lock().unwrap();
        *now += by;
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Without the folder of the user who runs the tests.
fn approver(folder: &Path, clock: Arc<dyn Clock>) -> Approver {
    Approver {
        states: vec![folder.to_owned()],
        clock,
    }
}

fn fresh() -> (tempfile::TempDir, Arc<Hand>, Approver) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::new();
    let approver = approver(&folder.path().join("state"), clock.clone());
    (folder, clock, approver)
}

fn said(text: &str) -> SecretString {
    SecretString::from(text)
}

#[test]
fn nothing_is_asked_for_and_nothing_made_before_one_is_set() {
    let (folder, _, approver) = fresh();
    assert!(!approver.is_set().unwrap());
    approver.check(&said("anything")).unwrap();
    assert!(!folder.path().join("state").exists());
}

#[test]
fn the_right_one_passes_and_no_other() {
    let (_folder, _, approver) = fresh();
    approver.set(&said("five small words"), "cli/ana").unwrap();
    assert!(approver.is_set().unwrap());
    approver.check(&said("five small words")).unwrap();
    for wrong in ["", "five small word", "Five small words"] {
        let error = approver.check(&said(wrong)).unwrap_err();
        assert_eq!(error.code, ErrorCode::PassphraseRefused, "{wrong:?}");
    }
    let short = approver.set(&said("seven 7"), "cli/ana").unwrap_err();
    assert_eq!(short.code, ErrorCode::InvalidArgument);
    approver.set(&said("another one"), "cli/ana").unwrap();
    assert!(approver.check(&said("five small words")).is_err());
    approver.check(&said("another one")).unwrap();
    approver.remove("cli/ana").unwrap();
    assert!(!approver.is_set().unwrap());
}

#[test]
fn only_its_hash_is_kept() {
    let (folder, _, approver) = fresh();
    approver.set(&said("five small words"), "cli/ana").unwrap();
    let state = State::new(folder.path().join("state"));
    let (_, hash) = state.approver_newest().unwrap().unwrap();
    let hash = hash.unwrap();
    assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
    for entry in std::fs::read_dir(folder.path().join("state")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("five small words"));
    }
}

#[test]
fn after_five_wrong_ones_none_is_accepted_for_a_while_by_any_process() {
    let (folder, clock, approver) = fresh();
    approver.set(&said("five small words"), "cli/ana").unwrap();
    for _ in 0..4 {
        approver.check(&said("wrong")).unwrap_err();
    }
    // A right one in between: the count begins anew.
    approver.check(&said("five small words")).unwrap();
    const UNTIL: &str = "2026-01-01T00:10:00Z";
    for last in [false, false, false, false, true] {
        approver.may_be_tried().unwrap();
        let error = approver.check(&said("wrong")).unwrap_err();
        assert!(error.message.contains("is wrong"), "{error}");
        // The last one says what follows from it, and none that it is to be tried again.
        assert_eq!(error.message.contains(UNTIL), last, "{error}");
        assert_eq!(error.next.contains("Try again"), !last, "{}", error.next);
        clock.forward(SignedDuration::from_secs(1));
    }
    let other = self::approver(&folder.path().join("state"), clock.clone());
    for approver in [&approver, &other] {
        for refused in [
            approver.may_be_tried(),
            approver.check(&said("five small words")),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.code, ErrorCode::PassphraseRefused);
            assert!(error.message.contains(UNTIL), "{error}");
            assert!(
                error.next.starts_with(&format!("Wait until {UNTIL}")),
                "{}",
                error.next
            );
        }
    }
    clock.forward(SignedDuration::from_mins(10));
    other.may_be_tried().unwrap();
    other.check(&said("five small words")).unwrap();
}

#[test]
fn a_program_with_another_state_folder_asks_for_the_users() {
    let (folder, clock, users) = fresh();
    users.set(&said("five small words"), "cli/ana").unwrap();
    let programs = Approver {
        states: vec![folder.path().join("own"), folder.path().join("state")],
        clock,
    };
    assert!(programs.is_set().unwrap());
    programs.check(&said("wrong")).unwrap_err();
    programs.check(&said("five small words")).unwrap();
    assert!(!folder.path().join("own").exists());
}

#[test]
fn a_passphrase_of_the_users_does_not_get_past_the_programs_own() {
    let (folder, clock, users) = fresh();
    let programs = Approver {
        states: vec![folder.path().join("own"), folder.path().join("state")],
        clock,
    };
    programs.set(&said("five small words"), "cli/ana").unwrap();
    users.set(&said("whatever I like"), "cli/agent").unwrap();
    programs.check(&said("whatever I like")).unwrap_err();
    programs.check(&said("five small words")).unwrap();
    programs.remove("cli/ana").unwrap();
    programs.check(&said("whatever I like")).unwrap();
}

#[test]
fn a_state_that_cannot_be_read_refuses() {
    let (folder, _, approver) = fresh();
    approver.set(&said("five small words"), "cli/ana").unwrap();
    let file = folder.path().join("state/state.db");
    for name in ["state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join("state").join(name));
    }
    std::fs::write(
        &file,
        "garbage that is no database, and long enough to be looked at",
    )
    .unwrap();
    assert_eq!(approver.is_set().unwrap_err().code, ErrorCode::State);
    assert_eq!(
        approver.check(&said("five small words")).unwrap_err().code,
        ErrorCode::State
    );
}

/// Else anybody could end what was agreed to before.
#[test]
fn where_none_is_set_nothing_is_removed() {
    let (_folder, clock, approver) = fresh();
    approver.remove("cli/ana").unwrap();
    assert_eq!(approver.changed().unwrap(), None);
    approver.set(&said("five small words"), "cli/ana").unwrap();
    approver.remove("cli/ana").unwrap();
    let changed = approver.changed().unwrap();
    clock.forward(SignedDuration::from_secs(60));
    approver.remove("cli/ana").unwrap();
    assert_eq!(approver.changed().unwrap(), changed);
}
