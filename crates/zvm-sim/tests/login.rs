#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{client, fast, start};
use serde_json::json;
use zvm_sim::{Scenario, Sim, switches::Account};

#[tokio::test]
async fn a_password_opens_the_api() {
    let zvm = fast().await;
    let (status, body) = zvm.password("simulated-password").await;
    assert_eq!(status, 200);
    assert_eq!(body["expires_in"], 300);
    assert_eq!(body["refresh_expires_in"], 1800);
    assert_eq!(body["token_type"], "Bearer");
    assert!(body["refresh_token"].is_string());
    assert_eq!(zvm.json("/v1/localsite").await["SiteName"], "Production");
}

#[tokio::test]
async fn a_confidential_client_opens_it_too() {
    let mut zvm = fast().await;
    let (status, body) = zvm
        .token_request(&[
            ("grant_type", "client_credentials"),
            ("client_id", "rewind"),
            ("client_secret", "simulated-secret"),
            ("scope", "openid"),
        ])
        .await;
    assert_eq!(status, 200);
    assert!(body.get("refresh_token").is_none());
    assert_eq!(body["refresh_expires_in"], 0);
    zvm.token = body["access_token"].as_str().unwrap().to_owned();
    assert_eq!(zvm.get("/v1/vms").await.status(), 200);
}

#[tokio::test]
async fn the_public_client_has_no_service_account() {
    let zvm = fast().await;
    let (status, body) = zvm
        .token_request(&[
            ("grant_type", "client_credentials"),
            ("client_id", "zerto-client"),
        ])
        .await;
    assert_eq!(status, 401);
    assert_eq!(body["error"], "unauthorized_client");
}

#[tokio::test]
async fn another_realm_does_not_exist() {
    let zvm = fast().await;
    let url = zvm.url("/auth/realms/master/protocol/openid-connect/token");
    let answer = zvm
        .http
        .post(url)
        .form(&[("grant_type", "password")])
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn five_wrong_passwords_lock_the_account_without_saying_so() {
    let zvm = fast().await;
    for _ in 0..5 {
        let (status, body) = zvm.password("wrong").await;
        assert_eq!(status, 401);
        assert_eq!(body["error_description"], "Invalid user credentials");
    }
    let (status, body) = zvm.password("simulated-password").await;
    assert_eq!(status, 401);
    assert_eq!(body["error_description"], "Invalid user credentials");
    zvm.sim.unlock();
    assert_eq!(zvm.password("simulated-password").await.0, 200);
}

#[tokio::test]
async fn without_a_valid_token_the_answer_is_an_empty_401() {
    let mut zvm = fast().await;
    for token in ["", "nonsense"] {
        zvm.token = token.to_owned();
        let answer = zvm.get("/v1/vms").await;
        assert_eq!(answer.status(), 401);
        assert!(
            answer.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Bearer")
        );
        assert!(answer.bytes().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn revoked_tokens_and_a_restart_end_every_login() {
    let mut zvm = fast().await;
    zvm.sim.revoke_tokens();
    assert_eq!(zvm.get("/v1/vms").await.status(), 401);
    zvm.login().await;
    assert_eq!(zvm.get("/v1/vms").await.status(), 200);
    zvm.sim.restart();
    assert_eq!(zvm.get("/v1/vms").await.status(), 401);
}

#[tokio::test]
async fn a_refresh_token_goes_on_working_until_the_session_is_revoked() {
    let zvm = fast().await;
    let (_, body) = zvm.password("simulated-password").await;
    let refresh = body["refresh_token"].as_str().unwrap();
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", "zerto-client"),
        ("refresh_token", refresh),
    ];
    for _ in 0..2 {
        assert_eq!(zvm.token_request(&form).await.0, 200);
    }
    zvm.sim.revoke_tokens();
    let (status, body) = zvm.token_request(&form).await;
    assert_eq!(status, 400);
    assert_eq!(body["error"], "invalid_grant");
}

#[tokio::test]
async fn switches_of_the_realm() {
    let mut zvm = fast().await;
    zvm.sim.update(|switches| {
        switches.token_lifetime = 60;
        switches.refresh_token = false;
    });
    let (_, body) = zvm.password("simulated-password").await;
    assert_eq!(body["expires_in"], 60);
    assert!(body.get("refresh_token").is_none());

    zvm.sim
        .update(|switches| switches.account = Account::ActionPending);
    let (status, body) = zvm.password("simulated-password").await;
    assert_eq!(
        (status.as_u16(), &body["error_description"]),
        (400, &json!("Account is not fully set up"))
    );

    zvm.sim.update(|switches| {
        switches.account = Account::Ready;
        switches.require_openid = true;
    });
    let (_, body) = zvm
        .token_request(&[
            ("grant_type", "password"),
            ("client_id", "zerto-client"),
            ("username", "admin"),
            ("password", "simulated-password"),
        ])
        .await;
    zvm.token = body["access_token"].as_str().unwrap().to_owned();
    assert_eq!(zvm.get("/v1/vms").await.status(), 401);
}

#[tokio::test]
async fn a_starting_appliance_has_no_token_endpoint_yet() {
    let zvm = fast().await;
    zvm.sim.update(|switches| switches.keycloak_up = false);
    let url = zvm.url("/auth/realms/zerto/protocol/openid-connect/token");
    let answer = zvm
        .http
        .post(url)
        .form(&[("grant_type", "password")])
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["content-type"], "text/html");
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let zvm = fast().await;
    let other = fast().await;
    let failed = other.http.get(zvm.url("/v1/localsite")).send().await;
    assert!(failed.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_renewed_certificate_is_another_one() {
    let mut sim = Sim::start(Scenario::fast()).await.unwrap();
    let before = (sim.fingerprint().to_owned(), client(&sim));
    let after = sim.renew_certificate().unwrap().to_owned();
    assert_ne!(before.0, after);
    let url = format!("{}/v1/localsite", sim.url());
    assert!(before.1.get(&url).send().await.unwrap_err().is_connect());
    assert_eq!(client(&sim).get(&url).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_kept_data_folder_keeps_certificate_and_guests() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Sim::builder()
        .scenario(Scenario::fast())
        .data_dir(folder.path());
    let sim = builder.clone().start().await.unwrap();
    let fingerprint = sim.fingerprint().to_owned();
    let file = sim.guest_path("jp-ubuntu", "/srv/app/VERSION").unwrap();
    std::fs::write(&file, "3.0.0\n").unwrap();
    sim.shutdown().await;
    let sim = builder.start().await.unwrap();
    assert_eq!(sim.fingerprint(), fingerprint);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "3.0.0\n");
}

#[tokio::test]
async fn a_temporary_folder_is_removed() {
    let sim = Sim::start(Scenario::fast()).await.unwrap();
    let folder = sim.guests_dir().parent().unwrap().to_owned();
    assert!(folder.exists());
    sim.shutdown().await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_scenario_with_a_mistake_does_not_start() {
    let mut scenario = Scenario::fast();
    scenario.vpgs[0].vms.push("nobody".to_owned());
    let error = Sim::start(scenario).await.err().unwrap().to_string();
    assert!(error.contains("nobody"), "{error}");
    let _ = start(Scenario::fast()).await;
}
