//! Which checkpoint is meant by an id or a tag, and in which VPG.
use super::{
    bisect::{Search, Step},
    list::{DAY, OFF, TAG_SHOWN_MAX, earliest, shown_tag, tag_of},
    window::{Backwards, around, as_shown, later},
};
use crate::{
    Error, ErrorCode,
    protection::{Found, FoundVpg},
    rewind::Core,
    tag, text,
};
use futures::future::try_join_all;
use std::{cmp::Reverse, time::Duration};
use zvm_client::{Checkpoint, CheckpointId, Window, Zvm};

/// Longer than any tag that a ZVM is known to take.
const WANTED_MAX_LEN: usize = 1_000;
const MINUTE: Duration = Duration::from_secs(60);
/// Around a tag's own time: a guard takes minutes at most, and then clocks may differ.
const AROUND_TAG: [(Duration, Duration); 2] = [
    (Duration::from_secs(2 * 60), Duration::from_secs(10 * 60)),
    (Duration::from_secs(90 * 60), Duration::from_secs(90 * 60)),
];

/// A checkpoint as people and agents name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Id(CheckpointId),
    Tag(String),
}

impl Wanted {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let invalid = |problem: &str| {
            Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("`checkpoint` {problem}"),
            )
            .with_next(
                "Give a checkpoint's id or its whole tag, as the list of checkpoints shows it.",
            ))
        };
        if text.is_empty() {
            return invalid("is empty");
        }
        if text.chars().nth(WANTED_MAX_LEN).is_some() {
            return invalid("is too long to be an id or a tag");
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(id) => Ok(Self::Id(CheckpointId(id))),
                Err(_) => invalid("is too large to be an id"),
            };
        }
        Ok(Self::Tag(text.to_owned()))
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => write!(f, "checkpoint {}", id.0),
            Self::Tag(tag) => write!(f, "the tag \"{}\"", shown_tag(tag)),
        }
    }
}

/// One checkpoint of one VPG.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub vpg: FoundVpg,
    pub checkpoint: Checkpoint,
}

impl Chosen {
    /// The tag, safe to show.
    pub fn tag(&self) -> Option<String> {
        tag_of(&self.checkpoint).map(shown_tag)
    }
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} {}",
            self.vpg.told(),
            self.checkpoint.id.0,
            as_shown(self.checkpoint.time)
        )?;
        self.tag().map_or(Ok(()), |tag| {
            write!(f, " {}", text::quoted(&tag, TAG_SHOWN_MAX))
        })
    }
}

/// Exactly one checkpoint that is still listed and that the ZVM does not refuse to mount.
pub(crate) async fn choose(
    core: &Core,
    found: &Found,
    wanted: &Wanted,
    vpg: Option<&str>,
) -> Result<Chosen, Error> {
    let zvm = &core.zvm;
    let vpgs = narrowed(found, vpg)?;
    let place = match (vpg, vpgs.as_slice()) {
        (Some(_), [only]) => format!("VPG {}", only.told()),
        _ => format!("any VPG that protects {}", found.told()),
    };
    let listed = try_join_all(vpgs.into_iter().map(|vpg| async move {
        let looked = match wanted {
            Wanted::Id(id) => by_id(zvm, vpg, *id).await?,
            Wanted::Tag(tag) => by_tag(zvm, vpg, tag).await?,
        };
        let checkpoint = match looked {
            Some(checkpoint) => Some(checkpoint),
            None => by_state(core, vpg, wanted).await?,
        };
        Ok::<_, Error>(checkpoint.map(|checkpoint| Chosen {
            vpg: vpg.clone(),
            checkpoint,
        }))
    }))
    .await?;
    let mut chosen: Vec<Chosen> = listed.into_iter().flatten().collect();
    if chosen.is_empty() {
        return Err(Error::new(
            ErrorCode::CheckpointGone,
            format!("{wanted} is not in the journal of {place}"),
        ));
    }
    if matches!(wanted, Wanted::Id(_)) && chosen.len() > 1 {
        return Err(Error::new(
            ErrorCode::CheckpointAmbiguous,
            format!("{} VPGs of {} have a {wanted}", chosen.len(), found.told()),
        )
        .with_candidates(chosen.iter().map(Chosen::to_string)));
    }
    chosen.sort_by_key(|chosen| Reverse(chosen.checkpoint.time));
    mountable(zvm, found, chosen).await
}

/// The newest checkpoint of a VPG.
pub(crate) async fn latest(zvm: &Zvm, vpg: &FoundVpg) -> Result<Chosen, Error> {
    let stats = zvm.journal_stats(vpg.id()).await;
    let newest = stats.map_err(|error| vpg.failed(error))?.latest;
    let empty = || {
        let message = format!("the journal of VPG {} is empty", vpg.name());
        Error::new(ErrorCode::CheckpointGone, message)
    };
    Ok(Chosen {
        vpg: vpg.clone(),
        checkpoint: newest.ok_or_else(empty)?,
    })
}

/// The VPGs that `vpg` names; all without it.
fn narrowed<'a>(found: &'a Found, vpg: Option<&str>) -> Result<Vec<&'a FoundVpg>, Error> {
    let Some(wanted) = vpg.map(str::trim) else {
        return Ok(found.vpgs.iter().collect());
    };
    let rules: [fn(&FoundVpg, &str) -> bool; 4] = [
        |vpg, wanted| vpg.id().eq_ignore_ascii_case(wanted),
        |vpg, wanted| vpg.vpg.name == wanted,
        |vpg, wanted| vpg.vpg.name.to_lowercase() == wanted.to_lowercase(),
        // As receipts and lists show it.
        |vpg, wanted| vpg.name() == wanted,
    ];
    rules
        .iter()
        .map(|rule| {
            found
                .vpgs
                .iter()
                .filter(|vpg| rule(vpg, wanted))
                .collect::<Vec<_>>()
        })
        .find(|vpgs| !vpgs.is_empty())
        .ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!(
                    "`vpg`: no VPG that protects {} is {}",
                    found.told(),
                    text::quoted(wanted, 100)
                ),
            )
            .with_next("Give the name or identifier of one of these VPGs, or none.")
            .with_candidates(found.vpgs.iter().map(FoundVpg::name))
        })
}

async fn by_id(zvm: &Zvm, vpg: &FoundVpg, id: CheckpointId) -> Result<Option<Checkpoint>, Error> {
    let failed = |error| vpg.failed(error);
    let stats = zvm.journal_stats(vpg.id()).await.map_err(failed)?;
    let mut search = match Search::new(id, &stats) {
        Ok(search) => search,
        Err(Step::Found(checkpoint)) => return Ok(Some(checkpoint)),
        Err(_) => return Ok(None),
    };
    loop {
        let Step::Ask(window) = search.next() else {
            return Ok(None);
        };
        let rows = zvm.checkpoints(vpg.id(), window).await.map_err(failed)?;
        match search.learn(window, &rows) {
            Some(Step::Found(checkpoint)) => return Ok(Some(checkpoint)),
            Some(_) => return Ok(None),
            None => {}
        }
    }
}

async fn by_tag(zvm: &Zvm, vpg: &FoundVpg, wanted: &str) -> Result<Option<Checkpoint>, Error> {
    let Some(at) = tag::parse(wanted).at() else {
        return other_tag(zvm, vpg, wanted).await;
    };
    for (before, after) in AROUND_TAG {
        let pin = our_tag(zvm, vpg, wanted, around(at, before, after)).await?;
        if pin.is_some() {
            return Ok(pin);
        }
    }
    Ok(None)
}

/// Where the state says that it is. Ids do not rise with time where the ZVM's clock was set, and a tag's time is not its checkpoint's
/// where that happened, or this host slept, between the two.
async fn by_state(
    core: &Core,
    vpg: &FoundVpg,
    wanted: &Wanted,
) -> Result<Option<Checkpoint>, Error> {
    let key = match wanted {
        Wanted::Id(id) => id.to_string(),
        Wanted::Tag(tag) => tag::without_suffix(tag).to_owned(),
    };
    let (zvm, vpg_id) = (core.config.zvm(), vpg.id().to_owned());
    let pin = core
        .with_state(move |state| state.pin(&zvm, &vpg_id, &key))
        .await?;
    let Some(pin) = pin else { return Ok(None) };
    let window = around(pin.checkpoint_at, MINUTE, MINUTE);
    let rows = core
        .zvm
        .checkpoints(vpg.id(), window)
        .await
        .map_err(|error| vpg.failed(error))?;
    let is_wanted = |row: &Checkpoint| match wanted {
        Wanted::Id(id) => row.id == *id,
        Wanted::Tag(tag) => carries(row, tag),
    };
    Ok(rows.into_iter().find(is_wanted))
}

/// The pin: the earliest checkpoint that carries the tag.
async fn our_tag(
    zvm: &Zvm,
    vpg: &FoundVpg,
    wanted: &str,
    window: Window,
) -> Result<Option<Checkpoint>, Error> {
    let rows = zvm
        .checkpoints(vpg.id(), window)
        .await
        .map_err(|error| vpg.failed(error))?;
    Ok(rows.into_iter().find(|row| carries(row, wanted)))
}

/// The newest checkpoint that carries somebody else's tag.
async fn other_tag(zvm: &Zvm, vpg: &FoundVpg, wanted: &str) -> Result<Option<Checkpoint>, Error> {
    let Some(earliest) = earliest(zvm, vpg).await? else {
        return Ok(None);
    };
    let to = later(zvm.server_time().await?, OFF);
    for window in Backwards::new(earliest, to, DAY) {
        let rows = zvm
            .checkpoints(vpg.id(), window)
            .await
            .map_err(|error| vpg.failed(error))?;
        if let Some(row) = rows.into_iter().rfind(|row| carries(row, wanted)) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Whether a checkpoint carries the tag, as it is in the journal or as it was shown.
fn carries(row: &Checkpoint, wanted: &str) -> bool {
    tag_of(row)
        .is_some_and(|listed| tag::same(wanted, listed) || tag::same(wanted, &shown_tag(listed)))
}

/// The first that the ZVM doesn't say it can't mount.
async fn mountable(zvm: &Zvm, found: &Found, chosen: Vec<Chosen>) -> Result<Chosen, Error> {
    let mut refusals = Vec::new();
    for candidate in chosen {
        let window = around(candidate.checkpoint.time, MINUTE, MINUTE);
        let points = match zvm
            .points_in_time(&found.vm_identifier, candidate.vpg.id(), window)
            .await
        {
            Ok(points) => points,
            // Told by some ZVMs only; mounting will show.
            Err(zvm_client::Error::NotFound { .. } | zvm_client::Error::Refused { .. }) => {
                return Ok(candidate);
            }
            Err(error) => return Err(error.into()),
        };
        let point = points
            .into_iter()
            .find(|point| point.checkpoint.id == candidate.checkpoint.id);
        match point {
            Some(point) if point.can_mount == Some(false) => {
                let reason = point
                    .reason
                    .as_deref()
                    .map_or("no reason given".into(), |text| text::quoted(text, 300));
                refusals.push(format!("{candidate} ({reason})"));
            }
            _ => return Ok(candidate),
        }
    }
    Err(Error::new(
        ErrorCode::FlrFailed,
        format!(
            "the ZVM can't mount this checkpoint: {}",
            refusals.join("; ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_an_id_and_anything_else_is_a_tag() {
        assert_eq!(
            Wanted::parse(" 1197 ").unwrap(),
            Wanted::Id(CheckpointId(1197))
        );
        assert_eq!(Wanted::parse("v1197").unwrap(), Wanted::Tag("v1197".into()));
        for bad in ["", "  ", "99999999999999999999999", &"x".repeat(1_001)] {
            assert_eq!(
                Wanted::parse(bad).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{bad}"
            );
        }
    }
}
