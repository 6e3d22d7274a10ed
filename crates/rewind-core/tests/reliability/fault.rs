//! What befalls single requests, and who does it: the proxy breaks connections, the simulator gives other answers.
use crate::{proxy::Harm, step::Step, world::World};
use zvm_sim::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Network(Harm),
    /// Another answer, and nothing is carried out.
    Answers(u16),
    /// 429 with a `Retry-After` of two seconds.
    Busy,
    /// All tokens and login sessions are revoked.
    Revoked,
    /// Tasks, FLR sessions and tokens are forgotten.
    Restarted,
}

impl Fault {
    pub fn name(self) -> String {
        match self {
            Self::Network(Harm::Refuse) => "connection refused".to_owned(),
            Self::Network(Harm::Reset) => "connection reset".to_owned(),
            Self::Network(Harm::Swallow) => "black hole".to_owned(),
            Self::Network(Harm::Drip) => "slow drip".to_owned(),
            Self::Network(Harm::CutBody) => "cut in the body".to_owned(),
            Self::Answers(status) => status.to_string(),
            Self::Busy => "429, `Retry-After: 2`".to_owned(),
            Self::Revoked => "token revoked".to_owned(),
            Self::Restarted => "ZVM restarted".to_owned(),
        }
    }

    pub fn needs_proxy(self) -> bool {
        matches!(self, Self::Network(_))
    }

    /// Sets it up at a step. True: it happens by itself; else it is to be done right before the step, with [`Fault::happen`].
    pub async fn prepare(self, world: &World, step: Step, lasting: bool) -> bool {
        match self {
            Self::Network(harm) => {
                world.proxy().harm(harm, step, lasting).await;
                true
            }
            Self::Answers(status) => {
                world.sim.add_fault(answers(step, lasting, status, None));
                true
            }
            Self::Busy => {
                world.sim.add_fault(answers(step, lasting, 429, Some(2)));
                true
            }
            Self::Revoked | Self::Restarted => false,
        }
    }

    pub fn happen(self, world: &World) {
        match self {
            Self::Revoked => world.sim.revoke_tokens(),
            Self::Restarted => world.sim.restart(),
            _ => {}
        }
    }

    /// Whether the operation met it.
    pub fn met(self, world: &World) -> bool {
        let status = match self {
            Self::Network(_) => return world.proxy().met() > 0,
            Self::Answers(status) => status,
            Self::Busy => 429,
            Self::Revoked | Self::Restarted => return true,
        };
        let mut requests = world.sim.requests().into_iter();
        requests.any(|request| request.status == Some(status))
    }
}

fn answers(step: Step, lasting: bool, status: u16, retry_after: Option<u32>) -> zvm_sim::Fault {
    let of_the_realm = step.request.path.starts_with("/auth/");
    let (outcome, text) = match status {
        401 if of_the_realm => (
            Outcome::Text,
            r#"{"error":"invalid_grant","error_description":"Invalid user credentials"}"#,
        ),
        401 => (Outcome::Empty, ""),
        502 => (Outcome::Html, ""),
        _ => (Outcome::Message, "As the test has it."),
    };
    zvm_sim::Fault {
        skip: step.skip,
        times: u32::from(!lasting),
        retry_after,
        text: text.to_owned(),
        ..zvm_sim::Fault::answer(step.request.method, step.request.path, status, outcome)
    }
}
