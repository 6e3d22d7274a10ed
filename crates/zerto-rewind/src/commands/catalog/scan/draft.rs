//! The draft of a catalog, from what a server says of its tools. All of that is somebody else's text: it is cleaned, cut, and quoted
//! as TOML.
use std::{collections::BTreeSet, fmt::Write as _};

use rewind_core::text;
use serde_json::Value;

const DESCRIPTION_MAX_LEN: usize = 100;
const NAME_MAX_LEN: usize = 128;
/// How many arguments are shown of a tool.
const ARGUMENTS_SHOWN: usize = 12;
/// How deep arguments are looked for within others.
const DEPTH: usize = 3;

/// Verbs of tools that change something.
const CHANGES: &[&str] = &[
    "add",
    "allocate",
    "apply",
    "assign",
    "attach",
    "change",
    "clear",
    "command",
    "commit",
    "config",
    "configure",
    "convert",
    "copy",
    "create",
    "decommission",
    "delete",
    "deploy",
    "destroy",
    "detach",
    "disable",
    "drop",
    "edit",
    "eject",
    "enable",
    "erase",
    "exec",
    "execute",
    "expand",
    "extend",
    "format",
    "grow",
    "hibernate",
    "import",
    "inject",
    "insert",
    "install",
    "invoke",
    "kill",
    "merge",
    "migrate",
    "modify",
    "mount",
    "move",
    "overwrite",
    "patch",
    "pause",
    "play",
    "playbook",
    "power",
    "poweroff",
    "poweron",
    "promote",
    "provision",
    "prune",
    "purge",
    "push",
    "put",
    "reboot",
    "rebuild",
    "reconfigure",
    "recover",
    "register",
    "reinstall",
    "reload",
    "relocate",
    "remove",
    "rename",
    "replace",
    "reset",
    "resize",
    "restart",
    "restore",
    "resume",
    "revert",
    "rm",
    "rollback",
    "rotate",
    "run",
    "save",
    "scale",
    "script",
    "send",
    "set",
    "shell",
    "shrink",
    "shutdown",
    "ssh",
    "start",
    "stop",
    "submit",
    "sudo",
    "suspend",
    "sync",
    "tag",
    "terminate",
    "toggle",
    "touch",
    "truncate",
    "unassign",
    "uninstall",
    "unmount",
    "unregister",
    "unset",
    "update",
    "upgrade",
    "upload",
    "vmotion",
    "wipe",
    "write",
];
/// Verbs of tools that only read.
const READS: &[&str] = &[
    "check",
    "count",
    "describe",
    "diff",
    "download",
    "export",
    "fetch",
    "find",
    "get",
    "health",
    "help",
    "info",
    "inspect",
    "list",
    "log",
    "logs",
    "lookup",
    "metrics",
    "monitor",
    "ping",
    "preview",
    "query",
    "read",
    "report",
    "search",
    "show",
    "stat",
    "stats",
    "status",
    "summarize",
    "summary",
    "tail",
    "test",
    "validate",
    "version",
    "view",
    "wait",
    "watch",
    "whoami",
];
/// Arguments that name a VM, the surest first. Letter case and punctuation don't count.
const NAMES_VM: &[&str] = &[
    "vm",
    "vms",
    "vmname",
    "vmnames",
    "virtualmachine",
    "virtualmachinename",
    "guest",
    "guestname",
    "vmid",
    "vmids",
    "vmuuid",
    "vmidentifier",
    "guestid",
    "virtualmachineid",
];
/// Arguments that probably name a machine.
const NAMES_MACHINE: &[&str] = &[
    "inventoryhostname",
    "hostname",
    "hostnames",
    "fqdn",
    "host",
    "hosts",
    "servername",
    "machinename",
    "machine",
    "instancename",
    "instance",
    "instances",
    "server",
    "servers",
    "targethost",
    "target",
    "targets",
    "domain",
    "ip",
    "ipaddress",
    "address",
    "limit",
    "inventory",
];
/// Arguments that may name a machine, or anything else.
const MAY_NAME: &[&str] = &[
    "name",
    "names",
    "id",
    "ids",
    "uuid",
    "moid",
    "node",
    "nodename",
    "instanceid",
    "resource",
];
/// Arguments that are commands, which mention hosts.
const COMMANDS: &[&str] = &["command", "cmd", "commands", "script", "commandline"];

/// A tool, as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What it does, in its server's words.
    pub description: String,
    /// The schema of its arguments.
    pub schema: Value,
    /// The annotation `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The annotation `destructiveHint`.
    pub destructive: Option<bool>,
}

/// What a tool seems to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Changes,
    Unclear,
    Reads,
}

/// One argument, within others or not.
#[derive(Clone, Debug)]
struct Argument {
    path: Vec<String>,
    kinds: Vec<String>,
    required: bool,
}

/// How the VM is probably found.
enum Rule<'a> {
    /// The argument names it.
    Arg(&'a Argument, Sure),
    /// The argument is a number that a table maps.
    Table(&'a Argument),
    /// The argument is a text that mentions hosts.
    Hosts(&'a Argument),
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sure {
    Probably,
    Maybe,
}

/// The text of the draft. It is a valid catalog.
#[must_use]
pub fn draft(server: Option<&str>, tools: &[Described]) -> String {
    let shown = server.map_or_else(
        || "without a name".to_owned(),
        |name| text::display(name, NAME_MAX_LEN),
    );
    let mut out = format!(
        "\
# Draft of catalog entries for the MCP server {shown}, printed by `zerto-rewind catalog scan`.
#
# It is a guess from the names of the tools, their arguments, and what the server says of itself. Such hints (\"read-only\",
# \"destructive\") are not proven, and a server can be wrong about itself or lie: decide by what the tools do. Look at each entry:
# Does it list all that changes a VM? Does `vm` say where a call names the VM, by a name that the ZVM knows? Then:
#     zerto-rewind catalog validate FILE

version = 1
"
    );
    let server = match server {
        Some(name) if is_plain(name) => glob(name),
        Some(_) => {
            out.push_str("\n# The server's name has characters that cannot be seen, so the entries are for any server. Give it another one with --name.\n");
            "*".to_owned()
        }
        None => "*".to_owned(),
    };
    let (mut seen, mut reads) = (BTreeSet::new(), Vec::new());
    for tool in tools {
        if !seen.insert(tool.name.as_str()) {
            continue;
        }
        match tool.kind() {
            Kind::Reads => reads.push(tool),
            kind => entry(&mut out, &server, tool, kind),
        }
    }
    if !reads.is_empty() {
        out.push_str(
            "\n# These seem to only read, so they are not listed. Calls of them pass untouched.\n",
        );
        for tool in reads {
            let _ = writeln!(out, "#   {}", tool.heading());
        }
    }
    if seen.is_empty() {
        out.push_str("\n# The server has no tools.\n");
    }
    out
}

fn entry(out: &mut String, server: &str, tool: &Described, kind: Kind) {
    let _ = writeln!(out, "\n# {}", tool.heading());
    if !is_plain(&tool.name) {
        out.push_str("# Its name has characters that cannot be seen: do not use this tool before you know why.\n");
        return;
    }
    let arguments = tool.arguments();
    let rule = Rule::of(&arguments);
    let listed: Vec<String> = arguments
        .iter()
        .take(ARGUMENTS_SHOWN)
        .map(Argument::shown)
        .collect();
    if !listed.is_empty() {
        let more = if arguments.len() > ARGUMENTS_SHOWN {
            ", …"
        } else {
            ""
        };
        let _ = writeln!(out, "# Arguments: {}{more}", listed.join(", "));
    }
    let mut doubts = Vec::new();
    if kind == Kind::Unclear {
        doubts.push("It is not clear whether it changes anything.".to_owned());
    }
    doubts.extend(rule.doubt());
    for doubt in &doubts {
        let _ = writeln!(out, "# {doubt}");
    }
    let plausible = kind == Kind::Changes && matches!(rule, Rule::Arg(_, Sure::Probably));
    let lead = if plausible { "" } else { "# " };
    for line in [
        "[[guard]]".to_owned(),
        format!("server = {}", quoted(server)),
        format!("tool = {}", quoted(&glob(&tool.name))),
        format!("vm = {}", rule.toml()),
        format!("action = {}", quoted(&rule.action())),
    ] {
        let _ = writeln!(out, "{lead}{line}");
    }
}

impl Described {
    fn kind(&self) -> Kind {
        let verb = words(&self.name).find_map(|word| {
            if CHANGES.contains(&word.as_str()) {
                Some(Kind::Changes)
            } else {
                READS.contains(&word.as_str()).then_some(Kind::Reads)
            }
        });
        // A hint makes the guess stricter, and never laxer.
        let says_it_changes = self.destructive == Some(true) || self.read_only == Some(false);
        match verb {
            Some(Kind::Reads) if !says_it_changes => Kind::Reads,
            None if !says_it_changes => Kind::Unclear,
            _ => Kind::Changes,
        }
    }

    fn heading(&self) -> String {
        let mut heading = text::display(&self.name, NAME_MAX_LEN);
        let hint = match (self.read_only, self.destructive) {
            (Some(true), _) => Some("read-only"),
            (_, Some(true)) => Some("destructive"),
            (_, Some(false)) => Some("not destructive"),
            _ => None,
        };
        if let Some(hint) = hint {
            let _ = write!(heading, " (by its own hint {hint})");
        }
        match text::display(&self.description, DESCRIPTION_MAX_LEN) {
            description if description.is_empty() => heading,
            description => format!("{heading}: {description}"),
        }
    }

    fn arguments(&self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        collect(&self.schema, &[], true, &mut arguments);
        arguments
    }
}

/// The arguments of a schema, and those within them.
fn collect(schema: &Value, path: &[String], required: bool, arguments: &mut Vec<Argument>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        let path: Vec<String> = path.iter().chain([name]).cloned().collect();
        let is_required = required
            && schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|required| required == name));
        arguments.push(Argument {
            kinds: kinds(property),
            required: is_required,
            path: path.clone(),
        });
        if path.len() < DEPTH {
            collect(property, &path, is_required, arguments);
        }
    }
}

/// The JSON types that a property may have; of a list, those of its members. None: any.
fn kinds(property: &Value) -> Vec<String> {
    let kinds: Vec<String> = match property.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => ["anyOf", "oneOf"]
            .iter()
            .filter_map(|key| property.get(key)?.as_array())
            .flatten()
            .flat_map(kinds)
            .collect(),
    };
    let is_list = kinds.iter().any(|kind| kind == "array");
    match property.get("items") {
        Some(items) if is_list => kinds
            .into_iter()
            .filter(|kind| kind != "array")
            .chain(self::kinds(items))
            .collect(),
        _ => kinds,
    }
}

impl Argument {
    fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn shown(&self) -> String {
        let path: Vec<String> = self
            .path
            .iter()
            .map(|name| text::display(name, 40))
            .collect();
        let needed = if self.required { "" } else { "?" };
        format!("{}{needed}", path.join("."))
    }

    fn is_one_of(&self, names: &[&str]) -> Option<usize> {
        let name: String = self
            .name()
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        names.iter().position(|known| *known == name)
    }

    fn may_be(&self, kinds: &[&str]) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kinds.contains(&kind.as_str()))
    }

    /// As a JSON Pointer.
    fn pointer(&self) -> String {
        self.path
            .iter()
            .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")))
            .collect()
    }

    /// As a template reads it, where it can.
    fn template(&self) -> Option<String> {
        let is_name = |name: &String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        self.path
            .iter()
            .all(is_name)
            .then(|| format!("{{{{ args.{} }}}}", self.path.join(".")))
    }
}

impl<'a> Rule<'a> {
    fn of(arguments: &'a [Argument]) -> Self {
        let best = |names: &[&str]| {
            arguments
                .iter()
                .filter(|argument| is_plain(argument.name()))
                .filter_map(|argument| {
                    Some((argument.is_one_of(names)?, argument.path.len(), argument))
                })
                .min_by_key(|(place, depth, _)| (*place, *depth))
                .map(|(.., argument)| argument)
        };
        let arg = |argument: &'a Argument, sure| {
            if argument.may_be(&["string"]) {
                Self::Arg(argument, sure)
            } else {
                Self::Table(argument)
            }
        };
        if let Some(argument) = best(NAMES_VM).or_else(|| best(NAMES_MACHINE)) {
            return arg(argument, Sure::Probably);
        }
        if let Some(argument) = best(COMMANDS) {
            return Self::Hosts(argument);
        }
        match best(MAY_NAME) {
            Some(argument) => arg(argument, Sure::Maybe),
            None => Self::Unknown,
        }
    }

    fn doubt(&self) -> Option<String> {
        Some(match self {
            Self::Arg(argument, Sure::Maybe) => {
                format!("Does `{}` name a VM?", text::display(argument.name(), 40))
            }
            Self::Arg(argument, Sure::Probably) if !argument.required => format!(
                "A call without `{}` would be refused.",
                text::display(argument.name(), 40)
            ),
            Self::Arg(..) => return None,
            Self::Table(argument) => format!(
                "`{}` is no text: map it to the names of VMs in a table, a file beside the catalog.",
                text::display(argument.name(), 40)
            ),
            Self::Hosts(_) => {
                "The hosts that the command mentions say which VM it is: name them in a table, a file beside the catalog.".to_owned()
            }
            Self::Unknown => {
                "No argument seems to name the VM: write which one does, or always the same VM with { fixed = \"VM\" }.".to_owned()
            }
        })
    }

    fn toml(&self) -> String {
        match self {
            Self::Arg(argument, _) => format!("{{ arg = {} }}", quoted(&argument.pointer())),
            Self::Table(argument) => {
                format!(
                    "{{ arg = {}, table = \"vms.toml\" }}",
                    quoted(&argument.pointer())
                )
            }
            Self::Hosts(argument) => {
                format!(
                    "{{ arg = {}, hosts = \"hosts.toml\" }}",
                    quoted(&argument.pointer())
                )
            }
            Self::Unknown => "{ arg = \"/NAME\" }".to_owned(),
        }
    }

    fn action(&self) -> String {
        let argument = match self {
            Self::Arg(argument, _) | Self::Table(argument) | Self::Hosts(argument) => {
                argument.template()
            }
            Self::Unknown => None,
        };
        match argument {
            Some(argument) => format!("{{{{ tool }}}} {argument}"),
            None => "{{ tool }}".to_owned(),
        }
    }
}

/// The words of a name, in lower case: `vm_powerOff` has three.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && after_lower);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// Whether a name shows what it is, so that an entry can be read and compared.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= NAME_MAX_LEN && text::one_line(name) == name
}

/// A glob that matches exactly this name.
fn glob(name: &str) -> String {
    let mut glob = String::new();
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
