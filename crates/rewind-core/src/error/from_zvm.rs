//! A client's error as one of the domain's.
use super::{Error, ErrorCode};
use zvm_client::CertificateRefusal as Refusal;

/// Where a proxy stands between, it is the first that can be wrong.
pub(crate) const NEXT_TO_PROXY: &str = "Correct HTTPS_PROXY (or ALL_PROXY) in the environment, or except the ZVM from it with NO_PROXY. Where the proxy is \
    the right one, see that it lets this host through to the ZVM, and that `zerto_url` is right.";

/// The proxy that the environment names for a ZVM.
fn proxy_before(host: &str) -> Option<String> {
    let url = url::Url::parse(&format!("https://{host}")).ok()?;
    let (proxy, port) = zvm_client::proxy_of(&url)?;
    Some(format!("{proxy}:{port}"))
}

impl From<zvm_client::Error> for Error {
    fn from(error: zvm_client::Error) -> Self {
        use zvm_client::Error as Zvm;
        let code = match &error {
            Zvm::Unreachable { .. } => ErrorCode::ZvmUnreachable,
            Zvm::Certificate { .. } => ErrorCode::CertificateRefused,
            Zvm::Untrusted { refusal, .. } => match refusal {
                Refusal::Changed { .. } => ErrorCode::CertificateChanged,
                Refusal::Undecided { .. } => ErrorCode::State,
                _ => ErrorCode::CertificateRefused,
            },
            Zvm::LoginBlocked(blocked) if blocked.undecided => ErrorCode::State,
            Zvm::LoginRefused { .. } | Zvm::LoginBlocked(_) => ErrorCode::LoginRefused,
            Zvm::NotPermitted { .. } => ErrorCode::NotPermitted,
            Zvm::Deadline { .. } => ErrorCode::DeadlinePassed,
            Zvm::Config(_) | Zvm::NoSecret { .. } => ErrorCode::Configuration,
            _ => ErrorCode::ZvmError,
        };
        // The client has already bounded and cleaned what the ZVM said.
        let mapped = Self::new(code, error.to_string());
        if let Zvm::Unreachable { what, host, detail } = &error
            && let Some(proxy) = proxy_before(host)
        {
            return Self::new(
                code,
                format!(
                    "{what}: the ZVM at {host} can't be reached through the proxy {proxy}: {detail}"
                ),
            )
            .with_next(NEXT_TO_PROXY);
        }
        match error {
            Zvm::Config(_) => mapped
                .with_next("Correct `ca_file` or `zerto_url` in the configuration, or put the file in place that it names."),
            Zvm::NoSecret { .. } => mapped
                .with_next("Correct what the message names. Nothing was sent, so no login was refused."),
            Zvm::Unknown { .. } | Zvm::Deadline { unknown: true, .. } => mapped
                .with_next("Look on the ZVM whether it happened before you try again."),
            Zvm::LoginBlocked(zvm_client::LoginBlocked { retry_after: Some(_), .. }) => mapped
                .with_next("Try again in a moment: this login was not sent."),
            Zvm::Untrusted { refusal: Refusal::Changed { configured: true, .. }, .. } => mapped
                .with_next("If nobody renewed the appliance's certificate, find out first who answers at this address. Else compare what is shown with the SHA-256 that the appliance itself shows, and write it as `tls_fingerprint` to the configuration."),
            Zvm::Untrusted { refusal: Refusal::FirstUse { .. }, .. } => mapped
                .with_next("Compare it with the SHA-256 that the appliance itself shows, and accept it at a terminal: `zerto-rewind trust`; or write it as `tls_fingerprint` to the configuration."),
            Zvm::ForeignHost { .. } => mapped
                .with_next("Set `zerto_url` to the address that the ZVM itself uses, or find out why it sends downloads elsewhere."),
            _ => mapped,
        }
    }
}
