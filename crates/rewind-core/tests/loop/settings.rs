//! What the configuration asks for is done or refused, never silently less.
use crate::support::config;
use rewind_core::{ErrorCode, Rewind};
use serde_json::json;
use zvm_sim::{Scenario, Sim};

#[tokio::test]
async fn settings_that_would_be_ignored_are_refused() {
    let sim = Sim::start(Scenario::fast()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (key, value) in [
        ("confirmation", json!("form")),
        ("confirmation", json!("approve")),
        (
            "guests",
            json!({ "jp-ubuntu": { "ssh": "root@jp-ubuntu" } }),
        ),
    ] {
        let error = Rewind::new(config(
            &sim,
            folder.path(),
            "state",
            &json!({ key: value.clone() }),
        ))
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::Configuration, "{key}: {value}");
        assert!(error.message.contains(key), "{error:?}");
    }
    assert!(
        sim.requests().is_empty(),
        "nothing is sent with such a configuration"
    );
}
