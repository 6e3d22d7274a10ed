//! `trust`: a person looks at the certificate that the ZVM shows, and accepts it.
use std::path::Path;

use rewind_core::{
    Error, ErrorCode,
    certificate::{Certificate, Fingerprint},
    state::KnownCertificate,
};
use serde::Serialize;

use crate::{
    interrupt::Interrupt,
    output,
    output::Output,
    permit, session, terminal,
    wrap::{hanging, prose},
};

/// What is trusted.
#[derive(Serialize)]
struct Report {
    /// Host and port.
    zvm: String,
    /// SHA-256 of the certificate that it shows.
    shown: String,
    /// SHA-256 of the one that was remembered before.
    known: Option<String>,
    /// That it is; where it is not, the command fails.
    trusted: bool,
    /// Why it is.
    why: Why,
    /// Whether a person accepted the one that is shown just now, in this command.
    accepted: bool,
}

/// Why a certificate is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Why {
    /// The configuration pins it.
    Pinned,
    /// It was remembered at the first use.
    FirstUse,
    /// A person accepted it earlier.
    AcceptedBefore,
    /// A person accepted it in this command.
    AcceptedNow,
}

/// Shows the certificate and the one that is remembered, and asks where they differ.
///
/// # Errors
///
/// `configuration` where certificates are verified, `certificate_changed` where the configuration pins another one,
/// `confirmation_required` without a terminal, `declined`, and those of the ZVM and the state.
pub async fn run(
    config: Option<&Path>,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let config = session::load(config)?;
    let certificate = Certificate::of(&config)?;
    let shown = tokio::select! {
        shown = certificate.shown() => shown?,
        () = interrupt.token().cancelled_owned() => return Err(undecided()),
    };
    if let Some(pinned) = certificate.pinned() {
        if pinned != shown {
            return Err(certificate.changed(pinned, shown));
        }
        report(
            output,
            &certificate,
            shown,
            None,
            Why::Pinned,
            "the configuration pins it",
        );
        return Ok(());
    }
    let known = certificate.known()?;
    if let Some(known) = &known
        && known.sha256 == shown
    {
        report(
            output,
            &certificate,
            shown,
            Some(known),
            match known.accepted_by {
                Some(_) => Why::AcceptedBefore,
                None => Why::FirstUse,
            },
            &remembered(known),
        );
        return Ok(());
    }
    let question = question(&certificate, shown, known.as_ref());
    if !terminal::is_there() {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            format!("a person has to accept this at a terminal. {question}"),
        )
        .with_next("Run `zerto-rewind trust` in a terminal; or write the right SHA-256 as `tls_fingerprint` to the configuration."));
    }
    permit::may_be_tried(&config.state_dir)?;
    output::note(&hanging(&output::lines(&question), ""));
    let agrees = tokio::select! {
        agrees = terminal::agrees("Trust the certificate that it shows now?") => agrees,
        () = interrupt.token().cancelled_owned() => return Err(undecided()),
    };
    if !agrees {
        return Err(Error::new(
            ErrorCode::Declined,
            format!("the certificate of {} was not accepted", certificate.zvm()),
        )
        .with_next("Find out who answers at this address. Nothing is sent to it until its certificate is the one that is known."));
    }
    permit::passphrase_until(&config.state_dir, interrupt).await?;
    let by = session::caller();
    certificate.accept(shown, &by)?;
    report(
        output,
        &certificate,
        shown,
        known.as_ref(),
        Why::AcceptedNow,
        &format!("accepted by {by}"),
    );
    Ok(())
}

fn undecided() -> Error {
    Error::new(ErrorCode::Cancelled, "the certificate was not decided on")
        .with_next("Run `zerto-rewind trust` again.")
}

/// Since when one is known, and from whom.
pub fn remembered(known: &KnownCertificate) -> String {
    let since = known.since;
    match &known.accepted_by {
        Some(by) => format!("accepted by {by} at {since:.0}"),
        None => format!("remembered at the first use, at {since:.0}"),
    }
}

fn question(
    certificate: &Certificate,
    shown: Fingerprint,
    known: Option<&KnownCertificate>,
) -> String {
    let zvm = certificate.zvm();
    match known {
        None => {
            format!("The certificate of {zvm} was never accepted. SHA-256:\n{shown}")
        }
        // A fingerprint has its line to itself, so that it can be copied and compared.
        Some(known) => format!(
            "The certificate of {zvm} has changed.\nSHA-256 of the one that is known ({}):\n{}\nSHA-256 of the one that is shown now:\n{shown}",
            remembered(known),
            known.sha256
        ),
    }
}

fn report(
    output: Output,
    certificate: &Certificate,
    shown: Fingerprint,
    known: Option<&KnownCertificate>,
    why: Why,
    in_words: &str,
) {
    let report = Report {
        zvm: certificate.zvm().to_owned(),
        shown: shown.to_string(),
        known: known.map(|known| known.sha256.to_string()),
        trusted: true,
        why,
        accepted: why == Why::AcceptedNow,
    };
    output.result(&report, |report| {
        prose(&format!(
            "The certificate of {} is trusted ({in_words}). SHA-256:\n{}",
            report.zvm, report.shown
        ))
    });
}
