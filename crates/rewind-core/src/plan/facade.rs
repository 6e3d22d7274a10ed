//! Plans as the MCP server and the CLI use them.
use super::{Decision, How, KnownPlan, PLAN_LIFE, Plan, Verdict, known::foreign};
use crate::{
    Call, Error, RecoverRequest, Recovery, Rewind,
    approver::Approver,
    recovery,
    state::{Asked, Asker, Decided, PlanForm, Refusal},
    text,
};
use std::time::Duration;

/// Two sessions of one client are told apart where what is agreed to holds for one of them.
fn asked_by(plan: Plan, call: &Call) -> Plan {
    let client = text::remembered(&call.caller);
    let of_session = plan.is_preview() && call.seat == call.session_change_id;
    let asked_by = match of_session {
        true => {
            let client = client.as_deref().unwrap_or("an unnamed client");
            Some(format!("{client}, session {}", call.session_change_id))
        }
        false => client,
    };
    Plan { asked_by, ..plan }
}

/// An agreement to a look holds for who asked for it, so what somebody else asks for is not the same.
fn substance(plan: &Plan, call: &Call) -> Result<String, Error> {
    let substance = plan.substance()?;
    Ok(match plan.is_preview() {
        true => format!("{substance} {}", call.seat),
        false => substance,
    })
}

const BY_MAX_LEN: usize = 100;

impl Rewind {
    /// Says what a human would agree to, and writes it down as a plan. Where patterns have to be looked for, that is a preview
    /// first, unless somebody has agreed to one, or none is asked for: then the checkpoint is mounted, and unmounted.
    ///
    /// # Errors
    /// Those of [`find`](Self::find); `checkpoint_gone`, `checkpoint_ambiguous`, `destination_exists`, `destination_unusable`,
    /// `invalid_argument`; for patterns, those of [`recover`](Self::recover) as well.
    pub async fn plan_recovery(
        &self,
        request: &RecoverRequest,
        call: &Call,
    ) -> Result<KnownPlan, Error> {
        let plan = self.make(request, call, None).await?;
        self.written(asked_by(plan, call), call).await
    }

    /// As [`plan_recovery`](Self::plan_recovery), of what a preview was to look for. That somebody has agreed to it suffices, whoever
    /// asked for it: it is looked for just that.
    ///
    /// # Errors
    /// As [`plan_recovery`](Self::plan_recovery).
    pub async fn plan_found(&self, preview: &KnownPlan, call: &Call) -> Result<KnownPlan, Error> {
        let plan = &preview.plan;
        let plan = self.make(&plan.asked, call, Some(&plan.id)).await?;
        self.written(asked_by(plan, call), call).await
    }

    /// As [`plan_recovery`](Self::plan_recovery); but where the same is waiting for a decision, or was approved and not carried out
    /// yet, that plan. A human who decides elsewhere is not asked twice because an agent asks twice.
    ///
    /// # Errors
    /// As [`plan_recovery`](Self::plan_recovery).
    pub async fn plan_recovery_once(
        &self,
        request: &RecoverRequest,
        call: &Call,
    ) -> Result<KnownPlan, Error> {
        let plan = self.make(request, call, None).await?;
        self.written_once(plan, call).await
    }

    /// The plan, or one of the same substance that waits for a decision or to be carried out.
    pub(crate) async fn written_once(&self, plan: Plan, call: &Call) -> Result<KnownPlan, Error> {
        let plan = asked_by(plan, call);
        let (zvm, substance, now) = (
            plan.zvm.clone(),
            substance(&plan, call)?,
            self.core.state.now(),
        );
        let alike = self
            .core
            .with_state(move |state| {
                // One that is about to expire would leave no time to decide.
                state.plan_alike(&zvm, &substance, now, now + PLAN_LIFE / 2)
            })
            .await?;
        match alike {
            Some(row) => match self.judged(vec![KnownPlan::read(row, now)?]).await?.pop() {
                Some(known) if !known.outdated => Ok(known),
                _ => self.written(plan, call).await,
            },
            None => self.written(plan, call).await,
        }
    }

    async fn make(
        &self,
        request: &RecoverRequest,
        call: &Call,
        agreed: Option<&str>,
    ) -> Result<Plan, Error> {
        let made = Box::pin(recovery::make(&self.core, request, call, agreed));
        let made = recovery::clean_up_beside(&self.core, made).await;
        if let Err(error) = &made {
            self.core.recovery_refused(&request.vm, call, error).await;
        }
        made
    }

    /// Remembers that something was asked for by a plan's id and refused. [`recover`](Self::recover) does so itself.
    pub async fn plan_refused(&self, id: &str, call: &Call, error: &Error) {
        if let Ok(known) = self.named(id).await {
            return self.core.plan_refused(&known.plan, call, error).await;
        }
        let refusal = Refusal {
            plan: text::remembered(id),
            ..self.core.refusal(Asked::Recovery, call, error)
        };
        self.core.refused(refusal).await;
    }

    async fn written(&self, plan: Plan, call: &Call) -> Result<KnownPlan, Error> {
        let client = text::remembered(&call.caller);
        let known = KnownPlan::new(plan, client.clone())?;
        let plan = known.plan.clone();
        let form = PlanForm {
            body: plan.body()?,
            digest: known.digest.clone(),
            substance: substance(&plan, call)?,
        };
        let asker = Asker {
            client,
            change: call.session_change_id.clone(),
            seat: call.seat.clone(),
        };
        self.core
            .with_state(move |state| state.plan_made(&plan, &form, &asker))
            .await?;
        Ok(known)
    }

    /// A plan of this user on this ZVM.
    ///
    /// # Errors
    /// `plan_foreign`; `state`, also where it is not as it was written down.
    pub async fn plan(&self, id: &str) -> Result<KnownPlan, Error> {
        let known = self.named(id).await?;
        if !known.is_open() {
            return Ok(known);
        }
        // Whoever has begun it may have died.
        recovery::close_interrupted(&self.core).await?;
        self.named(id).await
    }

    async fn named(&self, id: &str) -> Result<KnownPlan, Error> {
        let (zvm, name) = (self.core.config.zvm(), id.trim().to_ascii_lowercase());
        let row = self
            .core
            .with_state(move |state| state.plan_named(&zvm, &name))
            .await?;
        let row = row.ok_or_else(|| foreign(id))?;
        let known = KnownPlan::read(row, self.core.state.now())?;
        let judged = self.judged(vec![known]).await?.pop();
        judged.ok_or_else(|| foreign(id))
    }

    async fn judged(&self, plans: Vec<KnownPlan>) -> Result<Vec<KnownPlan>, Error> {
        let approver = Approver::of(&self.core.config.state_dir);
        let changed = self.core.with_state(move |_| approver.changed()).await?;
        let judged = plans.into_iter().map(|known| known.judged(changed));
        Ok(judged.collect())
    }

    /// How long a plan can still be decided on.
    #[must_use]
    pub fn time_left(&self, known: &KnownPlan) -> Duration {
        let left = known.plan.expires_at.duration_since(self.core.state.now());
        Duration::try_from(left).unwrap_or_default()
    }

    /// The plans that have not expired, newest first.
    ///
    /// # Errors
    /// `state`.
    pub async fn plans(&self) -> Result<Vec<KnownPlan>, Error> {
        let plans = self.listed().await?;
        if !plans.iter().any(KnownPlan::is_open) {
            return Ok(plans);
        }
        recovery::close_interrupted(&self.core).await?;
        self.listed().await
    }

    async fn listed(&self) -> Result<Vec<KnownPlan>, Error> {
        let (zvm, now) = (self.core.config.zvm(), self.core.state.now());
        let rows = self
            .core
            .with_state(move |state| state.plans_after(&zvm, now))
            .await?;
        let plans = rows.into_iter().map(|row| KnownPlan::read(row, now));
        self.judged(plans.collect::<Result<_, _>>()?).await
    }

    /// Writes down what a human has decided about exactly this plan. It is final.
    ///
    /// # Errors
    /// `plan_decided`, `plan_used`, `plan_expired`, `state`.
    pub async fn decide(
        &self,
        known: &KnownPlan,
        verdict: Verdict,
        how: How,
        by: &str,
    ) -> Result<Decision, Error> {
        let now = self.core.state.now();
        if known.begun {
            known.approved()?;
        }
        known.still_counts()?;
        if let Some(decision) = &known.decision {
            return Err(known.decided_already(decision));
        }
        if known.expired || now >= known.plan.expires_at {
            return Err(known.expired_error());
        }
        let decision = Decision {
            verdict,
            how,
            by: text::display(by, BY_MAX_LEN),
            at: now,
        };
        let (plan, digest, said) = (known.plan.clone(), known.digest.clone(), decision.clone());
        let decided = self
            .core
            .with_state(move |state| state.plan_decided(&plan, &digest, &said))
            .await?;
        match decided {
            Decided::Now => Ok(decision),
            Decided::Before(before) => Err(known.decided_already(&before)),
            Decided::NoSuchPlan => Err(foreign(&known.plan.id)),
        }
    }

    /// Carries out a plan that was approved, once, if everything is as it was. Nothing is mounted before that is certain, and until
    /// then the plan is not used up.
    ///
    /// # Errors
    /// `confirmation_required`, `declined`, `plan_used`, `plan_expired`, `plan_changed`, `checkpoint_gone`, `destination_exists`,
    /// `flr_busy`, `flr_failed`, `path_not_found`, `path_ambiguous`, `not_downloadable`, `download_incomplete`,
    /// `destination_unusable`, `cancelled`, with the session that was opened and whether it is closed. Where several paths were
    /// asked for, what happened to each is in the result, and its `error` says whether something is missing.
    pub async fn recover(&self, id: &str, call: &Call) -> Result<Recovery, Error> {
        let known = self.plan(id).await?;
        recovery::recover(&self.core, &known, call).await
    }

    /// What is sent through a client and comes back is sealed with this key of the user's.
    ///
    /// # Errors
    /// `state`.
    pub async fn seal_key(&self) -> Result<Vec<u8>, Error> {
        self.core.with_state(|state| state.seal_key()).await
    }
}
