//! What `doctor` says of each way into a guest, and that it writes nothing there.
use crate::{
    doctor::{doctor, healthy},
    sshd::Sshd,
    support::World,
};
use serde_json::{Value, json};
use std::{fs, net::TcpListener, path::PathBuf};
use zvm_sim::Scenario;

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
    world.configure(
        json!({ "guests": { "app01": sshd.guest(), "jp-ubuntu": with_sudo, "z": down } }),
    );
    let (code, found) = guests(&world).await;
    assert_eq!((code, found.len()), (0, 3), "{found:?}");
    says(&found[0], "ok", &["app01 (guest-vm)", "SFTP works"]);
    says(
        &found[1],
        "ok",
        &["jp-ubuntu (guest-vm)", "under `sudo -n`"],
    );
    says(
        &found[2],
        "warning",
        &[
            "z (guest-vm)",
            "refused",
            "`ssh` reaches the guest",
            "no VM of the ZVM has this name",
        ],
    );
    assert!(
        !found[2].to_string().contains("is removed then"),
        "{}",
        found[2]
    );
    let asked = sshd.asked();
    assert!(!asked.is_empty());
    for request in &asked {
        let looks = ["limits", "REALPATH", "realpath", "16 "];
        assert!(looks.iter().any(|look| request.contains(look)), "{asked:?}");
    }

    sshd.control("without posix-rename@openssh.com\n");
    world.configure(json!({ "guests": { "app01": sshd.guest() } }));
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
    let mut no_config = sshd.guest();
    no_config["ssh_config"] = json!(sshd.folder().join("no-such-config"));
    world.configure(json!({
        "guests": { "a": unknown, "b": refused, "c": asks, "d": no_server, "e": no_config, "jp-ubuntu": sshd.guest() }
    }));
    let (code, found) = guests(&world).await;
    assert_eq!((code, found.len()), (1, 6), "{found:?}");
    for (check, said) in found.iter().zip([
        ["host key is not known", "accept it once by hand"],
        ["refused the login", "a key in the agent"],
        ["without a password", "NOPASSWD"],
        ["no SFTP server", "Enable the SFTP subsystem"],
        ["/no-such-config", "Correct `ssh_config`"],
    ]) {
        says(check, "failed", &said);
        assert_eq!(check["code"], "guest_unreachable");
    }
    says(&found[5], "ok", &[]);

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

#[tokio::test]
async fn a_name_that_leads_into_no_vm_is_told_where_the_zvm_can_be_asked() {
    let mut scenario = Scenario::fast();
    let kept = ["jp-ubuntu", "web-farm-a", "web-farm-b"];
    scenario.vpgs.retain(|vpg| kept.contains(&&*vpg.name));
    let world = World::with(scenario).await;
    let Some(sshd) = Sshd::start(&[("/", &world.sim.guest_path("jp-ubuntu", "/").unwrap())]) else {
        return;
    };
    let web = world.sim.vm_id("web-a").unwrap().to_owned();
    let guest = sshd.guest();
    // By the identifier it is one of the two.
    let names = ["JP-UBUNTU", "jp-ubuntu", "nobody", "web", &web];
    let mut guests = json!({});
    for name in names {
        guests[name] = guest.clone();
    }
    world.configure(json!({ "guests": guests }));
    let (code, found) = self::guests(&world).await;
    assert_eq!((code, found.len()), (0, 5), "{found:?}");
    let of = |name: &str| {
        let starts = |check: &&Value| {
            let message = check["message"].as_str().unwrap();
            message.starts_with(&format!("{name} ("))
        };
        found.iter().find(starts).unwrap()
    };
    says(of("jp-ubuntu"), "ok", &[]);
    says(of(&web), "ok", &[]);
    says(
        of("JP-UBUNTU"),
        "warning",
        &["calls this VM jp-ubuntu", "SFTP works"],
    );
    says(of("nobody"), "warning", &["no VM of the ZVM has this name"]);
    says(
        of("web"),
        "warning",
        &["more than one VM", "identifier instead of its name"],
    );
    assert!(of("web")["details"].to_string().contains(&web));

    // Nothing is said of what is not known.
    world.configure(json!({ "guests": { "nobody": guest }, "password": "not this one" }));
    let (_, found) = self::guests(&world).await;
    says(&found[0], "ok", &["SFTP works"]);
}

#[tokio::test]
async fn a_connection_that_ends_without_a_word_names_what_starts_the_server() {
    let world = healthy().await;
    let Some(sshd) = Sshd::start(&[("/", &world.sim.guest_path("jp-ubuntu", "/").unwrap())]) else {
        return;
    };
    let server = sshd.program("quiet", "#!/bin/sh\nexit 0\n");
    let mut guest = sshd.guest();
    guest["sftp_server"] = json!(server);
    world.configure(json!({ "guests": { "jp-ubuntu": guest } }));
    let (code, found) = guests(&world).await;
    assert_eq!(code, 0, "{found:?}");
    says(
        &found[0],
        "warning",
        &["without a word", "Check `sudo` and `sftp_server`"],
    );
}
