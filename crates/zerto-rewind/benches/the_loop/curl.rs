//! The same bytes with curl and the plain API, as a measure.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use zvm_sim::Sim;

use crate::Result;

pub struct Ids {
    pub vm: String,
    pub vpg: String,
    pub checkpoint: String,
}

/// Mounts the checkpoint, times `curl --output` of a file on its first partition, and unmounts.
pub fn download(sim: &Sim, ids: &Ids, path: &str, out: &Path) -> Result<Duration> {
    let api = Api::login(sim)?;
    let session = api.json(
        "POST",
        "/v1/flrs",
        Some(&json!({"jflr": {"vmIdentifier": ids.vm, "vpgIdentifier": ids.vpg, "checkpointIdentifier": ids.checkpoint}})),
    )?;
    let session = session.as_str().ok_or("no session id")?;
    let path_list = loop {
        let root = api.json(
            "POST",
            &format!("/v1/flrs/{session}/browse"),
            Some(&json!({"path": ""})),
        );
        // Refused until it is mounted.
        if let Some(partition) = root
            .ok()
            .as_ref()
            .and_then(|r| r["PathItems"][0]["Path"].as_str())
        {
            break json!({"pathList": [format!("{partition}{path}")]});
        }
    };
    let url = api.json(
        "POST",
        &format!("/v1/flrs/{session}/download"),
        Some(&path_list),
    )?;
    let url = url.as_str().ok_or("no URL")?.replace('\\', "/");
    let begun = Instant::now();
    api.curl(
        &["--output", &out.display().to_string()],
        "GET",
        &format!("/{}", url.trim_start_matches('/')),
        None,
    )?;
    let took = begun.elapsed();
    api.json("DELETE", &format!("/v1/flrs/{session}"), None)?;
    // The next mount is refused until it is gone.
    while api
        .json("GET", "/v1/flrs", None)?
        .as_array()
        .is_some_and(|open| !open.is_empty())
    {}
    Ok(took)
}

struct Api<'a> {
    sim: &'a Sim,
    token: String,
}

impl<'a> Api<'a> {
    fn login(sim: &'a Sim) -> Result<Self> {
        let mut api = Self {
            sim,
            token: String::new(),
        };
        let user = format!("username={}", sim.credentials().username);
        let password = format!("password={}", sim.credentials().password);
        let form = [
            "--data-urlencode",
            &user,
            "--data-urlencode",
            &password,
            "--data",
            "grant_type=password&client_id=zerto-client&scope=openid",
        ];
        let answer = api.curl(
            &form,
            "POST",
            "/auth/realms/zerto/protocol/openid-connect/token",
            None,
        )?;
        let answer: Value = serde_json::from_slice(&answer)?;
        api.token = answer["access_token"]
            .as_str()
            .ok_or("no token")?
            .to_owned();
        Ok(api)
    }

    fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        Ok(serde_json::from_slice(&self.curl(
            &[],
            method,
            path,
            body,
        )?)?)
    }

    fn curl(
        &self,
        options: &[&str],
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--cacert"])
            .arg(self.sim.ca_file())
            .args(options);
        if !self.token.is_empty() {
            curl.args(["--header", &format!("Authorization: Bearer {}", self.token)]);
        }
        if let Some(body) = body {
            curl.args([
                "--header",
                "Content-Type: application/json",
                "--data",
                &body.to_string(),
            ]);
        }
        let done = curl
            .args(["--request", method, &format!("{}{path}", self.sim.url())])
            .output()?;
        if done.status.success() {
            Ok(done.stdout)
        } else {
            Err(format!("curl {method} {path}: {}", done.status).into())
        }
    }
}
