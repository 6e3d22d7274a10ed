//! The catalog as it is written, with the places of its values.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};
use toml::{Spanned, Value};

use super::{Mode, Unprotected};
use crate::duration::WithUnit;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables")]
pub(super) struct RawCatalog {
    pub(super) version: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) guard: Vec<Spanned<RawEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with `tool`, `vm` and `action`"
)]
pub(super) struct RawEntry {
    pub(super) server: Option<Spanned<String>>,
    pub(super) tool: Option<Spanned<String>>,
    pub(super) vm: Option<Spanned<RawVm>>,
    pub(super) action: Option<Spanned<String>>,
    pub(super) change: Option<Spanned<RawChange>>,
    #[serde(default)]
    pub(super) when: Vec<Spanned<RawCondition>>,
    pub(super) reuse: Option<WithUnit>,
    #[serde(default)]
    pub(super) unprotected: Unprotected,
    #[serde(default)]
    pub(super) mode: Mode,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { arg = \"/vm_name\" }"
)]
pub(super) struct RawVm {
    pub(super) arg: Option<Spanned<String>>,
    pub(super) regex: Option<Spanned<String>>,
    pub(super) fixed: Option<Spanned<String>>,
    pub(super) table: Option<Spanned<RawTable>>,
    pub(super) hosts: Option<Spanned<RawTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { arg = \"/ticket\" }"
)]
pub(super) struct RawChange {
    pub(super) arg: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { arg = \"/dry_run\", exists = true }"
)]
pub(super) struct RawCondition {
    pub(super) arg: Option<Spanned<String>>,
    pub(super) equals: Option<Spanned<Value>>,
    pub(super) not_equals: Option<Spanned<Value>>,
    #[serde(rename = "in")]
    pub(super) among: Option<Spanned<Vec<Value>>>,
    pub(super) matches: Option<Spanned<String>>,
    pub(super) glob: Option<Spanned<String>>,
    pub(super) exists: Option<bool>,
    pub(super) greater_than: Option<Spanned<Value>>,
    pub(super) less_than: Option<Spanned<Value>>,
}

/// The rows of a table: what a call says → VM, or a list of VMs.
pub(super) type RawRows = BTreeMap<Spanned<String>, Spanned<Value>>;

#[derive(Debug)]
pub(super) enum RawTable {
    /// A file's path.
    File(String),
    /// The rows themselves.
    Inline(RawRows),
}

impl<'de> Deserialize<'de> for RawTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = RawTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file's path or a table such as { app01 = \"VM\" }")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<RawTable, E> {
                Ok(RawTable::File(path.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawTable, A::Error> {
                RawRows::deserialize(MapAccessDeserializer::new(map)).map(RawTable::Inline)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
