//! The token: how it is got, kept, renewed, and what a refusal does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{net::TcpSocket, sync::Notify, time::Instant};
use url::Url;
use zvm_client::{Credentials, Error, VmFilter, Zvm, ZvmConfig};

use crate::{
    gate::RecordingGate,
    server::{Request, Server, Step, TOKEN, answer, config, ok, raw},
};

const REFUSED: &str = r#"{"error":"invalid_grant","error_description":"Invalid user credentials"}"#;

fn gated(server: &Server) -> (Zvm, Arc<RecordingGate>) {
    let gate = Arc::new(RecordingGate::default());
    (Zvm::new(server.config(), gate.clone()).unwrap(), gate)
}

fn bearer(request: &Request) -> &str {
    request.header("authorization").unwrap_or_default()
}

async fn call(zvm: &Zvm) -> Result<(), Error> {
    zvm.vms(&VmFilter::default()).await.map(drop)
}

#[tokio::test]
async fn a_password_login_is_sent_as_the_realm_wants_it() {
    let server = Server::start(|_| ok("[]")).await;
    let (zvm, gate) = gated(&server);
    call(&zvm).await.unwrap();
    let [login] = &server.logins()[..] else {
        panic!()
    };
    assert_eq!(login.method, "POST");
    assert_eq!(
        login.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(login.header("accept"), Some("application/json"));
    assert_eq!(
        login.body,
        "client_id=zerto-client&grant_type=password&username=admin&password=p%26ss+w%C3%B6rd&scope=openid"
    );
    assert_eq!(login.header("authorization"), None);
    assert_eq!(login.header("cookie"), None);
    assert_eq!(bearer(&server.calls()[0]), "Bearer access-1");
    assert_eq!(gate.said(), ["permit admin", "accepted admin"]);
}

#[tokio::test]
async fn a_client_login_is_sent_as_the_realm_wants_it() {
    let server = Server::plain(|request| {
        ok(if request.is_token() {
            r#"{"access_token":"a","expires_in":60,"refresh_expires_in":0}"#
        } else {
            "[]"
        })
    })
    .await;
    let credentials = Credentials::Client {
        client_id: "my client".into(),
        client_secret: "s&cret".into(),
    };
    let gate = Arc::new(RecordingGate::default());
    let zvm = Zvm::new(
        ZvmConfig {
            credentials,
            ..server.config()
        },
        gate.clone(),
    )
    .unwrap();
    call(&zvm).await.unwrap();
    call(&zvm).await.unwrap();
    let [login] = &server.logins()[..] else {
        panic!()
    };
    assert_eq!(
        login.body,
        "client_id=my+client&client_secret=s%26cret&grant_type=client_credentials&scope=openid"
    );
    assert_eq!(gate.said(), ["permit my client", "accepted my client"]);
}

#[tokio::test]
async fn many_calls_at_once_share_one_login() {
    let server = Server::start(|_| ok("[]")).await;
    let zvm = server.zvm();
    let calls = (0..30).map(|_| {
        let clone = zvm.by(Instant::now() + Duration::from_secs(30));
        async move { call(&clone).await }
    });
    for outcome in futures::future::join_all(calls).await {
        outcome.unwrap();
    }
    assert_eq!((server.logins().len(), server.calls().len()), (1, 30));
}

#[tokio::test]
async fn a_spent_token_is_refreshed_and_the_gate_is_not_asked() {
    let count = AtomicUsize::new(0);
    let server = Server::plain(move |request| {
        if !request.is_token() {
            return ok("[]");
        }
        let number = count.fetch_add(1, Ordering::SeqCst);
        ok(format!(
            r#"{{"access_token":"access-{number}","expires_in":0,"refresh_expires_in":1800,"refresh_token":"refresh-{number}"}}"#
        ))
    })
    .await;
    let (zvm, gate) = gated(&server);
    for _ in 0..3 {
        call(&zvm).await.unwrap();
    }
    let bodies: Vec<_> = server
        .logins()
        .into_iter()
        .map(|login| login.body)
        .collect();
    assert!(bodies[0].contains("grant_type=password"));
    assert_eq!(
        bodies[1],
        "client_id=zerto-client&grant_type=refresh_token&refresh_token=refresh-0"
    );
    assert_eq!(
        bodies[2],
        "client_id=zerto-client&grant_type=refresh_token&refresh_token=refresh-1"
    );
    assert_eq!(bodies.len(), 3);
    let bearers: Vec<_> = server
        .calls()
        .iter()
        .map(|call| bearer(call).to_owned())
        .collect();
    assert_eq!(
        bearers,
        ["Bearer access-0", "Bearer access-1", "Bearer access-2"]
    );
    assert_eq!(gate.said(), ["permit admin", "accepted admin"]);
}

#[tokio::test]
async fn without_a_refresh_token_a_spent_token_means_a_new_login() {
    let server = Server::plain(|request| {
        ok(if request.is_token() {
            r#"{"access_token":"a","expires_in":0,"refresh_expires_in":0}"#
        } else {
            "[]"
        })
    })
    .await;
    let (zvm, gate) = gated(&server);
    call(&zvm).await.unwrap();
    call(&zvm).await.unwrap();
    assert!(
        server
            .logins()
            .iter()
            .all(|login| login.body.contains("grant_type=password"))
    );
    assert_eq!(gate.said().len(), 4);
}

#[tokio::test]
async fn a_refused_refresh_means_one_new_login() {
    for refusal in [
        answer(
            400,
            &[],
            r#"{"error":"invalid_grant","error_description":"Token is not active"}"#,
        ),
        answer(
            400,
            &[],
            r#"{"error":"invalid_grant","error_description":"Session not active"}"#,
        ),
        answer(401, &[], "<html>"),
    ] {
        let server = Server::plain(move |request| match request {
            request if !request.is_token() => ok("[]"),
            request if request.body.contains("refresh_token") => refusal.clone(),
            _ => ok(r#"{"access_token":"a","expires_in":0,"refresh_token":"r","refresh_expires_in":1800}"#),
        })
        .await;
        let (zvm, gate) = gated(&server);
        call(&zvm).await.unwrap();
        call(&zvm).await.unwrap();
        let grants: Vec<_> = server
            .logins()
            .iter()
            .map(|login| login.body.contains("grant_type=refresh"))
            .collect();
        assert_eq!(grants, [false, true, false]);
        assert_eq!(
            gate.said(),
            [
                "permit admin",
                "accepted admin",
                "permit admin",
                "accepted admin"
            ]
        );
    }
}

#[tokio::test]
async fn a_refused_login_is_sent_once_and_all_who_wait_get_its_outcome() {
    let release = Arc::new(Notify::new());
    let hold = Arc::clone(&release);
    let server = Server::plain(move |_| {
        let mut steps = vec![Step::Wait(Arc::clone(&hold))];
        steps.extend(answer(
            401,
            &[("content-type", "application/json")],
            REFUSED,
        ));
        steps
    })
    .await;
    let (zvm, gate) = gated(&server);
    let calls = futures::future::join_all((0..10).map(|_| call(&zvm)));
    let (outcomes, ()) = futures::future::join(calls, async { release.notify_one() }).await;
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(
            matches!(&error, Error::LoginRefused { account, .. } if account == "admin"),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains("Invalid user credentials") && text.contains("locked"),
            "{text}"
        );
        assert!(!text.contains("w\u{f6}rd"), "{text}");
    }
    assert_eq!((server.logins().len(), server.calls().len()), (1, 0));
    assert_eq!(gate.said(), ["permit admin", "refused admin"]);
    assert_eq!(gate.reasons(), ["\"Invalid user credentials\""]);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_cut_off_a_login() {
    let release = Arc::new(Notify::new());
    let hold = Arc::clone(&release);
    let server = Server::plain(move |_| {
        let mut steps = vec![Step::Wait(Arc::clone(&hold))];
        steps.extend(answer(400, &[], REFUSED));
        steps
    })
    .await;
    let (zvm, gate) = gated(&server);
    let soon = zvm.by(Instant::now() + Duration::from_millis(100));
    let error = call(&soon).await.unwrap_err();
    assert!(
        matches!(error, Error::Deadline { unknown: false, .. }),
        "{error}"
    );
    // The next caller finds the same login still on its way.
    let (outcome, ()) = futures::future::join(call(&zvm), async { release.notify_one() }).await;
    assert!(matches!(outcome, Err(Error::LoginRefused { .. })));
    assert_eq!(server.logins().len(), 1);
    assert_eq!(gate.said(), ["permit admin", "refused admin"]);
}

#[tokio::test]
async fn a_closed_gate_means_that_nothing_is_sent() {
    let server = Server::start(|_| ok("[]")).await;
    let gate = Arc::new(RecordingGate::closed());
    let zvm = Zvm::new(server.config(), gate.clone()).unwrap();
    let error = call(&zvm).await.unwrap_err();
    assert!(matches!(error, Error::LoginBlocked(_)));
    assert!(error.to_string().contains("three logins were refused"));
    assert!(server.seen().is_empty());
    assert_eq!(gate.said(), ["permit admin"]);
}

#[tokio::test]
async fn a_gate_that_opens_shortly_is_waited_for() {
    let server = Server::start(|_| ok("[]")).await;
    let gate = Arc::new(RecordingGate::busy(3));
    let zvm = Zvm::new(server.config(), gate.clone()).unwrap();
    call(&zvm).await.unwrap();
    assert_eq!(server.logins().len(), 1);
    let mut expected = vec!["permit admin"; 4];
    expected.push("accepted admin");
    assert_eq!(gate.said(), expected);

    // Not beyond the deadline.
    let gate = Arc::new(RecordingGate::busy(u32::MAX));
    let zvm = Zvm::new(server.config(), gate.clone()).unwrap();
    let begin = Instant::now();
    let error = call(&zvm.by(begin + Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::LoginBlocked(_)),
        "{error} after {:?}",
        begin.elapsed()
    );
    assert!(gate.said().len() > 1);
    assert_eq!(server.logins().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_not_about_the_credentials_is_no_refusal() {
    for (status, body, says) in [
        (401, "<html><title>Proxy</title></html>", "Proxy"),
        (
            400,
            r#"{"error":"invalid_scope","error_description":"Invalid scopes: openid"}"#,
            "Invalid scopes",
        ),
        (403, r#"{"error":"invalid_grant"}"#, "invalid_grant"),
        (
            404,
            "<html><title>404 Not Found</title></html>",
            "finished starting",
        ),
        (500, r#"{"error":"unknown_error"}"#, "unknown_error"),
        (200, "<html><title>Welcome</title></html>", "Welcome"),
        (200, "", "empty"),
        (302, "", "redirects"),
    ] {
        let server = Server::plain(move |_| answer(status, &[], body)).await;
        let (zvm, gate) = gated(&server);
        let error = call(&zvm).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused { .. } | Error::Unreadable { .. }),
            "{error}"
        );
        assert!(error.to_string().starts_with("log in: "), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(server.logins().len(), 1, "{status}");
        assert_eq!(gate.said(), ["permit admin", "unanswered admin"]);
    }
}

#[tokio::test]
async fn a_realm_that_is_starting_up_is_waited_for() {
    let count = AtomicUsize::new(0);
    let server = Server::plain(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        0 => answer(
            503,
            &[("retry-after", "0")],
            "<html><title>starting</title></html>",
        ),
        1 => answer(502, &[], ""),
        _ if request.is_token() => ok(TOKEN),
        _ => ok("[]"),
    })
    .await;
    let (zvm, gate) = gated(&server);
    call(&zvm).await.unwrap();
    assert_eq!(server.logins().len(), 3);
    let expected = [
        "permit",
        "unanswered",
        "permit",
        "unanswered",
        "permit",
        "accepted",
    ]
    .map(|word| format!("{word} admin"));
    assert_eq!(gate.said(), expected);
}

#[tokio::test]
async fn a_login_whose_answer_was_lost_is_not_sent_again() {
    let server = Server::plain(|_| vec![Step::Drop]).await;
    let (zvm, gate) = gated(&server);
    let error = call(&zvm).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(server.logins().len(), 1);
    assert_eq!(gate.said(), ["permit admin", "lost admin"]);
}

#[tokio::test]
async fn an_answer_to_a_login_that_breaks_off_is_not_asked_for_again() {
    let server = Server::plain(|_| {
        raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"access",
            Step::Drop,
        )
    })
    .await;
    let (zvm, gate) = gated(&server);
    let error = call(&zvm).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert_eq!(server.logins().len(), 1);
    assert_eq!(gate.said(), ["permit admin", "lost admin"]);
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_not_a_refusal() {
    // A port that is taken, so that nobody else gets it, and not listened on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = Url::parse(&format!("https://{}/", socket.local_addr().unwrap())).unwrap();
    let gate = Arc::new(RecordingGate::default());
    let zvm = Zvm::new(config(url.clone()), gate.clone()).unwrap();
    let error = call(&zvm).await.unwrap_err();
    let Error::Unreachable { host, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*host, format!("127.0.0.1:{}", url.port().unwrap()));
    assert!(
        gate.said()
            .chunks(2)
            .all(|pair| pair == ["permit admin", "unanswered admin"])
    );
    assert_eq!(gate.said().len(), 8);
}

#[tokio::test]
async fn a_login_that_would_come_too_late_is_not_waited_for() {
    let server = Server::plain(|_| answer(503, &[("retry-after", "9")], "")).await;
    let deadline = Instant::now() + Duration::from_secs(8);
    let error = call(&server.zvm().by(deadline)).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 503, .. }),
        "{error}"
    );
    assert!(Instant::now() < deadline);
    assert_eq!(server.logins().len(), 1);
}

#[tokio::test]
async fn a_rejected_token_is_renewed_and_the_call_sent_again() {
    let server = Server::plain(|request| match request {
        request if request.body.contains("refresh_token") => {
            ok(TOKEN.replace("access-1", "access-2"))
        }
        request if request.is_token() => ok(TOKEN),
        request if bearer(request) == "Bearer access-2" => ok("\"task\""),
        _ => answer(
            401,
            &[("www-authenticate", "Bearer error=\"invalid_token\"")],
            "",
        ),
    })
    .await;
    let (zvm, gate) = gated(&server);
    assert_eq!(zvm.insert_checkpoint("vpg", "tag").await.unwrap(), "task");
    let calls = server.calls();
    assert_eq!(
        calls.iter().map(bearer).collect::<Vec<_>>(),
        ["Bearer access-1", "Bearer access-2"]
    );
    assert_eq!(calls[0].body, calls[1].body);
    assert_eq!(gate.said(), ["permit admin", "accepted admin"]);
}

#[tokio::test]
async fn many_calls_with_a_rejected_token_share_one_renewal() {
    let server = Server::plain(|request| match request {
        request if request.body.contains("refresh_token") => {
            ok(TOKEN.replace("access-1", "access-2"))
        }
        request if request.is_token() => ok(TOKEN),
        request if bearer(request) == "Bearer access-2" => ok("[]"),
        _ => answer(401, &[], ""),
    })
    .await;
    let zvm = server.zvm();
    for outcome in futures::future::join_all((0..20).map(|_| call(&zvm))).await {
        outcome.unwrap();
    }
    assert_eq!(server.logins().len(), 2);
}

#[tokio::test]
async fn a_second_401_and_a_403_mean_not_permitted() {
    for (status, logins, calls) in [(401, 2, 2), (403, 1, 1)] {
        let server =
            Server::start(move |_| answer(status, &[], r#"{"Message":"needs ManageLocalVpg"}"#))
                .await;
        let zvm = server.zvm();
        let error = zvm.insert_checkpoint("vpg", "tag").await.unwrap_err();
        let Error::NotPermitted {
            what,
            account,
            detail,
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(
            (what.as_str(), account.as_str()),
            ("insert a checkpoint into VPG vpg", "admin")
        );
        assert!(
            detail.contains("needs ManageLocalVpg") && detail.contains("role"),
            "{detail}"
        );
        assert_eq!(
            (server.logins().len(), server.calls().len()),
            (logins, calls)
        );
    }
}

#[tokio::test]
async fn secrets_are_in_no_text() {
    let server = Server::start(|_| ok("[]")).await;
    let zvm = server.zvm();
    call(&zvm).await.unwrap();
    let text = format!("{zvm:?} {:?}", server.config());
    assert!(
        text.contains("127.0.0.1") && !text.contains("w\u{f6}rd") && !text.contains("access-1"),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_that_repeats_the_secret_is_told_without_it() {
    for (status, body) in [
        (
            401,
            r#"{"error":"invalid_grant","error_description":"no: {}"}"#,
        ),
        (
            400,
            r#"{"error":"invalid_scope","error_description":"{} {}"}"#,
        ),
        (403, r#"{"Message":"sent: {}"}"#),
        (404, "<html><title>{}</title></html>"),
        (429, r#"{"Message":"{}"}"#),
        (302, ""),
        (503, "{}"),
        (200, r#""{}""#),
        (200, "{}"),
    ] {
        for repeated in ["p&ss w\u{f6}rd", "p%26ss+w%C3%B6rd"] {
            let server = Server::plain(move |_| {
                let location = format!("/{repeated}");
                let headers = [("content-type", "text/plain"), ("location", &*location)];
                answer(status, &headers, body.replace("{}", repeated))
            })
            .await;
            // The answers of gateways are asked for again.
            let (zvm, _) = gated(&server);
            let error = call(&zvm.by(Instant::now() + Duration::from_secs(2)))
                .await
                .unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(
                !told.contains("p&ss") && !told.contains("p%26ss"),
                "{status} {body}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn a_refresh_that_is_answered_with_what_was_sent_is_told_without_it() {
    let first = r#"{"access_token":"a","expires_in":0,"refresh_token":"r-e-f-r-e-s-h","refresh_expires_in":1800}"#;
    for (status, body) in [(503, "{}"), (429, r#"{"Message":"{}"}"#), (500, "{}")] {
        let server = Server::plain(move |request| match request {
            request if request.body.contains("refresh_token") => {
                answer(status, &[], body.replace("{}", &request.body))
            }
            request if request.is_token() => ok(first),
            _ => ok("[]"),
        })
        .await;
        let config = ZvmConfig {
            credentials: Credentials::Client {
                client_id: "robot".into(),
                client_secret: "cl-i-e-nt".into(),
            },
            ..server.config()
        };
        let zvm = Zvm::new(config, Arc::new(RecordingGate::default())).unwrap();
        call(&zvm).await.unwrap();
        let error = call(&zvm.by(Instant::now() + Duration::from_secs(2)))
            .await
            .unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(
            !told.contains("r-e-f-r-e-s-h") && !told.contains("cl-i-e-nt"),
            "{status}: {told}"
        );
    }
}
