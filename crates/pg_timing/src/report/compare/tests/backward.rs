//! Clocks that went back.

use super::*;

fn back(steps: u64, reads: u64) -> Report {
    let severity = if steps > 0 { Severity::Critical } else { Severity::Ok };
    with(&alarm(&host(20.0), finding_id::CLOCK_BACKWARD, severity), |report| {
        report.clocks[0].backward_steps = steps;
        report.clocks[0].reads = reads;
    })
}

#[test]
fn the_number_of_reads_decides_whether_backward_steps_are_new() {
    for (before, after, expected) in [
        ((0, 30_000_000), (1, 1000), Effect::MuchWorse),
        ((0, 1_000_000), (3, 1_000_000), Effect::MuchWorse),
        ((0, 1_000_000), (2, 1_000_000), Effect::NotCompared),
        ((0, 1000), (3, 30_000_000), Effect::NotCompared),
        ((0, 1000), (0, 30_000_000), Effect::Same),
        ((3, 1_000_000), (9, 3_000_000), Effect::Same),
        ((3, 1_000_000), (9, 1_000_000), Effect::Same),
        ((3, 1_000_000), (90, 1_000_000), Effect::Worse),
        // pg_test_timing stops at the first step, and does not print how often it read.
        ((0, 1_000_000), (1, 0), Effect::MuchWorse),
    ] {
        let [before, after] = [before, after].map(|(steps, reads)| back(steps, reads));
        assert_eq!(effect(&before, &after), expected, "{:?}", compared(&before, &after));
        assert_eq!(effect(&after, &before), expected.mirrored(), "{:?}", compared(&after, &before));
    }
}

#[test]
fn too_few_reads_are_the_reason() {
    let comparison = compared(&back(0, 1000), &back(3, 30_000_000));
    let groups: Vec<_> = comparison.not_compared.iter().map(|g| (g.what.join(", "), g.missing_in, &*g.why)).collect();
    let steps = groups.iter().find(|(what, ..)| what.contains("backward steps")).unwrap();
    assert_eq!(
        *steps,
        (
            "system backward steps".to_string(),
            MissingIn::Before,
            "too few reads: 1000, and steps as rare as in the other report need 30 M"
        )
    );
    let alarm = groups.iter().find(|(what, ..)| what.contains("clock-backward")).unwrap();
    assert_eq!((&*alarm.0, alarm.1), ("clock-backward (CRITICAL)", MissingIn::Before));
    assert!(comparison.findings.is_empty());
}

#[test]
fn the_screen_shows_the_rate() {
    let row = |before: Report, after: Report| {
        let screen = crate::render::text::compare::text(&compared(&before, &after));
        let screen = anstream::adapter::strip_str(&screen).to_string();
        screen.lines().find(|line| line.starts_with("system went back")).map(str::to_string)
    };
    assert_eq!(
        row(back(0, 30_000_000), back(1, 1000)).as_deref(),
        Some("system went back   never  1000 per M       -  0.10 per M  much worse")
    );
    assert_eq!(
        row(back(3, 1_000_000), back(90, 1_000_000)).as_deref(),
        Some("system went back  3.00 per M  90 per M       -  23 per M  worse")
    );
}
