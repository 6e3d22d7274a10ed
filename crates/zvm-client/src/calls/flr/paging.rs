//! Every item of a paged listing exactly once, from a server of which little is known.
//!
//! `pageNumber` and `pageSize` are new in 10.x and optional. Whether pages count from 0 or from 1, what the largest page is,
//! whether paging is heeded at all, and what a page beyond the end answers: nowhere documented. So page 0 is asked first, items are
//! told apart by their paths, and it goes on until nothing new comes.

use std::collections::HashSet;

use crate::{Error, PathItem};

/// Items asked for at once.
pub(super) const PAGE: usize = 1000;

/// A page with fewer items is the last. One with more may be the last as well, or the largest that the server gives.
const SURELY_LAST: usize = 100;

/// The pages of one listing.
#[derive(Default)]
pub(super) struct Pages {
    next: usize,
    items: Vec<PathItem>,
    seen: HashSet<String>,
    /// Pages in a row that brought nothing new.
    idle: usize,
    /// Items of the page before.
    last: usize,
    /// Page 0 was refused: perhaps it does not exist.
    refused: Option<Error>,
    done: bool,
}

impl Pages {
    /// The number of the page to ask for.
    pub(super) fn next(&self) -> Option<usize> {
        (!self.done).then_some(self.next)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn add(&mut self, page: Vec<PathItem>) {
        let count = page.len();
        let before = self.items.len();
        for item in page {
            if self.seen.insert(item.path.clone()) {
                self.items.push(item);
            }
        }
        self.idle = if self.items.len() > before {
            0
        } else {
            self.idle + 1
        };
        // Where pages count from 1, page 0 may be empty, or the same as page 1: neither is the end.
        let first = self.next == 0;
        self.done =
            count > PAGE || self.idle >= 2 || (count < SURELY_LAST && !(first && count == 0));
        self.last = count;
        self.next += 1;
        self.refused = None;
    }

    /// The server refused a page. That ends the listing, or is an error, or page 0 does not exist.
    pub(super) fn failed(&mut self, error: Error) -> Result<(), Error> {
        let refused = matches!(error, Error::Refused { .. });
        let client_error = matches!(
            error,
            Error::NotFound { .. }
                | Error::Refused {
                    status: 400..=499,
                    ..
                }
        );
        match self.next {
            0 if refused => {
                self.refused = Some(error);
                self.next = 1;
                Ok(())
            }
            1 if self.refused.is_some() => Err(self.refused.take().unwrap_or(error)),
            // After a page that was not full, there need not be another.
            1.. if client_error && self.last < PAGE => {
                self.done = true;
                Ok(())
            }
            _ => Err(error),
        }
    }

    pub(super) fn finish(self) -> Vec<PathItem> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathKind;

    fn item(number: usize) -> PathItem {
        PathItem {
            path: format!("folder/{number}"),
            kind: PathKind::File,
            size: None,
            modified: None,
            browsable: false,
            downloadable: true,
            reason: None,
        }
    }

    fn refused(status: u16) -> Error {
        Error::Refused {
            what: "list".into(),
            status,
            message: "no such page".into(),
        }
    }

    /// Lists what `server` gives for each page; the items, and how many pages were asked for.
    fn listing(
        server: impl Fn(usize) -> Result<Vec<PathItem>, Error>,
    ) -> (Result<Vec<PathItem>, Error>, usize) {
        let mut pages = Pages::default();
        let mut asked = 0;
        while let Some(number) = pages.next() {
            asked += 1;
            assert!(asked < 1000, "no end");
            match server(number) {
                Ok(page) => pages.add(page),
                Err(error) => match pages.failed(error) {
                    Ok(()) => {}
                    Err(error) => return (Err(error), asked),
                },
            }
        }
        (Ok(pages.finish()), asked)
    }

    const SIZES: [usize; 12] = [0, 1, 99, 100, 101, 499, 500, 999, 1000, 1001, 2000, 2345];

    #[test]
    fn every_item_comes_once_whatever_the_server_does() {
        for total in SIZES {
            for cap in [100, 500, 1000] {
                let page = |index: usize| {
                    (index * cap..total.min((index + 1) * cap))
                        .map(item)
                        .collect::<Vec<_>>()
                };
                let beyond = |index: usize| index > 0 && index * cap >= total;
                type Server<'a> = Box<dyn Fn(usize) -> Result<Vec<PathItem>, Error> + 'a>;
                let servers: [(&str, Server<'_>); 7] = [
                    ("from 0", Box::new(|number| Ok(page(number)))),
                    (
                        "from 1, page 0 is page 1",
                        Box::new(|number| Ok(page(number.max(1) - 1))),
                    ),
                    (
                        "from 1, page 0 is empty",
                        Box::new(|number| Ok(number.checked_sub(1).map(page).unwrap_or_default())),
                    ),
                    (
                        "from 1, page 0 is refused",
                        Box::new(|number| {
                            number.checked_sub(1).map(page).ok_or_else(|| refused(400))
                        }),
                    ),
                    (
                        "from 1, page 0 fails",
                        Box::new(|number| {
                            number.checked_sub(1).map(page).ok_or_else(|| refused(500))
                        }),
                    ),
                    (
                        "no paging",
                        Box::new(|_| Ok((0..total).map(item).collect())),
                    ),
                    ("from 0, the last page again and again", {
                        Box::new(|number| Ok(page(number.min(total.saturating_sub(1) / cap))))
                    }),
                ];
                for (name, server) in &servers {
                    let (items, asked) = listing(server);
                    let items = items.unwrap();
                    let expected: Vec<_> = (0..total)
                        .map(|number| format!("folder/{number}"))
                        .collect();
                    let paths: Vec<_> = items.into_iter().map(|item| item.path).collect();
                    assert_eq!(
                        paths, expected,
                        "{name}, {total} items, at most {cap} a page"
                    );
                    assert!(
                        asked <= total / cap + 4,
                        "{name}, {total} items: {asked} pages asked for"
                    );
                }
                // A page beyond the end that is refused ends the listing only where the page before was not full.
                if total % PAGE != 0 || total == 0 || cap < PAGE {
                    let (items, _) = listing(|number| {
                        if beyond(number) {
                            Err(refused(404))
                        } else {
                            Ok(page(number))
                        }
                    });
                    assert_eq!(
                        items.unwrap().len(),
                        total,
                        "{total} items, at most {cap} a page"
                    );
                }
            }
        }
    }

    #[test]
    fn a_short_listing_is_asked_for_once() {
        let (items, asked) = listing(|_| Ok((0..20).map(item).collect()));
        assert_eq!((items.unwrap().len(), asked), (20, 1));
    }

    #[test]
    fn an_error_that_may_hide_items_is_an_error() {
        let full = |number: usize| {
            if number == 0 {
                Ok((0..PAGE).map(item).collect())
            } else {
                Err(refused(400))
            }
        };
        assert!(listing(full).0.is_err());
        let broken = |number: usize| {
            if number == 0 {
                Ok((0..500).map(item).collect())
            } else {
                Err(refused(500))
            }
        };
        assert!(listing(broken).0.is_err());
        let refuses = |number: usize| Err(refused(400 + number as u16));
        match listing(refuses) {
            (Err(Error::Refused { status: 400, .. }), 2) => {}
            other => panic!("{other:?}"),
        }
        let missing = |_| {
            Err(Error::NotFound {
                what: "list".into(),
                message: String::new(),
            })
        };
        assert!(matches!(listing(missing), (Err(Error::NotFound { .. }), 1)));
    }
}
