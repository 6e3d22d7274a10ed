//! What the ZVM itself answers. Only GETs, after one login.
use super::{Check, REMOTE, Report, VpgState, check::Step, id, rights, sessions};
use crate::{
    Call, Error, ErrorCode,
    config::Config,
    protection::FoundVpg,
    state::State,
    text::{self, counted},
};
use futures::future::{FutureExt as _, try_join_all};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use tokio::time::Instant;
use zvm_client::{Site, VmFilter, Zvm};

const SHOWN_MAX_LEN: usize = 100;
/// Clocks that differ by more are worth a word.
const SKEW: SignedDuration = SignedDuration::from_secs(60);
/// The first appliance with this API.
const FIRST: (u64, u64) = (9, 5);
const ONCE_MORE: &str = "After three refusals the same ones are not tried again, as the account would be locked; at a terminal, any command \
    that asks the ZVM, such as `zerto-rewind find VM`, then asks whether to log in once more.";
/// No VM has this name: the answer is short where the ZVM heeds filters.
const NO_VM: &str = "zerto-rewind doctor";

/// Logs in once and asks. `zvm` can't be made where something stands in the way. Returns it where it still answers.
pub(super) async fn run(
    config: &Config,
    zvm: Step<Result<Zvm, Error>>,
    state: Step<State>,
    report: &mut Report,
    call: &Call,
) -> Result<Option<Zvm>, Error> {
    let watch = call.watch();
    let mut zvm = match zvm {
        Ok(Ok(zvm)) => Ok(zvm),
        Ok(Err(error)) => {
            report.add(Check::of_error(id::LOGIN, error));
            Err(id::LOGIN)
        }
        Err(cause) => report.skip(id::LOGIN, cause),
    };
    let mut roles = None;
    if let Ok(client) = &zvm {
        let login = soon(client);
        let asked = async { Ok(login.log_in().await) };
        match watch.during(|| "logging in".to_owned(), asked).await? {
            Ok(login) => {
                let account = text::display(config.credentials.account(), SHOWN_MAX_LEN);
                report.add(Check::ok(id::LOGIN, format!("the ZVM accepts {account}")));
                roles = login.roles;
            }
            Err(error) => {
                report.add(not_logged_in(config, error));
                zvm = Err(id::LOGIN);
            }
        }
    }
    let mut asks = Asks { zvm, report, call };
    asks.tell(id::SITE, "the site", async |zvm| {
        Ok(site(&zvm.local_site().await?))
    })
    .await?;
    asks.tell(id::CLOCK, "the clock", async |zvm| clock(&zvm).await)
        .await?;
    let vpgs = asks
        .ask(id::VPGS, "the VPGs", async |zvm| {
            let vpgs = vpgs(&zvm).await?;
            Ok((taggable(&vpgs), vpgs))
        })
        .await?;
    match &vpgs {
        Ok(vpgs) => asks.report.add(protected_site(vpgs)),
        Err(cause) => asks
            .report
            .add(Check::skipped_after(id::PROTECTED_SITE, cause)),
    }
    let listing = asks
        .ask(id::RIGHT_TO_LIST, "the VMs", async |zvm| {
            let filter = VmFilter {
                name: Some(NO_VM.to_owned()),
                ..VmFilter::default()
            };
            zvm.vms(&filter).await?;
            Ok((
                Check::ok(id::RIGHT_TO_LIST, "the ZVM lists VMs and VPGs"),
                (),
            ))
        })
        .await?;
    match listing {
        Ok(()) => asks.report.add(rights::to_tag(roles.as_deref())),
        Err(cause) => asks
            .report
            .add(Check::skipped_after(id::RIGHT_TO_TAG, cause)),
    }
    let open = asks
        .ask(id::RIGHT_TO_MOUNT, "the FLR sessions", async |zvm| {
            let open = zvm.all_flr_sessions().await?;
            Ok((rights::to_mount(roles.as_deref()), open))
        })
        .await?;
    asks.report.vpgs = vpgs.unwrap_or_default();
    let (left, interrupted) = match state {
        Ok(state) => (
            sessions::check(config.zvm(), state.clone(), open.as_deref().ok()).await,
            sessions::interrupted(state).await,
        ),
        Err(cause) => (
            Check::skipped_after(id::SESSIONS, cause),
            Check::skipped_after(id::INTERRUPTED, cause),
        ),
    };
    asks.report.add(left);
    asks.report.add(interrupted);
    Ok(asks.zvm.ok())
}

/// With where the account and its secret come from: there they are corrected.
fn not_logged_in(config: &Config, error: zvm_client::Error) -> Check {
    let in_a_moment =
        matches!(&error, zvm_client::Error::LoginBlocked(blocked) if blocked.retry_after.is_some());
    let error = Error::from(error);
    if error.code != ErrorCode::LoginRefused || in_a_moment {
        return Check::of_error(id::LOGIN, in_time(error, "a login"));
    }
    let file = crate::config::word(&config.file);
    let origin = config.secret_origin();
    let next = format!(
        "Check the account in {file} and its secret, which comes from {origin}. {ONCE_MORE}"
    );
    Check::of_error(id::LOGIN, error.with_next(next))
}

/// Asks one thing after another, until the ZVM is gone.
struct Asks<'a> {
    zvm: Step<Zvm>,
    report: &'a mut Report,
    call: &'a Call,
}

impl Asks<'_> {
    /// Asks something that nothing else needs.
    async fn tell(
        &mut self,
        id: &'static str,
        what: &str,
        ask: impl AsyncFnOnce(Zvm) -> Result<Check, Error>,
    ) -> Result<(), Error> {
        let ask = async |zvm| Ok((ask(zvm).await?, ()));
        self.ask(id, what, ask).await.map(|_| ())
    }

    /// What it brought, else what stands in the way.
    async fn ask<T>(
        &mut self,
        id: &'static str,
        what: &str,
        ask: impl AsyncFnOnce(Zvm) -> Result<(Check, T), Error>,
    ) -> Result<Step<T>, Error> {
        let zvm = match &self.zvm {
            Ok(zvm) => soon(zvm),
            Err(cause) => return Ok(self.report.skip(id, cause)),
        };
        let watch = self.call.watch();
        let asked = ask(zvm).map(Ok);
        let answer = watch
            .during(|| format!("asking the ZVM for {what}"), asked)
            .await?;
        let found = match answer {
            Ok((check, brought)) => (check, Some(brought)),
            Err(error) => {
                // What does not answer any more is not asked again.
                if matches!(
                    error.code,
                    ErrorCode::ZvmUnreachable | ErrorCode::DeadlinePassed
                ) {
                    self.zvm = Err(id);
                }
                (Check::of_error(id, in_time(error, what)), None)
            }
        };
        Ok(self.report.step(found))
    }
}

/// The time limit is this look's own: nothing was under way that it cut off, and no setting raises it.
fn in_time(error: Error, what: &str) -> Error {
    if error.code != ErrorCode::DeadlinePassed {
        return error;
    }
    let limit = REMOTE.as_secs();
    Error::new(
        ErrorCode::DeadlinePassed,
        format!("the ZVM did not answer within {limit} s when it was asked for {what}"),
    )
    .with_next("See whether the ZVM is healthy and the network to it works, and look again. Guards need this answer, too.")
}

pub(super) fn soon(zvm: &Zvm) -> Zvm {
    zvm.by(Instant::now() + REMOTE)
}

fn shown(text: &str) -> String {
    text::display(text, SHOWN_MAX_LEN)
}

fn site(site: &Site) -> Check {
    let name = shown(&site.name);
    let Some(version) = &site.version else {
        return Check::ok(
            id::SITE,
            format!("{name}; it does not say which version it is"),
        );
    };
    let message = format!("{name}, ZVM {}", shown(version));
    match numbers(version) {
        Some(found) if found < FIRST => Check::warning(
            id::SITE,
            format!("{message}: this program is made for appliances of 9.5 and later"),
            "Update the ZVM, or name an appliance in `zerto_url`.",
        ),
        _ => Check::ok(id::SITE, message),
    }
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim().split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

async fn clock(zvm: &Zvm) -> Result<Check, Error> {
    let (asked, began) = (Timestamp::now(), Instant::now());
    let there = zvm.server_time().await?;
    let way = SignedDuration::try_from(began.elapsed() / 2).unwrap_or_default();
    let here = asked.saturating_add(way).unwrap_or(asked);
    let ahead = there.duration_since(here);
    let by = readable(ahead);
    let message = match ahead.as_secs() {
        -1..=1 => "the ZVM and this host agree".to_owned(),
        2.. => format!("the ZVM is {by} ahead of this host"),
        _ => format!("the ZVM is {by} behind this host"),
    };
    Ok(match ahead.abs() > SKEW {
        false => Check::ok(id::CLOCK, message),
        true => Check::warning(
            id::CLOCK,
            format!("{message}. Guards go by the ZVM's clock and stay right"),
            "Set the one that is wrong, or both, by NTP: certificates and logs go by these clocks, too.",
        ),
    })
}

/// To the second.
fn readable(duration: SignedDuration) -> String {
    let seconds = duration.abs().as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}

/// Every VPG that the ZVM lists, by name.
async fn vpgs(zvm: &Zvm) -> Result<Vec<VpgState>, Error> {
    let listed = zvm.vpgs().await?;
    let judged = listed.into_iter().map(|vpg| FoundVpg::of(zvm, vpg, None));
    let mut vpgs: Vec<_> = try_join_all(judged).await?.iter().map(state).collect();
    vpgs.sort_by(|a, b| (&a.vpg, &a.vpg_identifier).cmp(&(&b.vpg, &b.vpg_identifier)));
    Ok(vpgs)
}

fn state(found: &FoundVpg) -> VpgState {
    let of = |text: &Option<String>| text.as_deref().map(shown);
    VpgState {
        vpg: found.name(),
        vpg_identifier: shown(found.id()),
        status: shown(&found.status),
        sub_status: shown(&found.sub_status),
        can_be_tagged: found.refused.is_none(),
        why_not: found.refused.as_ref().map(|(_, why)| why.clone()),
        protected_here: found.vpg.protected_here,
        protected_site: of(&found.vpg.protected_site),
        recovery_site: of(&found.vpg.recovery_site),
    }
}

fn taggable(vpgs: &[VpgState]) -> Check {
    let all = vpgs.len();
    if all == 0 {
        return Check::warning(
            id::VPGS,
            "the ZVM lists no VPG, so no VM can be guarded",
            "Put the VMs into VPGs; or give the account the right to see them.",
        );
    }
    let mut states = BTreeMap::new();
    for vpg in vpgs {
        *states.entry(vpg.status.as_str()).or_insert(0_usize) += 1;
    }
    let states: Vec<_> = states
        .into_iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let states = states.join(", ");
    let refused: Vec<_> = vpgs
        .iter()
        .filter_map(|vpg| Some(format!("{}: {}", vpg.vpg, vpg.why_not.as_ref()?)))
        .collect();
    const FIX: &str = "Resume it, wait for its sync, or see what it needs in the ZVM's interface. VMs that are protected in a cloud \
        can't be guarded. Until then guards of its VMs are refused.";
    let count = counted(all, "VPG", "VPGs");
    match refused.len() {
        0 => Check::ok(id::VPGS, format!("{count} can be tagged ({states})")),
        none if none == all => {
            let message = format!("no VPG can be tagged now ({states})");
            let error = Error::new(ErrorCode::VpgNotReady, message).with_next(FIX);
            Check::of_error(id::VPGS, error).with_details(refused)
        }
        some => Check::warning(
            id::VPGS,
            format!("{some} of {count} can't be tagged now ({states})"),
            FIX,
        )
        .with_details(refused),
    }
}

fn protected_site(vpgs: &[VpgState]) -> Check {
    let elsewhere: Vec<_> = vpgs
        .iter()
        .filter(|vpg| vpg.protected_here == Some(false))
        .collect();
    let unknown = vpgs
        .iter()
        .filter(|vpg| vpg.protected_here.is_none())
        .count();
    let all = vpgs.len();
    match (all, elsewhere.len(), unknown) {
        (0, ..) => Check::skipped(id::PROTECTED_SITE, "not known, as there is no VPG"),
        (_, 0, 0) => Check::ok(
            id::PROTECTED_SITE,
            format!("this ZVM protects {}", counted(all, "VPG", "VPGs")),
        ),
        (_, 0, _) => Check::skipped(
            id::PROTECTED_SITE,
            format!(
                "not known: the ZVM does not say it of {unknown} of {}",
                counted(all, "VPG", "VPGs")
            ),
        ),
        (_, some, _) => {
            let details = elsewhere.iter().map(|vpg| {
                let site = vpg.protected_site.as_deref().unwrap_or("another site");
                format!("{}: protected at {site}", vpg.vpg)
            });
            Check::warning(
                id::PROTECTED_SITE,
                format!(
                    "this ZVM is the recovery site of {some} of {}; whether it passes tagged checkpoints on is not known",
                    counted(all, "VPG", "VPGs")
                ),
                "Guard their VMs through the ZVM of the protected site, with a configuration of its own.",
            )
            .with_details(details)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let found = |version: Option<&str>| {
            site(&Site {
                identifier: "s".into(),
                name: "Production".into(),
                site_type: None,
                version: version.map(str::to_owned),
            })
        };
        for (version, old) in [
            (Some("10.0.40"), false),
            (Some("9.5.0"), false),
            (Some("9.0.11"), true),
            (Some("8.5"), true),
            (Some("ten"), false),
            (Some(""), false),
            (None, false),
        ] {
            let warned = found(version).status == super::super::Status::Warning;
            assert_eq!(warned, old, "{version:?}");
        }
    }

    #[test]
    fn lengths_are_readable() {
        for (seconds, shown) in [
            (7, "7 s"),
            (-61, "1 min 1 s"),
            (3600 * 25 + 59, "25 h 0 min"),
        ] {
            assert_eq!(readable(SignedDuration::from_secs(seconds)), shown);
        }
    }
}
