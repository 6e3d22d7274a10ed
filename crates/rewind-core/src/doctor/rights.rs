//! What the account may do, as far as the roles tell that its token claims.
//!
//! Role names: the realm of one appliance, and the vendor's page on FLR. Which privilege guards the insert of a tagged checkpoint is
//! not documented; that it is the management of VPGs is likely.
use super::{Check, id};
use crate::text;

/// May do everything.
const ADMINISTRATORS: [&str; 2] = ["admin", "ZertoRole_Admin"];
const TAG: [&str; 2] = [
    "ZertoPrivilege_ManageLocalVpg",
    "ZertoPrivilege_ManageRemoteVpg",
];
const MOUNT: [&str; 2] = [
    "ZertoRole_FileLevelRestoreOperator",
    "ZertoPrivilege_FileLevelRestoreDownload",
];
/// Of roles in a message.
const SHOWN_MAX_LEN: usize = 200;

pub(super) fn to_tag(roles: Option<&[String]>) -> Check {
    check(
        id::RIGHT_TO_TAG,
        roles,
        &TAG,
        "inserting a tagged checkpoint",
        "the first guard shows it",
    )
}

/// Listing FLR sessions was permitted.
pub(super) fn to_mount(roles: Option<&[String]>) -> Check {
    check(
        id::RIGHT_TO_MOUNT,
        roles,
        &MOUNT,
        "file-level restore",
        "FLR sessions may be listed, the first recovery shows the rest",
    )
}

fn check(
    id: &'static str,
    roles: Option<&[String]>,
    privileges: &[&str],
    what: &str,
    until_then: &str,
) -> Check {
    let Some(roles) = roles else {
        let reason = format!("not known: the token names no roles; {until_then}");
        return Check::skipped(id, reason);
    };
    let permits = |role: &&String| {
        let mut known = ADMINISTRATORS.iter().chain(privileges);
        known.any(|known| known.eq_ignore_ascii_case(role))
    };
    if let Some(role) = roles.iter().find(permits) {
        let role = text::display(role, SHOWN_MAX_LEN);
        let message = format!("very likely: the token has the role {role}");
        return Check::ok(id, message);
    }
    let doubt = match text::display(&roles.join(", "), SHOWN_MAX_LEN) {
        none if none.is_empty() => "the token has no role".to_owned(),
        roles => format!("of the token's roles ({roles}) none is known to permit {what}"),
    };
    Check::warning(
        id,
        format!("not known, and doubtful: {doubt}"),
        format!(
            "If it is refused, give the account a role with {}.",
            privileges.join(" and ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{super::Status, *};

    #[test]
    fn roles_speak_for_or_against_it_or_say_nothing() {
        let roles =
            |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (roles, tag, mount) in [
            (None, Status::Skipped, Status::Skipped),
            (roles(&[]), Status::Warning, Status::Warning),
            (roles(&["offline_access", "admin"]), Status::Ok, Status::Ok),
            (roles(&["Admin"]), Status::Ok, Status::Ok),
            (roles(&["viewer"]), Status::Warning, Status::Warning),
            (roles(&["administrator"]), Status::Warning, Status::Warning),
            (
                roles(&["ZertoPrivilege_ManageLocalVpg"]),
                Status::Ok,
                Status::Warning,
            ),
            (
                roles(&["ZertoRole_FileLevelRestoreOperator"]),
                Status::Warning,
                Status::Ok,
            ),
        ] {
            let found = (to_tag(roles.as_deref()), to_mount(roles.as_deref()));
            assert_eq!((found.0.status, found.1.status), (tag, mount), "{roles:?}");
            for check in [found.0, found.1] {
                assert_eq!(check.fix.is_some(), check.status == Status::Warning);
                assert!(check.status == Status::Ok || check.message.contains("not known"));
            }
        }
    }
}
