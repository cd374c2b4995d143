//! As root, no output goes through a directory or a symlink that another user can change. Other users write as before.

use super::{fixture, pg_timing, run};
use std::fs::{DirBuilder, Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

/// Each option that names an output, and the name of an output.
const OPTIONS: [(&[&str], &str); 4] = [
    (&["monitor", "--samples", "1", "--interval", "0.05", "--textfile"], "out.prom"),
    (&["monitor", "--samples", "1", "--interval", "0.05", "--events"], "out.jsonl"),
    (&["check", "-d", "0.1", "--capture"], "out"),
    (&["report", "-o"], "out.html"),
];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn create(directory: &Path, mode: u32) {
    DirBuilder::new().recursive(true).create(directory).unwrap();
    set_permissions(directory, Permissions::from_mode(mode)).unwrap();
}

/// Gives a directory or a symlink to another user. Only root can do that.
fn give_away(path: &Path) {
    if is_root() {
        lchown(path, Some(1000), None).unwrap();
    }
}

/// Writes each output to `directory`, which `prepare` creates in a new directory. `reached` is the same directory without
/// symlinks. Root must refuse it with the reason, if there is one.
fn try_all(directory: &str, reached: &str, reason: Option<&str>, prepare: impl Fn(&Path)) {
    for (arguments, name) in OPTIONS {
        let top = tempfile::tempdir().unwrap();
        create(&top.path().join("private"), 0o755);
        prepare(top.path());
        let reached = top.path().join(reached);
        let mut command = pg_timing();
        command.args(arguments);
        match directory {
            "." => command.current_dir(&reached).arg(name),
            _ => command.arg(top.path().join(directory).join(name)),
        };
        if arguments[0] == "report" {
            command.arg(fixture("reports").join("explain.json"));
        }
        let (status, _, stderr) = run(&mut command);
        let text = format!("{arguments:?}, {directory}: {stderr}");
        match reason.filter(|_| is_root()) {
            Some(reason) => {
                let lines: Vec<&str> = stderr.lines().collect();
                assert!(status == 3 && lines.len() == 2, "{text}");
                assert!(lines[0].replace(top.path().to_str().unwrap(), "").ends_with(reason), "{text}");
                assert_eq!(lines[1], "hint: use a directory that only root can change, such as /root");
                assert_eq!(reached.read_dir().unwrap().count(), 0, "{text}");
            }
            None => assert!(reached.join(name).exists(), "{text}"),
        }
    }
}

#[test]
fn root_refuses_a_symlink_that_another_user_can_change() {
    let reason = "root does not follow the symlink \"/link\", because it belongs to user 1000";
    try_all("link", "private", Some(reason), |top| {
        symlink("private", top.join("link")).unwrap();
        give_away(&top.join("link"));
    });
    // Another user can move a symlink of root there.
    let reason = "root does not follow the symlink \"/tmp/link\", because other users can write to its directory";
    try_all("tmp/link", "private", Some(reason), |top| {
        create(&top.join("tmp"), 0o1777);
        symlink("../private", top.join("tmp/link")).unwrap();
    });
    let reason = "root does not write below \"/other\", because this directory belongs to user 1000";
    try_all("link", "private", Some(reason), |top| {
        create(&top.join("other"), 0o755);
        symlink(top.join("private"), top.join("other/second")).unwrap();
        symlink("other/second", top.join("link")).unwrap();
        give_away(&top.join("other"));
    });
}

#[test]
fn root_refuses_a_directory_of_another_user() {
    let reason = "root does not write below \"/other\", because this directory belongs to user 1000";
    for directory in ["other", "other/own"] {
        // Even the owner of a sticky directory can rename all its entries.
        for mode in [0o755, 0o1777] {
            try_all(directory, directory, Some(reason), |top| {
                create(&top.join(directory), 0o755);
                create(&top.join("other"), mode);
                give_away(&top.join("other"));
            });
        }
    }
    let reason = "root does not write below \".\", because this directory belongs to user 1000";
    try_all(".", "other", Some(reason), |top| {
        create(&top.join("other"), 0o755);
        give_away(&top.join("other"));
    });
}

#[test]
fn root_refuses_a_directory_that_other_users_can_write() {
    let reason = "root does not write below \"/shared\", because other users can write to this directory";
    let cases =
        [("shared", 0o775), ("shared", 0o757), ("shared", 0o1777), ("shared/own", 0o775), ("shared/own", 0o757)];
    for (directory, mode) in cases {
        try_all(directory, directory, Some(reason), |top| {
            create(&top.join(directory), 0o755);
            create(&top.join("shared"), mode);
        });
    }
}

#[test]
fn a_directory_that_only_this_user_can_change_is_accepted() {
    for directory in ["private", ".", "private/../private"] {
        try_all(directory, "private", None, |_| {});
    }
    // In a sticky directory, other users cannot rename the directories of this user.
    try_all("tmp/own", "tmp/own", None, |top| {
        create(&top.join("tmp/own"), 0o700);
        create(&top.join("tmp"), 0o1777);
    });
    try_all("link/below", "private/below", None, |top| {
        create(&top.join("private/below"), 0o755);
        symlink("second", top.join("link")).unwrap();
        symlink(top.join("private"), top.join("second")).unwrap();
    });
}
