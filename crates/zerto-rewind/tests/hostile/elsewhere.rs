//! A ZVM that leads elsewhere. Nothing goes to another host, and so no header does.
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};
use zvm_sim::{Fault, Outcome, switches::DownloadUrl};

use crate::{
    faces::{files, person, pinned, recovery, script},
    support::World,
};

const FILE: &str = "/home/justin/app-config.yaml";

/// Another host: it counts who comes, and says nothing.
struct Trap {
    port: u16,
    came: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Trap {
    async fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let came = Arc::new(AtomicUsize::new(0));
        let counted = came.clone();
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, came, task }
    }

    fn assert_empty(&self, why: &str) {
        assert_eq!(self.came.load(Ordering::SeqCst), 0, "{why}");
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answers(method: &str, path: &str, status: u16, body: &str) -> Fault {
    Fault {
        times: 0,
        text: body.into(),
        ..Fault::answer(method, path, status, Outcome::Text)
    }
}

fn to(location: &str) -> BTreeMap<String, String> {
    [("location".to_owned(), location.to_owned())].into()
}

/// Recovers as a model; the error's code.
async fn recovered(world: &World, checkpoint: &str) -> String {
    let arguments = json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint });
    let answer = recovery(world, arguments).await;
    nothing_is_left(world);
    assert_ne!(answer.code(), "", "{}", answer.text);
    answer.code().to_owned()
}

/// Recovers as a model from a ZVM that says to download from this URL; the error's code.
async fn sent_to(world: &World, checkpoint: &str, url: &str) -> String {
    world.sim.clear_faults();
    let body = format!("\"{url}\"");
    world
        .sim
        .add_fault(answers("POST", "/v1/flrs/*/download", 200, &body));
    recovered(world, checkpoint).await
}

/// Recovers as a person, in vain.
async fn not_recovered(world: &World, checkpoint: &str) {
    let arguments = ["recover", "jp-ubuntu", FILE, "--at", checkpoint, "--yes"];
    let (code, screen) = person(world, &arguments).await;
    assert!(code != 0 && screen.contains("error["), "{screen}");
    nothing_is_left(world);
}

fn nothing_is_left(world: &World) {
    assert!(world.sim.flr_sessions().is_empty());
    assert_eq!(files(&world.path("recovered")), [""; 0]);
}

#[tokio::test]
async fn a_download_url_on_another_host_is_refused_before_anything_goes_there() {
    let (world, trap) = (World::new().await, Trap::set().await);
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let host = format!("https://127.0.0.1:{}", trap.port);
    world.sim.update(|switches| {
        switches.download_url = DownloadUrl::Foreign;
        switches.download_foreign_host = host.clone();
    });
    assert_eq!(recovered(&world, &checkpoint).await, "zvm_error");
    not_recovered(&world, &checkpoint).await;
    trap.assert_empty("absolute");
    let port = trap.port;
    for url in [
        format!("//127.0.0.1:{port}/v1/downloads/x"),
        format!(r"\\127.0.0.1:{port}\v1\downloads\x"),
        format!("https://zvm.example.com@127.0.0.1:{port}/x"),
        format!("https:/\\127.0.0.1:{port}/x"),
        format!("HTTPS://localhost:{port}/v1/downloads/x"),
        format!("/\\127.0.0.1:{port}/x"),
        format!("\thttps://127.0.0.1:{port}/x"),
    ] {
        world.sim.clear_faults();
        let body = serde_json::to_string(&url).unwrap();
        world
            .sim
            .add_fault(answers("POST", "/v1/flrs/*/download", 200, &body));
        assert_eq!(recovered(&world, &checkpoint).await, "zvm_error", "{url}");
        trap.assert_empty(&url);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_on_any_call() {
    let (world, trap) = (World::new().await, Trap::set().await);
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let (elsewhere, here) = (
        format!("https://127.0.0.1:{}/x", trap.port),
        "/v1/vms".to_owned(),
    );
    let mut redirects = [(301, &elsewhere), (307, &elsewhere), (308, &here)]
        .into_iter()
        .cycle();
    let mut redirect = |method: &str, path: &str| {
        let (status, location) = redirects.next().unwrap();
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            headers: to(location),
            ..answers(method, path, status, "")
        });
    };
    for (method, path) in [
        ("POST", "/auth/realms/zerto/protocol/openid-connect/token"),
        ("POST", "/v1/flrs"),
        ("POST", "/v1/flrs/*/browse"),
        ("POST", "/v1/flrs/*/download"),
        ("GET", "/v1/downloads/*"),
    ] {
        redirect(method, path);
        recovered(&world, &checkpoint).await;
        trap.assert_empty(path);
    }
    not_recovered(&world, &checkpoint).await;
    redirect("GET", "/v1/vms");
    assert_ne!(script(&world, &["find", "jp-ubuntu"]).await.code, 0);
    redirect("POST", "/v1/vpgs/*/checkpoints");
    let guard = ["guard", "jp-ubuntu", "--action", "x"];
    assert_ne!(script(&world, &guard).await.code, 0);
    trap.assert_empty("vms, checkpoints");
}

#[tokio::test]
async fn urls_of_files_and_other_schemes_are_refused() {
    let world = World::new().await;
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    for url in [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "data:text/plain,evil",
        "javascript:1",
        "ftp://127.0.0.1/x",
        "jar:file:/x!/y",
    ] {
        assert_eq!(
            sent_to(&world, &checkpoint, url).await,
            "zvm_error",
            "{url}"
        );
    }
}

#[tokio::test]
async fn nothing_goes_over_a_connection_without_tls() {
    let (world, trap) = (World::new().await, Trap::set().await);
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let here = world.sim.url().replacen("https://", "http://", 1);
    for url in [
        format!("{here}v1/downloads/x"),
        format!("http://127.0.0.1:{}/x", trap.port),
    ] {
        assert_eq!(
            sent_to(&world, &checkpoint, &url).await,
            "zvm_error",
            "{url}"
        );
        world.sim.clear_faults();
        world.sim.add_fault(Fault {
            headers: to(&url),
            ..answers("GET", "/v1/downloads/*", 302, "")
        });
        recovered(&world, &checkpoint).await;
    }
    trap.assert_empty("http");
}

#[tokio::test]
async fn what_a_zvm_calls_a_file_does_not_say_where_it_lands() {
    let world = World::new().await;
    let checkpoint = pinned(&world, "jp-ubuntu").await;
    let content = std::fs::read(world.sim.guest_path("jp-ubuntu", FILE).unwrap()).unwrap();
    let body = world.path("body");
    std::fs::write(&body, &content).unwrap();
    for name in ["../../../evil", "/tmp/evil", r"..\..\evil", "evil\u{1b}[2J"] {
        world.sim.clear_faults();
        let disposition = format!(
            "attachment; filename*=UTF-8''{}; filename=\"{}\"",
            name.replace('\u{1b}', "%1B"),
            name.replace('\u{1b}', "")
        );
        world.sim.add_fault(Fault {
            file: body.clone(),
            headers: [("content-disposition".to_owned(), disposition)].into(),
            ..Fault::answer("GET", "/v1/downloads/*", 200, Outcome::File)
        });
        let arguments = json!({ "vm": "jp-ubuntu", "path": FILE, "checkpoint": checkpoint, "destination": format!("{}/", name.len()) });
        let answer = recovery(&world, arguments).await;
        assert_eq!(answer.code(), "", "{}", answer.text);
    }
    let landed = files(&world.path("recovered"));
    assert_eq!(landed.len(), 4, "{landed:?}");
    assert!(
        landed.iter().all(|path| path.ends_with("/app-config.yaml")),
        "{landed:?}"
    );
}
