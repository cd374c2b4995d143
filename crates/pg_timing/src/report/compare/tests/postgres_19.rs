//! Differences that concern PostgreSQL 19 only, because it can read the counter.

use super::*;

const ONLY_19: &str = "only for PostgreSQL 19: older servers read the system clock.";

/// Returns a host with a system clock and a counter of these undisturbed read costs.
fn two_clocks(system_ns: f64, counter_ns: f64, used_by_default: bool) -> Report {
    with(&host(system_ns), |report| {
        report.clocks.push(ClockReport { name: COUNTER.into(), ..host(counter_ns).clocks[0].clone() });
        report.tsc.used_by_default = Some(used_by_default);
    })
}

#[test]
fn the_read_cost_decides_whether_another_default_is_worse() {
    for (system, counter, expected) in [
        (20.0, 9.0, Effect::Worse),
        (800.0, 9.0, Effect::MuchWorse),
        // At most 5 ns, and within noise.
        (13.0, 9.0, Effect::Changed),
        (20.0, 20.0, Effect::Changed),
        // Something intercepts the counter.
        (20.0, 900.0, Effect::MuchBetter),
    ] {
        let [tsc, no_tsc] = [true, false].map(|used| two_clocks(system, counter, used));
        assert_eq!(effect(&tsc, &no_tsc), expected, "{system} {counter}");
        assert_eq!(effect(&no_tsc, &tsc), expected.mirrored(), "{system} {counter}");
    }
    let unmeasured = with(&two_clocks(20.0, 9.0, true), |report| _ = report.clocks.pop());
    assert_eq!(effect(&unmeasured, &two_clocks(20.0, 9.0, false)), Effect::Changed);
}

#[test]
fn the_verdict_says_what_another_default_costs() {
    let [tsc, no_tsc] = [true, false].map(|used| two_clocks(20.0, 9.0, used));
    assert_eq!(
        compared(&tsc, &no_tsc).verdict.summary,
        format!(
            "PostgreSQL 19 no longer uses the TSC by default: a read of its clock now costs 20 ns, before 9 ns. Worse {ONLY_19}"
        )
    );
    assert_eq!(
        compared(&no_tsc, &tsc).verdict.summary,
        format!(
            "PostgreSQL 19 now uses the TSC by default: a read of its clock now costs 9 ns, before 20 ns. Better {ONLY_19}"
        )
    );
}

#[test]
fn the_verdict_says_that_older_servers_do_not_read_the_counter() {
    let fast = two_clocks(20.0, 9.0, true);
    let slow_counter = compared(&fast, &two_clocks(20.0, 30.0, true)).verdict;
    assert_eq!(slow_counter.effect, Effect::Worse);
    assert!(slow_counter.summary.ends_with(&format!("Worse {ONLY_19}")), "{}", slow_counter.summary);
    let both = compared(&fast, &two_clocks(40.0, 30.0, true)).verdict;
    assert!(both.effect == Effect::Worse && !both.summary.contains(ONLY_19), "{}", both.summary);
    // The improvement for all servers is in another sentence.
    let mixed = compared(&two_clocks(40.0, 9.0, true), &two_clocks(20.0, 30.0, true)).verdict;
    assert!(mixed.effect == Effect::Worse && mixed.summary.contains(&format!("Worse {ONLY_19}")), "{}", mixed.summary);
}

#[test]
fn a_counter_that_goes_back_concerns_postgres_19_only() {
    let fast = two_clocks(20.0, 9.0, true);
    let back = |clocks: &[usize]| {
        with(&alarm(&fast, finding_id::CLOCK_BACKWARD, Severity::Critical), |report| {
            clocks.iter().for_each(|nth| report.clocks[*nth].backward_steps = 100);
        })
    };
    for (clocks, is_only) in [(&[1][..], true), (&[0], false), (&[0, 1], false)] {
        let verdict = compared(&fast, &back(clocks)).verdict;
        assert_eq!(verdict.effect, Effect::MuchWorse);
        assert_eq!(verdict.summary.contains(&format!("Worse {ONLY_19}")), is_only, "{}", verdict.summary);
    }
}
