//! The person behind an MCP client, who is asked by a form where the client can show one.
//!
//! Older revisions have a request of the server's for that. In the current one the call is answered with what is to be asked, and
//! comes again with the answer and with a state that we have sealed: it names the plan and its digest, and says nothing that could not
//! be checked against the plan itself.
use std::time::Duration;

use rewind_core::{Call, Error, ErrorCode, KnownPlan, Rewind, Verdict, text};
use rmcp::{
    Peer, RoleServer,
    model::{
        CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
        RequestStateCodec, SealOptions,
    },
    service::{RequestContext, ServiceError},
};
use serde::{Deserialize, Serialize};

/// The field in which the VM's name is typed.
pub const FIELD: &str = "vm_name";
/// What the answer to the form is filed under.
const ANSWER: &str = "decision";
/// What a sealed state is for.
const SEALED_FOR: &[u8] = b"zerto_recover_file/decision";
const TYPED_MAX_LEN: usize = 1_000;

/// How a form is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Asked for while the call runs.
    Requested,
    /// As the answer to the call, which then comes again.
    Returned,
}

/// Whom a call comes from.
pub struct Person {
    peer: Peer<RoleServer>,
    client: String,
    form: Option<Form>,
    answers: Option<InputResponses>,
    state: Option<String>,
}

/// What came back with a call that was asked about.
pub struct Returned {
    /// The plan that was asked about.
    pub known: KnownPlan,
    /// What the person said; None where nothing came back.
    pub verdict: Option<Verdict>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    plan: String,
    digest: String,
}

impl Person {
    /// The one who is behind this call.
    pub fn behind(
        context: &RequestContext<RoleServer>,
        request: &mut CallToolRequestParams,
    ) -> Self {
        let elicitation = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation);
        // A capability without a mode is one of a time when there were only forms.
        let shows_forms =
            elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        let current = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let form = if current {
            Form::Returned
        } else {
            Form::Requested
        };
        Self {
            peer: context.peer.clone(),
            client: context
                .client_info()
                .map(|client| client.name)
                .unwrap_or_default(),
            form: shows_forms.then_some(form),
            answers: request.input_responses.take(),
            state: request.request_state.take(),
        }
    }

    /// Whether a form can be shown to them.
    pub fn sees_forms(&self) -> bool {
        self.form.is_some()
    }

    /// Who decided, as far as it is known.
    pub fn by(&self) -> String {
        format!("whoever is at {}", text::display(&self.client, 60))
    }

    /// What was asked before this call, if it comes again.
    ///
    /// # Errors
    /// `plan_altered`: the state is none of ours, or not for this plan; those of the plan.
    pub async fn returned(&self, rewind: &Rewind) -> Result<Option<Returned>, Error> {
        let Some(state) = &self.state else {
            return Ok(None);
        };
        // Why it can't be opened is nobody's business.
        let altered = || {
            Error::new(
                ErrorCode::PlanAltered,
                "the `requestState` that came back is not one that was given for a plan of this user",
            )
        };
        let sealed: Sealed = codec(rewind)
            .await?
            .open_json_with(state, SEALED_FOR)
            .map_err(|_| altered())?;
        let known = rewind.plan(&sealed.plan).await?;
        if known.digest != sealed.digest {
            return Err(altered());
        }
        let answer = self
            .answers
            .as_ref()
            .and_then(|answers| answers.get(ANSWER));
        // An answer that can't be read is one that agrees to nothing.
        let verdict = answer.map(|answer| {
            serde_json::from_value::<ElicitResult>(answer.clone())
                .map_or(Verdict::Mistyped, |said| verdict(&said, &known))
        });
        Ok(Some(Returned { known, verdict }))
    }

    /// Shows them the plan. Either what they said, or the answer to the call that asks them.
    ///
    /// # Errors
    /// `cancelled`, `plan_expired`, `state`.
    pub async fn ask(
        &self,
        rewind: &Rewind,
        known: &KnownPlan,
        call: &Call,
    ) -> Result<Asked, Error> {
        match self.form {
            None => Ok(Asked::NotShown),
            Some(Form::Returned) => {
                let sealed = Sealed {
                    plan: known.plan.id.clone(),
                    digest: known.digest.clone(),
                };
                let options = SealOptions::new().associated_data(SEALED_FOR);
                let state = codec(rewind)
                    .await?
                    .seal_json_with(&sealed, &options)
                    .map_err(|error| Error::new(ErrorCode::State, error.to_string()))?;
                let question = InputRequest::Elicitation(ElicitRequest::new(form(known)?));
                let questions = [(ANSWER.to_owned(), question)].into_iter().collect();
                let result = InputRequiredResult::new(Some(questions), Some(state));
                Ok(Asked::Later(Box::new(result)))
            }
            Some(Form::Requested) => {
                let waiting = self.request(known, rewind.time_left(known));
                call.waiting("waiting for a person to decide", waiting)
                    .await
            }
        }
    }

    async fn request(&self, known: &KnownPlan, left: Duration) -> Result<Asked, Error> {
        let asking = self
            .peer
            .create_elicitation_with_timeout(form(known)?, Some(left));
        match asking.await {
            Ok(said) => Ok(Asked::Said(verdict(&said, known))),
            // It was shown, or might have been: whoever agrees does so by a new plan.
            Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => {
                Ok(Asked::Said(Verdict::Unanswered))
            }
            Err(ServiceError::Timeout { .. }) => Err(Error::new(
                ErrorCode::PlanExpired,
                format!(
                    "nobody has answered the form of plan {} in time",
                    known.plan.id
                ),
            )),
            Err(error) => Err(Error::new(
                ErrorCode::Cancelled,
                format!(
                    "the form of plan {} did not come back: {}",
                    known.plan.id,
                    text::display(&error.to_string(), 200)
                ),
            )),
        }
    }
}

/// What came of asking.
pub enum Asked {
    /// What they said.
    Said(Verdict),
    /// They are being asked, and the call will come again.
    Later(Box<InputRequiredResult>),
    /// The client shows no forms.
    NotShown,
}

async fn codec(rewind: &Rewind) -> Result<RequestStateCodec, Error> {
    let key = rewind.seal_key().await?;
    RequestStateCodec::try_new(key).map_err(|error| Error::new(ErrorCode::State, error.to_string()))
}

/// The plan, and one field that a client which answers by itself does not fill in.
fn form(known: &KnownPlan) -> Result<ElicitRequestParams, Error> {
    let schema = ElicitationSchema::builder()
        .required_string_property(FIELD, |field| {
            field
                .title("Name of the VM")
                .description("To agree, type the name of the VM as it stands above.")
                .min_length(1)
        })
        .build()
        .map_err(|problem| Error::new(ErrorCode::State, problem))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: known.plan.summary(&known.digest),
        requested_schema: schema,
    })
}

fn verdict(said: &ElicitResult, known: &KnownPlan) -> Verdict {
    match said.action {
        ElicitationAction::Decline => Verdict::Declined,
        ElicitationAction::Cancel => Verdict::Cancelled,
        ElicitationAction::Accept => {
            let typed = said.content.as_ref().and_then(|content| content.get(FIELD));
            let typed = typed.and_then(|typed| typed.as_str()).unwrap_or_default();
            match is_name(typed, &known.plan.vm) {
                true => Verdict::Approved,
                false => Verdict::Mistyped,
            }
        }
        // Whatever it may be, it agrees to nothing.
        _ => Verdict::Cancelled,
    }
}

/// Case is forgiven: who does not know the name does not know it in lower case either. So are the quotation marks in which some are shown.
fn is_name(typed: &str, vm: &str) -> bool {
    let plain = |name: &str| text::display(name, TYPED_MAX_LEN).to_lowercase();
    let (typed, vm) = (plain(typed), plain(vm));
    !vm.is_empty() && (typed == vm || typed == text::quoted(&vm, TYPED_MAX_LEN))
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn only_the_name_agrees() {
        for typed in ["jp-ubuntu", " JP-Ubuntu\n"] {
            assert!(is_name(typed, "jp-ubuntu"), "{typed:?}");
        }
        for typed in ["", " ", "yes", "jp-ubunt", "jp-ubuntu2", "jp ubuntu", "*"] {
            assert!(!is_name(typed, "jp-ubuntu"), "{typed:?}");
        }
        for typed in ["Payroll DR", "\"payroll dr\""] {
            assert!(is_name(typed, "Payroll DR"), "{typed:?}");
        }
        for typed in ["", "\"\""] {
            assert!(!is_name(typed, "\u{200b}"), "{typed:?}");
        }
    }
}
