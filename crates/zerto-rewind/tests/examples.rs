//! The files that people copy: the configuration, the catalog, the skill.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use rewind_core::{
    catalog::{Call, Catalog, Lookup},
    config::Config,
};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_example_configuration_has_the_four_keys_and_is_accepted() {
    let file = root().join("config.example.json");
    let text = fs::read_to_string(&file).unwrap();
    let keys: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<_> = keys
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["password", "username", "verify_tls", "zerto_url"]);
    // A checkout can't keep the mode that `load` asks for.
    let config = Config::parse(&text, &file).unwrap();
    assert_eq!(config.zvm(), "zvm.example.com:443");
}

fn catalog() -> Catalog {
    let catalog = Catalog::load(&root().join("catalog.example.toml"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(catalog.warnings().is_empty(), "{:?}", catalog.warnings());
    catalog
}

/// What the catalog says of a call, in short: `-`, `deny`, or the VMs and the action.
fn verdict(catalog: &Catalog, server: &str, tool: &str, arguments: Value) -> String {
    let call = Call {
        server: Some(server),
        tool,
        arguments: &arguments,
    };
    match catalog.lookup(&call) {
        Lookup::Unlisted | Lookup::DoesNotApply(_) => "-".into(),
        Lookup::Denied(_) => "deny".into(),
        Lookup::Listed(entry) => match entry.vms(&arguments) {
            Ok(vms) => format!("{}: {}", vms.join("+"), entry.action(&call).unwrap()),
            Err(_) => "refused: no VM".into(),
        },
    }
}

#[test]
fn the_example_catalog_knows_what_to_guard() {
    let catalog = catalog();
    let calls = [
        // VMware
        (
            "vmware-aiops",
            "vm_guest_exec",
            json!({ "vm_name": "jp-ubuntu", "command": "/bin/bash", "arguments": "-c 'rm /etc/x'" }),
            "jp-ubuntu: run /bin/bash in the guest",
        ),
        (
            "vmware",
            "vm_guest_exec_output",
            json!({ "vm_name": "app01", "command": "systemctl restart app" }),
            "app01: run systemctl restart app in the guest",
        ),
        (
            "vmware",
            "vm_guest_provision",
            json!({ "vm_name": "app01", "username": "root", "steps": [] }),
            "app01: run a provisioning plan in the guest",
        ),
        (
            "vmware",
            "vm_guest_upload",
            json!({ "vm_name": "app01", "local_path": "x", "guest_path": "/etc/app.conf" }),
            "app01: upload /etc/app.conf",
        ),
        (
            "vmware",
            "vm_reconfigure_cpu",
            json!({ "vm_name": "app01", "cpus": 4 }),
            "app01: vm_reconfigure_cpu app01",
        ),
        (
            "vmware",
            "vm_clean_slate",
            json!({ "vm_name": "app01", "dry_run": true }),
            "-",
        ),
        (
            "vmware",
            "vm_clean_slate",
            json!({ "snapshot_name": "baseline" }),
            "refused: no VM",
        ),
        ("vmware", "vm_delete", json!({ "vm_name": "app01" }), "deny"),
        (
            "vmware",
            "vm_guest_download",
            json!({ "vm_name": "app01", "guest_path": "/etc/hosts" }),
            "-",
        ),
        ("vmware", "vm_list_plans", json!({}), "-"),
        ("vmware", "list_virtual_machines", json!({}), "-"),
        // Proxmox
        (
            "proxmox",
            "execute_vm_command",
            json!({ "node": "pve", "vmid": "101", "command": "apt-get upgrade -y" }),
            "jp-ubuntu: run apt-get upgrade -y",
        ),
        (
            "proxmox",
            "execute_vm_command",
            json!({ "node": "pve", "vmid": 102, "command": "reboot" }),
            "app01: run reboot",
        ),
        (
            "proxmox",
            "execute_vm_command",
            json!({ "node": "pve", "vmid": "900", "command": "reboot" }),
            "refused: no VM",
        ),
        (
            "proxmox-mcp-plus",
            "rollback_snapshot",
            json!({ "node": "pve", "vmid": "102", "snapname": "old" }),
            "app01: rollback_snapshot old",
        ),
        (
            "proxmox",
            "delete_vm",
            json!({ "node": "pve", "vmid": "101" }),
            "deny",
        ),
        ("proxmox", "get_vms", json!({}), "-"),
        (
            "proxmox",
            "list_snapshots",
            json!({ "node": "pve", "vmid": "101" }),
            "-",
        ),
        // SSH
        (
            "ssh-manager",
            "ssh_execute",
            json!({ "server": "web", "command": "sed -i s/a/b/ /etc/app.conf" }),
            "jp-ubuntu: sed -i s/a/b/ /etc/app.conf",
        ),
        (
            "ssh-manager",
            "ssh_execute_sudo",
            json!({ "server": "app01", "command": "systemctl restart app" }),
            "app01: systemctl restart app",
        ),
        (
            "ssh-manager",
            "ssh_upload",
            json!({ "server": "app01", "localPath": "x", "remotePath": "/etc/x" }),
            "app01: ssh_upload /etc/x",
        ),
        (
            "ssh-manager",
            "ssh_execute",
            json!({ "server": "unknown", "command": "id" }),
            "refused: no VM",
        ),
        ("ssh-manager", "ssh_list_servers", json!({}), "-"),
        (
            "ssh-manager",
            "ssh_download",
            json!({ "server": "web", "remotePath": "/etc/x", "localPath": "x" }),
            "-",
        ),
        (
            "ssh-jp-ubuntu",
            "exec",
            json!({ "command": "vi /etc/hosts" }),
            "jp-ubuntu: vi /etc/hosts",
        ),
        (
            "ssh-jp-ubuntu",
            "sudo-exec",
            json!({ "command": "apt install nginx" }),
            "jp-ubuntu: apt install nginx",
        ),
        (
            "ssh-jp-ubuntu",
            "run-command",
            json!({ "command": "make install", "profile": "default" }),
            "jp-ubuntu: make install",
        ),
        (
            "ssh-jp-ubuntu",
            "signal-process",
            json!({ "pid": 4, "signal": "KILL" }),
            "jp-ubuntu: signal-process",
        ),
        (
            "ssh-jp-ubuntu",
            "sftp-upload",
            json!({ "remotePath": "/etc/motd", "content": "x" }),
            "jp-ubuntu: upload /etc/motd",
        ),
        (
            "ssh-jp-ubuntu",
            "read-command",
            json!({ "command": "cat /etc/hosts" }),
            "-",
        ),
        (
            "ssh-jp-ubuntu",
            "sftp-download",
            json!({ "remotePath": "/etc/motd" }),
            "-",
        ),
        // Ansible
        (
            "ansible-mcp",
            "ansible-playbook",
            json!({ "playbook_path": "/p/site.yml", "limit": "app01,db01" }),
            "app01: ansible-playbook /p/site.yml",
        ),
        (
            "ansible-mcp",
            "project-run-playbook",
            json!({ "playbook_path": "/p/site.yml", "limit": "webservers" }),
            "jp-ubuntu+app01: ansible-playbook /p/site.yml",
        ),
        (
            "ansible-mcp",
            "ansible-playbook",
            json!({ "playbook_path": "/p/site.yml", "limit": "staging" }),
            "-",
        ),
        (
            "ansible-mcp",
            "ansible-playbook",
            json!({ "playbook_path": "/p/site.yml" }),
            "deny",
        ),
        (
            "ansible-mcp",
            "ansible-role",
            json!({ "role_name": "nginx", "hosts": "jp-ubuntu" }),
            "jp-ubuntu: ansible role nginx",
        ),
        (
            "ansible-mcp",
            "ansible-task",
            json!({ "host_pattern": "app01", "module": "copy", "args": "dest=/etc/x" }),
            "app01: ansible copy dest=/etc/x",
        ),
        (
            "ansible-mcp",
            "ansible-task",
            json!({ "host_pattern": "app01", "module": "ping" }),
            "-",
        ),
        (
            "ansible-mcp",
            "validate-playbook",
            json!({ "playbook_path": "/p/site.yml" }),
            "-",
        ),
        (
            "ansible-mcp",
            "ansible-inventory",
            json!({ "inventory": "/i" }),
            "-",
        ),
        // Shells and harnesses
        (
            "builtin",
            "Bash",
            json!({ "command": "ssh justin@jp-ubuntu 'rm -r /srv/app'", "description": "x" }),
            "jp-ubuntu: ssh justin@jp-ubuntu 'rm -r /srv/app'",
        ),
        (
            "builtin",
            "Bash",
            json!({ "command": "scp x root@10.20.0.11:/etc/ && ssh app01.example.com reboot" }),
            "jp-ubuntu+app01: scp x root@10.20.0.11:/etc/ && ssh app01.example.com reboot",
        ),
        (
            "builtin",
            "Bash",
            json!({ "command": "cargo test", "description": "x" }),
            "-",
        ),
        (
            "builtin",
            "Bash",
            json!({ "command": "ssh jp-ubuntu2 uptime; ping 10.20.0.110" }),
            "-",
        ),
        (
            "builtin",
            "Edit",
            json!({ "file_path": "/mnt/jp-ubuntu/etc/hosts", "old_string": "a", "new_string": "b" }),
            "jp-ubuntu: Edit /mnt/jp-ubuntu/etc/hosts",
        ),
        (
            "builtin",
            "Write",
            json!({ "file_path": "/home/me/notes.md", "content": "about app01" }),
            "-",
        ),
        (
            "builtin",
            "Read",
            json!({ "file_path": "/mnt/jp-ubuntu/etc/hosts" }),
            "-",
        ),
        (
            "desktop-commander",
            "start_process",
            json!({ "command": "ssh app01 reboot", "timeout_ms": 1000 }),
            "app01: ssh app01 reboot",
        ),
        (
            "desktop-commander",
            "write_file",
            json!({ "path": "/mnt/app01/etc/x", "content": "y" }),
            "app01: write_file /mnt/app01/etc/x",
        ),
        (
            "desktop-commander",
            "edit_block",
            json!({ "file_path": "/mnt/app01/etc/x", "old_string": "a", "new_string": "b" }),
            "app01: edit_block /mnt/app01/etc/x",
        ),
        (
            "desktop-commander",
            "read_file",
            json!({ "path": "/mnt/app01/etc/x" }),
            "-",
        ),
        // Anything else
        (
            "github",
            "create_issue",
            json!({ "title": "app01 is down" }),
            "-",
        ),
        (
            "elsewhere",
            "vm_guest_exec",
            json!({ "vm_name": "app01", "command": "x" }),
            "-",
        ),
    ];
    for (server, tool, arguments, expected) in calls {
        let said = verdict(&catalog, server, tool, arguments.clone());
        assert_eq!(said, expected, "{server}/{tool} {arguments}");
    }
}

#[test]
fn the_skill_is_one() {
    let folder = root().join("skills/zerto-rewind");
    let skill = fs::read_to_string(folder.join("SKILL.md")).unwrap();
    let (head, body) = skill
        .strip_prefix("---\n")
        .unwrap()
        .split_once("\n---\n")
        .unwrap();
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .clone()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
            .unwrap()
    };
    assert_eq!(field("name"), folder.file_name().unwrap().to_str().unwrap());
    assert!((1..=1024).contains(&field("description").len()));
    assert!(field("compatibility").len() <= 500);
    assert!(body.lines().count() < 500);
    for tool in rewind_mcp::tools::all() {
        let known = body.contains(&*tool.name) || tool.name == "zerto_find_protection";
        assert!(known, "the skill does not mention {}", tool.name);
    }
    // Every code that it tells what to do about is one.
    for code in body
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains('_'))
    {
        let is_code = rewind_core::ErrorCode::ALL
            .iter()
            .any(|known| known.as_str() == code);
        let is_name = [
            "zerto_",
            "change_id",
            "plan_id",
            "pass_through",
            "expected_until",
            "local_path",
        ]
        .iter()
        .any(|name| code.starts_with(name));
        assert!(is_code || is_name, "{code} is no error code");
    }
}
