//! From the bytes of an event to the answer.
use super::{
    answer::{Answer, Output, one_line, sentences},
    event::{self, Event, Reading, ToolUse},
    fields::Fields,
    format::Format,
    gate::{Caller, Gate, Pinned, Verdict},
};
use rewind_core::{
    Error,
    enforce::{ObservedCall, Outcome},
    text,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The call of `zerto-rewind install`, which proves with it that a denial comes out. It is refused whatever the catalog says.
pub(crate) const PROOF_SERVER: &str = "zerto-rewind";
pub(crate) const PROOF_TOOL: &str = "install_self_test";
/// Said where the configuration and the catalog were read before.
pub(crate) const PROOF_REASON: &str = "this is the self-test of `install`, which is always refused";

/// For a person who tries the hook by hand, or whose harness sends something else.
const HOW_TO_FEED: &str = "Next: Let a harness run the hook, as `zerto-rewind install` sets it up; by hand, give it one event as JSON on standard input.";

/// An agent's name fits a tag up to this length.
const MAX_AGENT: usize = 32;

/// What is known of an event so far: enough to deny it in its harness's form when time runs out.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub format: Option<Format>,
    pub event: String,
    /// The call is over: nothing is left to deny.
    pub over: bool,
}

impl Seen {
    pub fn output(&self, answer: &Answer) -> Output {
        match answer {
            Answer::Deny(reason) if self.over => Output {
                stderr: format!("{reason}\n"),
                ..Answer::Neutral.output(self.format, &self.event)
            },
            answer => answer.output(self.format, &self.event),
        }
    }
}

/// Judges one event. Whatever goes wrong is a denial.
pub(super) fn judge<G: Gate>(
    input: &[u8],
    given: Option<Format>,
    mut tell: impl FnMut(&Seen),
    open: impl FnOnce() -> Result<G, Error>,
) -> Output {
    let mut seen = Seen {
        format: given,
        ..Seen::default()
    };
    let answer = look(input, &mut seen, &mut tell)
        .and_then(|event| decide(event, open))
        .unwrap_or_else(|reason| Answer::deny(&reason));
    seen.output(&answer)
}

fn look(input: &[u8], seen: &mut Seen, tell: &mut impl FnMut(&Seen)) -> Result<Event, String> {
    let Fields { values, ambiguous } = serde_json::from_slice(input).map_err(|error| {
        let what = if input.trim_ascii().is_empty() {
            "standard input is empty, and not the JSON object of a hook event".to_owned()
        } else {
            format!("standard input is not the JSON object of a hook event: {error}")
        };
        format!("{what}. {HOW_TO_FEED}")
    })?;
    seen.format = seen.format.or_else(|| Format::recognise(&values));
    seen.event = event::name(&values).to_owned();
    tell(seen);
    let format = seen
        .format
        .ok_or("this event is of no harness that is known. Next: Give --format.")?;
    let mut event = event::parse(format, &values)?;
    if let (Event::Pre(call) | Event::Post(call, _), Some(reason)) = (&mut event, ambiguous) {
        call.arguments = Err(reason);
    }
    if matches!(event, Event::Post(..)) {
        seen.over = true;
        tell(seen);
    }
    Ok(event)
}

fn decide<G: Gate>(
    event: Event,
    open: impl FnOnce() -> Result<G, Error>,
) -> Result<Answer, String> {
    match event {
        Event::Other => Ok(Answer::Neutral),
        Event::Pre(call) => before(&call, &open().map_err(|error| explain(&error))?),
        Event::Post(call, outcome) => {
            after(&call, outcome, &open().map_err(|error| explain(&error))?)?;
            Ok(Answer::Neutral)
        }
    }
}

fn before<G: Gate>(call: &ToolUse, gate: &G) -> Result<Answer, String> {
    if call
        .readings
        .contains(&Reading::new(Some(PROOF_SERVER), PROOF_TOOL))
    {
        return Err(PROOF_REASON.to_owned());
    }
    let readings = listed(call, gate);
    if readings.is_empty() {
        return Ok(Answer::Neutral);
    }
    let caller = caller(call);
    let arguments = call.arguments.as_ref().map_err(String::clone)?;
    let mut found = None;
    for reading in readings {
        let observed = observed(reading, arguments);
        match gate.verdict(&observed) {
            Verdict::Unlisted => {}
            Verdict::Refused(error) => {
                gate.refused(&observed, &caller, &error);
                return Err(explain(&error));
            }
            // A later reading may still be refused.
            Verdict::Listed(listed) => found = found.or(Some(listed)),
        }
    }
    match found {
        None => Ok(Answer::Neutral),
        Some(listed) => gate
            .guard(listed, &caller)
            .map(|pinned| Answer::Guarded(note(&pinned)))
            .map_err(|error| explain(&error)),
    }
}

fn after<G: Gate>(call: &ToolUse, outcome: Outcome, gate: &G) -> Result<(), String> {
    let nothing = Value::Null;
    let arguments = call.arguments.as_ref().unwrap_or(&nothing);
    let caller = caller(call);
    for reading in listed(call, gate) {
        gate.outcome(&observed(reading, arguments), &caller, outcome)
            .map_err(|error| explain(&error))?;
    }
    Ok(())
}

fn listed<'a, G: Gate>(call: &'a ToolUse, gate: &G) -> Vec<&'a Reading> {
    call.readings
        .iter()
        .filter(|reading| gate.may_be_listed(reading.server.as_deref(), &reading.tool))
        .collect()
}

fn observed<'a>(reading: &'a Reading, arguments: &'a Value) -> ObservedCall<'a> {
    ObservedCall {
        server: reading.server.as_deref(),
        tool: &reading.tool,
        arguments,
    }
}

fn caller(call: &ToolUse) -> Caller {
    Caller {
        agent: one_line(&call.agent).chars().take(MAX_AGENT).collect(),
        change: change_id(call.session.as_deref()),
        correlation: call.correlation.clone(),
    }
}

/// One per session, short. From a session's UUID the last group is taken, by which the session can be found again.
fn change_id(session: Option<&str>) -> String {
    let Some(session) = session else {
        return format!("ses-{}", tail(Uuid::new_v4()));
    };
    match Uuid::parse_str(session) {
        Ok(uuid) => format!("ses-{}", tail(uuid)),
        Err(_) => {
            let digest = Sha256::digest(session);
            let hex = text::hex(digest.get(..6).unwrap_or_default());
            format!("ses-{hex}")
        }
    }
}

fn tail(uuid: Uuid) -> String {
    uuid.simple().to_string().chars().skip(20).collect()
}

/// What happened, what was already done, what to do next: for the agent that is denied.
fn explain(error: &Error) -> String {
    let mut said = vec![sentences(&error.message)];
    if !error.candidates.is_empty() {
        said.push(text::sentence(&format!(
            "Candidates: {}",
            error.candidates.join(", ")
        )));
    }
    for done in &error.done {
        said.push(text::sentence(&format!(
            "Done before: {}",
            rewind_mcp::text::done(done)
        )));
    }
    if !error.next.is_empty() {
        said.push(format!("Next: {}", sentences(&error.next)));
    }
    said.join(" ")
}

fn note(pinned: &Pinned) -> String {
    let mut text = "zerto-rewind pinned a checkpoint before this call.".to_owned();
    for receipt in &pinned.receipts {
        let pins: Vec<String> = receipt
            .pins
            .iter()
            .map(|pin| format!("checkpoint {} of VPG {}", pin.checkpoint, pin.vpg))
            .collect();
        text = format!(
            "{text} VM {}: {}; tag `{}`.",
            receipt.vm,
            pins.join(", "),
            receipt.tag
        );
    }
    for warning in &pinned.warnings {
        text = format!("{text} Warning: {}", sentences(warning));
    }
    one_line(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_short_change_id() {
        let uuid = "0194c6a2-7b1e-7000-8000-0123456789ab";
        assert_eq!(change_id(Some(uuid)), "ses-0123456789ab");
        let other = change_id(Some("session one"));
        assert_eq!(other, change_id(Some("session one")));
        assert_ne!(other, change_id(Some("session two")));
        assert_eq!(other.len(), "ses-0123456789ab".len());
        assert_ne!(change_id(None), change_id(None));
    }
}
