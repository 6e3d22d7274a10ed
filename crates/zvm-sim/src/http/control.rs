//! `/sim/…`: the simulator's own controls. They are no part of the ZVM's API and need no token.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::reply::Reply;
use super::request::Call;
use crate::app::App;
use crate::faults::Fault;
use crate::held::LetGo;
use crate::switches::Switches;

/// Serves one request.
pub(super) async fn serve(app: &Arc<App>, call: &Call) -> Reply {
    match answer(app, call).await {
        Ok(value) => Reply::json(value.to_string().into_bytes()),
        Err(Refused(status, message)) => Reply::message(status, &message),
    }
}

struct Refused(StatusCode, String);

impl Refused {
    fn bad(message: impl ToString) -> Self {
        Self(StatusCode::BAD_REQUEST, message.to_string())
    }
}

async fn answer(app: &Arc<App>, call: &Call) -> Result<Value, Refused> {
    let path: Vec<&str> = call.segments.iter().skip(1).map(String::as_str).collect();
    match (call.method.as_str(), path.as_slice()) {
        ("GET", ["switches"]) => json_of(&app.world().switches),
        ("PATCH", ["switches"]) => patch_switches(app, call),
        ("GET", ["faults"]) => json_of(&app.world().faults.list()),
        ("POST", ["faults"]) => {
            let fault: Fault = serde_json::from_slice(&call.body).map_err(Refused::bad)?;
            app.world().faults.add(fault);
            Ok(Value::Null)
        }
        ("DELETE", ["faults"]) => {
            app.world().faults.clear();
            Ok(Value::Null)
        }
        ("GET", ["held"]) => json_of(&app.world().held.iter().collect::<Vec<_>>()),
        ("POST", ["held"]) => Ok(let_go(app, LetGo::On)),
        ("DELETE", ["held"]) => Ok(let_go(app, LetGo::Cut)),
        ("POST", ["checkpoint"]) => checkpoint(app, call).await,
        ("POST", ["restart"]) => {
            app.world().restart();
            app.tell();
            Ok(Value::Null)
        }
        ("POST", ["revoke-tokens"]) => {
            app.world().realm.revoke_all();
            Ok(Value::Null)
        }
        ("POST", ["unlock"]) => {
            app.world().realm.unlock_all();
            Ok(Value::Null)
        }
        ("GET", ["journal", vpg]) => {
            let entries = crate::view::journal(app, vpg).ok_or_else(|| no_vpg(vpg))?;
            json_of(&entries)
        }
        ("GET", ["requests"]) => {
            let requests: Vec<_> = app.world().requests.iter().cloned().collect();
            json_of(&requests)
        }
        ("DELETE", ["requests"]) => {
            app.world().requests.clear();
            Ok(Value::Null)
        }
        ("GET", ["sessions"]) => json_of(&crate::view::sessions(app, &app.world())),
        _ => Err(Refused(
            StatusCode::NOT_FOUND,
            format!(
                "{} {} is no control of the simulator.",
                call.method, call.path
            ),
        )),
    }
}

fn let_go(app: &App, how: LetGo) -> Value {
    app.world().held.let_go(how);
    app.tell();
    Value::Null
}

fn json_of(value: &impl Serialize) -> Result<Value, Refused> {
    serde_json::to_value(value)
        .map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn no_vpg(name: &str) -> Refused {
    Refused(StatusCode::NOT_FOUND, format!("There is no VPG '{name}'."))
}

/// JSON merge patch: what is left out stays, `null` is as at the start of a plain scenario.
fn patch_switches(app: &App, call: &Call) -> Result<Value, Refused> {
    let patch: Value = serde_json::from_slice(&call.body).map_err(Refused::bad)?;
    let mut switches = json_of(&app.world().switches)?;
    merge(&mut switches, patch);
    let switches: Switches = serde_json::from_value(switches).map_err(Refused::bad)?;
    app.inventory.check(&switches).map_err(Refused::bad)?;
    let now = json_of(&switches)?;
    app.change_switches(|own| *own = switches);
    Ok(now)
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

async fn checkpoint(app: &Arc<App>, call: &Call) -> Result<Value, Refused> {
    let body: Value = serde_json::from_slice(&call.body).map_err(Refused::bad)?;
    let name = body.get("vpg").and_then(Value::as_str).unwrap_or_default();
    let (index, _) = app
        .inventory
        .vpg_by_name(name)
        .ok_or_else(|| no_vpg(name))?;
    let taken = app
        .checkpoint(index, None, |_, _, id, _| id)
        .await
        .map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(json!({ "id": taken.map(|id| id.to_string()) }))
}
