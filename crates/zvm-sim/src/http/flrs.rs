//! File-level restore: sessions, browsing, download URLs.

mod browse;

use std::sync::Arc;

use axum::http::StatusCode;

use super::reply::{Failure, Reply};
use super::request::{Call, INITIATOR, member, text_member};
use super::vpgs;
use crate::app::{App, Wanted};
use crate::flr::{Session, Status};
use crate::guest::Volume;
use crate::render::{Dialect, Object, Writer};
use crate::switches::{FlrGet, FlrGone, UnmountAnswer, UnmountRepeat, Vanishes};
use crate::world::World;

pub(super) use self::browse::{browse, download};

pub(super) async fn mount(app: &Arc<App>, call: &Call) -> Result<Reply, Failure> {
    let body = call.json()?;
    let jflr = member(&body, "jflr").ok_or_else(|| Failure::bad("The member jflr is missing."))?;
    let needed = |name: &str| {
        text_member(jflr, name)
            .ok_or_else(|| Failure::bad(format!("The member {name} is missing.")))
    };
    let (vpg_id, vm_id) = (needed("vpgIdentifier")?, needed("vmIdentifier")?);
    let checkpoint = needed("checkpointIdentifier")?;
    let (vpg, _) = vpgs::find(app, &vpg_id)?;
    let (vm, _) = app
        .inventory
        .vm_by_id(&vm_id)
        .ok_or_else(|| Failure::not_found(format!("Virtual machine '{vm_id}' was not found.")))?;
    let checkpoint = checkpoint
        .parse()
        .map_err(|_| Failure::bad("failed parsing as a valid CheckPoint Identifier"))?;
    let wanted = Wanted {
        vm,
        vpg,
        checkpoint,
    };
    let session = app
        .mount(wanted, INITIATOR)
        .await
        .map_err(|refused| Failure::bad(refused.to_string()))?;
    Ok(Reply::json(Writer::string(&session)))
}

pub(super) fn list(app: &App, call: &Call) -> Reply {
    let world = app.world();
    let wanted = call.query("vmIdentifier");
    let sessions = world.sessions.iter().filter(|session| {
        wanted.is_none_or(|wanted| {
            app.inventory
                .vm(session.vm)
                .is_some_and(|vm| vm.id.eq_ignore_ascii_case(wanted))
        })
    });
    Reply::json(Writer::array(
        Dialect::of(&world.switches),
        sessions,
        |object, session| put(app, &world, object, session),
    ))
}

pub(super) fn one(app: &App, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let dialect = Dialect::of(&world.switches);
    let Some(session) = find(&world, id) else {
        return match world.switches.flr_gone {
            FlrGone::NotFound => Err(gone(id)),
            FlrGone::EmptyList => Ok(Reply::json(b"[]".to_vec())),
        };
    };
    Ok(Reply::json(match world.switches.flr_get {
        FlrGet::Array => Writer::array(dialect, [session], |object, session| {
            put(app, &world, object, session);
        }),
        FlrGet::Object => Writer::object(dialect, |object| put(app, &world, object, session)),
    }))
}

/// A session by its identifier, with or without its site.
fn find<'a>(world: &'a World, id: &str) -> Option<&'a Session> {
    world.sessions.iter().find(|session| {
        session.id.eq_ignore_ascii_case(id) || session.guid.eq_ignore_ascii_case(id)
    })
}

fn gone(id: &str) -> Failure {
    Failure::not_found(format!(
        "The file level restore session '{id}' was not found."
    ))
}

fn put(app: &App, world: &World, object: &mut Object, session: &Session) {
    let switches = &world.switches;
    let status = match session.status {
        Status::Mounting => switches
            .mounting_status
            .as_deref()
            .unwrap_or("MountInProgress"),
        Status::Mounted => &switches.mounted_status,
        Status::MountFailed => "MountFailed",
        Status::Unmounting => "UnmountInProgress",
        Status::UnmountFailed => "UnmountFailed",
    };
    let busy = u32::from(matches!(
        session.status,
        Status::Mounting | Status::Unmounting
    ));
    let vm = app.inventory.vm(session.vm).map_or("", |vm| &vm.id);
    let vpg = app.inventory.vpg(session.vpg).map_or("", |vpg| &vpg.id);
    object
        .text("FlrSessionIdentifier", &session.id)
        .text("FlrSessionStatus", status)
        .text("FlrSessionType", "jflr")
        .text("VmIdentifier", vm)
        .null("VmVolumeIdentifier")
        .text("VpgIdentifier", vpg)
        .text("CheckpointIdentifier", &session.checkpoint.to_string())
        .fixed_date("MountTime", session.mounted_at)
        .null("SelectedPath")
        .number("NumberOfRelatedRunningTasks", session.running + busy)
        .null("RepositoryIdentifier")
        .null("RetentionSetIdentifier")
        .text("SiteIdentifier", app.inventory.own_site_id());
}

pub(super) fn unmount(app: &App, id: &str) -> Result<Reply, Failure> {
    let (guid, answer, repeat) = {
        let world = app.world();
        let guid = find(&world, id).map(|session| session.guid.clone());
        (
            guid,
            world.switches.unmount_answer,
            world.switches.unmount_repeat,
        )
    };
    let task = match (guid, repeat) {
        (Some(guid), _) => app.unmount(&guid, INITIATOR).ok_or_else(|| {
            Failure::bad("The file level restore session cannot be unmounted now.")
        })?,
        (None, UnmountRepeat::NotFound) => return Err(gone(id)),
        (None, UnmountRepeat::Accepted) => app.task_id(&mut app.world()),
    };
    Ok(match answer {
        UnmountAnswer::TaskId => Reply::json(Writer::string(&task)),
        UnmountAnswer::EmptyString => Reply::json(Writer::string("")),
        UnmountAnswer::Empty => Reply::empty(StatusCode::OK),
        UnmountAnswer::NoContent => Reply::empty(StatusCode::NO_CONTENT),
    })
}

/// The volumes of a mounted session.
fn mounted(app: &App, id: &str, vanishes: Vanishes) -> Result<(String, Vec<Volume>), Failure> {
    let mut world = app.world();
    let session = find(&world, id).ok_or_else(|| gone(id))?;
    let guid = session.guid.clone();
    if session.status != Status::Mounted {
        return Err(Failure::bad(
            "The file level restore session is not mounted.",
        ));
    }
    let volumes = session.volumes.clone();
    if world.switches.session_vanishes == vanishes {
        world.sessions.retain(|session| session.guid != guid);
        drop(world);
        app.tell();
        return Err(gone(id));
    }
    Ok((guid, volumes))
}
