//! The examples of the guide show what the program prints.
//!
//! A block ```` ```console ```` has a command after `$ ` and its output. The tests run it in a folder that has the fixtures by
//! their names. A line `...` stands for any number of lines. `INSTA_UPDATE=always` writes the present output into the
//! pages, as it does for snapshots.
//!
//! trycmd could run such blocks. But it needs a line like `? 2` for each exit status, which readers do not understand, and
//! it cannot run a block in another folder than that of its page.

use super::super::captured::copy_tree;
use super::super::{fixture, fixtures, json, pg_timing, run};
use super::{Page, pages};
use std::path::Path;
use tempfile::TempDir;

const ELLIPSIS: &str = "...";

/// Returns a folder with a link to each fixture that examples use.
fn fixtures_by_name() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["hosts", "pg_test_timing", "plans", "logs", "kernel_logs"] {
        for name in fixtures(kind) {
            let link = folder.path().join(&name);
            // Two plans and outputs have the same name; examples need only one of them.
            if !link.exists() {
                std::os::unix::fs::symlink(fixture(kind).join(&name), link).unwrap();
            }
        }
    }
    std::fs::rename(host_in_a_sandbox().keep(), folder.path().join("sandbox")).unwrap();
    folder
}

/// Returns a host on which the program may not read the counter. Such a host cannot be captured: a program that starts under
/// this rule ends in the dynamic loader.
fn host_in_a_sandbox() -> TempDir {
    let measured = "pg_timing/measured.json";
    let tree = fixture("hosts").join("kvm-tsc");
    let copy = copy_tree(&tree, measured);
    let mut figures = json(&std::fs::read_to_string(tree.join(measured)).unwrap());
    figures["tsc"]["permitted"] = false.into();
    std::fs::write(copy.path().join(measured), figures.to_string()).unwrap();
    copy
}

fn output(command: &str, folder: &Path) -> String {
    let words = shlex::split(command).unwrap_or_else(|| panic!("not a command: {command}"));
    assert_eq!(words[0], "pg_timing", "an example runs pg_timing: {command}");
    let (status, stdout, stderr) = run(pg_timing().current_dir(folder).args(&words[1..]));
    assert!(status < 3 && stderr.is_empty(), "{command}: {status} {stderr}");
    stdout
}

/// Returns the parts of an output that `...` does not replace.
fn parts<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let parts = lines.split(|line| *line == ELLIPSIS).map(|part| {
        let is_text = |line: &&str| !line.is_empty();
        let start = part.iter().position(is_text).unwrap_or(part.len());
        let end = part.iter().rposition(is_text).map_or(start, |last| last + 1);
        part[start..end].to_vec()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Asserts that each part of the example is in the output, in this order.
fn contains(output: &str, example: &[&str]) -> Result<(), String> {
    let lines: Vec<&str> = output.lines().collect();
    if !example.contains(&ELLIPSIS) {
        return if lines == example { Ok(()) } else { Err(output.into()) };
    }
    let mut at = 0;
    for part in parts(example) {
        let found = lines[at..].windows(part.len()).position(|window| window == part);
        at += found.ok_or_else(|| format!("no such lines:\n{}\nin:\n{output}", part.join("\n")))? + part.len();
    }
    Ok(())
}

/// Returns the example with the present output. Of an example with `...`, each paragraph is replaced by the one in the output
/// that begins with the same word.
fn updated(output: &str, example: &[&str]) -> String {
    if !example.contains(&ELLIPSIS) {
        return output.into();
    }
    let first_word = |paragraph: &str| paragraph.split_whitespace().next().map(str::to_string);
    let mut present = output.trim_end().split("\n\n");
    let paragraphs = example.join("\n");
    let paragraphs = paragraphs.split("\n\n").map(|old| {
        let is_same = |new: &&str| first_word(new) == first_word(old);
        if old.trim() == ELLIPSIS { old } else { present.find(is_same).unwrap_or(old) }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Checks the examples of a page. Returns the page with the present output.
fn check(page: &Page, folder: &Path, wrong: &mut Vec<String>) -> String {
    let mut lines: Vec<String> = page.text.lines().map(str::to_string).collect();
    // From the last block to the first one, so that the line numbers of the others stay.
    for block in page.blocks().iter().rev().filter(|block| block.info == "console") {
        let (command, example) = block.lines.split_first().expect("an example has a command");
        let command = command.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {command}"));
        let output = output(command, folder);
        if let Err(difference) = contains(&output, example) {
            wrong.push(format!("{}:{}: {command}\n{difference}", page.path.display(), block.first));
            let new = updated(&output, example);
            lines.splice(block.first + 1..block.first + block.lines.len(), new.lines().map(str::to_string));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn examples_show_what_the_program_prints() {
    let folder = fixtures_by_name();
    let mut wrong = vec![];
    for page in pages() {
        let before = wrong.len();
        let present = check(&page, folder.path(), &mut wrong);
        if wrong.len() > before && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(&page.path, present).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_stale_example_is_found() {
    let output = "host: db1\n\nclock 20 ns\nalso 5 ns\n\nOK  fine\n";
    let example = |text: &'static str| text.lines().collect::<Vec<_>>();
    for right in [output, "host: db1\n\n...\n\nOK  fine\n", "...\nalso 5 ns\n...\n"] {
        assert_eq!(contains(output, &example(right)), Ok(()), "{right}");
    }
    for wrong in [
        "host: db1\n",
        "host: db1\n\n...\n\nOK  well\n",
        "...\nOK  fine\n\nhost: db1\n",
        "...\nclock 20 ns\nOK  fine\n",
    ] {
        assert!(contains(output, &example(wrong)).is_err(), "{wrong}");
    }
    let stale = example("host: db2\n\n...\n\nOK  well");
    assert_eq!(updated(output, &stale), "host: db1\n\n...\n\nOK  fine\n");
}
