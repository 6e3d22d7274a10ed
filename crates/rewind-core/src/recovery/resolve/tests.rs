use super::*;

/// A tree given as complete paths; a trailing `/` makes a folder, a trailing `@` a link.
pub(in crate::recovery) struct Tree(Vec<PathItem>);

impl Tree {
    pub fn new(paths: &[&str]) -> Self {
        let mut items: Vec<PathItem> = Vec::new();
        for path in paths {
            let (plain, last) = match path.strip_suffix('@') {
                Some(plain) => (plain, PathKind::Other("Link".into())),
                None if path.ends_with('/') => (path.trim_end_matches('/'), PathKind::Folder),
                None => (*path, PathKind::File),
            };
            let names: Vec<&str> = plain.split('/').collect();
            for depth in 1..=names.len() {
                let path = names[..depth].join("/");
                let kind = match depth {
                    1 => PathKind::Partition,
                    depth if depth == names.len() => last.clone(),
                    _ => PathKind::Folder,
                };
                if !items.iter().any(|item| item.path == path) {
                    let browsable = matches!(kind, PathKind::Partition | PathKind::Folder);
                    let downloadable = !matches!(kind, PathKind::Other(_));
                    items.push(PathItem {
                        path,
                        kind,
                        size: None,
                        modified: None,
                        browsable,
                        downloadable,
                        reason: None,
                    });
                }
            }
        }
        Self(items)
    }
}

impl Folders for Tree {
    async fn items(&self, folder: &str) -> Result<Arc<Vec<PathItem>>, Error> {
        let parent = |path: &str| {
            path.rsplit_once('/')
                .map_or("", |(parent, _)| parent)
                .to_owned()
        };
        Ok(Arc::new(
            self.0
                .iter()
                .filter(|item| parent(&item.path) == folder)
                .cloned()
                .collect(),
        ))
    }
}

async fn find(tree: &[&str], path: &str) -> Result<String, Error> {
    let resolved = resolve(&Tree::new(tree), &GuestPath::parse(path).unwrap()).await?;
    Ok(resolved.item.path)
}

const LINUX: &[&str] = &[
    "partition#0 Ext4/etc/hosts",
    "partition#0 Ext4/etc/mtab@",
    "partition#0 Ext4/var/run@",
    "partition#0 Ext4/home/",
    "partition#0 Ext4/srv/old/f",
    "partition#1 Ext4/justin/a b \"ü\".txt",
    "partition#1 Ext4/hosts.old",
    "partition#1 Ext4/old/g",
    "partition#1 Ext4/lost+found/",
    "partition#2 Xfs/etc/issue",
];

#[tokio::test]
async fn a_whole_path_is_found_on_the_partition_that_has_it() {
    for (path, at) in [
        ("/etc/hosts", "partition#0 Ext4/etc/hosts"),
        ("/etc/issue", "partition#2 Xfs/etc/issue"),
        ("/etc/mtab", "partition#0 Ext4/etc/mtab"),
        ("partition#0 Ext4/etc/hosts", "partition#0 Ext4/etc/hosts"),
    ] {
        assert_eq!(find(LINUX, path).await.unwrap(), at, "{path}");
    }
}

#[tokio::test]
async fn an_empty_folder_is_where_another_partition_is_mounted() {
    let path = GuestPath::parse("/home/justin/a b \"ü\".txt").unwrap();
    let resolved = resolve(&Tree::new(LINUX), &path).await.unwrap();
    assert_eq!(resolved.item.path, "partition#1 Ext4/justin/a b \"ü\".txt");
    assert!(resolved.note.is_none());
}

#[tokio::test]
async fn a_mount_point_that_is_not_shown_is_assumed_and_told() {
    let path = GuestPath::parse("/data/old/g").unwrap();
    let resolved = resolve(&Tree::new(LINUX), &path).await.unwrap();
    assert_eq!(resolved.item.path, "partition#1 Ext4/old/g");
    assert!(resolved.note.unwrap().contains("No partition shows /data;"));
    // Not on the guest's root, and not where there is only one partition.
    for (tree, path) in [
        (LINUX, "/nowhere/etc/hosts"),
        (&["partition#0 Ext4/x/f"], "/nowhere/x/f"),
    ] {
        let error = find(tree, path).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PathNotFound);
        assert_eq!(error.candidates.len(), 1);
    }
}

#[tokio::test]
async fn a_part_of_the_path_elsewhere_is_offered_and_not_taken() {
    // /etc is no mount point: it has files.
    let error = find(LINUX, "/etc/hosts.old").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    assert_eq!(error.candidates, ["partition#1 Ext4/hosts.old"]);
    assert!(find(LINUX, "/srv/old/g").await.is_err());
}

#[tokio::test]
async fn two_partitions_that_may_be_mounted_there_stop() {
    let disks = &[
        "partition#0 Ext4/etc/x",
        "partition#1 Ext4/app/f",
        "partition#2 Ext4/app/f",
    ];
    let error = find(disks, "/srv/app/f").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathAmbiguous);
    assert_eq!(
        error.candidates,
        ["partition#1 Ext4/app/f", "partition#2 Ext4/app/f"]
    );
}

#[tokio::test]
async fn none_and_several_stop() {
    for (path, code) in [
        ("/etc", ErrorCode::PathAmbiguous),
        ("/etc/HOSTS", ErrorCode::PathNotFound),
        ("/nowhere", ErrorCode::PathNotFound),
        ("/etc/hosts/x", ErrorCode::PathNotFound),
        ("partition#7 Ext4/etc/hosts", ErrorCode::PathNotFound),
        ("C:\\etc\\hosts", ErrorCode::PathNotFound),
    ] {
        assert_eq!(find(LINUX, path).await.unwrap_err().code, code, "{path}");
    }
    let error = find(LINUX, "/etc").await.unwrap_err();
    assert_eq!(error.candidates.len(), 2);
    assert!(
        error
            .candidates
            .contains(&"partition#0 Ext4/etc".to_owned())
    );
}

#[tokio::test]
async fn a_link_in_the_way_is_named() {
    let error = find(LINUX, "/var/run/app.pid").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathNotFound);
    assert!(
        error
            .next
            .contains("\"partition#0 Ext4/var/run\" is a link"),
        "{}",
        error.next
    );
}

#[tokio::test]
async fn windows_names_differ_by_spelling_only() {
    let disks = &[
        "partition#0 NTFS/Users/Ann/Notes.txt",
        "partition#1 NTFS/Data/x.txt",
        "partition#1 NTFS/Data/CASE.txt",
        "partition#1 NTFS/Data/case.txt",
        "partition#1 NTFS/Users/Ann/other.txt",
        "partition#2 FAT32/Data/X.TXT",
        "partition#3 Ext4/Users/Ann/Notes.txt",
    ];
    assert_eq!(
        find(disks, r"c:\users\ann\notes.TXT").await.unwrap(),
        "partition#0 NTFS/Users/Ann/Notes.txt"
    );
    assert_eq!(
        find(disks, r"D:\Data\case.txt").await.unwrap(),
        "partition#1 NTFS/Data/case.txt"
    );
    let error = find(disks, r"D:\data\x.txt").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PathAmbiguous);
    assert_eq!(
        error.candidates,
        [
            "partition#1 NTFS/Data/x.txt",
            "partition#2 FAT32/Data/X.TXT"
        ]
    );
    assert_eq!(
        find(disks, r"D:\Data\Case.txt").await.unwrap_err().code,
        ErrorCode::PathAmbiguous
    );
    assert_eq!(
        find(disks, "partition#1 NTFS/data/X.txt").await.unwrap(),
        "partition#1 NTFS/Data/x.txt"
    );
}
