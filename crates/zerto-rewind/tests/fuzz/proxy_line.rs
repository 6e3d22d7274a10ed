//! A client's lines before the proxy: what is forwarded is no listed call to any server, however it reads JSON.
use std::{collections::BTreeMap, sync::Arc};

use rewind_core::{
    Call, Error, ErrorCode,
    enforce::{ObservedCall, Outcome, ToolStanding},
};
use rewind_mcp::proxy::{
    Conversation, Enforcement, Evidence, FromClient, FromServer, Gate, Line, Lines, Ruling,
    split_end,
};
use serde_json::{Value, value::RawValue};

use crate::driver::Target;

const TARGET: Target = Target {
    name: "proxy_line",
    words: &[
        "tools/call",
        "\"method\":\"tools/call\"",
        "\"Method\":\"tools/call\"",
        "\"params\":",
        "\"name\":\"vm_delete\"",
        "\"NAME\":\"vm_delete\"",
        "\"name\":\"read\"",
        "\"arguments\":{}",
        "\"id\":1",
        "\"id\":1.0",
        "\"id\":\"1\"",
        "\\u0074ools/call",
        "vm_\\u0064elete",
        "VM_DELETE",
        "vm_delete ",
        "\\u0000",
        "\\ud800",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\r",
        "\n",
        "\r\n",
        "\u{feff}",
        "notifications/cancelled",
        "\"requestId\":1",
        "initialize",
        "\"jsonrpc\":\"2.0\"",
        "/**/",
        "NaN",
        "method\u{17f}",
    ],
    memory: (1 << 20, 64),
};
const LONGEST: usize = 16 * 1024;

#[test]
fn no_listed_call_is_forwarded_without_its_guard() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    TARGET.run(|input| {
        let conversation = Conversation::new(Arc::new(Gate::new(Listing, Some("vmware".into()))));
        let mut lines = Lines::new(input, LONGEST);
        let (mut shape, mut read) = (Vec::new(), 0);
        while let Some(line) = lines.next_line().unwrap() {
            let decision = conversation.client_says_line(&line, LONGEST);
            let (Line::Whole(bytes) | Line::TooLong(bytes)) = line;
            read += bytes.len();
            assert!(
                read <= input.len()
                    && (bytes.is_empty()
                        || input.windows(bytes.len()).any(|window| window == bytes))
            );
            shape.push(match decision {
                FromClient::Forward => {
                    assert!(matches!(line, Line::Whole(_)) && bytes.len() <= LONGEST);
                    assert!(
                        !could_be_listed(bytes),
                        "{}",
                        String::from_utf8_lossy(bytes)
                    );
                    'f'
                }
                FromClient::Answer(answer) => {
                    check_answer(&answer);
                    assert!(!answer.contains(&b'\n') && answer.len() <= bytes.len() + 8 * 1024);
                    'a'
                }
                FromClient::Drop => 'd',
                FromClient::Hold(_) => 'h',
            });
            if shape.len() == 50 {
                break;
            }
        }
        // The same bytes from the other side never break it.
        if let FromServer::Instead(_) = conversation.server_says(split_end(input).0) {
            panic!("nothing was guarded");
        }
        shape.truncate(4);
        shape
    });
}

/// The id is the client's own, whatever number that is.
fn check_answer(answer: &[u8]) {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(answer).unwrap();
    let read = |name: &str| -> Value {
        members
            .get(name)
            .map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
    };
    let refused = read("error").is_object() || read("result")["isError"] == true;
    assert!(refused, "{}", String::from_utf8_lossy(answer));
}

/// Whether some parser takes the line for a call of a listed tool: members may come twice, in any case, in a batch, with junk around.
fn could_be_listed(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_matches(['\u{feff}', '\0']);
    serde_json::Deserializer::from_str(text)
        .into_iter::<Members>()
        .map_while(Result::ok)
        .any(|message| message.could_call())
}

/// JSON with every member, however often it is there.
#[derive(Debug)]
enum Members {
    Object(Vec<(String, Members)>),
    List(Vec<Members>),
    Text(String),
    Other,
}

impl Members {
    fn could_call(&self) -> bool {
        match self {
            Self::List(messages) => messages.iter().any(Self::could_call),
            Self::Object(_) => {
                self.all("method").any(|method| method.is("tools/call"))
                    && self
                        .all("params")
                        .any(|params| params.all("name").any(|name| name.is("vm_delete")))
            }
            _ => false,
        }
    }

    fn all(&self, wanted: &str) -> impl Iterator<Item = &Self> {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            _ => &[],
        };
        members
            .iter()
            .filter(move |(name, _)| folded(name) == wanted)
            .map(|(_, value)| value)
    }

    fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Text(text) if folded(text) == wanted)
    }
}

/// As a careless server compares: case aside, spaces and what follows a NUL cut off.
fn folded(text: &str) -> String {
    text.split('\0')
        .next()
        .unwrap_or_default()
        .trim()
        .to_lowercase()
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Members, E> {
                Ok(Members::Other)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Members, E> {
                Ok(Members::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Members, E> {
                Ok(Members::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Members, E> {
                Ok(Members::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Members, E> {
                Ok(Members::Other)
            }
            fn visit_str<E>(self, text: &str) -> Result<Members, E> {
                Ok(Members::Text(text.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Members::List(all))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members::Object(all))
            }
        }
        json.deserialize_any(Any)
    }
}

/// Lists `vm_delete`.
#[derive(Clone)]
struct Listing;

impl Enforcement for Listing {
    type Listed = ();
    type Guarded = ();

    fn may_be_listed(&self, _: Option<&str>, tool: &str) -> bool {
        tool == "vm_delete"
    }
    fn has_entries_for(&self, _: &str) -> bool {
        true
    }
    fn verdict(&self, _: &ObservedCall<'_>) -> Ruling<()> {
        Ruling::Listed(())
    }
    async fn guard(&self, (): (), _: &Call) -> Result<(), Error> {
        Err(Error::new(ErrorCode::ZvmUnreachable, "there is no ZVM"))
    }
    fn outcome(&self, (): (), _: Outcome) {}
    fn flush(&self) {}
    fn tool_seen(&self, _: Option<&str>, _: &Value) -> ToolStanding {
        ToolStanding::Fine
    }
    fn evidence((): &()) -> Evidence<'_> {
        Evidence {
            receipts: &[],
            reused: false,
            warnings: &[],
        }
    }
}
