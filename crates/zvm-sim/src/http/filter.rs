//! Filters of lists.

use super::request::Call;
use crate::names;
use crate::switches::Filters;

/// The filters of one request.
pub(super) struct Filter<'a> {
    call: &'a Call,
    style: Filters,
}

impl<'a> Filter<'a> {
    pub(super) fn new(call: &'a Call, style: Filters) -> Self {
        Self { call, style }
    }

    fn wanted(&self, name: &str) -> Option<&'a str> {
        match self.style {
            Filters::Ignored => None,
            Filters::Exact | Filters::Substring => self.call.query(name),
        }
    }

    /// A text: exact or as a part, letter case aside.
    pub(super) fn text(&self, name: &str, value: &str) -> bool {
        let Some(wanted) = self.wanted(name) else {
            return true;
        };
        match self.style {
            Filters::Substring => value.to_lowercase().contains(&wanted.to_lowercase()),
            _ => {
                value.eq_ignore_ascii_case(wanted) || value.to_lowercase() == wanted.to_lowercase()
            }
        }
    }

    /// An identifier: always exact.
    pub(super) fn id(&self, name: &str, value: &str) -> bool {
        self.wanted(name)
            .is_none_or(|wanted| value.eq_ignore_ascii_case(wanted))
    }

    /// An enumeration, by number or name.
    pub(super) fn code(&self, name: &str, value: u8, known: &[&'static str]) -> bool {
        self.wanted(name)
            .is_none_or(|wanted| names::matches(known, value, wanted))
    }

    /// A truth value, if it is given.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.wanted(name)?.to_ascii_lowercase().parse().ok()
    }
}
