//! Damaged logs: what is lost is counted and named, the rest is read, and the exit status shows it.

use super::{explain, log, totals, write};
use crate::{json, pg_timing, refused, run};
use std::io::Write;

#[test]
fn damaged_logs_are_read_as_far_as_possible() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| write(&dir.path().join(name), text.as_bytes());
    let middle = text.find("  Sort Key").unwrap();
    let begin = path("truncated.log", &text[..middle]);
    let rest = path("rotated.log", &text[middle..]);
    for (files, why) in [
        (vec![&begin[..]], "the end of the plan is missing"),
        (vec![&rest], "the log begins in the middle of a plan"),
        (vec![&begin, &rest], "the log begins in the middle of a plan"),
    ] {
        let (status, stdout, _) = explain(&[&files[..], &["--all", "--format", "json"]].concat());
        let report = json(&stdout);
        assert_eq!(status, 3, "{report}");
        let reasons: Vec<&str> =
            report["skipped"].as_array().unwrap().iter().map(|s| s["reason"].as_str().unwrap()).collect();
        assert!(reasons.iter().any(|reason| reason.contains(why)), "{reasons:?}");
        assert!(report["total"]["runs"].as_u64().unwrap() > 0, "{report}");
    }
    // Between two lines: the first part can be a whole plan, and the rest has no node.
    let plan = "LOG:  duration: 1.000 ms  plan:\n\tQuery Text: x\n\tSeq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=0.001..0.002 rows=1 loops=1)\n";
    let begin = path("first.log", &(text.clone() + plan));
    let rest = path("second.log", &("\t  Buffers: shared hit=7\n".to_string() + &text));
    for (files, runs, why) in [
        (vec![&begin[..], &rest], 40, "the end of the plan is missing"),
        (vec![&rest], 20, "the log begins in the middle of a plan"),
    ] {
        let (status, stdout, _) = explain(&[&files[..], &["--all", "--format", "json"]].concat());
        let report = json(&stdout);
        assert_eq!((status, report["total"]["runs"].as_u64()), (3, Some(runs)), "{report}");
        assert!(report["skipped"].to_string().contains(why), "{report}");
    }
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let xz = path("log.xz", "\u{1}");
    std::fs::write(&xz, b"\xfd7zXZ\0\0\x04").unwrap();
    let (status, stdout, _) = explain(&[&xz, &log("server.log"), "--all"]);
    assert_eq!(status, 3);
    let stdout = unwrapped(&stdout);
    assert!(stdout.contains("not a text file") && stdout.contains("incomplete"), "{stdout}");
    for (file, why) in [
        (xz.as_str(), "not a text file"),
        (&path("empty", ""), "there is no plan in the input"),
        (&path("binary", "\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0"), "not a text file"),
        (dir.path().to_str().unwrap(), "Is a directory"),
        ("/nonexistent", "No such file"),
    ] {
        let stderr = refused(&["explain", "--read-cost", "20", "--plan", file, "--all"]);
        assert!(stderr.contains(why), "{file}: {stderr}");
    }
}

/// What is lost is named, the rest is read, and the exit status shows it.
#[test]
fn each_kind_of_damage_is_named() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &[u8]| write(&dir.path().join(name), text);
    let whole = log("server.log");
    let notes = |files: &[&str]| {
        let (status, stdout, stderr) = explain(&[files, &["--all", "--format", "json"]].concat());
        let report = json(&stdout);
        assert_eq!((status, stderr.as_str()), (3, ""), "{files:?}: {report}");
        (report["total"]["runs"].as_u64().unwrap(), report["notes"].to_string() + &report["skipped"].to_string())
    };
    // After a crash: between two entries, and within a plan.
    let second = text.match_indices("duration: ").nth(1).unwrap().0;
    let begin = text[..second].rfind('\n').unwrap() + 1;
    let nul = |at: usize| [&text.as_bytes()[..at], &[0; 100_000], &text.as_bytes()[at..]].concat();
    let (runs, found) = notes(&[&path("nul.log", &nul(begin))]);
    assert!(runs >= 19 && found.contains("NUL bytes replace it, in line "), "{runs} {found}");
    let middle = text.find("  Sort Key").unwrap();
    let (runs, found) = notes(&[&path("nul_in_plan.log", &nul(middle))]);
    assert!(runs >= 18 && found.contains("a part of the plan is lost"), "{runs} {found}");
    // The end of a compressed file is missing, or changed.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let (_, found) = notes(&[&whole, &path("truncated.gz", &gzip[..gzip.len() / 2])]);
    assert!(found.contains("to its end: "), "{found}");
    let zstd = ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let (runs, found) = notes(&[&path("joined.zst", &[&zstd[..], text.as_bytes()].concat())]);
    assert!(runs == 20 && found.contains("to its end: "), "{runs} {found}");
    // Files that cannot be read, or do not exist.
    for (file, why) in [(dir.path().to_str().unwrap(), "Is a directory"), ("/nonexistent", "No such file")] {
        let (runs, found) = notes(&[&whole, file]);
        assert!(runs == 20 && found.contains(why), "{runs} {found}");
    }
    // What is given twice is read once, and nothing is missing.
    for (paths, name) in [(["-", "-"], "stdin".into()), ([&whole, &whole], format!("{whole:?}").replace('"', "\\\""))] {
        let arguments = ["explain", "--read-cost", "20", "--all", "--format", "json", "--plan"];
        let (status, stdout, _) = run(pg_timing().args(arguments).args(paths).write_stdin(text.clone()));
        let report = json(&stdout);
        assert_eq!((status, report["total"]["runs"].as_u64()), (0, Some(20)));
        assert!(report["notes"].to_string().contains(&format!("{name} is given more than once")), "{name} {report}");
    }
    // A server writes each plan to its text log, its CSV log and its JSON log.
    let all = ["log", "csv", "json"].map(|format| log(&format!("server.{format}")));
    let arguments = ["explain", "--read-cost", "20", "--all", "--plan"];
    let (_, stdout, _) = run(pg_timing().args(arguments).args(&all));
    let note = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(note.contains("logs in several formats (csvlog, jsonlog, stderr)"), "{stdout}");
    // Formats and encodings that are not known.
    for (name, text) in [("other", &b"level=info msg=\"plan: none\"\n"[..]), ("bytes", b"\xe4\xf6\xfc\n\xff\xff\n")] {
        let stderr = refused(&["explain", "--read-cost", "20", "--plan", &path(name, text), "--all"]);
        assert!(stderr.contains("there is no plan in the input"), "{stderr}");
    }
    // A collector cut a character of a statement in two.
    let half =
        std::fs::read_to_string(log("server.json")).unwrap().replace("Query Text: ", "Query Text: /* \\ud83d */ ");
    let (status, stdout, _) = explain(&[&path("half.json", half.as_bytes()), "--all", "--format", "json"]);
    assert_eq!((status, json(&stdout)["total"]["runs"].as_u64()), (0, Some(20)), "{stdout}");
    // Constants in Latin-1, and the whole log in UTF-16.
    let latin1 = text.replace("in (1, 2, 3)", "in ('\u{7f}')").replace("Query Text: ", "Query Text: /* \u{7f} */ ");
    let latin1: Vec<u8> = latin1.bytes().map(|byte| if byte == 0x7f { 0xe4 } else { byte }).collect();
    let expected = totals(&[&whole]);
    let utf16 = format!("\u{feff}{text}");
    for bytes in [latin1, utf16.encode_utf16().flat_map(u16::to_le_bytes).collect()] {
        let report = totals(&[&path("encoded.log", &bytes)]);
        for key in ["runs", "reported_ms"] {
            assert_eq!(report["total"][key], expected["total"][key]);
        }
    }
}

/// The clock that was given belongs to one host, so the figures of the other hosts' plans are not known.
#[test]
fn the_plans_of_two_servers_are_counted_by_host() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let json_log = std::fs::read_to_string(log("server.json")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| write(&dir.path().join(name), text.as_bytes());
    let of_host = |host: &str, text: &str| text.lines().map(|line| format!("{host}  | {line}\n")).collect::<String>();
    let of_pod = |pod: &str| {
        json_log
            .lines()
            .map(|record| format!("{{\"logging_pod\":\"{pod}\",\"record\":{record}}}\n"))
            .collect::<String>()
    };
    let one = path("one.log", &(of_host("db-1", &text) + &of_host("db-2", "a line without a plan")));
    let report = totals(&[&one]);
    assert_eq!((report["total"]["runs"].as_u64(), report.get("hosts")), (Some(20), None));
    let two = path("two.log", &(of_host("db-1", &text).repeat(2) + &of_host("db-2", &text)));
    let pods = path("pods.log", &(of_pod("db-1").repeat(2) + &of_pod("db-2")));
    for file in [&two, &pods] {
        let (status, stdout, _) = explain(&[file, "--all", "--format", "json"]);
        let report = json(&stdout);
        let hosts = serde_json::json!([{ "name": "db-1", "plans": 48 }, { "name": "db-2", "plans": 24 }]);
        assert_eq!((status, report["total"]["runs"].as_u64(), &report["hosts"]), (3, Some(60), &hosts), "{file}");
    }
    let what = "the plans are from 2 hosts or containers (number of plans): db-1 (48), db-2 (24).";
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for options in
        [&["--all"][..], &["--slowest", "1"], &["--all", "--format", "jsonl"], &["--all", "--format", "html"]]
    {
        let (status, stdout, stderr) = explain(&[&[&two[..]], options].concat());
        assert_eq!(status, 3, "{options:?}");
        assert!(unwrapped(&(stdout + &stderr)).contains(what), "{options:?} {stderr}");
    }
}

/// A plan of 60 MB, in an entry and in one line, with 64 MB for all data of the program.
#[test]
fn a_huge_plan_is_skipped_in_bounded_memory() {
    let text = std::fs::read_to_string(log("server.log")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("huge.log");
    let line = "\t  ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=0.001..0.002 rows=1 loops=1)\n";
    let entry = format!("LOG:  duration: 1.000 ms  plan:\n\tQuery Text: x\n{}", line.repeat(60_000_000 / line.len()));
    let json = format!("{{\"message\":\"duration: 1.000 ms  plan:\\n{}\"}}\n", "x".repeat(60_000_000));
    std::fs::write(&file, [&text[..], &entry, &json, &text].concat()).unwrap();
    let limited = "ulimit -d 65536 && exec \"$0\" explain --read-cost 20 --all --plan \"$1\"";
    let program = env!("CARGO_BIN_EXE_pg_timing");
    let (status, stdout, stderr) = run(assert_cmd::Command::new("sh").args(["-c", limited]).arg(program).arg(&file));
    assert_eq!((status, stderr.as_str()), (3, ""));
    assert!(stdout.contains("of all time in these 40 plans"), "{stdout}");
    assert!(stdout.contains("2 plans: the plan is longer than 8 MB"), "{stdout}");
}
