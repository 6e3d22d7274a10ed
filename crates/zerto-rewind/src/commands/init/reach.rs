//! The way to the ZVM, and its certificate.
use rewind_core::{
    Error, ErrorCode,
    certificate::{Certificate, Fingerprint},
    config::Config,
    doctor::{self, Check, Status},
};

use super::{Draft, InitArgs, tell};
use crate::{
    commands::trust::remembered, interrupt::Interrupt, output::Output, permit, session, terminal,
};

/// Asks for the address until somebody answers there who speaks TLS. The certificate that is shown; None where nothing is tried.
pub async fn address(
    draft: &mut Draft,
    args: &InitArgs,
    person: bool,
    interrupt: &Interrupt,
) -> Result<Option<Fingerprint>, Error> {
    let mut ask = args.url.is_none();
    loop {
        if ask {
            draft.url = url(draft).await?;
        }
        if args.no_test {
            return Ok(None);
        }
        let config = draft.without_login()?;
        let call = session::call(interrupt.token());
        let (checks, shown) = doctor::reach(&config.zerto_url, &config.tls, &call).await?;
        drop(call);
        if let Some(shown) = shown {
            if person {
                let found: Vec<_> = checks.iter().map(|check| &*check.message).collect();
                tell(&format!("  {}.\n", found.join("; ")));
            }
            return Ok(Some(shown));
        }
        let failed = checks
            .into_iter()
            .find(|check| check.status == Status::Failed);
        let error = failed.map_or_else(unexplained, as_error);
        if !person {
            return Err(error);
        }
        Output::new(false).error(&error);
        tell(
            "Enter tries the same address again; --no-test writes a configuration without trying it.\n",
        );
        ask = true;
    }
}

/// The address, by what the configuration takes for one.
async fn url(draft: &Draft) -> Result<String, Error> {
    loop {
        let question = match &*draft.url {
            "" => "The ZVM's address:".to_owned(),
            before => format!("The ZVM's address [{before}]:"),
        };
        let url = match terminal::ask(&question).await.ok_or_else(no_answer)? {
            same if same.is_empty() => draft.url.clone(),
            url => url,
        };
        match draft.check_url(&url) {
            Ok(()) => return Ok(url),
            Err(mistake) => tell(&format!("  {mistake}\n")),
        }
    }
}

/// The certificate that the ZVM shows, and what is to be remembered of it: nothing before there is a configuration that goes by it.
pub struct Decided {
    pub shown: Fingerprint,
    remember: Option<Remember>,
}

enum Remember {
    /// As at any first use, without a person.
    First,
    /// A person said that it is the appliance's.
    Accepted,
}

impl Decided {
    /// For as long as nothing is remembered, this one alone is accepted.
    pub fn pin(&self, config: &mut Config) {
        if !config.tls.verify && config.tls.fingerprint.is_none() {
            config.tls.fingerprint = Some(self.shown);
        }
    }

    /// Remembers it, as there is a configuration now. What a person should know.
    ///
    /// # Errors
    /// `state`.
    pub fn remember(&self, draft: &Draft) -> Result<Option<String>, Error> {
        let Some(remember) = &self.remember else {
            return Ok(None);
        };
        let certificate = Certificate::of(&draft.without_login()?)?;
        match remember {
            Remember::First => certificate.first_seen(self.shown),
            Remember::Accepted => certificate
                .accept(self.shown, &session::caller())
                .map(|()| None),
        }
    }
}

/// The person's word that it is the appliance's, where nobody else vouches for it. Without a person it is as at any first use.
pub async fn certificate(
    draft: &Draft,
    shown: Fingerprint,
    person: bool,
) -> Result<Decided, Error> {
    let config = draft.without_login()?;
    let decided = |remember| Ok(Decided { shown, remember });
    let tell_it = |about: &str| {
        if person {
            tell(&format!("{about} Its SHA-256:\n{shown}\n"));
        }
    };
    if config.tls.verify {
        // One that is pinned besides is compared in the login.
        tell_it("Authorities vouch for its certificate.");
        return decided(None);
    }
    let certificate = Certificate::of(&config)?;
    let known = match certificate.pinned() {
        Some(pinned) => Some((pinned, "given as --tls-fingerprint".to_owned())),
        None => certificate
            .known()?
            .map(|known| (known.sha256, remembered(&known))),
    };
    if let Some((known, how)) = &known
        && *known == shown
    {
        tell_it(&format!(
            "Its certificate is the same that was {how}, so there is nothing to compare."
        ));
        return decided(None);
    }
    let has_changed = known.is_some();
    match known.map(|(known, _)| known) {
        Some(known) if certificate.pinned().is_some() => {
            return Err(certificate.changed(known, shown).with_next(PINNED));
        }
        Some(known) if !person => {
            return Err(certificate.changed(known, shown).with_next(
                "If nobody renewed the appliance's certificate, find out first who answers at this address. Else compare what is shown \
                 with the SHA-256 that the appliance itself shows, and give that as --tls-fingerprint; or run `zerto-rewind init` at a \
                 terminal, which asks.",
            ));
        }
        None if !person => return decided(Some(Remember::First)),
        Some(known) => {
            permit::may_be_tried(&config.state_dir)?;
            tell(&format!(
                "Its certificate has CHANGED.\nSHA-256 of the one that is known:\n{known}\nSHA-256 of the one that is shown now:\n{shown}"
            ));
        }
        None => tell(&format!(
            "Nobody vouches for its certificate. Compare the SHA-256 with the one that the appliance itself shows:\n{shown}"
        )),
    }
    if !terminal::agrees("Is this your ZVM?").await {
        return Err(Error::new(
            ErrorCode::Declined,
            format!("the certificate of {} was not accepted", certificate.zvm()),
        )
        .with_next("Find out who answers at this address. Nothing was sent to it, and nothing was written."));
    }
    if has_changed {
        // As `trust` does.
        permit::passphrase(&config.state_dir).await?;
    }
    tell("");
    decided(Some(Remember::Accepted))
}

/// Where the one that was given as an argument is not the one that is shown.
pub const PINNED: &str = "If nobody renewed the appliance's certificate, find out first who answers at this address. Else correct --tls-fingerprint: \
    give the SHA-256 that the appliance itself shows.";

fn as_error(check: Check) -> Error {
    let code = check.code.unwrap_or(ErrorCode::ZvmUnreachable);
    let error = Error::new(code, check.message);
    if code == ErrorCode::Configuration {
        // There is none yet: it is the argument that is meant.
        return error
            .with_next("Correct --ca-file (or --url), or put the file in place that it names.");
    }
    match check.fix {
        Some(fix) => error.with_next(fix),
        None => error,
    }
}

fn unexplained() -> Error {
    Error::new(ErrorCode::ZvmUnreachable, "the ZVM shows no certificate")
}

/// The input ended.
pub fn no_answer() -> Error {
    Error::new(
        ErrorCode::Declined,
        "there was no answer, and nothing was written",
    )
    .with_next("Run `zerto-rewind init` again.")
}
