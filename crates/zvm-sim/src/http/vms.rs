//! Protected VMs: one row per VM and VPG.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::filter::Filter;
use super::reply::{Failure, Reply};
use super::request::Call;
use super::sites::put_site_link;
use crate::app::App;
use crate::inventory::{Vm, Vpg};
use crate::names;
use crate::render::{Dialect, Object, Writer};
use crate::world::World;

struct Row<'a> {
    vm: &'a Vm,
    vpg: &'a Vpg,
    status: (u8, u8),
    flr: bool,
}

pub(super) fn list(app: &App, call: &Call) -> Reply {
    let world = app.world();
    let filter = Filter::new(call, world.switches.filters);
    let without_mounted = filter.flag("includeMountedVms") == Some(false);
    let mut rows = Vec::new();
    for (index, vm) in app.inventory.vms.iter().enumerate() {
        let mounted = || world.sessions.iter().any(|session| session.vm == index);
        if !filter.id("vmIdentifier", &vm.id)
            || !filter.text("vmName", &vm.name)
            || without_mounted && mounted()
        {
            continue;
        }
        for &vpg in &vm.vpgs {
            if let Some(row) = row(app, &world, vm, vpg)
                && passes(app, &filter, &row)
            {
                rows.push(row);
            }
        }
    }
    let dialect = Dialect::of(&world.switches);
    drop(world);
    Reply::json(Writer::array(dialect, rows, |object, row| {
        put(app, object, &row)
    }))
}

/// The path form answers only where it is clear which VPG is meant.
pub(super) fn one(app: &App, call: &Call, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let (_, vm, vpg) = in_vpg(app, call, id)?;
    let row = row(app, &world, vm, vpg).ok_or_else(|| unknown(id))?;
    Ok(Reply::json(Writer::object(
        Dialect::of(&world.switches),
        |object| put(app, object, &row),
    )))
}

/// The VM of the path and the VPG of the query, or its only one: indexes, and the VM.
pub(super) fn in_vpg<'a>(
    app: &'a App,
    call: &Call,
    id: &str,
) -> Result<(usize, &'a Vm, usize), Failure> {
    let (index, vm) = app.inventory.vm_by_id(id).ok_or_else(|| unknown(id))?;
    let vpg = match (call.query("vpgIdentifier"), vm.vpgs.as_slice()) {
        (Some(wanted), vpgs) => app
            .inventory
            .vpg_by_id(wanted)
            .map(|(index, _)| index)
            .filter(|index| vpgs.contains(index))
            .ok_or_else(|| {
                Failure::bad(format!(
                    "Virtual machine '{}' is not protected by VPG '{wanted}'.",
                    vm.name
                ))
            })?,
        (None, &[only]) => only,
        (None, _) => {
            return Err(Failure::bad(format!(
                "Virtual machine '{}' is protected by more than one VPG. The VPG identifier must be specified.",
                vm.name
            )));
        }
    };
    Ok((index, vm, vpg))
}

fn unknown(id: &str) -> Failure {
    Failure::not_found(format!("Virtual machine '{id}' was not found."))
}

fn row<'a>(app: &'a App, world: &World, vm: &'a Vm, vpg: usize) -> Option<Row<'a>> {
    let vpg = app.inventory.vpg(vpg)?;
    Some(Row {
        vm,
        vpg,
        status: world.status(vpg),
        flr: App::flr_enabled(world, vm, vpg),
    })
}

fn passes(app: &App, filter: &Filter, row: &Row) -> bool {
    let vpg = row.vpg;
    filter.text("vpgName", &vpg.name)
        && filter.code("status", row.status.0, &names::STATUSES)
        && filter.code("subStatus", row.status.1, &names::SUB_STATUSES)
        && passes_vpg(app, filter, vpg)
}

/// The filters that lists of VMs and of VPGs have in common.
pub(super) fn passes_vpg(app: &App, filter: &Filter, vpg: &Vpg) -> bool {
    let site = |index| app.inventory.site(index);
    let (protected, recovery) = (site(vpg.protected_site), site(vpg.recovery_site));
    filter.code("protectedSiteType", vpg.protected, &names::ENTITY_TYPES)
        && filter.code("recoverySiteType", vpg.recovery, &names::ENTITY_TYPES)
        && filter.code("sourceType", vpg.protected, &names::ENTITY_TYPES)
        && filter.code("targetType", vpg.recovery, &names::ENTITY_TYPES)
        && filter.code("priority", vpg.priority, &names::PRIORITIES)
        && filter.text("organizationName", &vpg.organization)
        && protected.is_some_and(|site| {
            filter.id("protectedSiteIdentifier", &site.id) && filter.text("sourceSite", &site.name)
        })
        && recovery.is_some_and(|site| {
            filter.id("recoverySiteIdentifier", &site.id) && filter.text("targetSite", &site.name)
        })
}

fn put(app: &App, object: &mut Object, row: &Row) {
    let Row { vm, vpg, .. } = row;
    let rpo = rpo(row.status);
    object
        .top_level_id("VmIdentifier", &vm.id)
        .text("VmName", &vm.name)
        .top_level_id("VpgIdentifier", &vpg.id)
        .text("VpgName", &vpg.name)
        .code("Status", row.status.0, &names::STATUSES)
        .code("SubStatus", row.status.1, &names::SUB_STATUSES)
        .code("Priority", vpg.priority, &names::PRIORITIES)
        .number("ActualRPO", rpo)
        .null("LastTest");
    put_sides(app, object, vpg);
    object
        .object("EnabledActions", |actions| {
            actions.flag("IsFlrEnabled", row.flr);
        })
        .flag("IsVmExists", true);
    let id = format!("{}?VpgIdentifier={}", vm.id, vpg.id);
    object
        .link("Link", &href(app, vm, vpg), &id, "VmApi")
        .objects(
            "Volumes",
            0..vm.partitions.len().max(1),
            |volume, number| {
                volume.text("VmVolumeIdentifier", &format!("scsi:0:{number}"));
            },
        )
        .object("JournalHardLimit", |limit| {
            limit.number("LimitType", 1).number("LimitValue", 153_600);
        })
        .object("JournalWarningThreshold", |limit| {
            limit.number("LimitType", 1).number("LimitValue", 115_200);
        })
        .number("JournalUsedStorageMb", 640)
        .text("OrganizationName", &vpg.organization)
        .text("HardwareVersion", "vmx-20")
        .number("ProvisionedStorageInMB", 77_906)
        .number("UsedStorageInMB", 20_480)
        .number("CpuCoresNum", 2)
        .number("MemorySizeInMB", 4096)
        .number("IOPs", 2)
        .float("ThroughputInMB", 0.0)
        .float("OutgoingBandWidthInMbps", 0.0019)
        .text("RecoveryHostName", "esx11.example")
        .text("OwningHostName", "esx01.example")
        .text("OwningDatastoreName", "datastore1")
        .text("GuestOs", &vm.guest_os);
    put_network(object, vm);
    object
        .objects("Nics", [1], |nic, number| {
            nic.text("NicIdentifier", &format!("Network adapter {number}"));
        })
        .flag("IsAgentInstalled", false)
        .object("PlatformInformation", |info| {
            info.null("Azure");
        });
}

/// What would end a path's segment is encoded.
const SEGMENT: &AsciiSet = &CONTROLS.add(b' ').add(b'/').add(b'?').add(b'#').add(b'%');

fn href(app: &App, vm: &Vm, vpg: &Vpg) -> String {
    let id = utf8_percent_encode(&vm.id, SEGMENT);
    format!("{}/v1/vms/{id}?VpgIdentifier={}", app.url, vpg.id)
}

/// `-1` while there is nothing to recover yet.
pub(super) fn rpo(status: (u8, u8)) -> i64 {
    match status {
        (0, _) | (_, 1..=4) => -1,
        (1, _) => 4,
        _ => 900,
    }
}

/// Both sides of a VPG, as rows of VMs and of VPGs have them.
pub(super) fn put_sides(app: &App, object: &mut Object, vpg: &Vpg) {
    object.object("Entities", |entities| {
        entities
            .code("Protected", vpg.protected, &names::ENTITY_TYPES)
            .code("Recovery", vpg.recovery, &names::ENTITY_TYPES)
            .code("Source", vpg.protected, &names::ENTITY_TYPES)
            .code("Target", vpg.recovery, &names::ENTITY_TYPES);
    });
    let sides = [
        (
            "SourceSite",
            "ProtectedSite",
            "ProtectedSiteName",
            vpg.protected_site,
        ),
        (
            "TargetSite",
            "RecoverySite",
            "RecoverySiteName",
            vpg.recovery_site,
        ),
    ];
    for (old_name, link, name, index) in sides {
        if let Some(site) = app.inventory.site(index) {
            object.text(old_name, &site.name).text(name, &site.name);
            put_site_link(app, object, link, site, index == 0);
        }
    }
}

pub(super) fn put_network(object: &mut Object, vm: &Vm) {
    object.object("VmNetworkInformation", |network| {
        network.objects("NetworkAdapters", [1], |adapter, number| {
            adapter
                .text("DisplayName", &format!("Network adapter {number}"))
                .text("NetworkIdentifier", "network-7")
                .texts("IpAddresses", vm.ips.iter().map(String::as_str));
        });
    });
}
