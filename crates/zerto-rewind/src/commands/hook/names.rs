//! Names in which a harness has joined server and tool, read whoever joined them: an event may come from another harness than the one
//! that is named by `--format`.
use super::event::{self, Reading};

/// Claude Code's and Codex's form.
const CLAUDE: &str = "mcp__";
/// Gemini CLI's, and of others that shorten the server's name.
const GEMINI: &str = "mcp_";
/// Cursor's.
const CURSOR: &str = "MCP:";

/// Every reading of a joined name, the likeliest first; none for a name of no such form.
pub(super) fn joined(name: &str) -> Vec<Reading> {
    if let Some(rest) = name.strip_prefix(CLAUDE) {
        of_claude(rest)
    } else if let Some(rest) = name.strip_prefix(GEMINI) {
        let mut readings = event::cuts(rest, "_");
        // A shortened name of a server tells nothing: each tool may be any server's.
        let of_any_server: Vec<Reading> = readings
            .iter()
            .map(|reading| Reading::new(None, &reading.tool))
            .collect();
        readings.extend(of_any_server);
        readings.push(Reading::new(None, rest));
        readings.push(Reading::new(None, name));
        readings
    } else if let Some(rest) = name.strip_prefix(CURSOR) {
        let rest = rest.trim_start();
        let mut readings = event::cuts(rest, ":");
        readings.push(Reading::new(None, rest));
        readings
    } else {
        Vec::new()
    }
}

/// `<server>__<tool>`; a server of a plugin is `plugin_<plugin>_<server>`.
fn of_claude(rest: &str) -> Vec<Reading> {
    let mut readings = event::cuts(rest, "__");
    let of_plugins: Vec<Reading> = readings
        .iter()
        .filter_map(|reading| {
            let server = reading.server.as_deref()?.strip_prefix("plugin_")?;
            Some(event::cuts(server, "_").into_iter().map(|cut| Reading {
                server: Some(cut.tool),
                tool: reading.tool.clone(),
            }))
        })
        .flatten()
        .collect();
    readings.extend(of_plugins);
    if readings.is_empty() {
        readings.push(Reading::new(None, rest));
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(name: &str) -> Vec<(Option<String>, String)> {
        joined(name)
            .into_iter()
            .map(|reading| (reading.server, reading.tool))
            .collect()
    }

    #[test]
    fn a_joined_name_is_read_in_every_way() {
        let pair = |server: &str, tool: &str| (Some(server.to_owned()), tool.to_owned());
        let any = |tool: &str| (None, tool.to_owned());
        assert_eq!(pairs("Bash"), []);
        assert_eq!(
            pairs("mcp__vmware__vm_delete"),
            [pair("vmware", "vm_delete")]
        );
        assert_eq!(
            pairs("mcp__plugin_acme_vm_ware__vm_delete"),
            [
                pair("plugin_acme_vm_ware", "vm_delete"),
                pair("vm_ware", "vm_delete"),
                pair("ware", "vm_delete"),
            ]
        );
        assert_eq!(pairs("mcp__odd"), [any("odd")]);
        assert_eq!(
            pairs("mcp_vmw_delete"),
            [
                pair("vmw", "delete"),
                any("delete"),
                any("vmw_delete"),
                any("mcp_vmw_delete"),
            ]
        );
        assert_eq!(
            pairs("MCP: vmware:vm_delete"),
            [pair("vmware", "vm_delete"), any("vmware:vm_delete")]
        );
    }
}
