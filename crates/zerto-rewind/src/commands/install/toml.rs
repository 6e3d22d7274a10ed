//! The server's entry in Codex's `config.toml`.
use super::command::is_our_server;
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

const SERVERS: &str = "mcp_servers";
const SERVER: &str = "zerto-rewind";
/// Of the features: what turns hooks off, by its name now and before.
const SWITCHES: [&str; 2] = ["hooks", "codex_hooks"];
/// A guard may take longer than the 60 s that Codex waits for a tool by default.
const TOOL_TIMEOUT: i64 = 300;

pub(super) fn add(
    text: &str,
    program: &str,
    config: &str,
) -> Result<(String, Vec<String>), String> {
    let mut document = parse(&strip(text)?)?;
    let features = document.get("features");
    let is_off = |switch: &&str| {
        let switch = features.and_then(|features| features.get(switch));
        switch.and_then(Item::as_bool) == Some(false)
    };
    if let Some(switch) = SWITCHES.iter().find(|switch| is_off(switch)) {
        return Err(format!(
            "`features.{switch}` is false in it, so that no hook runs: take it out first"
        ));
    }
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| format!("its `{SERVERS}` is no table"))?;
    if servers.contains_key(SERVER) {
        let note = format!("the server `{SERVER}` is configured already, by hand: left as it is");
        return Ok((text.to_owned(), vec![note]));
    }
    let mut entry = Table::new();
    entry.insert("command", value(program));
    entry.insert("args", value(Array::from_iter(["mcp"])));
    let mut env = InlineTable::new();
    env.insert("ZERTO_REWIND_CONFIG", config.into());
    entry.insert("env", value(env));
    entry.insert("tool_timeout_sec", value(TOOL_TIMEOUT));
    servers.insert(SERVER, Item::Table(entry));
    let edited = document.to_string();
    let same = text
        .parse::<DocumentMut>()
        .is_ok_and(|before| ours(&before) == ours(&document) && ours(&before).is_some());
    Ok((if same { text.to_owned() } else { edited }, Vec::new()))
}

pub(super) fn strip(text: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    if ours(&document).is_none() {
        return Ok(text.to_owned());
    }
    if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
        servers.remove(SERVER);
        if servers.is_empty() {
            document.remove(SERVERS);
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>()
        .map_err(|error| format!("it is no TOML: {}", error.to_string().trim_end()))
}

/// Our entry, where there is one.
fn ours(document: &DocumentMut) -> Option<Value> {
    let entry = document.get(SERVERS)?.get(SERVER)?.as_table_like()?;
    let entry = plain(entry)?;
    is_our_server(&entry).then_some(entry)
}

/// An entry of texts, numbers, lists and tables of texts: all that ours has.
fn plain(table: &dyn TableLike) -> Option<Value> {
    table
        .iter()
        .map(|(key, item)| {
            let value = if let Some(text) = item.as_str() {
                json!(text)
            } else if let Some(number) = item.as_integer() {
                json!(number)
            } else if let Some(list) = item.as_array() {
                json!(
                    list.iter()
                        .map(|word| word.as_str())
                        .collect::<Option<Vec<_>>>()?
                )
            } else {
                plain(item.as_table_like()?)?
            };
            Some((key.to_owned(), value))
        })
        .collect::<Option<serde_json::Map<_, _>>>()
        .map(Value::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_comes_and_goes_and_the_rest_stays() {
        for text in [
            "",
            "model = \"x\"  # mine\n",
            "# top\n[mcp_servers.other]\ncommand = \"o\"\n\n[features]\nhooks = true\n",
            "mcp_servers = { other = { command = \"o\" } }\n",
            "[mcp_servers]\n[mcp_servers.other]\ncommand = \"o\"\n# end\n",
        ] {
            let (added, notes) = add(text, "/x/zerto-rewind", "/c.json").unwrap();
            assert!(notes.is_empty());
            assert!(added.contains("zerto-rewind"), "{added}");
            assert_eq!(add(&added, "/x/zerto-rewind", "/c.json").unwrap().0, added);
            let moved = add(&added, "/y/zerto-rewind", "/c.json").unwrap().0;
            assert_ne!(moved, added);
            assert_eq!(strip(&moved).unwrap(), text, "{moved}");
        }
    }

    #[test]
    fn what_is_not_ours_stays() {
        let by_hand = "[mcp_servers.zerto-rewind]\ncommand = \"docker\"\n";
        let (text, notes) = add(by_hand, "/x/zerto-rewind", "/c.json").unwrap();
        assert_eq!((text.as_str(), notes.len()), (by_hand, 1));
        assert_eq!(strip(by_hand).unwrap(), by_hand);
        for (broken, because) in [
            ("x", "no TOML"),
            ("a = 1\na = 2\n", "duplicate key"),
            ("mcp_servers = 3\n", "no table"),
            ("[features]\nhooks = false\n", "`features.hooks` is false"),
            (
                "[features]\ncodex_hooks = false\n",
                "`features.codex_hooks` is false",
            ),
            (
                "features = { codex_hooks = false }\n",
                "`features.codex_hooks` is false",
            ),
        ] {
            let problem = add(broken, "/x/zerto-rewind", "/c.json").unwrap_err();
            assert!(problem.contains(because), "{broken}: {problem}");
            assert_eq!(problem, problem.trim_end());
        }
    }
}
