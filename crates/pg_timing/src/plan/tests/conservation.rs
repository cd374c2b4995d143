//! Conservation of time and calls in every plan of the fixtures: no part is larger than the whole.

use super::last_usable_plan;
use super::psql::real_plans;
use super::published::estimate;
use crate::plan::tests::generated::check_self_times;
use crate::plan::{Plan, each_plan};
use crate::report::{MS_PER_NS, WORK_ERROR};
use std::path::Path;

/// Returns the plans of the fixtures that are files of their own, and real plans of PostgreSQL 15 and 18.
fn plans() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans");
    let files = std::fs::read_dir(directory).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.chain(real_plans()).collect()
}

#[test]
fn no_part_is_larger_than_the_whole() {
    let mut checked = 0;
    for text in plans() {
        let plan = Plan::new(last_usable_plan(&text).unwrap_or_else(|why| panic!("{why:?}: {text}")));
        for (read_ns, plain_part) in [
            (Some(20.0), None),
            (Some(500.0), None),
            (None, Some(0.6)),
            (Some(20.0), Some(0.6)),
            (Some(20.0), Some(0.9)),
        ] {
            // A slow clock does not belong to the plan, which is an error.
            let Ok(report) = estimate(read_ns, plain_part.map(|part| part * plan.execution_ms), &text) else {
                continue;
            };
            checked += 1;
            check_self_times(&report.nodes, &plan, report.reported_ms, report.corrected_ms).unwrap();
            let capture = report.capture.unwrap();
            assert!(report.corrected_ms.estimate <= report.reported_ms, "{text}");
            assert!(report.corrected_ms.low <= report.corrected_ms.estimate, "{text}");
            assert!(report.clock_share <= report.overhead_share + 1e-9, "{text}");
            assert!(report.overhead_share + report.unexplained_share <= 1.0 + 1e-9, "{text}");
            // A call costs at most what the clock can cost.
            if let Some(expected) = capture.expected_call_ns {
                let calls = plan.calls_per_process();
                let most_ms = calls.high * expected.high * MS_PER_NS * plan.concurrent_processes().max(3.0);
                let slack_ms = WORK_ERROR * report.reported_ms;
                assert!(report.overhead_share * report.reported_ms <= most_ms + slack_ms, "{text}");
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn each_line_of_a_fixture_is_read_once() {
    for text in plans() {
        let mut nodes = 0;
        each_plan(&text, false, &mut |plan| nodes += Plan::new(plan.unwrap()).nodes.len());
        let lines = text.matches(" loops=").count() + text.matches("(never executed)").count();
        assert!(nodes <= lines || text.contains("\"Plan\""), "{nodes} {lines}: {text}");
    }
}
