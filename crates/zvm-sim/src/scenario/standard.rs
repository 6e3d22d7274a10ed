//! The default scenario.

use super::{Bulk, Credentials, Entry, Partition, Realm, Scenario, Site, Timings, Vm, Vpg};
use crate::switches::Switches;

/// Exactly 158 bytes, the size of the file in the measurement that started all this.
const APP_CONFIG: &str = "\
# app settings, read at start
server:
  host: 0.0.0.0
  port: 8080
database:
  url: postgres://app@db01/app
  pool: 16
logging:
  level: info
  file: app.log
";

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            credentials: Credentials::default(),
            realm: Realm::default(),
            timings: Timings::default(),
            site: Site::default(),
            peers: vec![
                Site {
                    name: "Recovery".to_owned(),
                    location: "Simulated rack 2".to_owned(),
                    ..Site::default()
                },
                Site {
                    name: "Cloud".to_owned(),
                    site_type: "AWS".to_owned(),
                    location: "Simulated region".to_owned(),
                    ..Site::default()
                },
            ],
            bulk: Bulk::default(),
            switches: Switches::default(),
            faults: Vec::new(),
            vms: vms(),
            vpgs: vpgs(),
        }
    }
}

fn vms() -> Vec<Vm> {
    let linux = |name: &str, ips: &[&str]| Vm {
        name: name.to_owned(),
        ips: ips.iter().map(|&ip| ip.to_owned()).collect(),
        guest_os: "Ubuntu Linux (64-bit)".to_owned(),
        ..Vm::default()
    };
    let keyed = |key: &str, vm: Vm| Vm {
        key: Some(key.to_owned()),
        ..vm
    };
    vec![
        Vm {
            partitions: vec![Partition {
                files: [root("jp-ubuntu"), home("/home/justin")].concat(),
                ..Partition::default()
            }],
            ..linux("jp-ubuntu", &["10.20.0.11"])
        },
        Vm {
            partitions: vec![
                Partition {
                    files: root("app01"),
                    ..Partition::default()
                },
                Partition {
                    mount: "/home".to_owned(),
                    files: home("/justin"),
                    ..Partition::default()
                },
            ],
            ..linux("app01", &["10.20.0.21", "10.20.1.21"])
        },
        keyed("web-a", linux("web", &["10.20.0.31"])),
        keyed("web-b", linux("web", &["10.20.0.32"])),
        linux("lonely", &["10.20.0.41"]),
        linux("cloud01", &["172.31.0.51"]),
        linux("paused01", &["10.20.0.61"]),
    ]
}

fn vpgs() -> Vec<Vpg> {
    vec![
        Vpg::of("jp-ubuntu", &["jp-ubuntu"]),
        Vpg::of("app01-local", &["app01"]),
        Vpg::of("app01-dr", &["app01"]),
        Vpg::of("app01-archive", &["app01"]),
        Vpg::of("web-farm-a", &["web-a"]),
        Vpg::of("web-farm-b", &["web-b"]),
        Vpg {
            protected: "AWS".into(),
            protected_site: Some("Cloud".to_owned()),
            recovery_site: Some("Production".to_owned()),
            ..Vpg::of("cloud01", &["cloud01"])
        },
        Vpg {
            status: "NotMeetingSLA".into(),
            sub_status: "ReplicationPausedUserInitiated".into(),
            ..Vpg::of("paused01", &["paused01"])
        },
    ]
}

/// `/etc` and `/srv` of a small server.
fn root(host: &str) -> Vec<Entry> {
    vec![
        Entry::text("/etc/hostname", &format!("{host}\n")),
        Entry::text(
            "/etc/hosts",
            &format!("127.0.0.1 localhost\n127.0.1.1 {host}\n::1 ip6-localhost\n"),
        ),
        Entry::text(
            "/etc/os-release",
            "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n",
        ),
        Entry::text(
            "/etc/fstab",
            "/dev/sda1 / ext4 errors=remount-ro 0 1\n/dev/sdb1 /home ext4 defaults 0 2\n",
        ),
        Entry::text(
            "/etc/nginx/nginx.conf",
            "worker_processes auto;\nevents { worker_connections 768; }\nhttp {\n    include sites-enabled/*;\n}\n",
        ),
        Entry::text(
            "/etc/nginx/sites-available/app",
            "server {\n    listen 80;\n    root /srv/www;\n    location /api { proxy_pass http://127.0.0.1:8080; }\n}\n",
        ),
        Entry::link("/etc/nginx/sites-enabled/app", "../sites-available/app"),
        Entry::text("/etc/ssh/sshd_config", "Port 22\nPermitRootLogin no\n").mode("0600"),
        Entry::link("/etc/mtab", "../proc/self/mounts"),
        Entry::text(
            "/srv/www/index.html",
            "<!doctype html>\n<title>app</title>\n<p>It works.</p>\n",
        ),
        Entry::text("/srv/app/VERSION", "2.4.1\n"),
        Entry {
            path: "/srv/app/app.db".to_owned(),
            bytes: Some(64 * 1024),
            ..Entry::default()
        },
        Entry::folder("/srv/backup"),
    ]
}

/// A home folder.
fn home(at: &str) -> Vec<Entry> {
    let path = |name: &str| format!("{at}/{name}");
    vec![
        Entry::text(&path("app-config.yaml"), APP_CONFIG),
        Entry::text(
            &path("notes.txt"),
            "Restart the app after changing its settings.\n",
        ),
        Entry::text(
            &path("Meeting notes – Q3 (draft).md"),
            "# Q3\n\n- capacity\n- backups\n",
        ),
        Entry::text(
            &path("bin/deploy.sh"),
            "#!/bin/sh\nset -eu\nsystemctl restart app\n",
        )
        .mode("0755"),
        Entry::text(&path(".ssh/authorized_keys"), "").mode("0600"),
        Entry::link(&path("current-config"), "app-config.yaml"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_file_has_158_bytes() {
        assert_eq!(APP_CONFIG.len(), 158);
    }

    #[test]
    fn the_default_survives_toml() {
        let scenario = Scenario::default();
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_toml(&text).unwrap(), scenario);
        assert_eq!(Scenario::from_toml("").unwrap(), scenario);
    }
}
