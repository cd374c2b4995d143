//! `report` writes a web page. `tests/browser/run` opens such pages in a browser.

use super::{fixture, fixtures, json, pg_timing, refused, run};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Returns the page about these files.
fn page<P: AsRef<std::ffi::OsStr>>(files: &[P]) -> String {
    let (status, page, stderr) = run(pg_timing().arg("report").args(files));
    assert_eq!((status, stderr.as_str()), (0, ""));
    page
}

/// Returns the JSON report of a captured host.
fn host_json(name: &str) -> String {
    run(pg_timing().args(["--format", "json", "--root"]).arg(fixture("hosts").join(name))).1
}

/// Writes the JSON reports of captured hosts.
fn host_files(dir: &TempDir, names: &[String]) -> Vec<PathBuf> {
    let write = |name: &String| {
        let path = dir.path().join(format!("{name}.json"));
        std::fs::write(&path, host_json(name)).unwrap();
        path
    };
    names.iter().map(write).collect()
}

/// Returns the values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Asserts what browsers and screen readers need.
fn assert_structure(page: &str, what: &str) {
    let count = |text: &str| page.matches(text).count();
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.trim_end().ends_with("</html>"), "{what}");
    assert_eq!((count("<h1"), count("<main>"), count("<title>")), (1, 1, 1 + count("<svg role=\"img\"")), "{what}");
    for outside in ["<script", "<link", "<img", "<iframe", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "{what}: {outside}");
    }
    assert!(page.contains("default-src 'none'"), "{what}");
    for element in
        ["h1", "h2", "h3", "h4", "section", "article", "table", "tr", "td", "th", "dl", "dd", "svg", "details", "div"]
    {
        let opened = count(&format!("<{element}>")) + count(&format!("<{element} "));
        assert_eq!(opened, count(&format!("</{element}>")), "{what}: {element}");
    }
    let levels: Vec<u8> = page.split("<h").skip(1).filter_map(|rest| rest[..1].parse().ok()).collect();
    assert!(levels.windows(2).all(|two| two[1] <= two[0] + 1), "{what}: {levels:?}");
    assert_eq!(count("<th ") + count("<th>"), count(" scope=\""), "{what}: each header names its direction");
    assert_eq!(count("<svg role=\"img\""), count("<desc>"), "{what}: each picture has a description");
    let ids = values(page, "id");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{what}: {ids:?}");
    for target in values(page, "href") {
        assert!(ids.contains(&target.trim_start_matches('#')), "{what}: {target}");
    }
    for figure in ["NaN", "inf%", "Infinity"] {
        assert!(!page.contains(figure), "{what}: {figure}");
    }
}

/// Returns a text as it is in the page.
fn in_page(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace("+-", "±")
}

#[test]
fn the_page_of_each_host_has_the_words_of_its_report() {
    let dir = tempfile::tempdir().unwrap();
    let names = fixtures("hosts");
    for (name, file) in names.iter().zip(host_files(&dir, &names)) {
        let page = page(&[&file]);
        assert_structure(&page, name);
        let report = json(&std::fs::read_to_string(&file).unwrap());
        let verdict = report["verdict"]["severity"].as_str().unwrap();
        assert!(page.contains(&format!("class=\"verdict {verdict}\"")), "{name}");
        for finding in report["findings"].as_array().unwrap() {
            assert!(page.contains(&in_page(finding["summary"].as_str().unwrap())), "{name}: {finding}");
            if finding["severity"] == "ok" || finding["severity"] == "unknown" {
                continue;
            }
            let fixes = finding["fix"].as_array().unwrap();
            for text in finding["evidence"].as_array().unwrap().iter().chain(fixes.iter().map(|fix| &fix["what"])) {
                assert!(page.contains(&in_page(text.as_str().unwrap())), "{name}: {text}");
            }
        }
        let messages = report["kernel"]["messages"].as_array().into_iter().flatten();
        for message in messages.filter(|message| message["level"] == "fault") {
            assert!(page.contains(&in_page(message["text"].as_str().unwrap())), "{name}: {message}");
        }
        let skew = report["cpus"]["skew"].as_array().unwrap();
        assert_eq!(page.contains("aria-label=\"offsets between CPUs\""), !skew.is_empty(), "{name}");
    }
}

#[test]
fn the_worst_host_is_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["kvm-tsc", "junk", "ntp-slew-limit", "two-socket-warp", "docker-desktop-hpet"].map(String::from);
    let page = page(&host_files(&dir, &names));
    assert_structure(&page, "fleet");
    assert!(page.contains(">5 host reports</h1>"), "{page}");
    let order = ["docker-desktop-hpet", "two-socket-warp", "ntp-slew-limit", "junk", "kvm-tsc"];
    for (name, nth) in order.iter().zip(1..) {
        let path = dir.path().join(name);
        assert!(page.contains(&format!("<a href=\"#host-{nth}\">{}.json</a>", path.display())), "{name}: {page}");
    }
}

#[test]
fn plans_logs_and_hosts_share_a_page() {
    let reports = fixture("reports");
    let plan = reports.join("explain.json");
    assert_structure(&page(std::slice::from_ref(&plan)), "explain");
    let log = ["explain", "--plan", "log", "--all", "--read-cost", "20", "--format", "json"];
    let log = log.map(|word| if word == "log" { fixture("logs").join("server.log") } else { word.into() });
    let log = run(pg_timing().args(log)).1;
    let input = format!("{}{log}{}", host_json("gce"), host_json("ec2-xen"));
    let (status, page, _) = run(pg_timing().arg("report").arg(&plan).arg("-").write_stdin(input));
    assert_eq!(status, 0);
    assert_structure(&page, "mixed");
    assert!(page.contains(">2 host reports, 1 plan, 1 log</h1>"), "{page}");
    assert!(page.contains("stdin, 3 of 3"), "{page}");
}

#[test]
fn explain_has_pages_of_the_same_structure() {
    let log = fixture("logs").join("server.log");
    for options in [&["--all"][..], &["--slowest", "1"], &["--slowest", "5"]] {
        let mut command = pg_timing();
        command.args(["explain", "--read-cost", "20", "--format", "html", "--plan"]).arg(&log).args(options);
        assert_structure(&run(&mut command).1, &format!("{options:?}"));
    }
}

#[test]
fn without_files_this_host_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.html");
    let (status, stdout, stderr) = run(pg_timing().args(["report", "-o"]).arg(&path));
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (0, "", ""));
    let page = std::fs::read_to_string(path).unwrap();
    assert_structure(&page, "this host");
    assert!(page.contains(">system</th>"), "{page}");
}

#[test]
fn what_is_not_a_report_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let host = host_json("gce");
    let good = write("good.json", &host);
    let old = write("old.html", "old");
    let new = dir.path().join("new.html").to_str().unwrap().to_string();
    for (name, text, error) in [
        ("empty", "", "contains no report"),
        ("cut", &host[..host.len() / 2], "is JSON text that ends too early"),
        ("second", &format!("{host}{{"), "is JSON text that ends too early"),
        ("text", "CRITICAL", "is not JSON, or it is damaged"),
        ("other", "{\"a\": 1}", "is JSON, but not a report of check, read or explain"),
        ("version", &host.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1), "has the JSON format 2"),
        (
            "figure",
            &host.replacen("\"read_ns\": ", "\"read_ns\": -", 1),
            "is a damaged report of pg_timing: the figure",
        ),
        ("huge", &host.replacen("\"read_ns\": ", "\"read_ns\": 1e999", 1), "is not JSON, or it is damaged"),
    ] {
        let bad = write(name, text);
        for output in [&old, &new] {
            let stderr = refused(&["report", "-o", output, &good, &bad]);
            assert!(stderr.contains(&format!("\"{bad}\" {error}")), "{name}: {stderr}");
        }
    }
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
    assert!(!Path::new(&new).exists());
    assert!(refused(&["report", "/missing.json"]).contains("No such file or directory"));
}

/// Returns the paths of all numbers in a JSON document. Of a list, only the first element counts.
fn numbers(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::Number(_) => vec![path],
        Value::Array(values) => values.first().map_or(Vec::new(), |value| numbers(value, format!("{path}/0"))),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| numbers(value, format!("{path}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn impossible_figures_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let explain = |arguments: &[&str]| {
        run(pg_timing().args(["explain", "--read-cost", "20", "--format", "json"]).args(arguments)).1
    };
    let plan = explain(&["--plan", fixture("plans/parallel.log").to_str().unwrap()]);
    let log = explain(&["--all", "--plan", fixture("logs/server.log").to_str().unwrap()]);
    let host = host_json("gce");
    let path = dir.path().join("bad.json");
    let path = path.to_str().unwrap();
    let mut shares = 0;
    for (is_host, report) in [(false, plan), (false, log), (true, host)] {
        let report = json(&report);
        for number in numbers(&report, String::new()) {
            for figure in [1e308, -1e308] {
                let mut bad = report.clone();
                *bad.pointer_mut(&number).unwrap() = figure.into();
                std::fs::write(path, bad.to_string()).unwrap();
                let error = refused(&["report", path]);
                let expected = if number == "/schema_version" { "has the JSON format" } else { "damaged report" };
                assert!(error.contains(expected) || error.contains("is JSON, but not a report"), "{number}: {error}");
                if is_host {
                    refused(&["compare", path, path]);
                }
                shares += usize::from(number.contains("_share"));
            }
        }
    }
    assert!(shares > 10, "{shares}");
}

#[test]
fn the_page_does_not_replace_a_json_file() {
    let dir = tempfile::tempdir().unwrap();
    let before = dir.path().join("before.json");
    std::fs::copy(fixture("reports").join("explain.json"), &before).unwrap();
    let name = before.display().to_string();
    let stderr = refused(&["report", "-o", &name, &name]);
    assert!(stderr.contains("the page is HTML") && stderr.contains("name the page like report.html"), "{stderr}");
    assert!(std::fs::read_to_string(&before).unwrap().starts_with('{'));
}

#[test]
fn a_file_that_cannot_be_the_page_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let json = fixture("reports").join("explain.json");
    let json = json.to_str().unwrap();
    std::fs::write(path("victim"), "secret").unwrap();
    std::os::unix::fs::symlink(path("victim"), path("link")).unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    for (output, why) in [
        (path("link"), "it is a symbolic link"),
        (path(""), "it is not a file name"),
        (path("directory"), "it is a directory"),
        ("/dev/full".into(), "it is not a regular file"),
        (path("missing/page.html"), "No such file or directory"),
    ] {
        let stderr = refused(&["report", "-o", &output, json]);
        assert!(stderr.contains(&format!("could not write \"{output}\": {why}")), "{stderr}");
    }
    assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "secret");
}

/// A limit on the size of files acts like a full disk.
#[test]
fn a_full_disk_leaves_the_old_file_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.html");
    std::fs::write(&path, "old").unwrap();
    let program = pg_timing();
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", "ulimit -f 4 && exec \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
    command.args(["report", "-o"]).arg(&path).arg(fixture("reports").join("explain.json"));
    let (status, stdout, stderr) = run(&mut command);
    assert!(status == 3 && stdout.is_empty() && stderr.contains("File too large"), "{status} {stderr}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
