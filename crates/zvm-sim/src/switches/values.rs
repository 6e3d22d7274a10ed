//! What the switches can be set to. In TOML and JSON each value is written in snake case.

use serde::{Deserialize, Serialize};

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident),+ $(,)? })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$value_doc])* $value),+ }
    )+ };
}

choices! {
    /// State of the user's account in the realm.
    Account {
        /// Can log in.
        Ready,
        /// The password has to be changed first: 400 `Account is not fully set up`.
        ActionPending,
        /// 400 `Account disabled`.
        Disabled,
    }
    /// Letter case of member names in answers.
    Casing {
        /// `VpgIdentifier`, as recorded.
        Pascal,
        /// `vpgIdentifier`, as the OpenAPI document has it.
        Camel,
    }
    /// Form of dates in answers.
    Dates {
        /// `2025-03-01T10:00:05.000Z`.
        Iso,
        /// `/Date(1479726853000)/`.
        Milliseconds,
    }
    /// Enumerations in answers.
    Enums {
        /// `1`.
        Numbers,
        /// `"MeetingSLA"`.
        Names,
    }
    /// Where identifiers are.
    Ids {
        /// At the top level and in the link.
        TopLevel,
        /// In the link alone.
        LinkOnly,
    }
    /// Names of the VPG statuses 3 and 4.
    StatusOrder {
        /// 3 `RpoNotMeetingSLA`, 4 `HistoryNotMeetingSLA`.
        RpoFirst,
        /// 3 `HistoryNotMeetingSLA`, 4 `RpoNotMeetingSLA`.
        HistoryFirst,
    }
    /// Body of an error answer.
    ErrorBody {
        /// `{"Message": "…"}`.
        Message,
        /// RFC 7807: `title`, `status`, `detail`.
        Problem,
        /// An HTML page, as from a proxy in front.
        Html,
        /// Nothing.
        Empty,
    }
    /// How list filters on text compare.
    Filters {
        /// The whole text, letter case aside.
        Exact,
        /// A part of it, letter case aside.
        Substring,
        /// Every filter is ignored.
        Ignored,
    }
    /// What a tagged insert gets.
    Insert {
        /// A task.
        Accepted,
        /// 400 with `insert_message`.
        Refused,
    }
    /// What becomes of an insert's task.
    TaskFate {
        /// State 6.
        Completes,
        /// State 4 with `task_message`; nothing is inserted.
        Fails,
        /// Stays in progress; the checkpoint is inserted all the same.
        NeverEnds,
        /// Is 404 once it has ended; the checkpoint is inserted all the same.
        Disappears,
    }
    /// What an insert at a VPG that takes no checkpoints gets.
    NotReady {
        /// 400.
        Refused,
        /// 200, a task that completes, and no checkpoint.
        Dropped,
        /// 200 and a task that fails.
        TaskFails,
    }
    /// Answer of `GET /v1/flrs/{id}`.
    FlrGet {
        /// A list of one, as in the OpenAPI document.
        Array,
        /// The session itself, as in the vendor's 7.0 page.
        Object,
    }
    /// What becomes of a mount.
    Mount {
        /// It succeeds.
        Succeeds,
        /// `MountFailed`.
        Fails,
        /// It stays in progress.
        Hangs,
    }
    /// When a mounted session disappears by itself.
    Vanishes {
        /// Never.
        Never,
        /// As soon as it is mounted.
        WhenMounted,
        /// At the first browse.
        AtBrowse,
        /// At the first download.
        AtDownload,
    }
    /// Paging when browsing.
    Paging {
        /// As asked.
        Honoured,
        /// Each page is the whole list.
        Ignored,
    }
    /// `Path` of browsed items.
    BrowsePath {
        /// From the partition down.
        Full,
        /// The last component.
        Name,
        /// From the partition down, with backslashes.
        Backslash,
    }
    /// Form of a download URL.
    DownloadUrl {
        /// `v1/downloads/…`, as recorded.
        Relative,
        /// `/v1/downloads/…`.
        LeadingSlash,
        /// `v1\downloads\…`.
        Backslash,
        /// `https://<this host>/v1/downloads/…`.
        Absolute,
        /// An absolute URL on `download_foreign_host`.
        Foreign,
    }
    /// Whether the download URL wants a token.
    DownloadToken {
        /// The URL itself is the permission.
        NotNeeded,
        /// 401 without a bearer token.
        Needed,
    }
    /// Form of a single downloaded file.
    SingleFile {
        /// As it is.
        Raw,
        /// In a zip.
        Zip,
    }
    /// What is wrong with downloaded bytes.
    Damage {
        /// Nothing.
        None,
        /// The last byte is missing; the answer ends cleanly.
        Truncated,
        /// The connection is cut after the first bytes.
        Cut,
        /// One byte too many.
        Longer,
        /// As many bytes, but the first is another one.
        Wrong,
        /// After the first bytes nothing more arrives.
        Stalls,
    }
    /// What becomes of an unmount.
    Unmount {
        /// It succeeds.
        Succeeds,
        /// 400; the session stays.
        Refused,
        /// The session ends as `UnmountFailed` and stays.
        Fails,
        /// The session stays in `UnmountInProgress`.
        Hangs,
    }
    /// Answer of an accepted `DELETE`.
    UnmountAnswer {
        /// The quoted identifier of the task.
        TaskId,
        /// `""`.
        EmptyString,
        /// 200 with an empty body.
        Empty,
        /// 204.
        NoContent,
    }
    /// Answer of a `DELETE` for a session that is gone.
    UnmountRepeat {
        /// 404.
        NotFound,
        /// As for the first.
        Accepted,
    }
    /// Answer of `GET /v1/flrs/{id}` for a session that is gone.
    FlrGone {
        /// 404.
        NotFound,
        /// An empty list.
        EmptyList,
    }
}
