//! VPGs, and the names of their states.

use super::filter::Filter;
use super::reply::{Failure, Reply};
use super::request::Call;
use super::vms::{passes_vpg, put_sides, rpo};
use crate::app::App;
use crate::inventory::Vpg;
use crate::journal::Journal;
use crate::names;
use crate::render::{Dialect, Object, Writer};
use crate::switches::StatusOrder;
use crate::world::World;

pub(super) fn list(app: &App, call: &Call) -> Reply {
    let world = app.world();
    let filter = Filter::new(call, world.switches.filters);
    let vpgs = app.inventory.vpgs.iter().enumerate().filter(|(_, vpg)| {
        let (status, sub_status) = world.status(vpg);
        filter.text("name", &vpg.name)
            && filter.code("status", status, &names::STATUSES)
            && filter.code("subStatus", sub_status, &names::SUB_STATUSES)
            && passes_vpg(app, &filter, vpg)
    });
    Reply::json(Writer::array(
        Dialect::of(&world.switches),
        vpgs,
        |object, (index, vpg)| put(app, &world, object, index, vpg),
    ))
}

pub(super) fn one(app: &App, id: &str) -> Result<Reply, Failure> {
    let (index, vpg) = find(app, id)?;
    let world = app.world();
    Ok(Reply::json(Writer::object(
        Dialect::of(&world.switches),
        |object| put(app, &world, object, index, vpg),
    )))
}

pub(super) fn find<'a>(app: &'a App, id: &str) -> Result<(usize, &'a Vpg), Failure> {
    app.inventory
        .vpg_by_id(id)
        .ok_or_else(|| Failure::not_found(format!("VPG '{id}' was not found.")))
}

fn put(app: &App, world: &World, object: &mut Object, index: usize, vpg: &Vpg) {
    let status = world.status(vpg);
    let order = world.switches.statuses;
    let now = app.clock.now();
    object
        .top_level_id("VpgIdentifier", &vpg.id)
        .text("VpgName", &vpg.name)
        .text("VpgDescription", "")
        .text(
            "VpgType",
            names::name_of(&names::ENTITY_TYPES, vpg.protected).unwrap_or_default(),
        )
        .number("VmsCount", i64::try_from(vpg.vms.len()).unwrap_or(i64::MAX))
        .code("Status", status.0, status_names(order))
        .text_or_null(
            "StatusDescription",
            names::name_of(status_names(order), status.0),
        )
        .code("SubStatus", status.1, &names::SUB_STATUSES)
        .text_or_null(
            "SubStatusDescription",
            names::name_of(&names::SUB_STATUSES, status.1),
        )
        .code("Priority", vpg.priority, &names::PRIORITIES)
        .number("AlertStatus", 0)
        .number("ActualRPO", rpo(status))
        .number("ConfiguredRpoSeconds", 300)
        .float("ProgressPercentage", 0.0)
        .flag("BackupEnabled", false)
        .null("LastTest");
    put_sides(app, object, vpg);
    let journal = world.vpgs.get(index).map(|state| &state.journal);
    let earliest = journal.and_then(|journal| journal.earliest(now));
    object
        .object("HistoryStatusApi", |history| {
            let configured = journal.map_or(vpg.history_ms, Journal::history);
            let actual = earliest.map_or(0, |row| (now - row.at) / 60_000);
            history
                .number("ActualHistoryInMinutes", actual)
                .number("ConfiguredHistoryInMinutes", configured / 60_000);
            if let Some(row) = earliest {
                history.object("EarliestCheckpoint", |checkpoint| {
                    super::checkpoints::put(checkpoint, row);
                });
            }
        })
        .object("FailSafeHistory", |history| {
            history
                .number("ActualFailSafeHistory", 60)
                .number("ConfiguredFailSafeHistory", 240)
                .text("FailSafeDescription", "");
        })
        .object("ActiveProcessesApi", |processes| {
            processes.null("RunningFailOverTestApi");
        })
        .number("ProvisionedStorageInMB", 77_906)
        .number("UsedStorageInMB", 20_480)
        .number("IOPs", 2)
        .float("ThroughputInMB", 0.0)
        .link(
            "Link",
            &format!("{}/v1/vpgs/{}", app.url, vpg.id),
            &vpg.id,
            "VpgApi",
        );
}

const HISTORY_FIRST: [&str; 9] = {
    let mut names = names::STATUSES;
    names[3] = names::STATUSES[4];
    names[4] = names::STATUSES[3];
    names
};

fn status_names(order: StatusOrder) -> &'static [&'static str] {
    match order {
        StatusOrder::RpoFirst => &names::STATUSES,
        StatusOrder::HistoryFirst => &HISTORY_FIRST,
    }
}

pub(super) fn statuses(app: &App) -> Reply {
    let order = app.world().switches.statuses;
    Reply::json(Writer::strings(status_names(order).iter().copied()))
}

pub(super) fn sub_statuses() -> Reply {
    Reply::json(Writer::strings(names::SUB_STATUSES))
}

pub(super) fn priorities() -> Reply {
    Reply::json(Writer::strings(names::PRIORITIES))
}

pub(super) fn entity_types() -> Reply {
    Reply::json(Writer::strings(names::ENTITY_TYPES))
}
