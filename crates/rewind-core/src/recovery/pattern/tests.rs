use super::*;
use crate::recovery::resolve::tests::Tree;

const LINUX: &[&str] = &[
    "partition#0 Ext4/etc/hosts",
    "partition#0 Ext4/etc/hostname",
    "partition#0 Ext4/etc/.hidden",
    "partition#0 Ext4/etc/mtab@",
    "partition#0 Ext4/etc/nginx/nginx.conf",
    "partition#0 Ext4/etc/nginx/sites/a.conf",
    "partition#0 Ext4/etc/nginx/sites/deep/b.conf",
    "partition#0 Ext4/home/",
    "partition#0 Ext4/srv/x",
    "partition#1 Ext4/justin/a.txt",
    "partition#1 Ext4/justin/b [1].txt",
    "partition#1 Ext4/srv2/x",
];

async fn matches(tree: &[&str], pattern: &str) -> Result<Vec<String>, Error> {
    let path = GuestPath::parse(pattern)?;
    let pattern = Pattern::of(&path)?.expect("it has a wildcard");
    let found = pattern.matches(&Tree::new(tree), true).await?;
    Ok(found.into_iter().map(|found| found.path).collect())
}

#[tokio::test]
async fn wildcards_match_names_and_stay_within_them() {
    for (pattern, found) in [
        ("/etc/host*", &["/etc/hostname", "/etc/hosts"][..]),
        ("/etc/host?", &["/etc/hosts"]),
        ("/etc/[.]*", &["/etc/.hidden"]),
        ("/etc/{hosts,hostname}", &["/etc/hostname", "/etc/hosts"]),
        ("/etc/*.conf", &[]),
        ("/etc/*/*.conf", &["/etc/nginx/nginx.conf"]),
        (
            "/etc/**/*.conf",
            &[
                "/etc/nginx/nginx.conf",
                "/etc/nginx/sites/a.conf",
                "/etc/nginx/sites/deep/b.conf",
            ],
        ),
        ("/etc/**/sites/*.conf", &["/etc/nginx/sites/a.conf"]),
        ("/et?/hosts", &["/etc/hosts"]),
        // A folder stands for what is in it.
        ("/etc/n*", &["/etc/nginx"]),
        (
            "/etc/nginx/**",
            &["/etc/nginx/nginx.conf", "/etc/nginx/sites"],
        ),
        ("/e**", &["/etc"]),
        // Where the beginning is on another partition.
        (
            "/home/justin/*.txt",
            &["/home/justin/a.txt", "/home/justin/b [1].txt"],
        ),
        ("/home/justin/b [[]1].txt", &["/home/justin/b [1].txt"]),
        (
            "partition#0 Ext4/etc/host?",
            &["partition#0 Ext4/etc/hosts"],
        ),
        ("partition#0 Ext4/s*", &["partition#0 Ext4/srv"]),
        ("/srv*", &["/srv", "/srv2"]),
        // What can't be carried is found; what is done about it is the caller's.
        ("/etc/mt*", &["/etc/mtab"]),
    ] {
        assert_eq!(matches(LINUX, pattern).await.unwrap(), found, "{pattern}");
    }
}

#[tokio::test]
async fn names_on_ntfs_differ_by_spelling_only() {
    let disks = &[
        "partition#0 NTFS/Inetpub/Web.CONFIG",
        "partition#0 NTFS/Inetpub/app.config",
        "partition#1 Ext4/inetpub/other.config",
    ];
    assert_eq!(
        matches(disks, r"C:\inetpub\*.config").await.unwrap(),
        [r"C:\inetpub\Web.CONFIG", r"C:\inetpub\app.config"]
    );
    assert_eq!(
        matches(disks, r"c:\*\web*").await.unwrap(),
        [r"C:\Inetpub\Web.CONFIG"]
    );
}

#[tokio::test]
async fn what_cannot_be_told_or_decided_on_stops() {
    let disks = &["partition#0 Ext4/srv/f", "partition#1 Ext4/srv/f"];
    let error = matches(disks, "/s*/f").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathAmbiguous);
    assert_eq!(
        error.candidates,
        ["partition#0 Ext4/srv/f", "partition#1 Ext4/srv/f"]
    );
    assert_eq!(
        matches(LINUX, "/nowhere/*").await.unwrap_err().code,
        ErrorCode::PathNotFound
    );
    for bad in ["/etc/[", "/etc/{a,b", "/etc/[z-a]", "/etc/{a/b,c}"] {
        let error = matches(LINUX, bad).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{bad}");
    }
    let many: Vec<String> = (0..=MATCHES_MAX)
        .map(|number| format!("partition#0 Ext4/d/{number}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = matches(&many, "/d/*").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert!(error.message.contains("more than 100"), "{error}");
}

#[test]
fn without_a_wildcard_it_is_no_pattern() {
    for plain in ["/etc/hosts", r"C:\a\b", "partition#0 Ext4/a"] {
        let path = GuestPath::parse(plain).unwrap();
        assert!(Pattern::of(&path).unwrap().is_none(), "{plain}");
    }
}
