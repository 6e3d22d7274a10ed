//! Which paths there are. They are matched without letter case, as ASP.NET does.

use axum::http::Method;

use super::request::Call;

/// An operation that is served.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// HTTP method.
    pub method: &'static str,
    /// Path, with its parameters in braces as in the vendor's OpenAPI document.
    pub path: &'static str,
    /// Query parameters that are known; others are ignored.
    pub query: &'static [&'static str],
    endpoint: Endpoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Token,
    LocalSite,
    PeerSites,
    PeerSite,
    VirtualizationSites,
    VirtualizationSite,
    UnprotectedVms,
    Vms,
    Vm,
    PointsInTime,
    PointsInTimeStats,
    Vpgs,
    Vpg,
    Statuses,
    SubStatuses,
    Priorities,
    EntityTypes,
    Checkpoints,
    InsertCheckpoint,
    CheckpointStats,
    Tasks,
    TaskTypes,
    Task,
    Flrs,
    Mount,
    Flr,
    Unmount,
    Browse,
    RequestDownload,
    Download,
    ClockUtc,
    ClockLocal,
    ClockArgument,
}

impl Endpoint {
    /// Whether a bearer token is needed. The download decides for itself.
    pub(super) fn needs_token(self) -> bool {
        !matches!(self, Self::Token | Self::Download)
    }
}

const VM_FILTERS: &[&str] = &[
    "vpgName",
    "vmName",
    "status",
    "subStatus",
    "protectedSiteType",
    "recoverySiteType",
    "sourceType",
    "targetType",
    "protectedSiteIdentifier",
    "recoverySiteIdentifier",
    "sourceSite",
    "targetSite",
    "organizationName",
    "priority",
    "vmIdentifier",
    "includeBackupedVms",
    "includeMountedVms",
];

const VPG_FILTERS: &[&str] = &[
    "name",
    "status",
    "subStatus",
    "protectedSiteType",
    "recoverySiteType",
    "protectedSiteIdentifier",
    "recoverySiteIdentifier",
    "sourceSite",
    "targetSite",
    "sourceType",
    "targetType",
    "organizationName",
    "priority",
];

const fn op(
    method: &'static str,
    path: &'static str,
    query: &'static [&'static str],
    endpoint: Endpoint,
) -> Operation {
    Operation {
        method,
        path,
        query,
        endpoint,
    }
}

/// Everything that is served, fixed paths before those with parameters.
pub const OPERATIONS: &[Operation] = &[
    op(
        "POST",
        "/auth/realms/{realm}/protocol/openid-connect/token",
        &[],
        Endpoint::Token,
    ),
    op("GET", "/v1/localsite", &[], Endpoint::LocalSite),
    op(
        "GET",
        "/v1/peersites",
        &["peerName", "pairingStatus", "location", "hostName", "port"],
        Endpoint::PeerSites,
    ),
    op(
        "GET",
        "/v1/peersites/{siteIdentifier}",
        &[],
        Endpoint::PeerSite,
    ),
    op(
        "GET",
        "/v1/virtualizationsites",
        &[],
        Endpoint::VirtualizationSites,
    ),
    op(
        "GET",
        "/v1/virtualizationsites/{siteIdentifier}",
        &[],
        Endpoint::VirtualizationSite,
    ),
    op(
        "GET",
        "/v1/virtualizationsites/{siteIdentifier}/vms",
        &[],
        Endpoint::UnprotectedVms,
    ),
    op("GET", "/v1/vms", VM_FILTERS, Endpoint::Vms),
    op(
        "GET",
        "/v1/vms/{vmIdentifier}",
        &["vpgIdentifier", "includeBackupedVms", "includeMountedVms"],
        Endpoint::Vm,
    ),
    op(
        "GET",
        "/v1/vms/{vmIdentifier}/pointsInTime",
        &["vpgIdentifier", "startDate", "endDate"],
        Endpoint::PointsInTime,
    ),
    op(
        "GET",
        "/v1/vms/{vmIdentifier}/pointsInTime/stats",
        &["vpgIdentifier"],
        Endpoint::PointsInTimeStats,
    ),
    op("GET", "/v1/vpgs", VPG_FILTERS, Endpoint::Vpgs),
    op("GET", "/v1/vpgs/statuses", &[], Endpoint::Statuses),
    op("GET", "/v1/vpgs/substatuses", &[], Endpoint::SubStatuses),
    op("GET", "/v1/vpgs/priorities", &[], Endpoint::Priorities),
    op("GET", "/v1/vpgs/entitytypes", &[], Endpoint::EntityTypes),
    op("GET", "/v1/vpgs/{vpgIdentifier}", &[], Endpoint::Vpg),
    op(
        "GET",
        "/v1/vpgs/{vpgIdentifier}/checkpoints",
        &["startDate", "endDate"],
        Endpoint::Checkpoints,
    ),
    op(
        "POST",
        "/v1/vpgs/{vpgIdentifier}/checkpoints",
        &[],
        Endpoint::InsertCheckpoint,
    ),
    op(
        "GET",
        "/v1/vpgs/{vpgIdentifier}/checkpoints/stats",
        &[],
        Endpoint::CheckpointStats,
    ),
    op(
        "GET",
        "/v1/tasks",
        &[
            "startedBeforeDate",
            "startedAfterDate",
            "completedBeforeDate",
            "completedAfterDate",
            "type",
            "status",
        ],
        Endpoint::Tasks,
    ),
    op("GET", "/v1/tasks/types", &[], Endpoint::TaskTypes),
    op("GET", "/v1/tasks/{taskIdentifier}", &[], Endpoint::Task),
    op("GET", "/v1/flrs", &["vmIdentifier"], Endpoint::Flrs),
    op("POST", "/v1/flrs", &[], Endpoint::Mount),
    op("GET", "/v1/flrs/{flrSessionIdentifier}", &[], Endpoint::Flr),
    op(
        "DELETE",
        "/v1/flrs/{flrSessionIdentifier}",
        &[],
        Endpoint::Unmount,
    ),
    op(
        "POST",
        "/v1/flrs/{flrSessionIdentifier}/browse",
        &[],
        Endpoint::Browse,
    ),
    op(
        "POST",
        "/v1/flrs/{flrSessionIdentifier}/download",
        &[],
        Endpoint::RequestDownload,
    ),
    op("GET", "/v1/downloads/{download}", &[], Endpoint::Download),
    op(
        "GET",
        "/v1/serverDateTime/serverDateTimeUtc",
        &[],
        Endpoint::ClockUtc,
    ),
    op(
        "GET",
        "/v1/serverDateTime/serverDateTimeLocal",
        &[],
        Endpoint::ClockLocal,
    ),
    op(
        "GET",
        "/v1/serverDateTime/dateTimeArgument",
        &["dateTime"],
        Endpoint::ClockArgument,
    ),
];

pub(super) enum Route {
    /// The endpoint, and the path's parameters.
    Found(Endpoint, Vec<String>),
    /// The path is known with another method.
    OtherMethod,
    None,
}

pub(super) fn find(call: &Call) -> Route {
    let mut other_method = false;
    for operation in OPERATIONS {
        let Some(parameters) = parameters(operation.path, &call.segments) else {
            continue;
        };
        if call.method == Method::HEAD || call.method.as_str() != operation.method {
            other_method = true;
            continue;
        }
        return Route::Found(operation.endpoint, parameters);
    }
    if other_method {
        Route::OtherMethod
    } else {
        Route::None
    }
}

fn parameters(template: &str, segments: &[String]) -> Option<Vec<String>> {
    let mut wanted = template.split('/').filter(|part| !part.is_empty());
    let mut found = Vec::new();
    for segment in segments {
        let part = wanted.next()?;
        if part.starts_with('{') {
            found.push(segment.clone());
        } else if !part.eq_ignore_ascii_case(segment) {
            return None;
        }
    }
    wanted.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        path.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn templates() {
        let template = "/v1/vpgs/{vpgIdentifier}/checkpoints";
        assert_eq!(
            parameters(template, &segments("/V1/vpgs/X/Checkpoints")),
            Some(vec!["X".to_owned()])
        );
        assert_eq!(parameters(template, &segments("/v1/vpgs/X")), None);
        assert_eq!(
            parameters(template, &segments("/v1/vpgs/X/checkpoints/stats")),
            None
        );
    }
}
