//! Simulated clocks with known faults go through the same reading, counting and checking as real clocks.

use crate::host::check;
use crate::host::measure::{BUFFER, MeasuredStep, Outside, Record, summarize};
use crate::report::{Activity, ClockReport, Fact, Origin, Report, SYSTEM, Severity};
use timing_clock::sim::{Character, SimClock, World};
use timing_clock::{Granularity, Hertz, NANOSECONDS, Nanos, granularity};

const BLOCKS: u64 = 64;

fn measured(character: Character) -> ClockReport {
    let rate = Hertz(character.hz);
    let world = World::new(11);
    let clock = SimClock::new(&world, character.clone());
    let counter = SimClock::new(&world, Character { cost_ns: 9.0, jitter_ns: 2, ..Character::default() });
    let outside = Outside { clock: &counter, cost: 9.5 };
    let mut record = Record::default();
    let mut left = BLOCKS;
    record.slice(&clock, &outside, || {
        left -= 1;
        left > 0
    });
    // The step is measured on a clock without faults, because the faults are positioned by numbers of reads.
    let faultless = Character { back: Vec::new(), stalls: Vec::new(), ..character };
    let mut left = 4000;
    let seen = granularity(&SimClock::new(&world, faultless), 4000, || {
        left -= 1;
        left > 0
    });
    summarize(SYSTEM, &record, Some(MeasuredStep { granularity: seen, duration: Nanos(1e6) }), rate, Some(NANOSECONDS))
}

fn alarms(clock: ClockReport) -> Vec<(String, Severity)> {
    let mut report = Report::empty(Origin::Measured, "");
    report.clocks = vec![clock];
    report.activity = Fact::Known(Activity { steal_ms: Some(0.0), suspends: Some(0), ..Activity::default() });
    check::judge(&mut report);
    report.findings.iter().filter(|f| f.severity >= Severity::Warning).map(|f| (f.id.clone(), f.severity)).collect()
}

#[test]
fn a_clock_without_faults_raises_no_alarm() {
    let clock = measured(Character::default());
    assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3, "{clock:?}");
    assert!((clock.loop_ns.unwrap() - 25.0).abs() < 0.3, "{clock:?}");
    assert_eq!((clock.granularity_ns, clock.backward_steps), (Some(1.0), 0));
    assert_eq!(
        clock.reads,
        (BLOCKS - BLOCKS / 8) * (BUFFER as u64 - 1),
        "every reading except the first of each buffer"
    );
    assert_eq!(clock.histogram.iter().map(|row| row.count).sum::<u64>(), clock.reads);
    assert_eq!(alarms(clock), []);
}

#[test]
fn backward_steps_are_counted_and_measured() {
    // A read takes 25 ns, so a backward step of 26 ns shows as 1 ns.
    let step_back = |ticks| {
        let jitterless = Character { jitter_ns: 0, cost_ns: 25.0, ..Character::default() };
        measured(Character { back: vec![(5_000, ticks)], ..jitterless })
    };
    let one = step_back(26);
    assert_eq!((one.backward_steps, one.largest_backward_ns), (1, 1.0));
    assert_eq!(alarms(one), [("clock-backward".into(), Severity::Critical)]);
    let big = step_back(34_000_025);
    assert_eq!((big.backward_steps, big.largest_backward_ns), (1, 34_000_000.0));
}

#[test]
fn a_backward_step_between_two_buffers_is_counted() {
    let clock = measured(Character { back: vec![(3 * BUFFER as u64, 10_000)], jitter_ns: 0, ..Character::default() });
    assert_eq!(clock.backward_steps, 1);
}

#[test]
fn steps_from_1_ns_to_4_ms_are_measured() {
    for (step, alarm) in
        [(1, None), (10, None), (100, None), (4_000_000, Some(("clock-coarse".to_string(), Severity::Critical)))]
    {
        let clock = measured(Character { step, ..Character::default() });
        assert_eq!(clock.granularity_ns, Some(step as f64));
        // The read cost is right for a coarse clock, too, because another clock times the buffers.
        assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.5, "{step}: {clock:?}");
        assert_eq!(alarms(clock), Vec::from_iter(alarm));
    }
}

#[test]
fn stalls_are_gaps_and_do_not_change_the_read_cost() {
    // One stall in the middle of each of the first seven buffers. The eighth block is the loop of pg_test_timing. Blocks of
    // timed calls, with half as many reads, follow the first and the fifth buffer.
    let reads_of_calls = |n: u64| [0, 1, 1, 1, 1, 2, 2][n as usize] * BUFFER as u64 / 2;
    let stalls = (0..7).map(|n| (n * BUFFER as u64 + reads_of_calls(n) + 500, 5e6)).collect();
    let clock = measured(Character { stalls, ..Character::default() });
    let gaps = clock.gaps.unwrap();
    assert_eq!(gaps.count, 7);
    assert!((gaps.total_ns - 35e6).abs() < 1e3 && (gaps.largest_ns - 5e6).abs() < 100.0, "{gaps:?}");
    assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3);
}

#[test]
fn counters_near_2_63_and_2_64_have_no_backward_step() {
    for origin in [(1 << 63) - 400_000, u64::MAX - 400_000] {
        let clock = measured(Character { origin, ..Character::default() });
        assert_eq!(clock.backward_steps, 0);
        assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3);
    }
}

#[test]
fn the_read_cost_does_not_depend_on_the_tick_rate() {
    for hz in [1e9, 2_596_098_027.0] {
        let clock = measured(Character { hz, ..Character::default() });
        assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3, "{hz}: {clock:?}");
        assert!((clock.timed_call_ns.unwrap() - 50.0).abs() < 0.6, "{hz}: {clock:?}");
    }
}

#[test]
fn a_slow_clock_raises_an_alarm() {
    let clock = measured(Character { cost_ns: 7_350.0, ..Character::default() });
    assert_eq!(alarms(clock), [("clock-slow".into(), Severity::Critical)]);
    let clock = measured(Character { cost_ns: 160.0, ..Character::default() });
    assert_eq!(alarms(clock), [("clock-slow".into(), Severity::Warning)]);
}

#[test]
fn a_clock_that_never_moves_is_critical() {
    let clock = measured(Character { hz: 0.0, ..Character::default() });
    // Its ticks have no rate, so only the missing movement is reported.
    assert_eq!(clock.stood_still_ns, Some(1e6));
    assert_eq!(alarms(clock), [("clock-coarse".into(), Severity::Critical)]);
}

#[test]
fn a_hidden_step_is_unknown_with_the_reason() {
    let mut record = Record::default();
    record.differences.add(200_000_000);
    let measured_step = MeasuredStep { granularity: Granularity::Unknown, duration: Nanos(1e6) };
    let clock = summarize(SYSTEM, &record, Some(measured_step), NANOSECONDS, None);
    assert_eq!((clock.granularity_ns, clock.stood_still_ns), (None, None));
    assert_eq!(clock.granularity_unavailable.as_deref(), Some("interruptions of the measurement hid it"));
    assert_eq!(alarms(clock), []);
}
