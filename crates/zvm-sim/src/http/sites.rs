//! Sites, and the unprotected VMs of one.

use super::filter::Filter;
use super::reply::{Failure, Reply};
use super::request::Call;
use crate::app::App;
use crate::inventory::{Site, Vm};
use crate::names;
use crate::render::{Dialect, Object, Writer};

/// The certificate's and the API's port on a real appliance.
const PEER_PORT: u16 = 9071;

pub(super) fn local(app: &App) -> Reply {
    let world = app.world();
    let Some(site) = app.inventory.site(0) else {
        return Failure::internal("There is no site.").into_reply(app);
    };
    let offset = world.switches.utc_offset_minutes;
    Reply::json(Writer::object(Dialect::of(&world.switches), |object| {
        object
            .top_level_id("SiteIdentifier", &site.id)
            .text("SiteName", &site.name)
            .text("SiteType", &site.site_type)
            .text("SiteTypeVersion", "8.0.2")
            .text("Version", &site.version)
            .text("DisplayVersion", "10.0 Update 6")
            .text("ZvmApiVersion", "10.0")
            .text("Location", &site.location)
            .text("IpAddress", host(&app.url))
            .text("ContactEmail", "")
            .text("ContactName", "")
            .text("ContactPhone", "")
            .flag("IsReplicationToSelfEnabled", true)
            .number("UtcOffsetInMinutes", offset)
            .float("BandwidthThrottlingInMBs", -1.0)
            .flag("IsLoginBannerEnabled", false)
            .text("LoginBanner", "")
            .link(
                "Link",
                &format!("{}/v1/localsite", app.url),
                &site.id,
                "LocalSiteApi",
            );
    }))
}

fn host(url: &str) -> &str {
    let rest = url.trim_start_matches("https://");
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}

pub(super) fn peers(app: &App, call: &Call) -> Reply {
    let world = app.world();
    let filter = Filter::new(call, world.switches.filters);
    let peers = app.inventory.sites.iter().skip(1).filter(|site| {
        filter.text("peerName", &site.name)
            && filter.text("location", &site.location)
            && filter.text("hostName", &host_name(site))
            && filter.id("port", &PEER_PORT.to_string())
            && filter.code("pairingStatus", 0, &names::PAIRING)
    });
    Reply::json(Writer::array(
        Dialect::of(&world.switches),
        peers,
        |object, site| put_peer(app, object, site),
    ))
}

pub(super) fn peer(app: &App, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let site = app
        .inventory
        .sites
        .iter()
        .skip(1)
        .find(|site| site.id.eq_ignore_ascii_case(id))
        .ok_or_else(|| unknown(id))?;
    Ok(Reply::json(Writer::object(
        Dialect::of(&world.switches),
        |object| put_peer(app, object, site),
    )))
}

fn unknown(id: &str) -> Failure {
    Failure::not_found(format!("Site '{id}' was not found."))
}

fn host_name(site: &Site) -> String {
    format!("zvm-{}.example", site.name.to_lowercase().replace(' ', "-"))
}

fn put_peer(app: &App, object: &mut Object, site: &Site) {
    object
        .top_level_id("SiteIdentifier", &site.id)
        .text("PeerSiteName", &site.name)
        .code("PairingStatus", 0, &names::PAIRING)
        .text("Location", &site.location)
        .text("HostName", &host_name(site))
        .number("Port", PEER_PORT)
        .number("ProvisionedStorage", 0)
        .number("UsedStorage", 0)
        .float("IncomingThroughputInMb", 0.0)
        .float("OutgoingBandWidth", 0.0)
        .text("Version", &site.version)
        .text("SiteType", &site.site_type)
        .null("RegionName");
    put_site_link(app, object, "Link", site, false);
}

/// A link to a site, as VMs and VPGs have it: this ZVM's own, or a peer.
pub(super) fn put_site_link(app: &App, object: &mut Object, name: &str, site: &Site, own: bool) {
    if own {
        object.link(
            name,
            &format!("{}/v1/localsite", app.url),
            &site.id,
            "LocalSiteApi",
        );
    } else {
        let href = format!("{}/v1/peersites/{}", app.url, site.id);
        object.link(name, &href, &site.id, "PeerSiteApi");
    }
}

pub(super) fn virtualization(app: &App) -> Reply {
    let world = app.world();
    Reply::json(Writer::array(
        Dialect::of(&world.switches),
        &app.inventory.sites,
        put_virtualization,
    ))
}

pub(super) fn virtualization_one(app: &App, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let site = find(app, id)?.1;
    Ok(Reply::json(Writer::object(
        Dialect::of(&world.switches),
        |object| put_virtualization(object, site),
    )))
}

fn find<'a>(app: &'a App, id: &str) -> Result<(usize, &'a Site), Failure> {
    app.inventory
        .sites
        .iter()
        .enumerate()
        .find(|(_, site)| site.id.eq_ignore_ascii_case(id))
        .ok_or_else(|| unknown(id))
}

fn put_virtualization(object: &mut Object, site: &Site) {
    // These have no link, so their identifier is at the top level in every dialect.
    object
        .text("SiteIdentifier", &site.id)
        .text("VirtualizationSiteName", &site.name);
}

/// VMs that could be protected and are not. Those of the scenario are all on this ZVM's own site.
pub(super) fn unprotected(app: &App, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let own = find(app, id)?.0 == 0;
    let vms = app
        .inventory
        .vms
        .iter()
        .filter(|vm| own && vm.vpgs.is_empty());
    Ok(Reply::json(Writer::array(
        Dialect::of(&world.switches),
        vms,
        put_native,
    )))
}

fn put_native(object: &mut Object, vm: &Vm) {
    object
        .text("VmName", &vm.name)
        .text("VmIdentifier", &vm.id)
        .text("VmInstanceIdentifier", &vm.id)
        .text("OwningHostName", "esx01.example")
        .text("OwningDatastoreName", "datastore1")
        .text("GuestOs", &vm.guest_os);
    super::vms::put_network(object, vm);
    object
        .object("VmPerfMetricInfo", |info| {
            info.number("ProvisionedStorageInMB", 77_906)
                .number("UsedStorageInMB", 20_480)
                .number("CpuCoresNum", 2)
                .number("MemorySizeInMB", 4096);
        })
        .objects("Nics", [1], |nic, number| {
            nic.text("NicIdentifier", &format!("Network adapter {number}"));
        })
        .objects("Volumes", [0], |volume, number| {
            volume.text("VmVolumeIdentifier", &format!("scsi:0:{number}"));
        })
        .flag("IsAgentInstalled", false);
}
