//! What is sent again, and what never is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use zvm_client::{CheckpointId, Error, FlrSessionId, VmFilter};

use crate::server::{Reply, Server, Step, answer, ok, raw, timeouts};

/// Plays replies in turn, the last one for ever.
fn playing(replies: Vec<Reply>) -> impl Fn(&crate::server::Request) -> Reply + Send + Sync {
    let count = AtomicUsize::new(0);
    move |_| {
        let index = count.fetch_add(1, Ordering::SeqCst);
        replies[index.min(replies.len() - 1)].clone()
    }
}

#[tokio::test]
async fn gets_are_sent_again_until_the_zvm_is_back() {
    let cut = || {
        raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[",
            Step::Drop,
        )
    };
    let all = [
        vec![
            answer(503, &[], ""),
            answer(502, &[], ""),
            answer(504, &[], "<html>"),
            ok("[]"),
        ],
        vec![vec![Step::Drop], vec![Step::Close], ok("[]")],
        vec![cut(), cut(), ok("[]")],
        vec![
            raw("HTTP/1.1 2", Step::Drop),
            raw("nonsense\r\n\r\n", Step::Drop),
            ok("[]"),
        ],
    ];
    futures::future::join_all(all.into_iter().map(async |replies| {
        let attempts = replies.len();
        let server = Server::start(playing(replies)).await;
        server.zvm().vms(&VmFilter::default()).await.unwrap();
        assert_eq!(server.calls().len(), attempts);
        assert_eq!(server.logins().len(), 1);
    }))
    .await;
}

#[tokio::test]
async fn gets_are_sent_four_times_at_most() {
    let server = Server::start(playing(vec![answer(
        503,
        &[],
        r#"{"Message":"maintenance"}"#,
    )]))
    .await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "list the VMs: the ZVM answered 503: \"maintenance\""
    );
    assert_eq!(server.calls().len(), 4);
}

#[tokio::test]
async fn other_answers_are_final() {
    for status in [400, 404, 409, 500, 501] {
        let server = Server::start(playing(vec![answer(status, &[], r#"{"Message":"no"}"#)])).await;
        let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
        match (status, &error) {
            (404, Error::NotFound { message, .. }) => assert_eq!(message, "\"no\""),
            (
                _,
                Error::Refused {
                    status: told,
                    message,
                    ..
                },
            ) => assert_eq!((*told, message.as_str()), (status, "\"no\"")),
            _ => panic!("{error}"),
        }
        assert_eq!(server.calls().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for_and_a_long_one_ends_it() {
    let server = Server::start(playing(vec![
        answer(503, &[("retry-after", "1")], ""),
        ok("[]"),
    ]))
    .await;
    let begin = Instant::now();
    server.zvm().vms(&VmFilter::default()).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1));

    let server = Server::start(playing(vec![answer(503, &[("retry-after", "120")], "")])).await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 503, .. }),
        "{error}"
    );
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_change_is_sent_once_and_its_lost_answer_is_told() {
    let cut = || {
        raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n\"9f",
            Step::Drop,
        )
    };
    for reply in [
        vec![Step::Drop],
        vec![Step::Close],
        cut(),
        raw("HTTP/1.1 200", Step::Drop),
        answer(502, &[], "<html><title>Bad Gateway</title></html>"),
        answer(503, &[("retry-after", "0")], ""),
        answer(504, &[], ""),
        ok("<html><title>Sign in</title></html>"),
        ok("{}"),
        ok("please wait"),
    ] {
        let server = Server::start(playing(vec![reply.clone()])).await;
        let zvm = server.zvm();
        let errors = [
            zvm.insert_checkpoint("vpg", "tag").await.unwrap_err(),
            zvm.mount("vm", "vpg", CheckpointId(1)).await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::Unknown { .. }), "{reply:?}: {error}");
            assert!(
                error.to_string().contains("may or may not have happened"),
                "{error}"
            );
        }
        assert_eq!(server.calls().len(), 2, "{reply:?}");
    }
    for reply in [
        vec![Step::Drop],
        cut(),
        answer(502, &[], ""),
        answer(504, &[], ""),
    ] {
        let server = Server::start(playing(vec![reply.clone()])).await;
        let error = server
            .zvm()
            .unmount(&FlrSessionId("s".into()))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Unknown { .. }), "{reply:?}: {error}");
        assert_eq!(server.calls().len(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn a_change_that_the_zvm_refused_was_refused() {
    for status in [400, 409, 500] {
        let server = Server::start(playing(vec![answer(
            status,
            &[],
            r#"{"Message":"not now"}"#,
        )]))
        .await;
        let error = server
            .zvm()
            .insert_checkpoint("vpg", "tag")
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("insert a checkpoint into VPG vpg: the ZVM answered {status}: \"not now\"")
        );
        assert_eq!(server.calls().len(), 1);
    }
}

#[tokio::test]
async fn a_question_by_post_is_sent_again_and_leaves_nothing_in_doubt() {
    let replies = [vec![Step::Drop], answer(503, &[], ""), answer(429, &[], "")];
    futures::future::join_all(replies.into_iter().map(async |reply| {
        let session = FlrSessionId("s".into());
        let once = vec![reply.clone(), ok(r#"{"PathItems":[]}"#)];
        let server = Server::start(playing(once)).await;
        server.zvm().browse(&session, "p", 10).await.unwrap();

        let server = Server::start(playing(vec![reply])).await;
        let error = server.zvm().download(&session, &["p"]).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { .. } | Error::Refused { .. }),
            "{error}"
        );
        assert_eq!(server.calls().len(), 4);
    }))
    .await;
}

/// Who answers so did not look at it.
#[tokio::test]
async fn what_was_turned_away_is_sent_again_whatever_it_is() {
    let away = || answer(429, &[("retry-after", "1")], r#"{"Message":"too many"}"#);
    let server = Server::start(playing(vec![away(), ok("\"task\"")])).await;
    let begin = Instant::now();
    let task = server.zvm().insert_checkpoint("vpg", "tag").await.unwrap();
    assert_eq!(task, "task");
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.calls().len(), 2);

    let server = Server::start(playing(vec![answer(429, &[], r#"{"Message":"too many"}"#)])).await;
    let zvm = server.zvm();
    let (get, post) =
        futures::future::join(zvm.local_site(), zvm.mount("vm", "vpg", CheckpointId(1))).await;
    for error in [get.unwrap_err(), post.unwrap_err()] {
        assert!(
            matches!(error, Error::Refused { status: 429, .. }),
            "{error}"
        );
    }
    assert_eq!(server.calls().len(), 8);
}

/// The connection that is reused dies under the request: hyper may move a request to another connection only where nothing of
/// it was written.
#[tokio::test]
async fn a_change_over_a_dying_connection_arrives_once_at_most() {
    for ending in [Step::Close, Step::Drop] {
        let server = Server::start(move |request| match request.method.as_str() {
            "GET" => ok("[]"),
            _ => vec![ending.clone()],
        })
        .await;
        let zvm = server.zvm();
        for round in 1..=20 {
            zvm.vms(&VmFilter::default()).await.unwrap();
            let error = zvm.insert_checkpoint("vpg", "tag").await.unwrap_err();
            assert!(matches!(error, Error::Unknown { .. }), "{error}");
            let posts: Vec<_> = server
                .calls()
                .into_iter()
                .filter(|call| call.method == "POST")
                .collect();
            assert_eq!(posts.len(), round);
        }
    }
    // The server closes right after an answer: the next request may meet the closing at any stage.
    let server = Server::start(|request| {
        let mut steps = ok(if request.method == "GET" {
            "[]"
        } else {
            "\"task\""
        });
        steps.push(Step::Close);
        steps
    })
    .await;
    let zvm = server.zvm();
    for round in 1..=50 {
        let answered = zvm.insert_checkpoint("vpg", &round.to_string()).await;
        assert!(
            matches!(answered, Ok(_) | Err(Error::Unknown { .. })),
            "{answered:?}"
        );
    }
    let mut bodies: Vec<_> = server.calls().into_iter().map(|call| call.body).collect();
    let sent = bodies.len();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), sent, "a change arrived twice");
}

#[tokio::test]
async fn a_change_that_never_left_is_told_as_such() {
    let server = Server::start(|_| ok("[]")).await;
    let zvm = server.zvm();
    zvm.vms(&VmFilter::default()).await.unwrap();
    server.hang_up();
    // The pooled connection may still seem alive for a moment; after it, none comes about.
    let error = loop {
        match zvm.insert_checkpoint("vpg", "tag").await.unwrap_err() {
            Error::Unknown { .. } => tokio::task::yield_now().await,
            error => break error,
        }
    };
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn retries_stay_within_the_deadline() {
    let later = answer(503, &[("retry-after", "9")], "");
    let server = Server::start(playing(vec![later])).await;
    let deadline = Instant::now() + Duration::from_secs(8);
    // The next attempt would come too late: the answer that there is comes at once.
    let error = server
        .zvm()
        .by(deadline)
        .vms(&VmFilter::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 503, .. }),
        "{error}"
    );
    assert!(Instant::now() < deadline);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn nothing_is_followed_elsewhere() {
    let other = Server::start(|_| ok("[]")).await;
    let location = format!("https://localhost:{}/v1/vms", other.address.port());
    let server = Server::start(move |_| answer(307, &[("location", &location)], "")).await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 307, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("redirects to localhost"),
        "{error}"
    );
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_question_over_a_connection_that_died_is_asked_again_beside_it_and_a_change_is_not() {
    let hangs = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let hangs = Arc::clone(&hangs);
        move |_| match hangs.swap(false, Ordering::SeqCst) {
            true => vec![Step::Hang],
            false => ok("[]"),
        }
    })
    .await;
    let zvm = server.zvm_with(timeouts(Duration::from_secs(2), Duration::from_secs(20)));
    zvm.vpgs().await.unwrap();
    let before = server.calls().len();
    hangs.store(true, Ordering::SeqCst);
    let began = Instant::now();
    zvm.vms(&VmFilter::default()).await.unwrap();
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert_eq!(server.calls().len(), before + 2);
    hangs.store(true, Ordering::SeqCst);
    let error = zvm.insert_checkpoint("vpg", "tag").await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert_eq!(server.calls().len(), before + 3);
}

#[tokio::test]
async fn silence_is_told_with_its_length() {
    let server = Server::start(|request| match request.target.as_str() {
        "/v1/vpgs" => ok("[]"),
        _ => vec![Step::Hang],
    })
    .await;
    let zvm = server.zvm_with(timeouts(Duration::from_secs(1), Duration::from_secs(20)));
    zvm.vpgs().await.unwrap();
    // Not enough time for a second attempt.
    let soon = zvm.by(Instant::now() + Duration::from_millis(1245));
    let filter = VmFilter::default();
    let (get, post) =
        futures::future::join(soon.vms(&filter), zvm.insert_checkpoint("vpg", "tag")).await;
    let (get, post) = (get.unwrap_err().to_string(), post.unwrap_err().to_string());
    assert!(
        get.ends_with("can't be reached: nothing came for 1 s"),
        "{get}"
    );
    assert!(
        post.ends_with("may or may not have happened: nothing came for 1 s"),
        "{post}"
    );
}
