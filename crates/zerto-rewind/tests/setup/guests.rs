//! What `doctor` says of each way into a guest, and that it writes nothing there.
use crate::{
    doctor::{doctor, healthy},
    sshd::Sshd,
    support::World,
};
use serde_json::{Value, json};
use std::{fs, net::TcpListener, path::PathBuf};

/// The exit code, and the lines about guests in their order.
async fn guests(world: &World) -> (i32, Vec<Value>) {
    let run = world.finish(&mut doctor(world, &["--json"])).await;
    assert_eq!(run.stderr, "");
    let checks = run.json()["checks"].as_array().unwrap().clone();
    let guests = checks.into_iter().filter(|check| check["id"] == "guests");
    (run.code, guests.collect())
}

/// The server's client configuration with one thing in it changed.
fn changed(sshd: &Sshd, name: &str, from: &str, to: &str) -> Value {
    let text = fs::read_to_string(sshd.ssh_config()).unwrap();
    let line = text.lines().find(|line| line.starts_with(from)).unwrap();
    let file: PathBuf = sshd.folder().join(name);
    fs::write(&file, text.replace(line, to)).unwrap();
    json!({ "ssh": crate::sshd::HOST, "ssh_config": file })
}

fn says(check: &Value, status: &str, said: &[&str]) {
    assert_eq!(check["status"], status, "{check}");
    for said in said {
        assert!(check.to_string().contains(said), "{said:?}: {check}");
    }
}

#[tokio::test]
async fn each_has_a_line_of_its_own_and_nothing_is_written_there() {
    let world = healthy().await;
    let (code, none) = guests(&world).await;
    assert_eq!((code, none.len()), (0, 1));
    says(&none[0], "ok", &["none is configured"]);

    let Some(sshd) = Sshd::start(&[("/", &world.sim.guest_path("jp-ubuntu", "/").unwrap())]) else {
        return;
    };
    let server = sshd.program(
        "test-sftp-server",
        &format!("#!/bin/sh\n{}", sshd.server_line()),
    );
    sshd.program("sudo", "#!/bin/sh\nshift 2\nexec \"$@\"\n");
    let mut with_sudo = sshd.guest();
    with_sudo["sudo"] = json!(true);
    with_sudo["sftp_server"] = json!(server);
    // Its port stays taken, and nobody answers there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = port.local_addr().unwrap().port();
    drop(port);
    let down = changed(&sshd, "down", "Port", &format!("Port {closed}"));
    world.configure(json!({ "guests": { "a": sshd.guest(), "b": with_sudo, "c": down } }));
    let (code, found) = guests(&world).await;
    assert_eq!((code, found.len()), (0, 3), "{found:?}");
    says(&found[0], "ok", &["a (guest-vm)", "SFTP works"]);
    says(&found[1], "ok", &["b (guest-vm)", "under `sudo -n`"]);
    says(
        &found[2],
        "warning",
        &["c (guest-vm)", "refused", "`ssh` reaches the guest"],
    );
    let asked = sshd.asked();
    assert!(!asked.is_empty());
    for request in &asked {
        let looks = ["limits", "REALPATH", "realpath", "16 "];
        assert!(looks.iter().any(|look| request.contains(look)), "{asked:?}");
    }

    sshd.control("without posix-rename@openssh.com\n");
    world.configure(json!({ "guests": { "a": sshd.guest() } }));
    let (code, found) = guests(&world).await;
    assert_eq!(code, 0);
    says(&found[0], "warning", &["can't replace", "beside"]);
}

#[tokio::test]
async fn what_a_person_has_to_put_right_is_a_failure_with_its_fix() {
    let world = healthy().await;
    let Some(sshd) = Sshd::start(&[("/", &world.sim.guest_path("jp-ubuntu", "/").unwrap())]) else {
        return;
    };
    let nobody = sshd.folder().join("nobody");
    fs::write(&nobody, "").unwrap();
    let known = format!("UserKnownHostsFile {}", nobody.display());
    let unknown = changed(&sshd, "unknown", "UserKnownHostsFile", &known);
    let key = format!("IdentityFile {}", sshd.folder().join("host").display());
    let refused = changed(&sshd, "refused", "IdentityFile", &key);
    sshd.program(
        "sudo",
        "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n",
    );
    let mut asks = sshd.guest();
    asks["sudo"] = json!(true);
    let mut no_server = sshd.guest();
    no_server["sftp_server"] = json!("/no/such/sftp-server");
    world.configure(json!({
        "guests": { "a": unknown, "b": refused, "c": asks, "d": no_server, "e": sshd.guest() }
    }));
    let (code, found) = guests(&world).await;
    assert_eq!((code, found.len()), (1, 5), "{found:?}");
    for (check, said) in found.iter().zip([
        ["host key is not known", "accept it once by hand"],
        ["refused the login", "a key in the agent"],
        ["without a password", "NOPASSWD"],
        ["no SFTP server", "Enable the SFTP subsystem"],
    ]) {
        says(check, "failed", &said);
        assert_eq!(check["code"], "guest_unreachable");
    }
    says(&found[4], "ok", &[]);

    // No client.
    let empty = world.path("empty");
    fs::create_dir(&empty).unwrap();
    let mut command = doctor(&world, &[]);
    command.env("PATH", &empty);
    let run = world.finish(&mut command).await;
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(
        run.stdout.contains("`ssh` can't be run") && run.stdout.contains("Install"),
        "{}",
        run.stdout
    );
}
