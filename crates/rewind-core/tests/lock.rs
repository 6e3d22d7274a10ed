#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! The lock of a VPG: exclusive, in order, and never left behind.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rewind_core::{
    lock::{LockError, Locks},
    private::ForeignFile,
};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};

/// The folder for a process that a test has started; such a process runs one test of this file by its name.
const CHILD: &str = "REWIND_TEST_LOCK_DIR";
const LONG: Duration = Duration::from_secs(20);

fn folder() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("state");
    (temp, dir)
}

fn child(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn waiting_files(dir: &Path) -> usize {
    fs::read_dir(dir)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .contains(".wait-")
        })
        .count()
}

/// Asks for the lock in a task; tells every place in the queue, and 0 when the lock is held.
fn ask(
    locks: &Locks,
) -> (
    tokio::task::JoinHandle<rewind_core::lock::VpgLock>,
    mpsc::UnboundedReceiver<usize>,
) {
    let (places, told) = mpsc::unbounded_channel();
    let locks = locks.clone();
    let task = tokio::spawn(async move {
        let lock = locks
            .acquire("zvm", "vpg", |place| places.send(place).unwrap())
            .await
            .unwrap();
        let _ = places.send(0);
        lock
    });
    (task, told)
}

async fn next(told: &mut mpsc::UnboundedReceiver<usize>) -> usize {
    timeout(LONG, told.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_free_lock_is_had_at_once() {
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    let lock = locks
        .acquire("zvm", "vpg", |place| panic!("told {place}"))
        .await
        .unwrap();
    let _other_vpg = locks
        .acquire("zvm", "vpg2", |place| panic!("told {place}"))
        .await
        .unwrap();
    let _other_zvm = locks
        .acquire("zvm2", "vpg", |place| panic!("told {place}"))
        .await
        .unwrap();
    drop(lock);
    let _again = locks
        .acquire("zvm", "vpg", |place| panic!("told {place}"))
        .await
        .unwrap();
    assert_eq!(waiting_files(&dir), 0);
}

#[tokio::test]
async fn those_who_wait_are_served_in_order_and_told_their_place() {
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    let held = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
    let (first, mut first_told) = ask(&locks);
    assert_eq!(next(&mut first_told).await, 1);
    let (second, mut second_told) = ask(&locks);
    assert_eq!(next(&mut second_told).await, 2);
    let (third, mut third_told) = ask(&locks);
    assert_eq!(next(&mut third_told).await, 3);

    drop(held);
    assert_eq!(next(&mut first_told).await, 0);
    assert_eq!(next(&mut second_told).await, 1);
    assert_eq!(next(&mut third_told).await, 2);

    // One that gives up makes room.
    second.abort();
    assert_eq!(next(&mut third_told).await, 1);
    drop(first.await.unwrap());
    assert_eq!(next(&mut third_told).await, 0);
    drop(third.await.unwrap());
    assert_eq!(waiting_files(&dir), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_else_is_inside_while_the_lock_is_held() {
    let (_temp, dir) = folder();
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let (locks, inside) = (Locks::new(&dir), Arc::clone(&inside));
            tokio::spawn(async move {
                let _lock = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::time::sleep(Duration::from_millis(5)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for task in tasks {
        timeout(LONG, task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let _lock = Locks::new(dir).acquire("zvm", "vpg", |_| {}).await.unwrap();
        println!("\nlocked");
        std::io::stdout().flush().unwrap();
        // Killed here.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let (_temp, dir) = folder();
    let mut process = child("the_lock_of_a_killed_process_is_free", &dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "locked")
    );

    let locks = Locks::new(&dir);
    let (task, mut told) = ask(&locks);
    assert_eq!(next(&mut told).await, 1);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(next(&mut told).await, 0);
    drop(task.await.unwrap());
}

#[tokio::test]
async fn a_killed_process_leaves_the_queue() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let waiting = Locks::new(dir);
        let _lock = waiting
            .acquire("zvm", "vpg", |place| {
                println!("\nplace {place}");
                std::io::stdout().flush().unwrap();
            })
            .await
            .unwrap();
        return;
    }
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    let held = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
    let mut process = child("a_killed_process_leaves_the_queue", &dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "place 1")
    );
    let (task, mut told) = ask(&locks);
    assert_eq!(next(&mut told).await, 2);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(next(&mut told).await, 1);
    drop(held);
    assert_eq!(next(&mut told).await, 0);
    drop(task.await.unwrap());
    assert_eq!(waiting_files(&dir), 0);
}

#[test]
fn processes_take_turns() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let locks = Locks::new(&dir);
            let journal = Path::new(&dir).join("journal");
            for _ in 0..3 {
                let lock = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
                // Two writers at once would tear this apart.
                let before = fs::read_to_string(&journal).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(3)).await;
                fs::write(&journal, format!("{before}{}\n", std::process::id())).unwrap();
                drop(lock);
            }
        });
        return;
    }
    let (_temp, dir) = folder();
    let processes: Vec<_> = (0..6)
        .map(|_| child("processes_take_turns", &dir))
        .collect();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    assert_eq!(
        fs::read_to_string(dir.join("journal"))
            .unwrap()
            .lines()
            .count(),
        18
    );
}

#[tokio::test]
async fn dropping_the_future_leaves_nothing_behind() {
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    let held = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
    let places = Mutex::new(Vec::new());
    for _ in 0..10 {
        let waiting = locks.acquire("zvm", "vpg", |place| places.lock().unwrap().push(place));
        assert!(timeout(Duration::from_millis(40), waiting).await.is_err());
    }
    drop(held);
    let _lock = timeout(LONG, locks.acquire("zvm", "vpg", |_| {}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(waiting_files(&dir), 0);
}

#[tokio::test]
async fn the_holder_is_told() {
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    assert_eq!(locks.holder("zvm", "vpg"), None);
    let lock = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
    let holder = locks.holder("zvm", "vpg").unwrap();
    assert_eq!(holder.pid, std::process::id());
    assert!(
        holder.since.duration_since(jiff::Timestamp::now()).abs()
            < jiff::SignedDuration::from_secs(60)
    );
    assert_eq!(locks.holder("zvm", "vpg2"), None);
    drop(lock);
    assert_eq!(locks.holder("zvm", "vpg"), None);
}

/// Ctrl-Z in the queue.
#[cfg(unix)]
#[tokio::test]
async fn a_stopped_process_that_waits_is_passed_over_and_gets_its_turn_later() {
    use rustix::process::{Pid, Signal, kill_process};

    if let Some(dir) = std::env::var_os(CHILD) {
        let place = |place| {
            println!("\nplace {place}");
            std::io::stdout().flush().unwrap();
        };
        let _lock = Locks::new(dir).acquire("zvm", "vpg", place).await.unwrap();
        return;
    }
    let (_temp, dir) = folder();
    let locks = Locks::new(&dir);
    let held = locks.acquire("zvm", "vpg", |_| {}).await.unwrap();
    let name = "a_stopped_process_that_waits_is_passed_over_and_gets_its_turn_later";
    let mut process = child(name, &dir);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "place 1")
    );
    let (first, mut first_told) = ask(&locks);
    assert_eq!(next(&mut first_told).await, 2);
    let (second, mut second_told) = ask(&locks);
    assert_eq!(next(&mut second_told).await, 3);

    let pid = Pid::from_child(&process);
    kill_process(pid, Signal::STOP).unwrap();
    drop(held);
    assert_eq!(next(&mut first_told).await, 0);
    assert_eq!(next(&mut second_told).await, 2);
    assert_eq!(locks.holder("zvm", "vpg").unwrap().pid, std::process::id());
    drop(first.await.unwrap());
    assert_eq!(next(&mut second_told).await, 0);

    kill_process(pid, Signal::CONT).unwrap();
    drop(second.await.unwrap());
    assert!(process.wait().unwrap().success());
    assert_eq!(waiting_files(&dir), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_planted_symlink_is_refused() {
    let (temp, dir) = folder();
    let locks = Locks::new(&dir);
    drop(locks.acquire("zvm", "vpg", |_| {}).await.unwrap());
    let lock = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&lock).unwrap();
    let target = temp.path().join("target");
    std::os::unix::fs::symlink(&target, &lock).unwrap();
    let error = locks.acquire("zvm", "vpg", |_| {}).await.unwrap_err();
    assert!(matches!(error, LockError::File(ForeignFile::Link { .. })));
    assert!(error.to_string().contains(".lock"), "{error}");
    assert!(!target.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn an_unsafe_folder_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (_temp, dir) = folder();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Locks::new(&dir)
        .acquire("zvm", "vpg", |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Folder(_)));
}
