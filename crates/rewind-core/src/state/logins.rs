//! Refused logins, counted for all processes of this user.
//!
//! The ZVM's realm locks an account after five refused logins in 12 h (read from one appliance's Keycloak realm settings). So:
//!
//! - At most three refused logins in any 12 h per ZVM and account, counted since the last accepted one.
//! - A secret that was refused three times is not tried again, even after 12 h, until it changed.
//! - A secret that was never tried gets one attempt even when the count is at three, and none beyond that.
//! - A person at a terminal may ask for one more attempt at any time.
//! - After a refused one, none is sent for three seconds, whoever asks: two within one second lock the account for a minute. The
//!   same secret is not waited for then, because it would be refused again; any other is.
//!
//! An attempt is reserved before it is sent, so that processes that start at once share the three. While it is under way, it may use up
//! one of them; that of a process that died is not under way. An attempt without an outcome (its process died, its answer was lost)
//! counts as refused for the 12 h, unless its secret was accepted when last the ZVM judged it.

mod dead;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::{State, StateError, millis, timestamp};
use crate::text;

/// Refused logins that are tolerated.
const LIMIT: usize = 3;
const WINDOW: SignedDuration = SignedDuration::from_hours(12);
/// From a refused login to the next: the realm's `quickLoginCheckMilliSeconds` (1 s), and its answer's way to us.
const SPACING: SignedDuration = SignedDuration::from_secs(3);
/// When to ask again while others are logging in.
const SOON: Duration = Duration::from_millis(100);
/// How long an attempt may wait for its outcome before it counts as one without.
const PENDING: SignedDuration = SignedDuration::from_mins(2);
/// Of what the ZVM said to a refused login, so much is kept.
const SAID_MAX_LEN: usize = 400;
/// How long a person's asking holds.
const ASKED: SignedDuration = SignedDuration::from_mins(15);

/// An attempt that was permitted. Its outcome is reported with [`State::login_ended`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "an attempt without an outcome counts as a refused one"]
pub struct LoginAttempt(i64);

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The ZVM accepted the secret.
    Accepted,
    /// The ZVM refused the secret, or the account.
    Refused,
    /// The ZVM did not judge the secret: nothing was sent, or its answer was that it is not ready.
    Unsent,
    /// The secret was sent, and the answer was lost.
    Unknown,
}

impl LoginOutcome {
    fn event(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unsent => "unsent",
            Self::Unknown => "unknown",
        }
    }
}

/// Why no login is attempted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginBlocked {
    /// Other attempts are under way that may use up the limit: ask again when they have ended, after about `retry_after`.
    #[error("other logins to this account are under way: their outcome is waited for first")]
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// A login to this account was refused just now.
    #[error(
        "a login to this account was refused just now, or its answer was lost; none is sent for another {} s, because two refused ones in quick \
         succession lock the account",
        retry_after.as_millis().div_ceil(1000)
    )]
    TooSoon {
        /// When to ask again.
        retry_after: Duration,
        /// It was this secret that was refused: waiting does not help.
        same_secret: bool,
    },
    /// This secret was refused as often as is tolerated.
    #[error(
        "the ZVM refused this same secret {refused} times, last at {last}; it is not tried again, because the account would be locked: \
         correct the password or the client secret in the configuration, or let a person try once more: run `zerto-rewind find VM` at a terminal"
    )]
    SameSecret {
        /// How often.
        refused: usize,
        /// When it was refused last.
        last: Timestamp,
    },
    /// Logins to this account were refused as often as is tolerated, with several secrets or without a clear answer.
    #[error(
        "{failed} logins to this account failed in the last 12 hours; none is tried before {until}, because the account would be locked: \
         if the configuration is right by now, a person has to let it try once more: run `zerto-rewind find VM` at a terminal"
    )]
    TooMany {
        /// How many.
        failed: usize,
        /// When the next attempt is permitted.
        until: Timestamp,
    },
}

/// Why there is no permission for a login.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// No login may be attempted now.
    #[error(transparent)]
    Blocked(#[from] LoginBlocked),
    /// Whether one may be attempted is unknown; so none may.
    #[error(transparent)]
    State(#[from] StateError),
}

impl State {
    /// Reserves an attempt to log in to `account` on `zvm` (host and port) with `secret`, of which only a salted digest is kept.
    ///
    /// # Errors
    ///
    /// No attempt is permitted now, or the state cannot be read or written.
    pub fn login_permitted(
        &self,
        zvm: &str,
        account: &str,
        secret: &SecretString,
    ) -> Result<LoginAttempt, LoginError> {
        self.login_permitted_at(zvm, account, secret, self.now())
    }

    /// Reports how an attempt ended. The first report counts.
    ///
    /// # Errors
    ///
    /// The state cannot be written: the attempt then counts as one without an outcome.
    pub fn login_ended(
        &self,
        attempt: LoginAttempt,
        outcome: LoginOutcome,
    ) -> Result<(), StateError> {
        self.login_ended_at(attempt, outcome, self.now())
    }

    /// Reports that an attempt was refused, and in which words: without any secret.
    ///
    /// # Errors
    ///
    /// As [`login_ended`](Self::login_ended).
    pub fn login_refused(&self, attempt: LoginAttempt, said: &str) -> Result<(), StateError> {
        let said = text::display(said, SAID_MAX_LEN);
        self.end(attempt, LoginOutcome::Refused, Some(&said), self.now())
    }

    /// What the ZVM said when it last refused a login to this account, since the last accepted one: with this secret, if it was tried.
    ///
    /// # Errors
    ///
    /// The state cannot be read.
    pub fn login_refusal(
        &self,
        zvm: &str,
        account: &str,
        secret: &SecretString,
    ) -> Result<Option<String>, StateError> {
        self.read(|database, _| {
            let said: Option<Option<String>> = database
                .prepare_cached(
                    "SELECT said FROM login
                     WHERE zvm = :zvm AND account = :account AND event = 'refused'
                       AND id > (SELECT coalesce(max(id), 0) FROM login
                                 WHERE zvm = :zvm AND account = :account AND event = 'accepted')
                     ORDER BY secret = :secret DESC, id DESC LIMIT 1",
                )?
                .query_row(
                    named_params! {":zvm": zvm, ":account": account, ":secret": digest(database, secret)?},
                    |row| row.get(0),
                )
                .optional()?;
            Ok(said.flatten())
        })
    }

    /// Permits one more attempt, because a person asked for it at a terminal within the last minutes.
    ///
    /// # Errors
    ///
    /// The state cannot be written.
    pub fn person_asked(&self, zvm: &str, account: &str) -> Result<(), StateError> {
        self.person_asked_at(zvm, account, self.now())
    }

    fn login_permitted_at(
        &self,
        zvm: &str,
        account: &str,
        secret: &SecretString,
        now: Timestamp,
    ) -> Result<LoginAttempt, LoginError> {
        self.with(|open| {
            let (owner, dir) = (open.owner()?, open.dir.clone());
            open.write(|database| {
                let login = Login {
                    database,
                    zvm,
                    account,
                    secret: &digest(database, secret)?,
                    now,
                };
                login.settle_dead(&dir)?;
                let asked = match login.blocked()? {
                    None => None,
                    Some(blocked) => match login.asked()? {
                        None => return Ok(Err(blocked)),
                        asked => asked,
                    },
                };
                Ok(match login.too_soon(asked.is_some())? {
                    None => Ok(login.attempt(asked, &owner)?),
                    Some(blocked) => Err(blocked),
                })
            })
        })?
        .map_err(LoginError::Blocked)
    }

    fn login_ended_at(
        &self,
        attempt: LoginAttempt,
        outcome: LoginOutcome,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.end(attempt, outcome, None, now)
    }

    fn end(
        &self,
        attempt: LoginAttempt,
        outcome: LoginOutcome,
        said: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.write(|database| {
            database.execute(
                "INSERT OR IGNORE INTO login (at, zvm, account, secret, event, refers, said)
                 SELECT ?2, zvm, account, secret, ?3, id, ?4 FROM login WHERE id = ?1",
                params![attempt.0, millis(now), outcome.event(), said],
            )?;
            Ok(())
        })
    }

    fn person_asked_at(&self, zvm: &str, account: &str, now: Timestamp) -> Result<(), StateError> {
        self.write(|database| {
            database.execute(
                "INSERT INTO login (at, zvm, account, event) VALUES (?1, ?2, ?3, 'asked')",
                params![millis(now), zvm, account],
            )?;
            Ok(())
        })
    }
}

/// The first 8 bytes of SHA-256 over this installation's salt and the secret: enough to tell whether a secret changed.
fn digest(database: &Transaction<'_>, secret: &SecretString) -> rusqlite::Result<Vec<u8>> {
    let salt: Vec<u8> =
        database.query_row("SELECT salt FROM installation", [], |row| row.get(0))?;
    let hash = Sha256::new()
        .chain_update(salt)
        .chain_update(secret.expose_secret())
        .finalize();
    Ok(hash.iter().take(8).copied().collect())
}

/// A login that is asked for, within a transaction that excludes all others.
struct Login<'a> {
    database: &'a Transaction<'a>,
    zvm: &'a str,
    account: &'a str,
    secret: &'a [u8],
    now: Timestamp,
}

impl Login<'_> {
    fn blocked(&self) -> rusqlite::Result<Option<LoginBlocked>> {
        let refused = self.refused_with_this_secret()?;
        if let [.., last] = refused.as_slice()
            && refused.len() >= LIMIT
        {
            return Ok(Some(LoginBlocked::SameSecret {
                refused: refused.len(),
                last: timestamp(*last),
            }));
        }
        let (pending, pending_with_this_secret) = self.pending()?;
        let fresh = refused.is_empty() && self.unanswered_with_this_secret()? == 0;
        let limit = if fresh { LIMIT + 1 } else { LIMIT };
        let failed = self.failed_recently()?;
        if let Some(oldest) = failed
            .len()
            .checked_sub(limit)
            .and_then(|index| failed.get(index))
        {
            return Ok(Some(LoginBlocked::TooMany {
                failed: failed.len(),
                until: timestamp(oldest.saturating_add(millis_of(WINDOW))),
            }));
        }
        if failed.len() + pending >= limit || refused.len() + pending_with_this_secret >= LIMIT {
            return Ok(Some(LoginBlocked::Busy { retry_after: SOON }));
        }
        Ok(None)
    }

    /// Whether a login to this account was, or may just be being, refused. Those with a secret that was accepted when last it was
    /// judged are taken to be accepted. A person's asking does not make it sooner, but worth waiting for.
    fn too_soon(&self, asked: bool) -> rusqlite::Result<Option<LoginBlocked>> {
        let last: Option<(i64, Option<String>, Vec<u8>)> = self
            .database
            .prepare_cached(
                "SELECT coalesce(o.at, a.at) AS at, o.event, a.secret FROM login a LEFT JOIN login o ON o.refers = a.id
                 WHERE a.zvm = :zvm AND a.account = :account AND a.event = 'attempt'
                   AND abs(coalesce(o.at, a.at) - :now) < :spacing
                   AND coalesce(o.id, a.id) > (SELECT coalesce(max(id), 0) FROM login
                       WHERE zvm = :zvm AND account = :account AND event = 'accepted')
                   AND (o.event = 'refused'
                        OR (coalesce(o.event, 'unknown') = 'unknown'
                            AND 'accepted' IS NOT (SELECT v.event FROM login v
                                WHERE v.zvm = :zvm AND v.account = :account AND v.secret = a.secret
                                  AND v.event IN ('accepted', 'refused')
                                ORDER BY v.id DESC LIMIT 1)))
                 ORDER BY at DESC LIMIT 1",
            )?
            .query_row(
                named_params! {
                    ":zvm": self.zvm, ":account": self.account,
                    ":now": millis(self.now), ":spacing": millis_of(SPACING),
                },
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        Ok(last.map(|(at, event, secret)| {
            if event.is_none() {
                return LoginBlocked::Busy { retry_after: SOON };
            }
            let left = at.saturating_add(millis_of(SPACING)) - millis(self.now);
            let left = left.clamp(1, millis_of(SPACING)).unsigned_abs();
            LoginBlocked::TooSoon {
                retry_after: Duration::from_millis(left),
                same_secret: event.as_deref() == Some("refused") && secret == self.secret && !asked,
            }
        }))
    }

    /// When this secret was refused since it was last accepted, oldest first.
    fn refused_with_this_secret(&self) -> rusqlite::Result<Vec<i64>> {
        let mut query = self.database.prepare_cached(
            "SELECT at FROM login
             WHERE zvm = :zvm AND account = :account AND secret = :secret AND event = 'refused'
               AND id > (SELECT coalesce(max(id), 0) FROM login
                         WHERE zvm = :zvm AND account = :account AND secret = :secret AND event = 'accepted')
             ORDER BY id",
        )?;
        let rows = query.query_map(
            named_params! {":zvm": self.zvm, ":account": self.account, ":secret": self.secret},
            |row| row.get(0),
        )?;
        rows.collect()
    }

    /// How many attempts with this secret have no outcome, or none that is known, since it was last accepted.
    fn unanswered_with_this_secret(&self) -> rusqlite::Result<usize> {
        self.database.prepare_cached(
            "SELECT count(*) FROM login a LEFT JOIN login o ON o.refers = a.id
             WHERE a.zvm = :zvm AND a.account = :account AND a.secret = :secret AND a.event = 'attempt'
               AND (o.id IS NULL OR o.event = 'unknown')
               AND a.id > (SELECT coalesce(max(id), 0) FROM login
                           WHERE zvm = :zvm AND account = :account AND secret = :secret AND event = 'accepted')",
        )?
        .query_row(
            named_params! {":zvm": self.zvm, ":account": self.account, ":secret": self.secret},
            |row| count(row, 0),
        )
    }

    /// How many attempts wait for their outcome: with any secret, with this one.
    fn pending(&self) -> rusqlite::Result<(usize, usize)> {
        self.database
            .prepare_cached(
                "SELECT count(*), count(*) FILTER (WHERE a.secret = :secret)
             FROM login a LEFT JOIN login o ON o.refers = a.id
             WHERE a.zvm = :zvm AND a.account = :account AND a.event = 'attempt' AND o.id IS NULL
               AND abs(a.at - :now) < :pending",
            )?
            .query_row(
                named_params! {
                    ":zvm": self.zvm, ":account": self.account, ":secret": self.secret,
                    ":now": millis(self.now), ":pending": millis_of(PENDING),
                },
                |row| Ok((count(row, 0)?, count(row, 1)?)),
            )
    }

    /// When logins to this account failed in the last 12 h and since the last accepted one, oldest first: the refused ones, and those
    /// without an answer unless their secret was accepted when last it was judged. A time in the future counts, too.
    fn failed_recently(&self) -> rusqlite::Result<Vec<i64>> {
        let mut query = self.database.prepare_cached(
            "SELECT a.at FROM login a LEFT JOIN login o ON o.refers = a.id
             WHERE a.zvm = :zvm AND a.account = :account AND a.event = 'attempt' AND a.at > :from
               AND coalesce(o.id, a.id) > (SELECT coalesce(max(id), 0) FROM login
                   WHERE zvm = :zvm AND account = :account AND event = 'accepted')
               AND (o.event = 'refused'
                    OR (coalesce(o.event, 'unknown') = 'unknown'
                        AND (o.id IS NOT NULL OR abs(a.at - :now) >= :pending)
                        AND 'accepted' IS NOT (SELECT v.event FROM login v
                            WHERE v.zvm = :zvm AND v.account = :account AND v.secret = a.secret
                              AND v.event IN ('accepted', 'refused')
                            ORDER BY v.id DESC LIMIT 1)))
             ORDER BY a.at",
        )?;
        let rows = query.query_map(
            named_params! {
                ":zvm": self.zvm, ":account": self.account, ":from": millis(self.now).saturating_sub(millis_of(WINDOW)),
                ":now": millis(self.now), ":pending": millis_of(PENDING),
            },
            |row| row.get(0),
        )?;
        rows.collect()
    }

    /// A person's asking that holds and that no attempt has used.
    fn asked(&self) -> rusqlite::Result<Option<i64>> {
        self.database.prepare_cached(
            "SELECT q.id FROM login q
             WHERE q.zvm = :zvm AND q.account = :account AND q.event = 'asked' AND abs(q.at - :now) < :asked
               AND NOT EXISTS (SELECT 1 FROM login a WHERE a.refers = q.id)
             ORDER BY q.id LIMIT 1",
        )?
        .query_row(
            named_params! {
                ":zvm": self.zvm, ":account": self.account, ":now": millis(self.now), ":asked": millis_of(ASKED),
            },
            |row| row.get(0),
        )
        .optional()
    }

    fn attempt(&self, asked: Option<i64>, owner: &str) -> rusqlite::Result<LoginAttempt> {
        self.database.execute(
            "INSERT INTO login (at, zvm, account, secret, event, refers, owner) VALUES (?1, ?2, ?3, ?4, 'attempt', ?5, ?6)",
            params![millis(self.now), self.zvm, self.account, self.secret, asked, owner],
        )?;
        Ok(LoginAttempt(self.database.last_insert_rowid()))
    }
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<usize> {
    let count: i64 = row.get(column)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn millis_of(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
