//! A guard that was taken before, and whether it still stands.
use super::{
    Pin, Receipt,
    run::{Guarding, NOTE},
};
use crate::{
    Error,
    checkpoints::{around, as_shown, expected_until, shown_tag},
    protection::{Found, FoundVpg},
    state::{EarlierGuard, PinRecord},
    tag::{self, Parsed, Tag},
    text,
};
use futures::future::try_join_all;
use std::time::Duration;

/// Around a checkpoint's own time.
const AROUND: Duration = Duration::from_secs(5);

impl Guarding<'_> {
    /// The receipt of an earlier guard of this VM; None where the VPGs that protect the VM are not the same any more, or where
    /// one of the pins is not listed any more. Each journal is looked at once, around the pin's time.
    pub async fn still_listed(
        &self,
        found: &Found,
        earlier: &EarlierGuard,
    ) -> Result<Option<Receipt>, Error> {
        let Parsed::Ours(tag) = tag::parse(&earlier.tag) else {
            return Ok(None);
        };
        let Some(pairs) = pairs(found, &earlier.pins) else {
            return Ok(None);
        };
        let looks = try_join_all(
            pairs
                .iter()
                .map(|(vpg, pin)| self.pin_listed(vpg, pin, &tag)),
        );
        let looking = || {
            format!(
                "looking whether an earlier pin of {} is listed",
                found.told()
            )
        };
        let pins = self.watch.during(looking, looks).await?;
        let Some(pins) = pins.into_iter().collect::<Option<Vec<_>>>() else {
            tracing::info!(vm = %found.name(), "a pin that could have been used again is not listed any more");
            return Ok(None);
        };
        Ok(Some(Receipt {
            vm: found.name(),
            vm_identifier: text::display(&found.vm_identifier, 256),
            agent: tag.agent().to_owned(),
            action: tag.action().to_owned(),
            change_id: tag.change().to_owned(),
            tag: tag.to_string(),
            pins,
            seconds: self.watch.seconds(),
            note: NOTE.to_owned(),
        }))
    }

    async fn pin_listed(
        &self,
        vpg: &FoundVpg,
        pin: &PinRecord,
        tag: &Tag,
    ) -> Result<Option<Pin>, Error> {
        let window = around(pin.checkpoint_at, AROUND, AROUND);
        let rows = self.zvm.checkpoints(vpg.id(), window).await?;
        let listed = rows.into_iter().find(|row| {
            row.id.to_string() == pin.checkpoint_id
                && row.tag.as_deref().is_some_and(|listed| tag.same_as(listed))
        });
        Ok(listed.map(|checkpoint| Pin {
            vpg: vpg.name(),
            vpg_identifier: text::display(vpg.id(), 256),
            checkpoint: checkpoint.id.to_string(),
            time: as_shown(checkpoint.time),
            tag: checkpoint.tag.as_deref().map(shown_tag).unwrap_or_default(),
            journal_from: vpg
                .vpg
                .earliest_checkpoint
                .as_ref()
                .map(|first| as_shown(first.time)),
            expected_until: expected_until(&vpg.vpg, checkpoint.time),
            // None of this call's.
            inserts: 0,
            seconds: self.watch.seconds(),
        }))
    }
}

/// Every VPG of the VM with its pin; None where they are not one to one.
fn pairs<'a>(
    found: &'a Found,
    pins: &'a [PinRecord],
) -> Option<Vec<(&'a FoundVpg, &'a PinRecord)>> {
    let pin_of = |vpg: &'a FoundVpg| {
        let pin = pins
            .iter()
            .find(|pin| pin.vpg_identifier.eq_ignore_ascii_case(vpg.id()))?;
        Some((vpg, pin))
    };
    if found.vpgs.len() != pins.len() {
        return None;
    }
    found.vpgs.iter().map(pin_of).collect()
}
