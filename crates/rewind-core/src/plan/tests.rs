use super::*;
use crate::{Destination, Paths};
use std::collections::HashSet;

pub(super) fn plan() -> Plan {
    let made_at: Timestamp = "2026-09-21T17:10:00Z".parse().unwrap();
    Plan {
        id: new_id(),
        zvm: "zvm.example.com:443".into(),
        vm: "jp-ubuntu".into(),
        vm_identifier: "1234.vm-5".into(),
        vpg: "jp-ubuntu".into(),
        vpg_identifier: "abcd".into(),
        checkpoint: "1197".into(),
        checkpoint_time: "2026-09-21T17:08:29Z".into(),
        checkpoint_age: "1 min 31 s before this plan was made at 2026-09-21T17:10:00Z".into(),
        expected_until: Some("2026-09-22T17:08:29Z".into()),
        tag: Some(
            "ai:claude | edit /etc/hosts | vm=jp-ubuntu | change=chg-412 | 20260921T170829Z".into(),
        ),
        decides: Decides::Effects {
            effects: vec![Effect::Place {
                source: Source {
                    path: "/etc/hosts".into(),
                    seen: None,
                },
                to: "/home/ana/recovered/jp-ubuntu/1197/etc/hosts".into(),
                within: Some("/home/ana/recovered".into()),
                now: Present::Nothing,
            }],
        },
        notes: Vec::new(),
        asked: RecoverRequest {
            vm: "jp-ubuntu".into(),
            paths: Paths::One("/etc/hosts".into()),
            checkpoint: "1197".into(),
            vpg: None,
            destination: Destination::InRecoverDir(None),
            restore: None,
        },
        asked_by: None,
        made_at,
        expires_at: made_at + PLAN_LIFE,
    }
}

#[test]
fn the_form_reads_back_into_the_same_plan() {
    let plan = plan();
    let read: Plan = serde_json::from_str(&plan.body().unwrap()).unwrap();
    assert_eq!(read, plan);
    assert_eq!(read.digest().unwrap(), plan.digest().unwrap());
}

/// What has been confirmed once must not become something else with another version.
#[test]
fn the_canonical_form_is_as_it_was() {
    let plan = Plan {
        id: "p-00000000".into(),
        ..plan()
    };
    assert_eq!(
        plan.digest().unwrap(),
        "dd51c8a09884693613b20b4ef8d5cecc2002b6c95694c91dc1df47e502c3b1d2",
        "{}",
        plan.body().unwrap()
    );
}

type Change = fn(&mut Plan);

/// Everything that a person sees or that is done, each changed a little.
const CHANGES: &[(&str, Change)] = &[
    ("zvm", |plan| plan.zvm.push('1')),
    ("vm", |plan| plan.vm.push('1')),
    ("vm identifier", |plan| plan.vm_identifier.push('1')),
    ("vpg", |plan| plan.vpg.push('1')),
    ("vpg identifier", |plan| plan.vpg_identifier.push('1')),
    ("checkpoint", |plan| plan.checkpoint.push('1')),
    ("time", |plan| plan.checkpoint_time.push('1')),
    ("expected until", |plan| plan.expected_until = None),
    ("tag", |plan| plan.tag = None),
    ("path", |plan| {
        let Decides::Effects { effects } = &mut plan.decides else {
            return;
        };
        let Effect::Place { source, .. } = &mut effects[0] else {
            panic!()
        };
        source.path.push('1');
    }),
    ("what was seen", |plan| {
        let Decides::Effects { effects } = &mut plan.decides else {
            return;
        };
        let Effect::Place { source, .. } = &mut effects[0] else {
            panic!()
        };
        source.seen = Some(Seen {
            at: "x".into(),
            is_folder: false,
            bytes: Some(1),
        });
    }),
    ("destination", |plan| {
        let Decides::Effects { effects } = &mut plan.decides else {
            return;
        };
        let Effect::Place { to, .. } = &mut effects[0] else {
            panic!()
        };
        to.push('1');
    }),
    ("one effect more", |plan| {
        let Decides::Effects { effects } = &mut plan.decides else {
            return;
        };
        let twice = effects[0].clone();
        effects.push(twice);
    }),
    ("kind", |plan| {
        plan.decides = Decides::Preview {
            looks_for: vec!["/etc/*".into()],
            purpose: Purpose::Recovery,
        };
    }),
];

#[test]
fn every_change_of_what_is_seen_is_another_digest_and_another_substance() {
    let plan = plan();
    let mut digests = HashSet::from([plan.digest().unwrap()]);
    for (what, change) in CHANGES {
        let mut changed = plan.clone();
        change(&mut changed);
        assert!(digests.insert(changed.digest().unwrap()), "{what}");
        assert_ne!(
            changed.substance().unwrap(),
            plan.substance().unwrap(),
            "{what}"
        );
        assert!(plan.changed_in(&changed).is_some(), "{what}");
    }
    for change in [
        (|plan| plan.checkpoint_age.push('1')) as Change,
        |plan| plan.expires_at += SignedDuration::from_secs(1),
        |plan| plan.notes.push("x".into()),
        |plan| plan.id = new_id(),
        |plan| plan.asked_by = Some("claude".into()),
    ] {
        let mut changed = plan.clone();
        change(&mut changed);
        assert!(digests.insert(changed.digest().unwrap()));
    }
}

#[test]
fn a_later_plan_of_the_same_has_the_same_substance() {
    let plan = plan();
    let mut later = plan.clone();
    later.id = new_id();
    later.checkpoint_age = "4 min 31 s before this plan was made at 2026-09-21T17:13:00Z".into();
    later.made_at += SignedDuration::from_mins(3);
    later.expires_at += SignedDuration::from_mins(3);
    // Zerto's own, since somebody has looked into the checkpoint meanwhile.
    later
        .tag
        .as_mut()
        .unwrap()
        .push_str("; Used for File Level Restore");
    assert_eq!(later.substance().unwrap(), plan.substance().unwrap());
    assert_eq!(plan.changed_in(&later), None);
    assert_ne!(later.digest().unwrap(), plan.digest().unwrap());
}

#[test]
fn what_is_seen_is_all_there() {
    let plan = plan();
    let digest = plan.digest().unwrap();
    let summary = plan.summary(&digest);
    for said in [
        "Recover from the Zerto journal:",
        "jp-ubuntu (1234.vm-5)",
        "1197 of 2026-09-21T17:08:29Z, 1 min 31 s before this plan was made at 2026-09-21T17:10:00Z",
        "until about 2026-09-22T17:08:29Z (an estimate)",
        "ai:claude | edit /etc/hosts",
        "  path         /etc/hosts\n",
        "/home/ana/recovered/jp-ubuntu/1197/etc/hosts (nothing is there now)",
        &plan.id,
        &digest[..16],
        "valid until 2026-09-21T17:20:00Z",
        "is known only once it is mounted",
    ] {
        assert!(summary.contains(said), "{said:?} is not in {summary}");
    }
}

#[test]
fn what_cannot_be_seen_is_written_out() {
    let mut plan = plan();
    let Decides::Effects { effects } = &mut plan.decides else {
        panic!()
    };
    let Effect::Place { source, .. } = &mut effects[0] else {
        panic!()
    };
    source.path = "/etc/ho\u{202E}sts\u{200b}".into();
    let summary = plan.summary("");
    assert!(
        summary.contains("/etc/ho\\u{202e}sts\\u{200b}"),
        "{summary}"
    );
}

#[test]
fn ids_are_short_and_differ() {
    let ids: HashSet<String> = (0..1_000).map(|_| new_id()).collect();
    assert_eq!(ids.len(), 1_000);
    for id in ids {
        assert_eq!(id.len(), 10);
        assert!(
            id.starts_with("p-") && id.bytes().skip(2).all(|b| ID_ALPHABET.contains(&b)),
            "{id}"
        );
    }
}
