//! The steps of a guard and of a recovery, by the requests that they make.
use std::time::Duration;

/// Requests of one method and path: `*` is one segment, a last `**` any rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: &'static str,
    pub path: &'static str,
}

impl Request {
    pub fn is(&self, method: &str, path: &str) -> bool {
        let mut given = path.split('/');
        let all = self
            .path
            .split('/')
            .take_while(|wanted| *wanted != "**")
            .all(|wanted| {
                given
                    .next()
                    .is_some_and(|given| wanted == "*" || wanted == given)
            });
        let rest = self.path.ends_with("/**") || given.next().is_none();
        self.method == method && all && rest
    }
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub name: &'static str,
    pub request: Request,
    /// Requests like it that were made before.
    pub skip: u32,
    /// What is answered right before it, and the how manieth; nothing before the first request.
    pub after: Option<(Request, usize)>,
    /// How long after that it is made.
    pub pause: Duration,
}

const fn get(path: &'static str) -> Request {
    Request {
        method: "GET",
        path,
    }
}

const fn post(path: &'static str) -> Request {
    Request {
        method: "POST",
        path,
    }
}

const fn step(
    name: &'static str,
    request: Request,
    skip: u32,
    after: Option<(Request, usize)>,
) -> Step {
    Step {
        name,
        request,
        skip,
        after,
        pause: Duration::ZERO,
    }
}

const TOKEN: Request = post("/auth/**");
const VMS: Request = get("/v1/vms");
const VPG: Request = get("/v1/vpgs/*");
const CLOCK: Request = get("/v1/serverDateTime/serverDateTimeUtc");
const JOURNAL: Request = get("/v1/vpgs/*/checkpoints");
const INSERT: Request = post("/v1/vpgs/*/checkpoints");
const TASK: Request = get("/v1/tasks/*");
const POINTS: Request = get("/v1/vms/*/pointsInTime");
const SESSIONS: Request = get("/v1/flrs");
const MOUNT: Request = post("/v1/flrs");
const SESSION: Request = get("/v1/flrs/*");
const BROWSE: Request = post("/v1/flrs/*/browse");
const DOWNLOAD: Request = post("/v1/flrs/*/download");
const BYTES: Request = get("/v1/downloads/*");
const UNMOUNT: Request = Request {
    method: "DELETE",
    path: "/v1/flrs/*",
};

pub const LOGIN: Step = step("log in", TOKEN, 0, None);
pub const LIST_VMS: Step = step("find the VM", VMS, 0, Some((TOKEN, 1)));
pub const READ_VPG: Step = step("read the VPG", VPG, 0, Some((VMS, 1)));

pub const READ_CLOCK: Step = step("read the ZVM's clock", CLOCK, 0, Some((VPG, 1)));
pub const SEND_INSERT: Step = step("insert", INSERT, 0, Some((JOURNAL, 1)));
pub const FOLLOW_TASK: Step = Step {
    pause: Duration::from_millis(250),
    ..step("follow the task", TASK, 0, Some((INSERT, 1)))
};
pub const POLL_JOURNAL: Step = step(
    "look for the tag in the journal",
    JOURNAL,
    1,
    Some((TASK, 1)),
);
/// No request: the tag was just seen in the journal.
pub const RECEIPT: Step = step(
    "write the receipt",
    Request {
        method: "",
        path: "/**",
    },
    0,
    Some((JOURNAL, 2)),
);

pub const LOOK_UP: Step = step("look up the checkpoint", JOURNAL, 0, Some((VPG, 1)));
pub const CAN_MOUNT: Step = step(
    "ask whether it can be mounted",
    POINTS,
    0,
    Some((JOURNAL, 1)),
);
/// The clock is read for the plan, and again when it is carried out.
pub const ASK_SESSIONS: Step = step("look for other sessions", SESSIONS, 0, Some((CLOCK, 2)));
pub const ASK_MOUNT: Step = step("ask for the mount", MOUNT, 0, Some((SESSIONS, 1)));
pub const POLL_MOUNT: Step = step("wait until it is mounted", SESSION, 0, Some((MOUNT, 1)));
pub const ASK_BROWSE: Step = step("browse", BROWSE, 0, Some((SESSION, 1)));
/// The partitions, and three folders.
pub const ASK_DOWNLOAD: Step = step("ask for the download", DOWNLOAD, 0, Some((BROWSE, 4)));
pub const GET_BYTES: Step = step("the bytes", BYTES, 0, Some((DOWNLOAD, 1)));
pub const ASK_UNMOUNT: Step = step("unmount", UNMOUNT, 0, Some((BYTES, 1)));
