//! Logging in.

use std::sync::Arc;

use zvm_client::{Credentials, Error, NoLoginGate, TlsTrust, VmFilter, Zvm, ZvmConfig};
use zvm_sim::{Fault, Outcome, Sim, switches::Account};

use crate::{config, sim_without_disks, until, zvm};

fn logins(sim: &Sim) -> usize {
    let requests = sim.requests();
    requests
        .iter()
        .filter(|request| request.is("POST", "/protocol/openid-connect/token"))
        .count()
}

fn with_password(sim: &Sim, password: &str) -> Zvm {
    let credentials = Credentials::Password {
        username: sim.credentials().username.clone(),
        password: password.into(),
    };
    Zvm::new(
        ZvmConfig {
            credentials,
            ..config(sim)
        },
        Arc::new(NoLoginGate),
    )
    .unwrap()
}

async fn call(zvm: &Zvm) -> Result<(), Error> {
    zvm.vms(&VmFilter::default()).await.map(drop)
}

#[tokio::test]
async fn both_grants_log_in() {
    let sim = sim_without_disks().await;
    sim.update(|switches| switches.require_openid = true);
    call(&zvm(&sim)).await.unwrap();
    let own = sim.credentials();
    let client = |client_secret: &str| Credentials::Client {
        client_id: own.client_id.clone(),
        client_secret: client_secret.into(),
    };
    let with = |credentials| {
        Zvm::new(
            ZvmConfig {
                credentials,
                ..config(&sim)
            },
            Arc::new(NoLoginGate),
        )
        .unwrap()
    };
    call(&with(client(&own.client_secret))).await.unwrap();

    let error = call(&with(client("wrong"))).await.unwrap_err();
    assert!(
        matches!(&error, Error::LoginRefused { account, .. } if *account == own.client_id),
        "{error}"
    );
    assert!(
        error.to_string().contains("client id or its secret"),
        "{error}"
    );
    let public = Credentials::Client {
        client_id: "zerto-client".into(),
        client_secret: "x".into(),
    };
    let error = call(&with(public)).await.unwrap_err();
    assert!(matches!(error, Error::LoginRefused { .. }), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_sent_once_and_a_locked_account_is_thought_of() {
    let sim = sim_without_disks().await;
    let error = call(&with_password(&sim, "wrong")).await.unwrap_err();
    assert!(matches!(error, Error::LoginRefused { .. }), "{error}");
    assert_eq!(logins(&sim), 1);
    for _ in 0..4 {
        call(&with_password(&sim, "wrong")).await.unwrap_err();
    }
    // Locked now: the right password gets the same words, and the advice covers it.
    let error = call(&zvm(&sim)).await.unwrap_err();
    assert!(
        error.to_string().contains("locked for some minutes"),
        "{error}"
    );
    sim.unlock();
    call(&zvm(&sim)).await.unwrap();
}

#[tokio::test]
async fn an_account_that_can_not_be_used_has_its_own_advice() {
    let sim = sim_without_disks().await;
    for (account, advice) in [
        (Account::ActionPending, "web page"),
        (Account::Disabled, "enable the account"),
    ] {
        sim.update(|switches| switches.account = account);
        let error = call(&zvm(&sim)).await.unwrap_err();
        assert!(matches!(error, Error::LoginRefused { .. }), "{error}");
        assert!(error.to_string().contains(advice), "{error}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_replaced_in_the_middle_of_the_work() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    let vpg = sim.vpg_id("jp-ubuntu").unwrap();
    call(&zvm).await.unwrap();
    assert_eq!(logins(&sim), 1);
    sim.revoke_tokens();
    // Its session is gone as well: the refresh is refused, and a login follows.
    zvm.insert_checkpoint(vpg, "after the revocation")
        .await
        .unwrap();
    assert_eq!(logins(&sim), 3);
    sim.wait_for(|world| world.is_listed("jp-ubuntu", "after the revocation"))
        .await;
    assert_eq!(sim.journal("jp-ubuntu").len(), 1);
    sim.restart();
    call(&zvm).await.unwrap();
}

#[tokio::test]
async fn a_token_is_refreshed_before_it_ends() {
    let sim = sim_without_disks().await;
    sim.update(|switches| switches.token_lifetime = 1);
    let zvm = zvm(&sim);
    call(&zvm).await.unwrap();
    until(async || {
        call(&zvm).await.unwrap();
        (logins(&sim) == 3).then_some(())
    })
    .await;
    // The realm has not seen one that was over.
    assert!(
        sim.requests()
            .iter()
            .all(|request| request.status == Some(200))
    );
}

#[tokio::test]
async fn a_realm_that_is_down_is_no_refusal() {
    let sim = sim_without_disks().await;
    sim.update(|switches| switches.keycloak_up = false);
    let zvm = zvm(&sim);
    let error = call(&zvm).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { status: 503, .. }),
        "{error}"
    );
    sim.update(|switches| switches.keycloak_up = true);
    call(&zvm).await.unwrap();
}

#[tokio::test]
async fn a_missing_role_is_told_in_plain_words() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    for status in [401, 403] {
        sim.add_fault(Fault {
            times: 2,
            ..Fault::answer("POST", "/v1/vpgs/*/checkpoints", status, Outcome::Message)
        });
        let error = zvm
            .insert_checkpoint(sim.vpg_id("jp-ubuntu").unwrap(), "tag")
            .await
            .unwrap_err();
        assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("An administrator has to give the account a role"),
            "{error}"
        );
        sim.clear_faults();
    }
}

#[tokio::test]
async fn another_certificate_than_the_trusted_one_is_refused() {
    let mut sim = sim_without_disks().await;
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("zvm.pem");
    std::fs::copy(sim.ca_file(), &kept).unwrap();
    let trusting = |tls| {
        Zvm::new(
            ZvmConfig {
                tls,
                ..config(&sim)
            },
            Arc::new(NoLoginGate),
        )
        .unwrap()
    };
    let (by_file, any) = (trusting(TlsTrust::CaFile(kept)), trusting(TlsTrust::Any));
    sim.renew_certificate().unwrap();
    let error = call(&by_file).await.unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error}");
    assert_eq!(logins(&sim), 0);
    call(&any).await.unwrap();
}

#[tokio::test]
async fn a_login_says_which_roles_the_token_claims() {
    let sim = sim_without_disks().await;
    let zvm = zvm(&sim);
    assert_eq!(zvm.log_in().await.unwrap().roles, None);
    sim.update(|switches| switches.roles = Some(vec!["viewer".into(), "admin".into()]));
    // There is a token already.
    assert_eq!(zvm.log_in().await.unwrap().roles, None);
    assert_eq!(logins(&sim), 1);
    let fresh = crate::zvm(&sim).log_in().await.unwrap();
    assert_eq!(fresh.roles.unwrap(), ["admin", "viewer"]);
    let refused = with_password(&sim, "wrong").log_in().await.unwrap_err();
    assert!(matches!(refused, Error::LoginRefused { .. }), "{refused}");
    let only_token = |request: &zvm_sim::RequestRecord| request.is("POST", "/token");
    assert!(sim.requests().iter().all(only_token));
}
