//! Deadlines and total times.

use std::time::Duration;

use tokio::time::Instant;
use zvm_client::{Error, FlrSessionId, VmFilter};

use crate::server::{Server, Step, ok, timeouts};

#[tokio::test]
async fn a_deadline_that_has_passed_sends_nothing() {
    let server = Server::start(|_| ok("\"task\"")).await;
    let late = server.zvm().by(Instant::now());
    for error in [
        late.vms(&VmFilter::default()).await.unwrap_err(),
        late.insert_checkpoint("vpg", "tag").await.unwrap_err(),
        late.unmount(&FlrSessionId("s".into())).await.unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::Deadline { unknown: false, .. }),
            "{error}"
        );
    }
    assert!(server.seen().is_empty());
}

/// Answers the list of VPGs, so that there is a token, and nothing else.
async fn silent() -> Server {
    Server::start(|request| match request.target.as_str() {
        "/v1/vpgs" => ok("[]"),
        _ => vec![Step::Hang],
    })
    .await
}

#[tokio::test]
async fn a_deadline_says_whether_a_change_may_have_happened() {
    let server = silent().await;
    let zvm = server.zvm();
    zvm.vpgs().await.unwrap();
    let soon = zvm.by(Instant::now() + Duration::from_secs(1));
    let (filter, session) = (VmFilter::default(), FlrSessionId("s".into()));
    let (get, insert, unmount, browse) = futures::future::join4(
        soon.vms(&filter),
        soon.insert_checkpoint("vpg", "tag"),
        soon.unmount(&session),
        soon.browse(&session, "", 10),
    )
    .await;
    for (error, expected) in [
        (get.unwrap_err(), false),
        (insert.unwrap_err(), true),
        (unmount.unwrap_err(), true),
        (browse.unwrap_err(), false),
    ] {
        assert!(
            matches!(error, Error::Deadline { unknown, .. } if unknown == expected),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_deadline_does_not_stick_to_the_zvm_it_was_made_from() {
    let server = Server::start(|_| ok("[]")).await;
    let zvm = server.zvm();
    assert!(
        zvm.by(Instant::now())
            .vms(&VmFilter::default())
            .await
            .is_err()
    );
    zvm.vms(&VmFilter::default()).await.unwrap();
}

#[tokio::test]
async fn a_call_has_a_total_time_even_where_bytes_keep_coming() {
    // An answer that never ends, and is never silent for long.
    let server = Server::start(|request| {
        if request.target == "/v1/vpgs" {
            return ok("[]");
        }
        let mut steps = vec![Step::Send(
            b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n[".to_vec(),
        )];
        steps.extend(vec![Step::Send(b" ".to_vec()); 10]);
        steps.push(Step::Hang);
        steps
    })
    .await;
    let zvm = server.zvm_with(timeouts(Duration::from_secs(10), Duration::from_secs(1)));
    zvm.vpgs().await.unwrap();
    let filter = VmFilter::default();
    let (get, post) =
        futures::future::join(zvm.vms(&filter), zvm.insert_checkpoint("vpg", "tag")).await;
    let (get, post) = (get.unwrap_err().to_string(), post.unwrap_err().to_string());
    assert!(
        get.ends_with("can't be reached: not done within 1 s"),
        "{get}"
    );
    assert!(
        post.ends_with("may or may not have happened: not done within 1 s"),
        "{post}"
    );
}

#[tokio::test]
async fn a_login_has_a_total_time() {
    let server = Server::plain(|_| vec![Step::Hang]).await;
    let zvm = server.zvm_with(timeouts(
        Duration::from_secs(10),
        Duration::from_millis(200),
    ));
    let error = zvm.vms(&VmFilter::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}
