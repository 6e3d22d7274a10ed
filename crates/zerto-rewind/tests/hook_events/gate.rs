//! A scripted gate in the place of the catalog and the ZVM.
use rewind_core::{
    Error, ErrorCode, Pin, Receipt,
    enforce::{ObservedCall, Outcome},
};
use serde_json::Value;
use std::{
    io::Cursor,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use zerto_rewind::hook::{self, Caller, Format, Gate, Output, Pinned, Verdict};

pub const LONG: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Guard {
        server: Option<String>,
        tool: String,
        arguments: Value,
        agent: String,
        change: String,
        correlation: Option<String>,
    },
    Outcome {
        tool: String,
        arguments: Value,
        correlation: Option<String>,
        outcome: Outcome,
    },
}

/// What the gate does with a call that is listed.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    Pin,
    Refuse,
    Fail,
    Panic,
    Hang,
}

/// Lists `vm_delete` of the server `vmware`, and `Bash`, `Shell` and `bash` where the command mentions `jp-ubuntu`.
#[derive(Clone)]
pub struct Scripted {
    pub does: Does,
    pub heard: Arc<Mutex<Vec<Heard>>>,
    pub cancel: CancellationToken,
}

impl Scripted {
    pub fn new(does: Does) -> Self {
        Self {
            does,
            heard: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }

    pub fn answer(&self, format: Option<Format>, event: &[u8]) -> Output {
        self.answer_within(format, event, LONG)
    }

    pub fn answer_within(
        &self,
        format: Option<Format>,
        event: &[u8],
        deadline: Duration,
    ) -> Output {
        let gate = self.clone();
        hook::answer(
            Cursor::new(event.to_vec()),
            format,
            deadline,
            &self.cancel,
            move || Ok(gate),
        )
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

pub fn error(code: ErrorCode, message: &str) -> Error {
    Error {
        code,
        message: message.into(),
        next: "Do not make the change.".into(),
        candidates: vec![],
        done: vec![],
        plan_id: None,
    }
}

impl Gate for Scripted {
    type Listed = Heard;

    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool {
        match tool {
            "vm_delete" => server.is_none_or(|server| server == "vmware"),
            "Bash" | "Shell" | "bash" | "run_shell_command" => server == Some(hook::BUILTIN),
            _ => false,
        }
    }

    fn verdict(&self, call: &ObservedCall<'_>) -> Verdict<Heard> {
        let command = call.arguments.get("command").and_then(Value::as_str);
        if command.is_some_and(|command| !command.contains("jp-ubuntu")) {
            return Verdict::Unlisted;
        }
        if matches!(self.does, Does::Refuse) {
            return Verdict::Refused(error(ErrorCode::Denied, "the catalog denies vm_delete."));
        }
        Verdict::Listed(Heard::Guard {
            server: call.server.map(str::to_owned),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            agent: String::new(),
            change: String::new(),
            correlation: None,
        })
    }

    fn guard(&self, listed: Heard, caller: &Caller) -> Result<Pinned, Error> {
        let Heard::Guard {
            server,
            tool,
            arguments,
            ..
        } = listed
        else {
            panic!("not a guard")
        };
        self.heard.lock().unwrap().push(Heard::Guard {
            server,
            tool,
            arguments,
            agent: caller.agent.clone(),
            change: caller.change.clone(),
            correlation: caller.correlation.clone(),
        });
        match self.does {
            Does::Pin => Ok(Pinned {
                receipts: vec![receipt()],
                warnings: vec![],
            }),
            Does::Fail => Err(error(
                ErrorCode::ZvmUnreachable,
                "the ZVM zvm.test:443 does not answer.",
            )),
            Does::Panic => panic!("a bug of ours"),
            Does::Hang => loop {
                std::thread::park()
            },
            Does::Refuse => unreachable!("refused before"),
        }
    }

    fn outcome(
        &self,
        call: &ObservedCall<'_>,
        caller: &Caller,
        outcome: Outcome,
    ) -> Result<(), Error> {
        self.heard.lock().unwrap().push(Heard::Outcome {
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            correlation: caller.correlation.clone(),
            outcome,
        });
        match self.does {
            Does::Fail => Err(error(ErrorCode::State, "the state cannot be written.")),
            Does::Panic => panic!("a bug of ours"),
            _ => Ok(()),
        }
    }
}

fn receipt() -> Receipt {
    let tag = "ai:claude-code | delete | vm=jp-ubuntu | change=ses-0123456789ab | 20260921T170829Z";
    Receipt {
        vm: "jp-ubuntu".into(),
        vm_identifier: "vm-1".into(),
        agent: "claude-code".into(),
        action: "delete".into(),
        change_id: "ses-0123456789ab".into(),
        tag: tag.into(),
        pins: vec![Pin {
            vpg: "jp-ubuntu".into(),
            vpg_identifier: "vpg-1".into(),
            checkpoint: "4711".into(),
            time: "2026-09-21T17:08:30Z".into(),
            tag: tag.into(),
            journal_from: None,
            expected_until: None,
            inserts: 1,
            seconds: 1.0,
        }],
        seconds: 1.0,
        note: String::new(),
    }
}
