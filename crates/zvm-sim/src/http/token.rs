//! The token endpoint of the Keycloak realm.

use axum::http::{StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use super::reply::{Failure, Reply};
use super::request::Call;
use crate::app::App;
use crate::realm::{Granted, Refused, Request};

pub(super) fn grant(app: &App, call: &Call, realm: &str) -> Result<Reply, Failure> {
    let mut world = app.world();
    if !world.switches.keycloak_up {
        return Ok(Reply::html(StatusCode::SERVICE_UNAVAILABLE));
    }
    if realm != "zerto" {
        let body = serde_json::json!({ "error": "Realm does not exist" });
        return Ok(Reply::json_with(
            StatusCode::NOT_FOUND,
            body.to_string().into_bytes(),
        ));
    }
    let request = read(call);
    let now = app.clock.now();
    let world = &mut *world;
    let answer = world
        .realm
        .request(&request, now, &world.switches, &mut world.rng);
    Ok(match answer {
        Ok(granted) => Reply::json(granted_body(&granted)),
        Err(Refused(status, error, description)) => {
            let body = serde_json::json!({ "error": error, "error_description": description });
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            Reply::json_with(status, body.to_string().into_bytes())
        }
    }
    .header(header::CACHE_CONTROL, "no-store"))
}

fn read(call: &Call) -> Request {
    let mut request = Request::default();
    for (name, value) in call.form() {
        match name.as_str() {
            "grant_type" => request.grant_type = value,
            "client_id" => request.client_id = value,
            "client_secret" => request.client_secret = Some(value),
            "username" => request.username = value,
            "password" => request.password = value,
            "refresh_token" => request.refresh_token = value,
            "scope" => request.scope = value,
            _ => {}
        }
    }
    if let Some((id, secret)) = basic(call) {
        request.client_id = id;
        request.client_secret = Some(secret);
    }
    request
}

/// A client may also name itself in the header.
fn basic(call: &Call) -> Option<(String, String)> {
    let value = call.header(&header::AUTHORIZATION)?;
    let encoded = value.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let plain = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    Some((plain(id), plain(secret)))
}

fn granted_body(granted: &Granted) -> Vec<u8> {
    let mut body = serde_json::json!({
        "access_token": granted.access_token,
        "expires_in": granted.expires_in,
        "refresh_expires_in": granted.refresh_expires_in,
        "token_type": "Bearer",
        "not-before-policy": 0,
        "scope": granted.scope,
    });
    if let (Some(token), Some(members)) = (&granted.refresh_token, body.as_object_mut()) {
        members.insert("refresh_token".to_owned(), token.as_str().into());
        members.insert(
            "session_state".to_owned(),
            granted.session_state.as_str().into(),
        );
    }
    body.to_string().into_bytes()
}
