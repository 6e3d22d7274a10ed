//! Bodies that are not what they should be.

use zvm_client::{Error, FlrSessionId, TaskState, VmFilter};

use crate::server::{Server, Step, answer, ok, raw};

#[tokio::test]
async fn a_success_that_can_not_be_read_says_what_came() {
    for (body, says) in [
        (
            "<!DOCTYPE html><html><head><title>Zerto</title></head></html>",
            "an HTML page (Zerto)",
        ),
        ("", "the body is empty"),
        (
            "[{\"VmIdentifier\":\"a\"",
            "not the JSON that was expected (EOF",
        ),
        ("{\"Message\":\"ok\"}", "not the JSON that was expected"),
        (
            "[{\"VmName\":\"app01\"}]",
            "row 1: the VM (app01) has no identifier",
        ),
    ] {
        let server = Server::start(move |_| ok(body)).await;
        let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("list the VMs: the answer can't be read: "),
            "{error}"
        );
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(server.calls().len(), 1);
    }
}

#[tokio::test]
async fn a_body_that_always_breaks_off_is_told() {
    let all = [
        raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[]",
            Step::Drop,
        ),
        raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[]",
            Step::Close,
        ),
        raw(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n",
            Step::Close,
        ),
        raw("HTTP/1.1 200 OK\r\n\r\n[]", Step::Drop),
    ];
    futures::future::join_all(all.into_iter().map(async |reply| {
        let server = Server::start(move |_| reply.clone()).await;
        let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        assert!(
            error.to_string().contains("broke off after 2 bytes"),
            "{error}"
        );
        assert_eq!(server.calls().len(), 4);
    }))
    .await;
}

#[tokio::test]
async fn a_body_without_length_ends_with_its_connection() {
    let server = Server::start(|_| raw("HTTP/1.1 200 OK\r\n\r\n[]", Step::Close)).await;
    assert!(
        server
            .zvm()
            .vms(&VmFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read_to_its_end() {
    const OBJECT: usize = 4 << 20;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let endless = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
        chunk.repeat(5)
    );
    for reply in [
        raw(
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", OBJECT + 1),
            Step::Hang,
        ),
        raw(endless, Step::Hang),
    ] {
        let server = Server::start(move |_| reply.clone()).await;
        let error = server.zvm().local_site().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "read the site of the ZVM: the answer is larger than 4194304 bytes"
        );
    }
    let server = Server::start(|_| {
        raw(
            format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                (128 << 20) + 1
            ),
            Step::Hang,
        )
    })
    .await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                limit: 134_217_728,
                unit: "bytes",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_list_of_64_mib_is_read() {
    let server = Server::start(|_| {
        let ids = r#""VmIdentifier":"g.vm-1","VpgIdentifier":"v""#;
        ok(format!(
            r#"[{{{ids},"Padding":"{}"}}]"#,
            "x".repeat(64 << 20)
        ))
    })
    .await;
    assert_eq!(
        server.zvm().vms(&VmFilter::default()).await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_list_of_countless_small_rows_is_given_up_at_the_first_wrong_one() {
    let nulls = format!("[{}null]", "null,".repeat(10 << 20));
    let server = Server::start(move |_| ok(&nulls)).await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        error.to_string().ends_with("row 1: not an object"),
        "{error}"
    );
}

#[tokio::test]
async fn a_list_of_more_rows_than_any_site_has_is_an_error() {
    let row = r#"{"VmIdentifier":"g.vm-1","VpgIdentifier":"v"}"#;
    let rows = format!("[{}{row}]", format!("{row},").repeat(200_000));
    let server = Server::start(move |_| ok(&rows)).await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert!(
        error.to_string().contains("more than 200000 rows"),
        "{error}"
    );
}

#[tokio::test]
async fn an_endless_error_is_read_as_far_as_it_is_of_use() {
    let server = Server::start(|_| {
        raw(
            format!(
                "HTTP/1.1 500 X\r\ncontent-length: 1000000000\r\n\r\n{}",
                "so sorry ".repeat(20_000)
            ),
            Step::Hang,
        )
    })
    .await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    let Error::Refused {
        status: 500,
        message,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert!(message.starts_with("\"so sorry so sorry") && message.chars().count() <= 303);
}

#[tokio::test]
async fn an_error_that_breaks_off_still_has_its_status() {
    let server = Server::start(|_| {
        raw(
            "HTTP/1.1 400 X\r\ncontent-length: 100\r\n\r\nbad na",
            Step::Drop,
        )
    })
    .await;
    let error = server
        .zvm()
        .insert_checkpoint("vpg", "tag")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "insert a checkpoint into VPG vpg: the ZVM answered 400: \"bad na\""
    );
}

#[tokio::test]
async fn texts_of_the_zvm_can_not_act_on_a_terminal() {
    let server =
        Server::start(|_| answer(400, &[], "{\"Message\":\"a\\u001b[2Jb\\r\\n\\u202ec\"}")).await;
    let error = server.zvm().vms(&VmFilter::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "list the VMs: the ZVM answered 400: \"a [2Jb c\""
    );
}

#[tokio::test]
async fn results_come_quoted_bare_or_empty() {
    for (body, id) in [
        ("\"9f.6b\"", "9f.6b"),
        ("9f.6b", "9f.6b"),
        ("", ""),
        ("\"\"", ""),
    ] {
        let server = Server::start(move |_| ok(body)).await;
        assert_eq!(
            server.zvm().insert_checkpoint("vpg", "tag").await.unwrap(),
            id
        );
    }
    let server = Server::start(|_| answer(204, &[], "")).await;
    server
        .zvm()
        .unmount(&FlrSessionId("s".into()))
        .await
        .unwrap();
    let error = server
        .zvm()
        .mount("vm", "vpg", zvm_client::CheckpointId(1))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Unknown { .. }),
        "a mount without session: {error}"
    );
}

#[tokio::test]
async fn what_is_gone_is_none() {
    for reply in [
        answer(404, &[], ""),
        ok(""),
        ok("[]"),
        ok("null"),
        answer(204, &[], ""),
    ] {
        let server = Server::start(move |_| reply.clone()).await;
        let zvm = server.zvm();
        assert!(
            zvm.flr_session(&FlrSessionId("s".into()))
                .await
                .unwrap()
                .is_none()
        );
        assert!(zvm.task("9f.6b").await.unwrap().is_none());
    }
    let server = Server::start(|_| answer(404, &[], "")).await;
    server
        .zvm()
        .unmount(&FlrSessionId("s".into()))
        .await
        .unwrap();
    assert!(server.zvm().task("").await.unwrap().is_none());
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn an_answer_about_another_session_is_not_the_end_of_this_one() {
    for body in [
        r#"{"FlrSessionIdentifier":"other"}"#,
        r#"[{"FlrSessionIdentifier":"other"}]"#,
    ] {
        let server = Server::start(move |_| ok(body)).await;
        let error = server
            .zvm()
            .flr_session(&FlrSessionId("mine".into()))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
    let server = Server::start(|_| ok(r#"[{"FlrSessionIdentifier":"other"},{"FlrSessionIdentifier":"MINE.site","FlrSessionStatus":"MountReady"}]"#)).await;
    let session = server
        .zvm()
        .flr_session(&FlrSessionId("mine".into()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(session.id.0, "MINE.site");
}

#[tokio::test]
async fn sessions_of_another_vm_are_left_out() {
    let server = Server::start(|_| {
        ok(r#"[{"FlrSessionIdentifier":"1","VmIdentifier":"G.vm-1"},{"FlrSessionIdentifier":"2","VmIdentifier":"g.vm-2"},{"FlrSessionIdentifier":"3"}]"#)
    })
    .await;
    let ids: Vec<_> = server
        .zvm()
        .flr_sessions("g.vm-1")
        .await
        .unwrap()
        .into_iter()
        .map(|session| session.id.0)
        .collect();
    assert_eq!(ids, ["1", "3"]);
}

#[tokio::test]
async fn a_task_is_read() {
    let server =
        Server::start(|_| ok(r#"[{"Status":{"State":4},"CompleteReason":"the VRA is down"}]"#))
            .await;
    let task = server.zvm().task("9f.6b").await.unwrap().unwrap();
    assert_eq!(
        (task.id.as_str(), task.state, task.reason.as_deref()),
        ("9f.6b", TaskState::Failed, Some("the VRA is down"))
    );
}

#[tokio::test]
async fn the_clock_is_read_in_every_form() {
    for body in [
        "\"2025-03-01T10:00:05.1230000Z\"",
        "2025-03-01T10:00:05.123Z",
        "\"\\/Date(1740823205123)\\/\"",
        "\"2025-03-01T10:00:05.123\"",
    ] {
        let server = Server::start(move |_| ok(body)).await;
        assert_eq!(
            server.zvm().server_time().await.unwrap().to_string(),
            "2025-03-01T10:00:05.123Z"
        );
    }
    for body in ["\"soon\"", "", "{}", "<html>"] {
        let server = Server::start(move |_| ok(body)).await;
        assert!(matches!(
            server.zvm().server_time().await,
            Err(Error::Unreadable { .. })
        ));
    }
}
