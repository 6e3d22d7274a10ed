//! A scripted stand-in for the domain: which tools are listed and what becomes of a guard is said by the call itself.
//!
//! - A tool named `listed…` (or as [`Script::list_also`] says) is listed, `denied…` is refused, `when…` is listed if its
//!   argument `on` is true.
//! - The argument `guard` of a listed call: `{"ms": N}` takes so long, `{"fail": TEXT}` fails, `{"wait": true}` waits for
//!   [`Script::release`], `{"progress": N}` reports so often first.
#![allow(dead_code)]
use std::{
    collections::HashMap,
    fs::File,
    io::Write as _,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rewind_core::{
    Call, Error, ErrorCode, ProgressUpdate, Receipt,
    enforce::{ObservedCall, Outcome, ToolStanding},
};
use rewind_mcp::proxy::{Enforcement, Evidence, Ruling};
use serde_json::Value;
use tokio::sync::Semaphore;

/// How long a test waits for something that should happen at once.
pub const SOON: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct Script(Arc<Inner>);

struct Inner {
    events: Mutex<Vec<String>>,
    changed: Condvar,
    released: Semaphore,
    seen: Mutex<HashMap<String, Value>>,
    listed: Mutex<Vec<String>>,
    log: Option<Mutex<File>>,
    flushed: AtomicBool,
}

pub struct Listed {
    name: String,
    guard: Value,
}

pub struct Guarded {
    name: String,
    receipts: Vec<Receipt>,
}

impl Script {
    pub fn new() -> Self {
        Self::logging(None)
    }

    /// Events are written to `log`, too, before they take effect.
    pub fn logging(log: Option<File>) -> Self {
        Self(Arc::new(Inner {
            events: Mutex::default(),
            changed: Condvar::new(),
            released: Semaphore::new(0),
            seen: Mutex::default(),
            listed: Mutex::new(vec!["listed".into()]),
            log: log.map(Mutex::new),
            flushed: AtomicBool::new(false),
        }))
    }

    /// Tools whose names start so are listed, too.
    pub fn list_also(&self, prefix: &str) {
        self.0.listed.lock().unwrap().push(prefix.into());
    }

    fn is_listed(&self, tool: &str) -> bool {
        self.0
            .listed
            .lock()
            .unwrap()
            .iter()
            .any(|prefix| tool.starts_with(prefix))
    }

    /// Lets one waiting guard go on.
    pub fn release(&self) {
        self.0.released.add_permits(1);
    }

    /// Whether the outcomes were asked to be written down.
    pub fn flushed(&self) -> bool {
        self.0.flushed.load(Ordering::SeqCst)
    }

    /// Accepts every change of a tool.
    pub fn accept(&self) {
        self.0.seen.lock().unwrap().clear();
    }

    pub fn events(&self) -> Vec<String> {
        self.0.events.lock().unwrap().clone()
    }

    /// Waits until an event has happened so often.
    pub fn wait(&self, event: &str, times: usize) {
        let until = Instant::now() + SOON;
        let mut events = self.0.events.lock().unwrap();
        while events.iter().filter(|seen| *seen == event).count() < times {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {event:?} x{times} among {events:?}");
            events = self.0.changed.wait_timeout(events, left).unwrap().0;
        }
    }

    fn event(&self, event: String) {
        if let Some(log) = &self.0.log {
            writeln!(log.lock().unwrap(), "{event}").unwrap();
        }
        self.0.events.lock().unwrap().push(event);
        self.0.changed.notify_all();
    }

    async fn guarding(&self, listed: &Listed, call: &Call) -> Result<(), Error> {
        let guard = &listed.guard;
        for step in 0..guard["progress"].as_u64().unwrap_or(0) {
            if let Some(progress) = &call.progress {
                progress.update(ProgressUpdate {
                    done: step as f64,
                    total: None,
                    transfer: None,
                    message: format!("step {step}"),
                });
            }
            tokio::task::yield_now().await;
        }
        if let Some(ms) = guard["ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if guard["wait"] == true {
            self.0.released.acquire().await.unwrap().forget();
        }
        assert!(guard["panic"] != true, "as the test wants it");
        match guard["fail"].as_str() {
            Some(why) => Err(error(ErrorCode::ZvmUnreachable, why)),
            None => Ok(()),
        }
    }
}

pub fn error(code: ErrorCode, message: &str) -> Error {
    Error::new(code, message).with_next("do what the script says")
}

impl Enforcement for Script {
    type Listed = Listed;
    type Guarded = Guarded;

    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool {
        server != Some("harmless")
            && (self.is_listed(tool) || tool.starts_with("denied") || tool.starts_with("when"))
    }

    fn has_entries_for(&self, server: &str) -> bool {
        server != "harmless"
    }

    fn verdict(&self, call: &ObservedCall<'_>) -> Ruling<Listed> {
        if !self.may_be_listed(call.server, call.tool)
            || (call.tool.starts_with("when") && call.arguments["on"] != true)
        {
            return Ruling::Unlisted;
        }
        if call.tool.starts_with("denied") {
            return Ruling::Refused(error(ErrorCode::Denied, "denied by the script"));
        }
        Ruling::Listed(Listed {
            name: call.tool.into(),
            guard: call.arguments["guard"].clone(),
        })
    }

    async fn guard(&self, listed: Listed, call: &Call) -> Result<Guarded, Error> {
        self.event(format!("guarding {}", listed.name));
        let guarded = tokio::select! {
            guarded = self.guarding(&listed, call) => guarded,
            () = call.cancel.cancelled() => Err(error(ErrorCode::Cancelled, "cancelled")),
        };
        if let Err(error) = guarded {
            self.event(format!("failed {}", listed.name));
            return Err(error);
        }
        self.event(format!("guarded {}", listed.name));
        Ok(Guarded {
            receipts: vec![Receipt {
                vm: "vm1".into(),
                vm_identifier: "id1".into(),
                agent: call.caller.clone(),
                action: listed.name.clone(),
                change_id: call.session_change_id.clone(),
                tag: "ai:…".into(),
                pins: vec![],
                seconds: 0.5,
                note: String::new(),
            }],
            name: listed.name,
        })
    }

    fn outcome(&self, guarded: Guarded, outcome: Outcome) {
        self.event(format!("{outcome:?} {}", guarded.name));
    }

    fn tool_seen(&self, server: Option<&str>, definition: &Value) -> ToolStanding {
        let name = definition["name"].as_str().unwrap_or_default();
        let key = format!("{}/{name}", server.unwrap_or("?"));
        let mut seen = self.0.seen.lock().unwrap();
        let first = seen.entry(key).or_insert_with(|| definition.clone());
        if first["inputSchema"] != definition["inputSchema"] {
            return ToolStanding::Changed("its input schema has changed".into());
        }
        if first["description"] != definition["description"] {
            return ToolStanding::Described("its description has changed".into());
        }
        ToolStanding::Fine
    }

    fn flush(&self) {
        self.0.flushed.store(true, Ordering::SeqCst);
    }

    fn evidence(guarded: &Guarded) -> Evidence<'_> {
        Evidence {
            receipts: &guarded.receipts,
            reused: false,
            warnings: &[],
        }
    }
}
