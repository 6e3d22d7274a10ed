//! The arguments.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

/// Pins Zerto checkpoints before an agent changes a VM, and takes files back from them.
#[derive(Parser)]
#[command(name = "zerto-rewind", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// The configuration file [default: what ZERTO_REWIND_CONFIG names, else the one that `init` makes]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Print JSON, for scripts: what the MCP tool of the same meaning answers, errors included
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

const GLOBAL: &str = "Global options";

const AFTER_HELP: &str = "\
Examples:
  zerto-rewind demo                                   the whole story on a simulated ZVM
  zerto-rewind demo rogue                             an agent that asks nobody is held by the proxy
  zerto-rewind init                                   make a configuration for your own ZVM
  zerto-rewind doctor                                 is everything there that is needed?
  zerto-rewind find jp-ubuntu                         which VPGs protect this VM?
  zerto-rewind guard jp-ubuntu --action \"edit nginx.conf\"
  zerto-rewind checkpoints jp-ubuntu --since 7d
  zerto-rewind recover jp-ubuntu /etc/nginx/nginx.conf --at 1197

Exit codes:
  0 done   1 failed   2 usage or configuration   3 refused   4 not found or ambiguous
  5 ZVM unreachable or login refused   130 interrupted";

#[derive(Subcommand)]
pub enum Command {
    /// Serve the tools over MCP on stdin and stdout
    #[command(after_help = MCP_HELP)]
    Mcp,
    /// Find a VM and every VPG that protects it
    #[command(after_help = "\
Examples:
  zerto-rewind find jp-ubuntu
  zerto-rewind find app01.example.com --json | jq -r '.vpgs[].vpg'")]
    Find {
        /// The VM: its name, hostname, IP address, or vmIdentifier
        vm: String,
    },
    /// Pin a tagged checkpoint on every VPG that protects a VM
    #[command(after_help = "\
Examples:
  zerto-rewind guard jp-ubuntu --action \"edit /etc/nginx/nginx.conf\"
  zerto-rewind guard app01 --action \"upgrade to 4.2\" --change CHG-412 && ./upgrade.sh

Exits with 0 only when every VPG is pinned. Make the change only then.")]
    Guard(Guard),
    /// List the tagged checkpoints of a VM, newest first
    #[command(after_help = "\
Examples:
  zerto-rewind checkpoints jp-ubuntu
  zerto-rewind checkpoints jp-ubuntu --since 7d --limit 20")]
    Checkpoints(Checkpoints),
    /// Take files and folders back from a checkpoint
    #[command(after_help = RECOVER_HELP)]
    Recover(Recover),
    /// Show what changed in a file or folder since a checkpoint
    #[command(after_help = "\
Examples:
  zerto-rewind diff jp-ubuntu /home/justin/app-config.yaml --at 1197
  zerto-rewind diff jp-ubuntu /etc/nginx --at 1197

Compares with the guest itself where `guests` in the configuration names a way into it, else with
the journal's latest checkpoint. Mounts the checkpoint and unmounts it again; a person is asked
before.")]
    Diff(Diff),
    /// Put back what a restore has replaced in a guest
    #[command(after_help = UNDO_HELP)]
    UndoRestore(UndoRestore),
    /// Agree to what an agent has planned
    #[command(after_help = APPROVE_HELP)]
    Approve {
        /// The plan, as the agent was told it
        id: String,
    },
    /// Say no to what an agent has planned, for good
    Deny {
        /// The plan, as the agent was told it
        id: String,
    },
    /// List the plans of the last ten minutes, or show one
    Approvals {
        /// The plan to show
        id: Option<String>,
        /// With what has changed since the checkpoint in the files that it recovers; the checkpoint is mounted for that
        #[arg(long, requires = "id")]
        diff: bool,
    },
    /// The passphrase that is asked for wherever a person's word counts
    #[command(subcommand)]
    Approver(Approver),
    /// Make a configuration: asks at a terminal, and tries what it is told
    #[command(after_help = INIT_HELP)]
    Init(crate::commands::init::InitArgs),
    /// Look at all that is needed, and say what is wrong and what to do about it
    #[command(after_help = DOCTOR_HELP)]
    Doctor,
    /// Read and check the ledger: what was asked for, done and refused
    #[command(subcommand)]
    Audit(crate::commands::audit::Audit),
    /// Look at the ZVM's certificate, and accept it
    #[command(after_help = TRUST_HELP)]
    Trust,
    /// Look at the catalog of tools that have to be guarded
    #[command(subcommand)]
    Catalog(Catalog),
    /// Stand before another MCP server: a listed call passes only after it was guarded
    #[command(after_help = PROXY_HELP)]
    Proxy(crate::commands::proxy::ProxyArgs),
    /// Put the hook and the MCP server into the settings of an agent harness
    Install(crate::commands::install::InstallArgs),
    /// Take what `install` wrote out again
    Uninstall(crate::commands::install::UninstallArgs),
    /// Decide on a harness's tool call: reads the event on stdin
    Hook(crate::commands::hook::HookArgs),
    /// Guard a VM, then run a command
    #[command(after_help = "\
Examples:
  zerto-rewind run --vm app01 --action \"upgrade to 4.2\" --change CHG-412 --after -- ./upgrade.sh

Exits with the command's code (128 + n for signal n); 125: not guarded and so not run, 126: not executable, 127: not found.")]
    Run(crate::commands::run::RunArgs),
    /// Refuse every listed call, everywhere and at once, until `resume`
    Stop(crate::commands::stop::StopArgs),
    /// Lift the stop
    Resume(crate::commands::stop::ResumeArgs),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  zerto-rewind completions bash > ~/.local/share/bash-completion/completions/zerto-rewind
  zerto-rewind completions zsh > \"${fpath[1]}/_zerto-rewind\"")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Play the whole story on a simulated ZVM
    #[cfg(feature = "demo")]
    #[command(after_help = "\
Examples:
  zerto-rewind demo            asks you before it recovers, as it would in earnest
  zerto-rewind demo rogue      an agent that asks nobody: its changes are pinned first, or refused
  zerto-rewind demo --auto     agrees by itself; for scripts
  zerto-rewind demo --keep     leaves the simulated ZVM running, to try the commands by hand")]
    Demo(Demo),
}

const RECOVER_HELP: &str = "\
Examples:
  zerto-rewind recover jp-ubuntu /home/justin/app-config.yaml --at 1197
  zerto-rewind recover app01 'C:\\inetpub\\web.config' --at 88 --vpg Payroll --to ./back
  zerto-rewind recover jp-ubuntu /etc/hosts '/etc/nginx/*.conf' --at 1197
  zerto-rewind recover jp-ubuntu /etc/hosts --at 1197 --restore replace
  zerto-rewind recover --plan p-7k3m9x2q

Shows what it is going to do and asks before it mounts anything. A person has to agree, so it
refuses without a terminal (exit code 3), unless a plan was approved already. Without --restore
nothing on the VM is changed; no existing file is overwritten on this host.";

const UNDO_HELP: &str = "\
Examples:
  zerto-rewind undo-restore r-3f9a0c12d4

Guards the VM first. What is in the guest must still be what the restore left there; it is kept
under another name. A person has to agree, so it refuses without a terminal (exit code 3).";

const APPROVE_HELP: &str = "\
Shows the plan and asks, so it refuses without a terminal (exit code 3). It asks for the
approver's passphrase where one is set (`zerto-rewind approver set`): only that makes sure that
it is not an agent with a shell who types. The agent carries the plan out then, or you:
`zerto-rewind recover --plan ID`. A plan is valid for ten minutes, once.";

const APPROVER_HELP: &str = "\
From then on `approve`, `approvals ID --diff`, `recover`, `diff`, `undo-restore`, `resume`,
`trust`, `catalog accept`, `install`, `uninstall` and `approver` ask for it, with `--yes` or
without. Only an Argon2id hash of it is kept, in the configuration's state folder; without a
configuration in the user's, where it counts for every configuration. After five wrong ones
none is accepted for ten minutes.";

const MCP_HELP: &str = "\
For an MCP client's configuration:
  {\"mcpServers\": {\"zerto-rewind\": {\"command\": \"zerto-rewind\", \"args\": [\"mcp\"],
    \"env\": {\"ZERTO_REWIND_CONFIG\": \"/absolute/path/to/config.json\"}}}}

Logs go to stderr as RUST_LOG says (default: warn).";

#[derive(Args)]
pub struct Guard {
    /// The VM: its name, hostname, IP address, or vmIdentifier
    pub vm: String,
    /// What is about to be done, in a few words: becomes part of the tag
    #[arg(long, short, value_name = "TEXT")]
    pub action: String,
    /// Who does it [default: cli/<user>]
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub agent: Option<String>,
    /// A ticket or change id [default: a new one]
    #[arg(long, value_name = "ID", value_parser = not_blank)]
    pub change: Option<String>,
}

#[derive(Args)]
pub struct Checkpoints {
    /// The VM: its name, hostname, IP address, or vmIdentifier
    pub vm: String,
    /// How far back to look: 90m, 24h, 7d [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub since: Option<std::time::Duration>,
    /// At most so many checkpoints [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub limit: Option<u32>,
}

#[derive(Args)]
pub struct Recover {
    /// The VM that the files were on: its name, hostname, IP address, or vmIdentifier
    #[arg(required_unless_present = "plan")]
    pub vm: Option<String>,
    /// Files, folders and patterns on the VM: /etc/hosts, C:\inetpub\web.config, '/etc/nginx/*.conf'
    #[arg(required_unless_present = "plan", value_name = "PATH")]
    pub paths: Vec<String>,
    /// The checkpoint: its id or its tag
    #[arg(long, value_name = "CHECKPOINT", required_unless_present = "plan")]
    pub at: Option<String>,
    /// The VPG, where the checkpoint alone does not say it
    #[arg(long, value_name = "VPG", value_parser = not_blank)]
    pub vpg: Option<String>,
    /// The folder to place them in [default: the configured recovery folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub to: Option<PathBuf>,
    /// Back into the VM's guest over SSH, where `guests` in the configuration has a way in
    #[arg(long, value_name = "HOW", conflicts_with = "to")]
    pub restore: Option<Restoring>,
    /// Carry out this plan; where nobody has decided on it yet, after asking
    #[arg(long, value_name = "ID", conflicts_with_all = ["vm", "paths", "at", "vpg", "to", "restore"])]
    pub plan: Option<String>,
    /// Don't ask: you have agreed already. Refused without a terminal
    #[arg(long)]
    pub yes: bool,
}

/// How a file goes back into the guest.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Restoring {
    /// Next to the present file, as NAME.zerto-<checkpoint>
    Beside,
    /// In its place, after a guard; what it replaces is kept
    Replace,
}

#[derive(Args)]
pub struct UndoRestore {
    /// The restore, as it was told when it was done
    pub id: String,
    /// Don't ask: you have agreed already. Refused without a terminal
    #[arg(long)]
    pub yes: bool,
}

#[derive(Args)]
pub struct Diff {
    /// The VM that the file is on: its name, hostname, IP address, or vmIdentifier
    pub vm: String,
    /// The file or folder on the VM: /etc/hosts or C:\inetpub\web.config
    pub path: String,
    /// The checkpoint: its id or its tag
    #[arg(long, value_name = "CHECKPOINT")]
    pub at: String,
    /// The VPG, where the checkpoint alone does not say it
    #[arg(long, value_name = "VPG", value_parser = not_blank)]
    pub vpg: Option<String>,
    /// Don't ask: you have agreed already. Refused without a terminal
    #[arg(long)]
    pub yes: bool,
}

#[derive(Subcommand)]
pub enum Approver {
    /// Set the passphrase, or another one
    #[command(after_help = APPROVER_HELP)]
    Set,
    /// Ask for no passphrase any more
    Remove,
}

#[derive(Subcommand)]
pub enum Catalog {
    /// List the entries of a catalog
    List {
        /// The catalog file [default: the configured one]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Check a catalog, and name the line of a mistake
    Validate {
        /// The catalog file [default: the configured one]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Say what would be done about a tool call; sends nothing to the ZVM
    #[command(after_help = "\
Examples:
  zerto-rewind catalog test vmware/vm_reconfigure '{\"vm_name\": \"jp-ubuntu\"}'
  zerto-rewind catalog test builtin/Bash - < arguments.json")]
    Test(CatalogTest),
    /// Ask an MCP server for its tools and print the draft of a catalog
    #[command(after_help = SCAN_HELP)]
    Scan(crate::commands::catalog::scan::ScanArgs),
    /// Look at what changed about listed tools, and accept it
    #[command(after_help = ACCEPT_HELP)]
    Accept(crate::commands::catalog::accept::AcceptArgs),
}

const INIT_HELP: &str = "\
Examples:
  zerto-rewind init                                        asks
  zerto-rewind --config ./config.json init
  pass show zvm | zerto-rewind init --url https://zvm.example.com --username rewind --password-stdin
  zerto-rewind init --url zvm --username rewind --password-command \"pass show zvm\" --verify-tls

Writes the file that --config or ZERTO_REWIND_CONFIG names, else config.json in your own folder of
configurations, where every command finds it by itself; and beside it an empty catalog where there
is none. Without a terminal nothing is asked. A password is never an argument.";

const DOCTOR_HELP: &str = "\
Examples:
  zerto-rewind doctor
  zerto-rewind doctor --json | jq -r '.checks[] | select(.status == \"failed\") | .message'

Nothing is changed on the ZVM, and no certificate is accepted for later. It logs in once.

Exits with 0 where nothing failed, else with the code of the first failure: 2 configuration,
5 ZVM unreachable or login refused, 1 anything else.";

const TRUST_HELP: &str = "\
With `verify_tls: false`, the first certificate of a ZVM is remembered, and another one stops everything. This shows both and
asks, so it refuses without a terminal (exit code 3). No password is sent.";

const SCAN_HELP: &str = "\
Examples:
  zerto-rewind catalog scan -- npx -y some-vmware-mcp > draft.toml
  zerto-rewind catalog scan --url http://127.0.0.1:8080/mcp > draft.toml
  zerto-rewind catalog validate draft.toml

The draft is a guess. Entries that a person has to complete are commented out.";

const ACCEPT_HELP: &str = "\
Examples:
  zerto-rewind catalog accept                     every tool that changed, one after another
  zerto-rewind catalog accept vmware/vm_delete    this one

A catalog entry was written for what a tool was. Where its name or input schema changed, its calls are refused until a
person has looked at it. Asks for each tool, so it refuses without a terminal (exit code 3).";

const PROXY_HELP: &str = "\
In a client's configuration, the server's own command goes behind `--`:
  {\"mcpServers\": {\"vmware\": {\"command\": \"zerto-rewind\", \"args\": [\"proxy\", \"--name\", \"vmware\", \"--\", \"npx\", \"-y\", \"vmware-mcp\"],
    \"env\": {\"ZERTO_REWIND_CONFIG\": \"/absolute/path/to/config.json\"}}}}

Other servers:
  zerto-rewind proxy --url https://mcp.example.com/mcp
  zerto-rewind proxy --url http://127.0.0.1:8080/mcp --listen 127.0.0.1:0

Exits with the server's code. Without a usable configuration and catalog it refuses to start (exit code 2).";

#[derive(Args)]
pub struct CatalogTest {
    /// The tool, after the name of its MCP server where that is known: vmware/vm_reconfigure
    #[arg(value_name = "[SERVER/]TOOL")]
    pub tool: String,
    /// The call's arguments, a JSON object; `-` reads them from stdin
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    pub arguments: String,
    /// The MCP server, where the tool's own name has a slash in it
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub server: Option<String>,
    /// The catalog file [default: the configured one]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub catalog: Option<PathBuf>,
}

impl CatalogTest {
    /// The server, if it is known, and the tool.
    pub fn call(&self) -> (Option<&str>, &str) {
        match (&self.server, self.tool.split_once('/')) {
            (Some(server), _) => (Some(server), &self.tool),
            (None, Some((server, tool))) => (Some(server), tool),
            (None, None) => (None, &self.tool),
        }
    }
}

/// The demo's arguments.
#[cfg(feature = "demo")]
#[derive(Args)]
pub struct Demo {
    /// Another story: of an agent that asks nobody, with the proxy before its tools
    pub story: Option<Story>,
    /// Agree to the recovery instead of asking
    #[arg(long)]
    pub auto: bool,
    /// Keep everything, and keep the simulated ZVM running until Ctrl-C
    #[arg(long)]
    pub keep: bool,
}

/// The demo's other stories.
#[cfg(feature = "demo")]
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Story {
    // Without help of its own, so that the command's help stays short.
    Rogue,
}

/// The command of the demo's MCP server. It is none of [`Command`]: the demo alone runs it, and help and completions would list it.
#[cfg(feature = "demo")]
pub const DEMO_GUEST_OPS: &str = "demo-guest-ops";

/// The arguments of the demo's MCP server: files of the simulated guests.
#[cfg(feature = "demo")]
#[derive(Parser)]
#[command(name = "zerto-rewind demo-guest-ops")]
pub struct DemoGuestOps {
    /// The folder of the simulated guests
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub guests: PathBuf,
    /// Write down here which calls arrive, a line of JSON each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub received: PathBuf,
}

/// Serves zerto-rewind's tools over MCP on stdin and stdout.
#[derive(Parser)]
#[command(name = "zerto-rewind-mcp", version, max_term_width = 100, after_help = SERVER_HELP)]
pub struct ServerCli {}

const SERVER_HELP: &str = "\
Configured by the environment:
  ZERTO_REWIND_CONFIG   the configuration file, as an absolute path
                        (default: the one that `zerto-rewind init` makes)
  RUST_LOG              what is logged to stderr (default: warn)

For an MCP client's configuration:
  {\"mcpServers\": {\"zerto-rewind\": {\"command\": \"zerto-rewind-mcp\",
    \"env\": {\"ZERTO_REWIND_CONFIG\": \"/absolute/path/to/config.json\"}}}}";

pub(crate) fn duration(
    text: &str,
) -> Result<std::time::Duration, rewind_core::duration::DurationError> {
    rewind_core::duration::parse(text)
}

/// A variable that a script did not set must not be as good as an option that was left out.
pub fn not_blank(text: &str) -> Result<String, &'static str> {
    match text.trim().is_empty() {
        true => Err("it is empty: give a value, or leave the option out"),
        false => Ok(text.to_owned()),
    }
}
