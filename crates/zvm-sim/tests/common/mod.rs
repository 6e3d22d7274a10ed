//! A client as plain as possible: HTTPS, JSON, and helpers for the usual ways through the API.
#![allow(dead_code)]

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use zvm_sim::{FlrState, Scenario, Sim, View};

pub struct Zvm {
    pub sim: Sim,
    pub http: Client,
    pub token: String,
}

/// A client that trusts the simulator's certificate and nothing else.
pub fn client(sim: &Sim) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pem = std::fs::read(sim.ca_file()).unwrap();
    let certificate = reqwest::Certificate::from_pem(&pem).unwrap();
    Client::builder()
        .tls_certs_only([certificate])
        .build()
        .unwrap()
}

pub async fn fast() -> Zvm {
    start(Scenario::fast()).await
}

pub async fn start(scenario: Scenario) -> Zvm {
    with(Sim::start(scenario).await.unwrap()).await
}

pub async fn with(sim: Sim) -> Zvm {
    let http = client(&sim);
    let mut zvm = Zvm {
        sim,
        http,
        token: String::new(),
    };
    zvm.login().await;
    zvm
}

impl Zvm {
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.sim.url())
    }

    pub async fn token_request(&self, form: &[(&str, &str)]) -> (StatusCode, Value) {
        let url = self.url("/auth/realms/zerto/protocol/openid-connect/token");
        let answer = self.http.post(url).form(form).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    pub async fn password(&self, password: &str) -> (StatusCode, Value) {
        self.token_request(&[
            ("grant_type", "password"),
            ("client_id", "zerto-client"),
            ("username", "admin"),
            ("password", password),
            ("scope", "openid"),
        ])
        .await
    }

    pub async fn login(&mut self) {
        let password = self.sim.credentials().password.clone();
        let (status, body) = self.password(&password).await;
        assert_eq!(status, 200, "{body}");
        self.token = body["access_token"].as_str().unwrap().to_owned();
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, self.url(path))
            .bearer_auth(&self.token)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.request(Method::POST, path)
            .json(&body)
            .send()
            .await
            .unwrap()
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.unwrap()
    }

    /// The JSON of an answer that must be 200.
    pub async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    pub async fn posted(&self, path: &str, body: Value) -> Value {
        let answer = self.post(path, body).await;
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Waits for an event of the simulator, with a limit so that a mistake fails instead of hanging.
    pub async fn wait(&self, holds: impl FnMut(&View<'_>) -> bool) {
        tokio::time::timeout(Duration::from_secs(90), self.sim.wait_for(holds))
            .await
            .expect("the event came in time");
    }

    pub fn vpg(&self, name: &str) -> String {
        self.sim.vpg_id(name).unwrap().to_owned()
    }

    pub fn vm(&self, key: &str) -> String {
        self.sim.vm_id(key).unwrap().to_owned()
    }

    pub fn checkpoints(&self, vpg: &str) -> String {
        format!("/v1/vpgs/{}/checkpoints", self.vpg(vpg))
    }

    /// Inserts a tag and answers with its task.
    pub async fn insert(&self, vpg: &str, tag: &str) -> String {
        let task = self
            .posted(&self.checkpoints(vpg), json!({ "checkpointName": tag }))
            .await;
        task.as_str().unwrap().to_owned()
    }

    pub async fn task(&self, id: &str) -> Value {
        self.json(&format!("/v1/tasks/{id}")).await
    }

    /// Inserts a tag, waits until it is listed, and answers with the checkpoint's identifier.
    pub async fn pin(&self, vpg: &str, tag: &str) -> String {
        self.insert(vpg, tag).await;
        self.wait(|world| world.is_listed(vpg, tag)).await;
        let journal = self.sim.journal(vpg);
        let entry = journal.iter().find(|entry| entry.tag == tag).unwrap();
        entry.id.clone()
    }

    pub async fn post_mount(&self, vm: &str, vpg: &str, checkpoint: &str) -> Response {
        let body = json!({ "jflr": {
            "vpgIdentifier": self.vpg(vpg),
            "vmIdentifier": self.vm(vm),
            "checkpointIdentifier": checkpoint,
        }});
        self.post("/v1/flrs", body).await
    }

    /// Mounts and waits until it is mounted; answers with the session's path.
    pub async fn mount(&self, vm: &str, vpg: &str, checkpoint: &str) -> String {
        let answer = self.post_mount(vm, vpg, checkpoint).await;
        assert_eq!(answer.status(), 200);
        let id: String = answer.json().await.unwrap();
        let own = id.clone();
        self.wait(move |world| {
            world
                .sessions()
                .iter()
                .any(|session| session.id == own && session.state == FlrState::Mounted)
        })
        .await;
        format!("/v1/flrs/{id}")
    }

    pub async fn browse(&self, session: &str, path: &str) -> Value {
        self.posted(&format!("{session}/browse"), json!({ "path": path }))
            .await
    }

    /// Asks for a download and answers with the URL as the ZVM gave it.
    pub async fn download_url(&self, session: &str, paths: &[&str]) -> String {
        let url = self
            .posted(&format!("{session}/download"), json!({ "pathList": paths }))
            .await;
        url.as_str().unwrap().to_owned()
    }

    pub async fn fetch(&self, relative: &str) -> Response {
        self.http
            .get(self.url(&format!("/{relative}")))
            .send()
            .await
            .unwrap()
    }

    pub async fn download(&self, session: &str, paths: &[&str]) -> Vec<u8> {
        let url = self.download_url(session, paths).await;
        let answer = self.fetch(&url).await;
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap().to_vec()
    }
}

/// The `Message` of an error answer.
pub async fn message(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    (status, body["Message"].as_str().unwrap().to_owned())
}

/// The names of browsed items.
pub fn paths(browsed: &Value) -> Vec<&str> {
    browsed["PathItems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["Path"].as_str().unwrap())
        .collect()
}

/// A member of every element.
pub fn column<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row[name].as_str().unwrap())
        .collect()
}
