//! The switches: every behaviour of a ZVM that is unknown, differs between versions, or goes wrong.
//!
//! The defaults are the most likely behaviour of a healthy 10.x appliance. All of them can be set in a
//! scenario file under `[switches]`, changed at run time with [`Sim::update`](crate::Sim::update), or with
//! `PATCH /sim/switches`.

mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::values::*;
use crate::names::{self, Code};
use crate::spread::Spread;

/// Everything that can be switched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// `expires_in` of new access tokens, in seconds.
    pub token_lifetime: u64,
    /// Whether the password grant answers with a refresh token.
    pub refresh_token: bool,
    /// `refresh_expires_in`: how long an unused session lives, in seconds.
    pub refresh_lifetime: u64,
    /// Longest life of a login session, refreshed or not, in seconds.
    pub session_lifetime: u64,
    /// Tokens that were asked for without `scope=openid` are refused by the API.
    pub require_openid: bool,
    /// State of the user's account.
    pub account: Account,
    /// The roles that access tokens claim for the account, of the realm and of the public client alike; nothing: they claim none.
    pub roles: Option<Vec<String>>,
    /// `false`: the token endpoint answers 503 with an HTML page, as while the appliance starts.
    pub keycloak_up: bool,

    /// Letter case of member names.
    pub casing: Casing,
    /// Form of dates.
    pub dates: Dates,
    /// Enumerations as numbers or as names.
    pub enums: Enums,
    /// Where the identifiers of VMs, VPGs, tasks and sites are.
    pub ids: Ids,
    /// Checkpoint times in whole seconds (`…:05.000Z`); `false`: with their milliseconds.
    pub whole_seconds: bool,
    /// Which of two sources to follow for the VPG statuses 3 and 4.
    pub statuses: StatusOrder,
    /// Body of an error answer.
    pub error_body: ErrorBody,

    /// How list filters compare.
    pub filters: Filters,
    /// The ZVM's clock minus the host's, in milliseconds.
    pub clock_offset_ms: i64,
    /// The ZVM's time zone, in minutes east of UTC: dates without a zone are read in it.
    pub utc_offset_minutes: i32,

    /// Whether a tagged insert is accepted.
    pub insert: Insert,
    /// `Message` of a refused insert.
    pub insert_message: String,
    /// Silently drops the next so many inserts that would have worked.
    pub drop_next: u32,
    /// Silently drops every insert.
    pub tag_never_shows: bool,
    /// Silently drops an insert while an earlier one of the same VPG is not listed (measured on a 10.x ZVM).
    pub drop_back_to_back: bool,
    /// From the end of the task to the tag in the journal; else the scenario's timing.
    pub listing_lag: Option<Spread>,
    /// Keeps tags from being listed; those that are due come into the list when this is switched off again.
    pub hold_listing: bool,
    /// What becomes of an insert's task.
    pub task: TaskFate,
    /// `CompleteReason` of a failed task.
    pub task_message: String,
    /// How long a task takes; else the scenario's timing.
    pub task_duration: Option<Spread>,
    /// How long a new task is answered with 404.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub task_unknown_for: Duration,
    /// What an insert at a VPG in sync, paused or disconnected gets.
    pub not_ready: NotReady,
    /// Whether automatic checkpoints are taken.
    pub auto_checkpoints: bool,
    /// Whether a window's ends belong to it.
    pub window_inclusive: bool,

    /// `EnabledActions.IsFlrEnabled`, and whether a mount is accepted.
    pub flr_enabled: bool,
    /// Answer of `GET /v1/flrs/{id}`.
    pub flr_get: FlrGet,
    /// What becomes of a mount.
    pub mount: Mount,
    /// How long a mount takes; else the scenario's timing.
    pub mount_duration: Option<Spread>,
    /// A status that is shown instead of `MountInProgress` while a mount runs.
    pub mounting_status: Option<String>,
    /// The status of a mounted session.
    pub mounted_status: String,
    /// Refuses a second mount of a VM.
    pub one_mount_per_vm: bool,
    /// When a mounted session disappears by itself.
    pub session_vanishes: Vanishes,
    /// `CanMount.IsAllowed` of points in time.
    pub can_mount: bool,
    /// Appends `; Used for File Level Restore` to the tag of a mounted checkpoint.
    pub flr_suffix: bool,

    /// Whether `pageNumber` and `pageSize` are heeded when browsing.
    pub browse_paging: Paging,
    /// Number of the first page.
    pub browse_page_base: u32,
    /// Page size when none is asked for; nothing: all items.
    pub browse_page_size: Option<u32>,
    /// Largest page size.
    pub browse_page_max: u32,
    /// `Path` of items: whole, or the last component alone.
    pub browse_path: BrowsePath,
    /// `Type` of links.
    pub link_type: String,

    /// Form of the download URL.
    pub download_url: DownloadUrl,
    /// Scheme, host and port of an absolute foreign download URL.
    pub download_foreign_host: String,
    /// Whether the download URL wants the bearer token.
    pub download_token: DownloadToken,
    /// A single file arrives as it is or in a zip.
    pub single_file: SingleFile,
    /// What is wrong with downloaded bytes.
    pub download_damage: Damage,
    /// A download URL works once.
    pub download_single_use: bool,
    /// How long a download URL works.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub download_lifetime: Duration,
    /// Sends `Content-Length` with a single raw file instead of chunks without a length.
    pub download_length: bool,

    /// What becomes of an unmount.
    pub unmount: Unmount,
    /// Answer of a `DELETE` that was accepted.
    pub unmount_answer: UnmountAnswer,
    /// Answer of a `DELETE` for a session that is gone.
    pub unmount_repeat: UnmountRepeat,
    /// How long an unmount takes; else the scenario's timing.
    pub unmount_duration: Option<Spread>,
    /// Answer of `GET /v1/flrs/{id}` for a session that is gone.
    pub flr_gone: FlrGone,

    /// The same for one VPG, by its name or identifier.
    pub vpg: BTreeMap<String, VpgSwitches>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            token_lifetime: 300,
            refresh_token: true,
            refresh_lifetime: 1800,
            session_lifetime: 36_000,
            require_openid: false,
            account: Account::Ready,
            roles: None,
            keycloak_up: true,
            casing: Casing::Pascal,
            dates: Dates::Iso,
            enums: Enums::Numbers,
            ids: Ids::TopLevel,
            whole_seconds: true,
            statuses: StatusOrder::RpoFirst,
            error_body: ErrorBody::Message,
            filters: Filters::Exact,
            clock_offset_ms: 0,
            utc_offset_minutes: 0,
            insert: Insert::Accepted,
            insert_message: "The checkpoint could not be inserted.".to_owned(),
            drop_next: 0,
            tag_never_shows: false,
            drop_back_to_back: true,
            listing_lag: None,
            hold_listing: false,
            task: TaskFate::Completes,
            task_message: "The operation failed. The VRA did not answer in time.".to_owned(),
            task_duration: None,
            task_unknown_for: Duration::ZERO,
            not_ready: NotReady::Refused,
            auto_checkpoints: true,
            window_inclusive: true,
            flr_enabled: true,
            flr_get: FlrGet::Array,
            mount: Mount::Succeeds,
            mount_duration: None,
            mounting_status: None,
            mounted_status: "MountCompletedSuccessfully".to_owned(),
            one_mount_per_vm: true,
            session_vanishes: Vanishes::Never,
            can_mount: true,
            flr_suffix: true,
            browse_paging: Paging::Honoured,
            browse_page_base: 1,
            browse_page_size: None,
            browse_page_max: 1000,
            browse_path: BrowsePath::Full,
            link_type: "File".to_owned(),
            download_url: DownloadUrl::Relative,
            download_foreign_host: "https://192.0.2.10".to_owned(),
            download_token: DownloadToken::NotNeeded,
            single_file: SingleFile::Raw,
            download_damage: Damage::None,
            download_single_use: true,
            download_lifetime: Duration::from_secs(60),
            download_length: false,
            unmount: Unmount::Succeeds,
            unmount_answer: UnmountAnswer::TaskId,
            unmount_repeat: UnmountRepeat::NotFound,
            unmount_duration: None,
            flr_gone: FlrGone::NotFound,
            vpg: BTreeMap::new(),
        }
    }
}

/// What differs for one VPG. What is not set is as for all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VpgSwitches {
    /// The VPG's status instead of the scenario's.
    pub status: Option<Code>,
    /// The VPG's substatus instead of the scenario's.
    pub sub_status: Option<Code>,
    /// The VPG's configured history instead of the scenario's. What a shorter one dropped does not come back.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::optional")]
    pub history: Option<Duration>,
    /// See [`Switches::insert`].
    pub insert: Option<Insert>,
    /// See [`Switches::drop_next`]; counted for this VPG alone.
    pub drop_next: u32,
    /// See [`Switches::tag_never_shows`].
    pub tag_never_shows: Option<bool>,
    /// See [`Switches::listing_lag`].
    pub listing_lag: Option<Spread>,
    /// See [`Switches::hold_listing`].
    pub hold_listing: Option<bool>,
    /// See [`Switches::task`].
    pub task: Option<TaskFate>,
    /// See [`Switches::task_duration`].
    pub task_duration: Option<Spread>,
    /// See [`Switches::not_ready`].
    pub not_ready: Option<NotReady>,
    /// See [`Switches::auto_checkpoints`].
    pub auto_checkpoints: Option<bool>,
    /// See [`Switches::flr_enabled`].
    pub flr_enabled: Option<bool>,
    /// See [`Switches::can_mount`].
    pub can_mount: Option<bool>,
    /// See [`Switches::mount`].
    pub mount: Option<Mount>,
    /// See [`Switches::mount_duration`].
    pub mount_duration: Option<Spread>,
}

impl Switches {
    /// The switches of one VPG, to set: `sw.vpg_mut("app01-db").insert = Some(Insert::Refused)`.
    pub fn vpg_mut(&mut self, name_or_id: &str) -> &mut VpgSwitches {
        self.vpg.entry(name_or_id.to_owned()).or_default()
    }

    /// The first name of a state that the ZVM does not have.
    pub(crate) fn unknown_name(&self) -> Option<String> {
        let unknown = |vpg: &str, code: &Option<Code>, known: &[&str]| {
            let code = code.as_ref()?;
            let unknown = code.resolve(known).is_none();
            unknown.then(|| format!("vpg \"{vpg}\": {code:?} is no state that is known"))
        };
        self.vpg.iter().find_map(|(name, own)| {
            unknown(name, &own.status, &names::STATUSES)
                .or_else(|| unknown(name, &own.sub_status, &names::SUB_STATUSES))
        })
    }

    /// What was set for this VPG by its name or its identifier.
    fn own<'a>(&'a self, name: &str, id: &str) -> Option<&'a VpgSwitches> {
        self.vpg.get(name).or_else(|| self.vpg.get(id))
    }

    /// What holds for a VPG: its own switches, else those for all.
    pub(crate) fn of_vpg(&self, name: &str, id: &str) -> VpgRules {
        let own = self.own(name, id).cloned().unwrap_or_default();
        VpgRules {
            insert: own.insert.unwrap_or(self.insert),
            never_shows: own.tag_never_shows.unwrap_or(self.tag_never_shows),
            listing_lag: own.listing_lag.or(self.listing_lag),
            hold_listing: own.hold_listing.unwrap_or(self.hold_listing),
            task: own.task.unwrap_or(self.task),
            task_duration: own.task_duration.or(self.task_duration),
            not_ready: own.not_ready.unwrap_or(self.not_ready),
            auto_checkpoints: own.auto_checkpoints.unwrap_or(self.auto_checkpoints),
            flr_enabled: own.flr_enabled.unwrap_or(self.flr_enabled),
            can_mount: own.can_mount.unwrap_or(self.can_mount),
            mount: own.mount.unwrap_or(self.mount),
            mount_duration: own.mount_duration.or(self.mount_duration),
            history: own.history,
            status: own.status,
            sub_status: own.sub_status,
        }
    }

    /// Uses up one of the inserts to drop; `false` when there are none.
    pub(crate) fn take_drop(&mut self, name: &str, id: &str) -> bool {
        let key = if self.vpg.contains_key(name) {
            name
        } else {
            id
        };
        let left = match self.vpg.get_mut(key) {
            Some(own) if own.drop_next > 0 => &mut own.drop_next,
            _ => &mut self.drop_next,
        };
        let drop = *left > 0;
        *left = left.saturating_sub(1);
        drop
    }
}

/// The switches as they hold for one VPG.
pub(crate) struct VpgRules {
    pub(crate) insert: Insert,
    pub(crate) never_shows: bool,
    pub(crate) listing_lag: Option<Spread>,
    pub(crate) hold_listing: bool,
    pub(crate) task: TaskFate,
    pub(crate) task_duration: Option<Spread>,
    pub(crate) not_ready: NotReady,
    pub(crate) auto_checkpoints: bool,
    pub(crate) flr_enabled: bool,
    pub(crate) can_mount: bool,
    pub(crate) mount: Mount,
    pub(crate) mount_duration: Option<Spread>,
    pub(crate) history: Option<Duration>,
    pub(crate) status: Option<Code>,
    pub(crate) sub_status: Option<Code>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vpg_overrides_what_holds_for_all() {
        let mut switches = Switches {
            drop_next: 1,
            ..Switches::default()
        };
        switches.vpg_mut("db").insert = Some(Insert::Refused);
        switches.vpg_mut("db").drop_next = 1;
        assert_eq!(switches.of_vpg("db", "id-1").insert, Insert::Refused);
        assert_eq!(switches.of_vpg("web", "id-2").insert, Insert::Accepted);
        assert!(switches.take_drop("db", "id-1"));
        assert!(switches.take_drop("db", "id-1"), "then the one for all");
        assert!(!switches.take_drop("db", "id-1"));
    }

    #[test]
    fn survives_toml() {
        let mut switches = Switches::default();
        switches.vpg_mut("db").listing_lag = Some(Spread::millis(1, 5));
        let text = toml::to_string(&switches).unwrap();
        assert_eq!(toml::from_str::<Switches>(&text).unwrap(), switches);
        assert!(toml::from_str::<Switches>("no_such_switch = 1").is_err());
    }
}
