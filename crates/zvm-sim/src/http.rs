//! The HTTP face: a request in, an answer out, or a cut connection.

mod checkpoints;
mod clock;
mod control;
mod download;
mod filter;
mod flrs;
mod reply;
mod request;
mod routes;
mod sites;
mod spoil;
mod tasks;
mod token;
mod vms;
mod vpgs;

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use futures::future::BoxFuture;
use tokio_util::task::task_tracker::TaskTrackerToken;

use self::reply::{Failure, Reply};
use self::request::Call;
use self::routes::{Endpoint, Route};
use crate::app::App;
use crate::faults::{Fault, Outcome};
use crate::held::{HeldRequest, LetGo};
use crate::record::{RequestRecord, body_text};

pub use self::routes::{OPERATIONS, Operation};

/// The connection is to be cut without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut, as a fault has it")]
pub(crate) struct Cut;

/// Answers one request.
pub(crate) async fn serve(app: Arc<App>, request: Request<Body>) -> Result<Response<Body>, Cut> {
    let call = match Call::read(request).await {
        Ok(call) => call,
        Err(failure) => return Ok(failure.into_reply(&app).into_response(|_| {})),
    };
    if app.control && call.segments.first().is_some_and(|first| first == "sim") {
        return Ok(control::serve(&app, &call).await.into_response(|_| {}));
    }
    let number = record(&app, &call);
    let reply = with_faults(&app, call, number).await?;
    answered(&app, number, &reply);
    let counted = Arc::clone(&app);
    Ok(reply.into_response(move |bytes| {
        counted.world().requests.sent(number, bytes);
    }))
}

fn record(app: &App, call: &Call) -> u64 {
    let secret = call.segments.first().is_some_and(|first| first == "auth");
    let record = RequestRecord {
        at: jiff::Timestamp::now(),
        method: call.method.to_string(),
        path: call.path.clone(),
        query: call.query_text.clone(),
        body: if secret {
            String::new()
        } else {
            body_text(&call.body)
        },
        bearer: call.bearer().is_some(),
        user_agent: call
            .header(&header::USER_AGENT)
            .unwrap_or_default()
            .to_owned(),
        status: None,
        response_bytes: 0,
    };
    let number = app.world().requests.add(record);
    app.tell();
    number
}

fn answered(app: &App, number: u64, reply: &Reply) {
    app.world().requests.answered(number, reply.status.as_u16());
    app.tell();
}

async fn with_faults(app: &Arc<App>, call: Call, number: u64) -> Result<Reply, Cut> {
    let Some(fault) = befalls(app, &call) else {
        return Ok(answer(app, &call).await);
    };
    tracing::debug!(method = %call.method, path = %call.path, outcome = ?fault.outcome, "a fault");
    if !fault.hold {
        return befallen(app, &call, &fault).await;
    }
    // A task of its own: the request goes on when its client is gone.
    let work = {
        let app = Arc::clone(app);
        async move {
            let reply = befallen(&app, &call, &fault).await?;
            answered(&app, number, &reply);
            Ok(reply)
        }
    };
    app.work.spawn(work).await.unwrap_or(Err(Cut))
}

async fn befallen(app: &Arc<App>, call: &Call, fault: &Fault) -> Result<Reply, Cut> {
    if !fault.delay.is_zero() {
        tokio::time::sleep(fault.delay).await;
    }
    let needs_answer = matches!(
        fault.outcome,
        Outcome::Answer
            | Outcome::CutBody
            | Outcome::Stall
            | Outcome::TruncatedJson
            | Outcome::BareString
    );
    let mut reply = None;
    if fault.effect {
        reply = Some(answer(app, call).await);
    }
    if fault.hold {
        hold(app, call, fault.effect).await?;
    }
    if reply.is_none() && needs_answer {
        reply = Some(answer(app, call).await);
    }
    spoil::spoil(fault, reply)
}

/// Waits until the request is let go.
async fn hold(app: &App, call: &Call, carried_out: bool) -> Result<(), Cut> {
    let number = app.world().held.add(HeldRequest {
        method: call.method.to_string(),
        path: call.path.clone(),
        carried_out,
    });
    app.tell();
    app.wait_until(|world| world.held.is_let_go(number)).await;
    let let_go = app.world().held.leave(number);
    match let_go {
        LetGo::On => Ok(()),
        LetGo::Cut => Err(Cut),
    }
}

fn befalls(app: &App, call: &Call) -> Option<Fault> {
    let vpg = call
        .segments
        .iter()
        .find_map(|segment| app.inventory.vpg_by_id(segment))
        .map(|(_, vpg)| (vpg.name.as_str(), vpg.id.as_str()));
    app.world()
        .faults
        .befall(call.method.as_str(), &call.path, vpg)
}

async fn answer(app: &Arc<App>, call: &Call) -> Reply {
    match dispatch(app, call).await {
        Ok(reply) => reply,
        Err(failure) => failure.into_reply(app),
    }
}

async fn dispatch(app: &Arc<App>, call: &Call) -> Result<Reply, Failure> {
    let (endpoint, parameters) = match routes::find(call) {
        Route::Found(endpoint, parameters) => (endpoint, parameters),
        Route::OtherMethod => return Ok(Reply::empty(StatusCode::METHOD_NOT_ALLOWED)),
        Route::None => return Err(Failure::no_such_path()),
    };
    if endpoint.needs_token() {
        authorize(app, call)?;
    }
    if endpoint != Endpoint::Download && !call.accepts_json() {
        return Ok(Reply::empty(StatusCode::NOT_ACCEPTABLE));
    }
    let id = parameters.first().map_or("", String::as_str);
    match endpoint {
        Endpoint::Token => token::grant(app, call, id),
        Endpoint::LocalSite => Ok(sites::local(app)),
        Endpoint::PeerSites => Ok(sites::peers(app, call)),
        Endpoint::PeerSite => sites::peer(app, id),
        Endpoint::VirtualizationSites => Ok(sites::virtualization(app)),
        Endpoint::VirtualizationSite => sites::virtualization_one(app, id),
        Endpoint::UnprotectedVms => sites::unprotected(app, id),
        Endpoint::Vms => Ok(vms::list(app, call)),
        Endpoint::Vm => vms::one(app, call, id),
        Endpoint::PointsInTime => checkpoints::points_in_time(app, call, id),
        Endpoint::PointsInTimeStats => checkpoints::points_in_time_stats(app, call, id),
        Endpoint::Vpgs => Ok(vpgs::list(app, call)),
        Endpoint::Vpg => vpgs::one(app, id),
        Endpoint::Statuses => Ok(vpgs::statuses(app)),
        Endpoint::SubStatuses => Ok(vpgs::sub_statuses()),
        Endpoint::Priorities => Ok(vpgs::priorities()),
        Endpoint::EntityTypes => Ok(vpgs::entity_types()),
        Endpoint::Checkpoints => checkpoints::list(app, call, id),
        Endpoint::InsertCheckpoint => checkpoints::insert(app, call, id),
        Endpoint::CheckpointStats => checkpoints::stats(app, id),
        Endpoint::Tasks => tasks::list(app, call),
        Endpoint::TaskTypes => Ok(tasks::types()),
        Endpoint::Task => tasks::one(app, id),
        Endpoint::Flrs => Ok(flrs::list(app, call)),
        Endpoint::Mount => flrs::mount(app, call).await,
        Endpoint::Flr => flrs::one(app, id),
        Endpoint::Unmount => flrs::unmount(app, id),
        Endpoint::Browse => flrs::browse(app, call, id).await,
        Endpoint::RequestDownload => flrs::download(app, call, id).await,
        Endpoint::Download => download::send(app, call, id),
        Endpoint::ClockUtc => Ok(clock::utc(app)),
        Endpoint::ClockLocal => Ok(clock::local(app)),
        Endpoint::ClockArgument => clock::argument(app, call),
    }
}

fn authorize(app: &App, call: &Call) -> Result<(), Failure> {
    let world = app.world();
    let accepted = call
        .bearer()
        .is_some_and(|token| world.realm.accepts(token, app.clock.now(), &world.switches));
    if accepted {
        Ok(())
    } else {
        Err(Failure::unauthorized(call.bearer().is_some()))
    }
}

/// The service of every connection.
#[derive(Clone)]
pub(crate) struct Connection {
    app: Arc<App>,
    /// Dropped after the app: when the last is gone, nothing holds on to it any more.
    _token: TaskTrackerToken,
}

impl Connection {
    pub(crate) fn new(app: &Arc<App>) -> Self {
        Self {
            app: Arc::clone(app),
            _token: app.work.token(),
        }
    }
}

impl<B> tower::Service<Request<B>> for Connection
where
    B: axum::body::HttpBody<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response<Body>;
    type Error = Cut;
    type Future = BoxFuture<'static, Result<Response<Body>, Cut>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(serve(Arc::clone(&self.app), request.map(Body::new)))
    }
}
