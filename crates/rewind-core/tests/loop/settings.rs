//! What the configuration asks for is done or refused, never silently less.
use crate::support::config;
use rewind_core::{ErrorCode, Rewind};
use serde_json::json;
use zvm_sim::{Scenario, Sim};

#[tokio::test]
async fn settings_that_would_be_ignored_are_refused() {
    let sim = Sim::start(Scenario::fast()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let guests = json!({ "guests": { "jp-ubuntu": { "ssh": "root@jp-ubuntu" } } });
    let error = Rewind::new(config(&sim, folder.path(), "state", &guests)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Configuration);
    assert!(error.message.contains("guests"), "{error:?}");
    assert!(
        sim.requests().is_empty(),
        "nothing is sent with such a configuration"
    );
}
