use super::*;
use std::time::Duration;

/// What may be in the folder once a connection broke: the old file or the new one, whole; and names that say what they are.
fn assert_whole(room: &Room, old: &[u8], new: &[u8], about: &str) {
    let files = room.files("/srv");
    let file = files
        .get("app.yaml")
        .unwrap_or_else(|| panic!("{about}: the file is gone"));
    assert!(file == old || file == new, "{about}: a half");
    if file == new {
        let kept = files
            .iter()
            .find(|(name, _)| name.contains(".zerto-replaced-"));
        assert_eq!(
            kept.map(|(_, content)| content.as_slice()),
            Some(old),
            "{about}: what was replaced is lost"
        );
    }
    for (name, content) in &files {
        let whole = !name.contains(".zerto-replaced-") || content == old;
        assert!(whole, "{about}: {name} is a half");
        let ours =
            name == "app.yaml" || name.contains(".zerto-") || name.starts_with(".zerto-rewind-");
        assert!(ours, "{about}: {name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_breaks_at_any_step_leaves_the_old_file_or_the_new_one() {
    // With a second name of what is replaced, and with a copy of it.
    tokio::join!(walk(""), walk("without hardlink@openssh.com\n"));
}

async fn walk(server: &'static str) {
    let Some(first) = room() else { return };
    let (old, new) = (vec![b'o'; 200_000], vec![b'n'; 300_000]);
    first.put("/srv/app.yaml", &old);
    first.sshd.control(server);
    let connection = first.connect().await;
    let plan = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    drop(connection);
    first.sshd.asked();
    let connection = first.connect().await;
    place(&connection, &plan, &content(&new)).await.unwrap();
    let steps = first.sshd.asked().len();
    assert!(steps > 15, "{steps}");

    let (old, new, plan) = (Arc::new(old), Arc::new(new), Arc::new(plan));
    let mut lanes = Vec::new();
    for lane in 0..4 {
        let (old, new, plan) = (old.clone(), new.clone(), plan.clone());
        lanes.push(tokio::spawn(async move {
            let room = room().unwrap();
            for step in (1..=steps).filter(|step| step % 4 == lane) {
                for name in room.files("/srv").into_keys() {
                    fs::remove_file(room.host("/srv").join(name)).unwrap();
                }
                room.put("/srv/app.yaml", &old);
                let agreed = Attributes {
                    ..attributes(&room.host("/srv/app.yaml"))
                };
                let mut plan = (*plan).clone();
                plan.attributes = agreed;
                plan.present.as_mut().unwrap().attributes = agreed;
                // The last one is never asked for by a client that is gone before.
                let lost = if step % 3 == 0 {
                    "lose-request"
                } else {
                    "lose-reply"
                };
                room.sshd.control(&format!("{server}{lost} {step}\n"));
                let about = format!("{server}{lost} {step}");
                let result = match Connection::open(&guest(&room.sshd)).await {
                    Ok(connection) => place(&connection, &plan, &content(&new)).await,
                    Err(error) => Err(error),
                };
                let error = result
                    .err()
                    .unwrap_or_else(|| panic!("{about}: it did not break"));
                assert!(error.is_lost(), "{about}: {error}");
                assert_whole(&room, &old, &new, &about);
            }
        }));
    }
    for lane in lanes {
        lane.await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_dies_is_noticed_at_once() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    let connection = room.connect().await;
    connection.look("/srv/app.yaml").await.unwrap();
    room.sshd.cut();
    let error = tokio::time::timeout(Duration::from_secs(20), connection.look("/srv/app.yaml"))
        .await
        .expect("it is waited for in vain")
        .unwrap_err();
    assert!(error.is_lost(), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_not_needed_any_more_ends() {
    let Some(room) = room() else { return };
    let connection = room.connect().await;
    assert_eq!(room.sshd.connections(), 1);
    drop(connection);
    let gone = async {
        while room.sshd.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn cancelling_takes_back_what_was_begun() {
    let Some(room) = room() else { return };
    room.put("/srv/app.yaml", b"now");
    let connection = room.connect().await;
    let planned = planned(&connection, "/srv/app.yaml", Restore::Replace)
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    let (large, temporary) = (
        content(&vec![1; 40_000_000]),
        room.host("/srv/.zerto-rewind-r-test"),
    );
    let cancelling = async {
        while !temporary.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(
        place_until(&connection, &planned, &large, &cancel),
        cancelling
    );
    let error = result.unwrap_err();
    assert!(matches!(error, GuestError::Cancelled(_)), "{error}");
    assert_eq!(
        room.files("/srv").into_iter().collect::<Vec<_>>(),
        [("app.yaml".to_owned(), b"now".to_vec())]
    );
}

#[tokio::test]
async fn a_host_key_that_is_not_known_is_refused() {
    let Some(room) = room() else { return };
    let known = fs::read_to_string(room.sshd.known_hosts()).unwrap();
    fs::write(room.sshd.known_hosts(), "").unwrap();
    let error = Connection::open(&guest(&room.sshd)).await.err().unwrap();
    assert!(
        matches!(error, GuestError::HostKey { changed: false, .. }),
        "{error}"
    );
    assert!(crate::Error::from(error).next.contains("by hand"));
    assert_eq!(
        fs::read_to_string(room.sshd.known_hosts()).unwrap(),
        "",
        "it was accepted all the same"
    );
    // Another key than the known one.
    let other = room.sshd.folder().join("other");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&other)
        .status();
    assert!(made.unwrap().success());
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    fs::write(room.sshd.known_hosts(), format!("{HOST} {other}")).unwrap();
    let error = Connection::open(&guest(&room.sshd)).await.err().unwrap();
    assert!(
        matches!(error, GuestError::HostKey { changed: true, .. }),
        "{error}"
    );
    fs::write(room.sshd.known_hosts(), known).unwrap();
    room.connect().await;
}

#[tokio::test]
async fn what_keeps_us_out_is_said() {
    let Some(room) = room() else { return };
    fs::write(room.sshd.folder().join("authorized"), "").unwrap();
    let error = Connection::open(&guest(&room.sshd)).await.err().unwrap();
    assert!(matches!(error, GuestError::LoginRefused(_)), "{error}");
    let nobody = Guest {
        ssh: "nobody.invalid".into(),
        ..guest(&room.sshd)
    };
    let error = Connection::open(&nobody).await.err().unwrap();
    assert!(matches!(error, GuestError::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn a_server_that_speaks_no_sftp_is_said_to() {
    let Some(room) = room() else { return };
    fs::write(
        room.sshd.folder().join("server"),
        "echo 'Welcome to the guest, and have a nice day'\nsleep 30\n",
    )
    .unwrap();
    let error = Connection::open(&guest(&room.sshd)).await.err().unwrap();
    assert!(matches!(error, GuestError::NoServer(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_breaks_while_undoing_loses_neither_file() {
    let lanes = ["", "without hardlink@openssh.com\n"]
        .into_iter()
        .flat_map(|server| [0, 1].map(|lane| tokio::spawn(undo_walk(server, lane))));
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

async fn undo_walk(server: &'static str, lane: usize) {
    let Some(room) = room() else { return };
    let (before, restored) = (vec![b'b'; 200_000], vec![b'r'; 300_000]);
    // The first time it is only counted.
    undone(&room, server, &before, &restored).await.unwrap();
    let files = room.files("/srv");
    assert_eq!((&files["app.yaml"], files.len()), (&before, 2));
    let steps = room.sshd.asked().len();
    assert!(steps > 10, "{steps}");
    for step in (1..=steps).filter(|step| step % 2 == lane) {
        let lost = match step % 3 {
            0 => format!("{server}lose-request {step}\n"),
            _ => format!("{server}lose-reply {step}\n"),
        };
        let error = undone(&room, &lost, &before, &restored).await;
        let error = error.expect_err(&lost);
        assert!(error.is_lost(), "{lost}: {error}");
        let files = room.files("/srv");
        let there = &files["app.yaml"];
        assert!(*there == before || *there == restored, "{lost}: a half");
        for content in [&before, &restored] {
            let kept = files.values().any(|file| file == content);
            assert!(kept, "{lost}: a file is lost");
        }
        let away = files.get("app.yaml.zerto-undone-0");
        assert!(away.is_none_or(|away| *away == restored), "{lost}: a half");
    }
}

async fn undone(
    room: &Room,
    control: &str,
    before: &[u8],
    restored: &[u8],
) -> Result<(), GuestError> {
    let kept = "/srv/app.yaml.zerto-replaced-0";
    for name in room.files("/srv").into_keys() {
        fs::remove_file(room.host("/srv").join(name)).unwrap();
    }
    room.put("/srv/app.yaml", restored);
    room.put(kept, before);
    let present = Present {
        bytes: restored.len() as u64,
        sha256: sha256(restored),
        attributes: attributes(&room.host("/srv/app.yaml")),
    };
    room.sshd.asked();
    room.sshd.control(control);
    let connection = Connection::open(&guest(&room.sshd)).await?;
    let undoing = Undoing {
        connection: &connection,
        path: "/srv/app.yaml",
        present: &present,
        before: Some((kept, &sha256(before))),
        undone: "/srv/app.yaml.zerto-undone-0",
        copying: "/srv/.zerto-rewind-r-test.copy",
    };
    undoing.run().await.map(drop)
}

/// What writes to a file while it is read back may also shorten it.
#[tokio::test]
async fn what_is_emptied_while_it_is_read_back_was_put_in_its_place_all_the_same() {
    let Some(room) = room() else { return };
    let (old, new) = (vec![b'o'; 200_000], vec![b'n'; 300_000]);
    let replaced = async || {
        for name in room.files("/srv").into_keys() {
            fs::remove_file(room.host("/srv").join(name)).unwrap();
        }
        room.put("/srv/app.yaml", &old);
        let connection = room.connect().await;
        let plan = planned(&connection, "/srv/app.yaml", Restore::Replace).await;
        place(&connection, &plan.unwrap(), &content(&new)).await
    };
    room.sshd.asked();
    replaced().await.unwrap();
    let number = read_back(&room.sshd.asked());
    room.sshd
        .control(&format!("truncate {number} /srv/app.yaml\n"));
    let error = replaced().await.unwrap_err();
    let GuestError::Failed(why) = &error else {
        panic!("{error}");
    };
    assert!(why.contains("was put in its place"), "{why}");
    assert!(
        why.contains(".zerto-replaced-"),
        "where the old one is: {why}"
    );

    let (before, restored) = (old, new);
    room.sshd.control("");
    undone(&room, "", &before, &restored).await.unwrap();
    let control = format!("truncate {} /srv/app.yaml\n", read_back(&room.sshd.asked()));
    let error = undone(&room, &control, &before, &restored)
        .await
        .unwrap_err();
    let GuestError::Failed(why) = &error else {
        panic!("{error}");
    };
    assert!(why.contains("was put back"), "{why}");
}

/// The number of the first request that reads (`SSH_FXP_READ`) after the last rename.
fn read_back(asked: &[String]) -> usize {
    let renamed = asked.iter().rposition(|request| request.contains("rename"));
    let mut reads = asked[renamed.unwrap()..].iter().filter_map(|request| {
        let (number, said) = request.split_once(' ')?;
        (said == "5").then(|| number.parse().unwrap())
    });
    reads.next().unwrap()
}
