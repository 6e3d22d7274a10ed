//! Checkpoints of a VPG, and the same as points in time of a VM.

use std::sync::Arc;

use super::clock::date;
use super::reply::{Failure, Reply};
use super::request::{Call, INITIATOR, text_member};
use super::{vms, vpgs};
use crate::app::App;
use crate::journal::{Journal, Row};
use crate::names;
use crate::render::{Dialect, Object, Writer};
use crate::switches::Switches;
use crate::world::World;

/// The times that a request asks for, by the ZVM's clock.
struct Window {
    from: Option<i64>,
    to: Option<i64>,
    inclusive: bool,
    dialect: Dialect,
}

impl Window {
    fn of(switches: &Switches, call: &Call) -> Result<Self, Failure> {
        Ok(Self {
            from: date(switches, call, "startDate")?,
            to: date(switches, call, "endDate")?,
            inclusive: switches.window_inclusive,
            dialect: Dialect::of(switches),
        })
    }

    /// What is compared is what is shown.
    fn rows<'a>(&'a self, journal: &'a Journal, now: i64) -> impl Iterator<Item = Row<'a>> {
        let shown = |at| self.dialect.checkpoint_time(at);
        journal.between(
            now,
            move |at| {
                self.from
                    .is_some_and(|from| shown(at) < from || !self.inclusive && shown(at) == from)
            },
            move |at| {
                self.to
                    .is_some_and(|to| shown(at) > to || !self.inclusive && shown(at) == to)
            },
        )
    }
}

/// The journal of a VPG, up to now.
fn journal<'a>(app: &App, world: &'a mut World, vpg: usize) -> Result<&'a Journal, Failure> {
    world.catch_up(&app.inventory, vpg, app.interval(), app.clock.now());
    world
        .vpgs
        .get(vpg)
        .map(|state| &state.journal)
        .ok_or_else(|| Failure::internal("The VPG has no journal."))
}

pub(super) fn list(app: &App, call: &Call, id: &str) -> Result<Reply, Failure> {
    let (index, _) = vpgs::find(app, id)?;
    let mut world = app.world();
    let window = Window::of(&world.switches, call)?;
    let journal = journal(app, &mut world, index)?;
    let rows = window.rows(journal, app.clock.now());
    Ok(Reply::json(Writer::array(window.dialect, rows, put)))
}

pub(super) fn put(object: &mut Object, row: Row<'_>) {
    let tag = row.tag.map(crate::journal::Tag::shown);
    object
        .text("CheckpointIdentifier", &row.id.to_string())
        .checkpoint_time("TimeStamp", row.zvm_at)
        .text_or_null("Tag", tag.as_deref())
        .code("Type", u8::from(tag.is_some()), &names::CHECKPOINT_TYPES);
}

pub(super) fn stats(app: &App, id: &str) -> Result<Reply, Failure> {
    let (index, _) = vpgs::find(app, id)?;
    let mut world = app.world();
    let dialect = Dialect::of(&world.switches);
    let journal = journal(app, &mut world, index)?;
    let now = app.clock.now();
    Ok(Reply::json(Writer::object(dialect, |object| {
        for (name, row) in [
            ("Earliest", journal.earliest(now)),
            ("Latest", journal.latest(now)),
        ] {
            match row {
                Some(row) => object.object(name, |checkpoint| put(checkpoint, row)),
                None => object.null(name),
            };
        }
    })))
}

pub(super) fn insert(app: &Arc<App>, call: &Call, id: &str) -> Result<Reply, Failure> {
    let (index, vpg) = vpgs::find(app, id)?;
    let body = call.json()?;
    let name = text_member(&body, "checkpointName").unwrap_or_default();
    let task = app
        .insert(index, vpg, &name, INITIATOR)
        .map_err(|refused| Failure::bad(refused.to_string()))?;
    Ok(Reply::json(Writer::string(&task)))
}

pub(super) fn points_in_time(app: &App, call: &Call, id: &str) -> Result<Reply, Failure> {
    let (_, vm, index) = vms::in_vpg(app, call, id)?;
    let mut world = app.world();
    let window = Window::of(&world.switches, call)?;
    let cannot = app
        .inventory
        .vpg(index)
        .and_then(|vpg| App::cannot_mount(&world, vm, vpg));
    let journal = journal(app, &mut world, index)?;
    let rows = window.rows(journal, app.clock.now());
    Ok(Reply::json(Writer::array(
        window.dialect,
        rows,
        |object, row| {
            put_point(object, row, cannot);
        },
    )))
}

pub(super) fn points_in_time_stats(app: &App, call: &Call, id: &str) -> Result<Reply, Failure> {
    let (_, vm, index) = vms::in_vpg(app, call, id)?;
    let mut world = app.world();
    let dialect = Dialect::of(&world.switches);
    let cannot = app
        .inventory
        .vpg(index)
        .and_then(|vpg| App::cannot_mount(&world, vm, vpg));
    let journal = journal(app, &mut world, index)?;
    let now = app.clock.now();
    Ok(Reply::json(Writer::object(dialect, |object| {
        for (name, row) in [
            ("Earliest", journal.earliest(now)),
            ("Latest", journal.latest(now)),
        ] {
            match row {
                Some(row) => object.object(name, |point| put_point(point, row, cannot)),
                None => object.null(name),
            };
        }
    })))
}

fn put_point(object: &mut Object, row: Row<'_>, cannot: Option<&str>) {
    object
        .object("Checkpoint", |checkpoint| put(checkpoint, row))
        .null("RetentionSet")
        .object("CanMount", |allowed| {
            allowed
                .flag("IsAllowed", cannot.is_none())
                .text_or_null("Reason", cannot);
        });
}
