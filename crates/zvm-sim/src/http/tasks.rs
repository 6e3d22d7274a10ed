//! Tasks.

use super::clock::date;
use super::filter::Filter;
use super::reply::{Failure, Reply};
use super::request::Call;
use crate::app::App;
use crate::names;
use crate::render::{Dialect, Object, Writer};
use crate::tasks::Task;

pub(super) fn list(app: &App, call: &Call) -> Result<Reply, Failure> {
    let world = app.world();
    let dialect = Dialect::of(&world.switches);
    let wanted = |name| date(&world.switches, call, name);
    let (started_before, started_after) =
        (wanted("startedBeforeDate")?, wanted("startedAfterDate")?);
    let (ended_before, ended_after) = (
        wanted("completedBeforeDate")?,
        wanted("completedAfterDate")?,
    );
    let filter = Filter::new(call, world.switches.filters);
    let between = |at: Option<i64>, after: Option<i64>, before: Option<i64>| {
        let at = at.map(|at| dialect.by_zvm(at));
        after.is_none_or(|after| at.is_some_and(|at| at >= after))
            && before.is_none_or(|before| at.is_some_and(|at| at <= before))
    };
    let tasks = world.tasks.iter().filter(|task| {
        !app.is_hidden(&world, task)
            && between(Some(task.started), started_after, started_before)
            && between(task.completed, ended_after, ended_before)
            && filter.text("type", task.kind.name())
            && filter.code("status", task.state.number(), &names::TASK_STATES)
    });
    Ok(Reply::json(Writer::array(
        dialect,
        tasks,
        |object, task| {
            put(app, object, task);
        },
    )))
}

pub(super) fn one(app: &App, id: &str) -> Result<Reply, Failure> {
    let world = app.world();
    let task = world
        .tasks
        .get(id)
        .filter(|task| !app.is_hidden(&world, task))
        .ok_or_else(|| Failure::not_found(format!("Task '{id}' was not found.")))?;
    Ok(Reply::json(Writer::object(
        Dialect::of(&world.switches),
        |object| put(app, object, task),
    )))
}

pub(super) fn types() -> Reply {
    Reply::json(Writer::strings(names::TASK_TYPES))
}

fn put(app: &App, object: &mut Object, task: &Task) {
    let now = app.clock.now();
    object
        .top_level_id("TaskIdentifier", &task.id)
        .text("Type", task.kind.name())
        .text("InitiatedBy", &task.initiated_by)
        .flag("IsCancellable", false)
        .moment("Started", task.started);
    match task.completed {
        Some(at) => object.moment("Completed", at),
        None => object.null("Completed"),
    };
    object
        .text("CompleteReason", &task.reason)
        .object("Status", |status| {
            status.number("Progress", task.progress(now)).code(
                "State",
                task.state.number(),
                &names::TASK_STATES,
            );
        })
        .link(
            "Link",
            &format!("{}/v1/tasks/{}", app.url, task.id),
            &task.id,
            "TaskApi",
        )
        .object("RelatedEntities", |related| {
            related
                .objects("Hosts", [(); 0], |_, ()| {})
                .objects("Sites", app.inventory.site(0), |link, site| {
                    let href = format!("{}/v1/localsite", app.url);
                    link.fill_link(&href, &site.id, "LocalSiteApi");
                })
                .objects("Vpgs", app.inventory.vpg(task.vpg), |link, vpg| {
                    let href = format!("{}/v1/vpgs/{}", app.url, vpg.id);
                    link.fill_link(&href, &vpg.id, "VpgApi");
                })
                .objects("FlrSessions", &task.session, |link, session| {
                    // Without the site, as in the vendor's example.
                    let href = format!("{}/v1/flrs/{session}", app.url);
                    link.fill_link(&href, session, "FlrSessionApi");
                });
        });
}
