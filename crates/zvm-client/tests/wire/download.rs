//! Download URLs of every shape, and bytes that break off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use zvm_client::{Download, Error, FlrSessionId, Zvm};

use crate::server::{Reply, Server, Step, answer, ok, raw, timeouts};

const BYTES: &str = "/v1/downloads/site.guid";

fn session() -> FlrSessionId {
    FlrSessionId("s.site".into())
}

/// A server that gives `url` and, there, `reply`.
async fn giving(url: impl Into<String>, reply: Reply) -> Server {
    let url = url.into();
    Server::start(move |request| {
        if request.method == "POST" {
            ok(&url)
        } else {
            reply.clone()
        }
    })
    .await
}

async fn read(mut download: Download) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = download.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

async fn fetch(zvm: &Zvm) -> Result<Vec<u8>, Error> {
    read(
        zvm.download(&session(), &["partition#0 Ext4/etc/hosts"])
            .await?,
    )
    .await
}

#[tokio::test]
async fn urls_of_every_shape_lead_to_the_bytes() {
    for shape in [
        r#""v1/downloads/site.guid""#,
        r#""/v1/downloads/site.guid""#,
        r#""v1\\downloads\\site.guid""#,
        r#""\\v1\\downloads\\site.guid""#,
        "v1/downloads/site.guid",
        r#""./v1/downloads/site.guid""#,
    ] {
        let server = giving(shape, answer(200, &[], "bytes")).await;
        assert_eq!(fetch(&server.zvm()).await.unwrap(), b"bytes", "{shape}");
        let calls = server.calls();
        assert_eq!(
            calls[0].body,
            r#"{"pathList":["partition#0 Ext4/etc/hosts"]}"#
        );
        assert_eq!((calls[1].line(), calls.len()), (format!("GET {BYTES}"), 2));
        assert_eq!(calls[1].header("authorization"), Some("Bearer access-1"));
    }
}

#[tokio::test]
async fn an_absolute_url_of_the_same_host_is_followed() {
    let server = Server::start(|request| {
        let host = request.header("host").unwrap();
        match request.method.as_str() {
            "POST" => ok(format!("\"https://{host}{BYTES}?key=a%20b\"")),
            _ => answer(200, &[], "bytes"),
        }
    })
    .await;
    assert_eq!(fetch(&server.zvm()).await.unwrap(), b"bytes");
    assert_eq!(server.calls()[1].target, format!("{BYTES}?key=a%20b"));
}

#[tokio::test]
async fn another_host_gets_neither_a_request_nor_the_token() {
    let other = Server::start(|_| answer(200, &[], "evil")).await;
    let port = other.address.port();
    for (url, named) in [
        (
            format!("https://localhost:{port}{BYTES}"),
            format!("localhost:{port}"),
        ),
        (
            format!("https://127.0.0.1:{port}{BYTES}"),
            format!("https://127.0.0.1:{port}"),
        ),
        (
            format!("//localhost:{port}{BYTES}"),
            format!("localhost:{port}"),
        ),
        (
            format!("\\\\\\\\localhost:{port}\\\\x"),
            format!("localhost:{port}"),
        ),
        (format!("https://zvm@localhost:{port}/"), String::new()),
        (
            format!("http://127.0.0.1:{port}{BYTES}"),
            format!("http://127.0.0.1:{port}"),
        ),
        (
            "https://zvm.corp.example/v1/downloads/a".into(),
            "zvm.corp.example".into(),
        ),
        (
            "ftp://zvm.corp.example/a".into(),
            "ftp://zvm.corp.example".into(),
        ),
    ] {
        let server = giving(format!("\"{url}\""), answer(200, &[], "bytes")).await;
        let error = fetch(&server.zvm()).await.unwrap_err();
        match &error {
            Error::ForeignHost { what, host } => {
                assert_eq!(
                    (what.as_str(), host),
                    ("download partition#0 Ext4/etc/hosts", &named),
                    "{url}"
                );
            }
            Error::Unreadable { .. } => assert!(named.is_empty(), "{error}"),
            _ => panic!("{url}: {error}"),
        }
        assert_eq!(server.calls().len(), 1, "{url}");
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn an_answer_without_a_url_is_told() {
    for body in [
        "",
        "\"\"",
        "{}",
        "<html>",
        "\"https://\"",
        "\"data:text/plain,evil\"",
    ] {
        let server = giving(body, answer(200, &[], "bytes")).await;
        let error = fetch(&server.zvm()).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{body}: {error}");
        assert_eq!(server.calls().len(), 1);
    }
}

#[tokio::test]
async fn a_url_is_used_once_whatever_it_answers() {
    for status in [401, 403, 404, 500, 502, 503, 307] {
        let server = giving(
            "\"v1/downloads/a\"",
            answer(
                status,
                &[("location", "/elsewhere")],
                "{\"Message\":\"used\"}",
            ),
        )
        .await;
        let error = fetch(&server.zvm()).await.unwrap_err();
        match (status, &error) {
            (401 | 403, Error::NotPermitted { .. }) | (404, Error::NotFound { .. }) => {}
            (307, Error::Refused { message, .. }) => {
                assert!(message.contains("/elsewhere"), "{message}")
            }
            (
                _,
                Error::Refused {
                    status: told,
                    message,
                    ..
                },
            ) => assert_eq!((*told, message.as_str()), (status, "\"used\"")),
            _ => panic!("{status}: {error}"),
        }
        assert_eq!(
            (server.calls().len(), server.logins().len()),
            // With another token once, as this one was not accepted for the URL.
            if status == 401 { (3, 2) } else { (2, 1) },
            "{status}"
        );
    }
    let server = giving("\"v1/downloads/a\"", vec![Step::Drop]).await;
    let error = fetch(&server.zvm()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn bytes_that_break_off_are_an_error() {
    for (reply, received) in [
        (
            raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n12345",
                Step::Close,
            ),
            5,
        ),
        (
            raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n12345",
                Step::Drop,
            ),
            5,
        ),
        (
            raw(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
                Step::Close,
            ),
            5,
        ),
        (raw("HTTP/1.1 200 OK\r\n\r\n12345", Step::Drop), 5),
    ] {
        let server = giving("\"v1/downloads/a\"", reply).await;
        let error = fetch(&server.zvm()).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("broke off after {received} bytes")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn bytes_that_stop_moving_are_an_error() {
    let stuck = raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n12345",
        Step::Hang,
    );
    let server = giving("\"v1/downloads/a\"", stuck).await;
    let zvm = server.zvm_with(timeouts(Duration::from_secs(1), Duration::from_secs(20)));
    let error = fetch(&zvm).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("nothing more came for 1 s after 5 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn neither_deadline_nor_total_time_end_a_download_that_moves() {
    let go = Arc::new(Notify::new());
    let slow = vec![
        Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab".to_vec()),
        Step::Wait(go.clone()),
        Step::Send(b"cd".to_vec()),
    ];
    let server = giving("\"v1/downloads/a\"", slow).await;
    let zvm = server.zvm_with(timeouts(Duration::from_secs(20), Duration::from_secs(2)));
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut download = zvm.by(deadline).download(&session(), &["a"]).await.unwrap();
    assert_eq!(download.chunk().await.unwrap().unwrap(), "ab");
    tokio::time::sleep_until(deadline).await;
    go.notify_one();
    assert_eq!(download.chunk().await.unwrap().unwrap(), "cd");
    assert!(download.chunk().await.unwrap().is_none());
}

#[tokio::test]
async fn what_the_headers_say_is_passed_on() {
    for (header, name) in [
        ("attachment; filename=hosts", Some("hosts")),
        (
            "attachment; filename=\"a; b \\\"c\\\".txt\"",
            Some("a; b \"c\".txt"),
        ),
        (
            "attachment; FileName=\"x\"; filename*=UTF-8''na%C3%AFve%20file.txt",
            Some("naïve file.txt"),
        ),
        ("attachment; filename*=UTF-8''a%2Fb", Some("a/b")),
        ("attachment", None),
        ("attachment; filename=", None),
        ("attachment; filename=\"", None),
        (";;=;\"", None),
    ] {
        let reply = answer(
            200,
            &[
                ("content-disposition", header),
                ("content-type", "application/zip"),
            ],
            "PK",
        );
        let server = giving("\"v1/downloads/a\"", reply).await;
        let download = server
            .zvm()
            .download(&session(), &["a", "b"])
            .await
            .unwrap();
        assert_eq!(download.file_name.as_deref(), name, "{header}");
        assert_eq!(download.content_type.as_deref(), Some("application/zip"));
        assert_eq!(download.length, Some(2));
        assert!(!format!("{download:?}").contains("v1/downloads"));
    }
    let server = giving(
        "\"v1/downloads/a\"",
        raw(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            Step::Close,
        ),
    )
    .await;
    let download = server.zvm().download(&session(), &["a"]).await.unwrap();
    assert_eq!(
        (download.length, download.file_name.as_deref()),
        (None, None)
    );
    assert!(read(download).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_token_that_was_revoked_before_the_bytes_is_replaced() {
    let refused = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.method.as_str() {
        "POST" => ok("\"v1/downloads/a\""),
        _ if refused.fetch_add(1, Ordering::SeqCst) == 0 => answer(401, &[], ""),
        _ => answer(200, &[], "bytes"),
    });
    let server = server.await;
    assert_eq!(fetch(&server.zvm()).await.unwrap(), b"bytes");
    assert_eq!(server.logins().len(), 2);
    assert_eq!(server.calls().len(), 3);
}
