//! Real outputs.

mod damage;

use super::*;

macro_rules! fixtures {
    ($($name:ident $file:literal)*) => {
        $(const $name: &str = include_str!(concat!("../../../../tests/fixtures/pg_test_timing/", $file));)*
        const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

fixtures! {
    // Published in PostgreSQL's documentation and in tickets.
    I7_TSC "i7-860-tsc.txt"
    I7_ACPI_PM "i7-860-acpi_pm.txt"
    JIFFIES "linux26-jiffies.txt"
    DOCKER_HPET "docker-mac-hpet.txt"
    DOCKER_WARP "docker-mac-warp.txt"
    PG19_EXCERPT "pg19-desktop-excerpt.txt"
    // Measured on a virtual machine with an AMD EPYC.
    PG15 "pg15.txt"
    PG19 "pg19.txt"
    // Measured there with the library faulty_clock.c, which makes the system clock coarse, or each 1000th read long.
    PG15_COARSE "pg15-coarse.txt"
    PG19_COARSE "pg19-coarse.txt"
    PG15_BUSY "pg15-busy.txt"
    PG19_BUSY "pg19-busy.txt"
    // Measured there with a library that traps and emulates RDTSC, as some sandboxes and hypervisors do.
    PG19_TRAPPED_TSC "pg19-trapped-tsc.txt"
    // Composed.
    PG19_DEVELOPMENT "pg19-development.txt"
    PG19_BETA "pg19-beta-cntvct.txt"
    PG92 "pg92-longest-first.txt"
    TICKET "ticket.txt"
}

/// Returns the outputs without their positions.
fn parse(text: &str) -> Result<Vec<Output>, &'static str> {
    let outputs = super::parse(text)?;
    Ok(outputs.into_iter().map(|output| Output { position: 0, ..output }).collect())
}

fn one(text: &str) -> Output {
    let mut outputs = parse(text).unwrap();
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    outputs.remove(0)
}

fn counts(clock: &ClockTable) -> Vec<u64> {
    clock.bins.iter().map(|bin| bin.count).collect()
}

/// Asserts the duration, the loop time and the counts of an output before 19.
fn assert_classic(output: &Output, duration: u64, loop_ns: f64, expected: &[u64]) {
    let [clock] = output.clocks.as_slice() else { panic!("{output:?}") };
    assert_eq!((output.duration_s, clock.loop_ns, counts(clock).as_slice()), (Some(duration), Some(loop_ns), expected));
    assert_eq!((clock.name.as_str(), clock.observed.len(), &output.tsc), ("system", 0, &None));
    assert!(!output.cut_off && !output.went_back);
    assert_eq!(clock.unit, Unit::Microseconds);
    let mut below = 0.0;
    for bin in &clock.bins {
        let (smallest, largest) = clock.differences_ns(bin);
        assert_eq!(smallest, below, "a row begins where the last ended");
        let ge_ns = (smallest as u64).saturating_sub(1000);
        assert_eq!(bin.ge_ns, Some(ge_ns), "a duration is up to 1 us shorter than its difference");
        below = largest + 1000.0;
        assert_eq!(below, bin.le_ns as f64 + 1.0);
    }
}

/// Asserts the properties of every parsed output.
fn assert_valid(outputs: &[Output]) {
    assert!(!outputs.is_empty());
    for output in outputs {
        assert!(output.went_back || !output.clocks.is_empty());
        assert!(output.warp_ns.is_none() || output.went_back);
        for (nth, clock) in output.clocks.iter().enumerate() {
            // Only the last clock, if it went back, may have a heading without a table.
            let went_back = output.went_back && nth + 1 == output.clocks.len();
            assert!(went_back || clock.loop_ns.is_some() || !clock.bins.is_empty() || !clock.observed.is_empty());
            assert!(clock.loop_ns.is_none_or(|ns| ns.is_finite() && ns >= 0.0));
            assert!(clock.bins.iter().all(|bin| bin.ge_ns.is_none_or(|ns| ns <= bin.le_ns)));
            assert!(clock.bins.windows(2).all(|pair| pair[0].le_ns < pair[1].le_ns));
            assert!(clock.observed.windows(2).all(|pair| pair[0].ns < pair[1].ns));
        }
        assert_valid_report(output);
    }
}

/// Asserts the properties of the report. Computing and rendering it causes no panic.
fn assert_valid_report(output: &Output) {
    let mut report = crate::host::pg_test_timing::report::report(output);
    crate::host::check::judge(&mut report);
    assert!(!crate::document::text::piped(&crate::document::host::document(&report, None)).is_empty());
    for clock in &report.clocks {
        assert!(clock.gaps.is_none_or(|gaps| (0.0..=1.0).contains(&gaps.share)), "{clock:?}");
        assert!(clock.granularity_between_ns.is_none_or(|(low, high)| low <= high), "{clock:?}");
    }
}

#[test]
fn classic_outputs_are_parsed() {
    assert_classic(&one(I7_TSC), 3, 35.96, &[80_435_604, 2_999_652, 126, 13, 2]);
    assert_classic(&one(I7_ACPI_PM), 3, 722.92, &[1_155_682, 2_990_371, 3241, 563, 3]);
    assert_classic(&one(JIFFIES), 3, 97.75, &[27_694_571, 2_993_204, 3010, 22, 1, 1]);
    let hpet = [0, 0, 0, 336_271, 60_409, 9281, 1024, 748, 164, 37, 9, 3, 0, 1];
    assert_classic(&one(DOCKER_HPET), 3, 7353.94, &hpet);
    assert_eq!(one(DOCKER_HPET).clocks[0].bins[3], Bin { le_ns: 7999, ge_ns: Some(3000), count: 336_271 });
    assert_classic(&one(PG15), 1, 25.7, &[37_922_625, 989_251, 77, 17, 13, 265, 84, 7, 2, 1]);
    assert_classic(&one(PG92), 3, 35.29, &[82_035_461, 2_950_161, 147, 23, 10]);
}

#[test]
fn warps_are_parsed() {
    let output = one(DOCKER_WARP);
    assert_eq!((output.went_back, output.warp_ns), (true, Some(-34_612_000)));
    assert_eq!((output.duration_s, output.clocks.len(), output.cut_off), (Some(3), 0, false));
    // stderr comes first if both go to a file.
    let (testing, warp) = DOCKER_WARP.split_once('\n').unwrap();
    assert_eq!(one(&format!("{warp}{testing}\n")), output);
    // Only the first line.
    let half = one("Testing timing overhead for 3 seconds.\nDetected clock going backwards in time.\n");
    assert_eq!((half.went_back, half.warp_ns), (true, None));
    // Between the clocks of 19.
    let (system, _) = PG19.split_once("Fast clock").unwrap();
    let warp = "Fast clock source: RDTSC\nDetected clock going backwards in time.\nTime warp: -14 ns\n";
    let output = one(&format!("{system}{warp}"));
    assert_eq!((output.clocks.len(), output.warp_ns, output.cut_off), (3, Some(-14), false));
    // A run, then one whose clock went back, then a complete one; the last two without their first line.
    let (_, hpet) = DOCKER_HPET.split_once('\n').unwrap();
    let outputs = parse(&format!("{PG15}{warp}{hpet}", warp = &warp[25..])).unwrap();
    let seen: Vec<_> = outputs.iter().map(|o| (o.warp_ns, o.clocks.len(), o.duration_s)).collect();
    assert_eq!(seen, [(None, 1, Some(1)), (Some(-14), 0, None), (None, 1, None)]);
}

#[test]
fn outputs_of_development_versions_are_parsed() {
    let output = one(PG19_DEVELOPMENT);
    assert_eq!((output.duration_s, output.cut_off, output.clocks.len()), (Some(3), false, 1));
    let clock = &output.clocks[0];
    assert_eq!((clock.name.as_str(), clock.loop_ns), ("system", Some(24.99)));
    assert_eq!(counts(clock), [0, 0, 0, 0, 0, 104_000_000, 15_990_000, 9500, 400, 0, 90, 8, 2]);
    assert_eq!(clock.bins[0], Bin { le_ns: 0, ge_ns: None, count: 0 });
    assert_eq!(clock.bins[5], Bin { le_ns: 31, ge_ns: None, count: 104_000_000 });

    let output = one(PG19_BETA);
    assert_eq!((output.duration_s, output.cut_off), (Some(1), false));
    let names: Vec<_> = output.clocks.iter().map(|clock| clock.name.as_str()).collect();
    assert_eq!(names, ["system", "cntvct"]);
    assert_eq!(output.clocks[1].observed.last(), Some(&ObservedDuration { ns: 41, count: 1000 }));
}

#[test]
fn outputs_of_postgresql_19_are_parsed() {
    let output = one(PG19);
    assert_eq!((output.duration_s, output.cut_off, output.went_back), (Some(1), false, false));
    let clocks: Vec<_> =
        output.clocks.iter().map(|c| (c.name.as_str(), c.loop_ns, c.bins.len(), c.observed.len())).collect();
    assert_eq!(
        clocks,
        [("system", Some(28.75), 18, 84), ("rdtscp", Some(23.46), 18, 44), ("rdtsc", Some(16.49), 18, 29),]
    );
    let tsc = output.tsc.unwrap();
    assert_eq!(tsc.source.as_deref(), Some("x86, hypervisor, calibration"));
    assert_eq!((tsc.frequency_khz, tsc.calibrated_khz), (Fact::Known(2_299_474.0), Some(2_299_474.0)));
    assert_eq!((tsc.used_by_default, tsc.usable), (Some(true), None));
}

#[test]
fn huge_counts_cause_no_overflow() {
    let max = u64::MAX;
    let rows = format!("     1     50.00000   {max}\n     2     50.00000   {max}\n");
    let classic = format!("Per loop time including overhead: 1.00 ns\n  < us   % of total      count\n{rows}");
    assert_valid(&[one(&classic)]);
    let table = format!("Average loop time including overhead: 1.00 ns\n0 100.0000 100.0000 {max}\n");
    let several = one(&format!("System clock source: clock_gettime\n{table}Clock source: RDTSCP\n{table}"));
    assert_eq!(several.clocks.iter().flat_map(counts).collect::<Vec<_>>(), [max, max]);
    assert_valid(&[several]);
}

#[test]
fn outputs_of_faulty_clocks_are_parsed() {
    for (text, loops, tsc_source) in [
        (PG15_COARSE, &[300.92][..], None),
        (PG15_BUSY, &[1675.21], None),
        (PG19_COARSE, &[289.48], Some("x86, hypervisor")),
        (PG19_BUSY, &[1661.70, 32.81, 23.29], Some("x86, hypervisor, calibration")),
        (PG19_TRAPPED_TSC, &[12.85, 2443.56, 2424.10], Some("x86, hypervisor, calibration")),
    ] {
        let output = one(text);
        let measured: Vec<f64> = output.clocks.iter().filter_map(|clock| clock.loop_ns).collect();
        assert_eq!((measured.as_slice(), output.cut_off), (loops, false));
        assert_eq!(output.tsc.and_then(|lines| lines.source).as_deref(), tsc_source);
    }
}

#[test]
fn an_excerpt_of_postgresql_19_is_parsed() {
    let output = one(PG19_EXCERPT);
    assert!(output.cut_off);
    let loops: Vec<_> = output.clocks.iter().map(|clock| (clock.name.as_str(), clock.loop_ns.unwrap())).collect();
    assert_eq!(loops, [("system", 18.8), ("rdtscp", 16.94), ("rdtsc", 11.69)]);
    assert_eq!(counts(&output.clocks[2]), [0, 0, 0, 0, 214_321_443, 42_287_217]);
    let tsc = output.tsc.unwrap();
    assert_eq!((tsc.frequency_khz, tsc.calibrated_khz), (Fact::Known(2_993_629.0), Some(2_994_357.0)));
}

#[test]
fn four_runs_in_a_ticket_are_parsed() {
    let outputs = parse(TICKET).unwrap();
    assert_eq!(outputs.len(), 4);
    assert_eq!(outputs[0], one(I7_ACPI_PM));
    assert_eq!(outputs[1], one(DOCKER_WARP));
    assert_eq!(outputs[2], one(DOCKER_HPET));
    // `...` right after a table can replace rows.
    assert_eq!(outputs[3], Output { cut_off: true, ..one(PG19_BETA) });
}

#[test]
fn quoted_and_indented_outputs_are_parsed() {
    let all: String = ALL.iter().map(|(_, text)| *text).collect();
    let separate: Vec<Output> = ALL.iter().flat_map(|(_, text)| parse(text).unwrap()).collect();
    assert_eq!(parse(&all).unwrap(), separate);
    for prefix in ["    ", "\t", "> ", ">> ", "| ", "db-1  | ", "# ", "\u{a0}"] {
        let quoted: String = all.lines().map(|line| format!("{prefix}{line}\n")).collect();
        assert_eq!(parse(&quoted).unwrap(), separate, "{prefix:?}");
    }
    let numbered = |number: fn(usize) -> String| -> String {
        all.lines().enumerate().map(|(nth, line)| format!("{}{line}\n", number(nth + 1))).collect()
    };
    for number in [
        |nth: usize| format!("{nth:6}\t"),
        |nth: usize| format!("{nth}:"),
        |nth: usize| format!("{nth} "),
        |nth: usize| format!("2026-11-27T00:01:{:02}.345678Z ", nth % 60),
        |nth: usize| format!("Nov 27 00:01:{:02} db1 test: ", nth % 60),
    ] {
        assert!(parse(&numbered(number)).unwrap() == separate, "{}", number(7));
    }
    let one_line = all.replace('\n', "\\n");
    assert_eq!(parse(&format!("\"{one_line}\"")).unwrap(), separate, "a string of a program");
    let page = html_escape::encode_text(&all).replace('\n', "<br>").replace("  ", "&nbsp; ");
    assert_eq!(parse(&page).unwrap(), separate, "the source of a page");
    for quote in ['"', '\''] {
        let strings: String = all.lines().map(|line| format!("{quote}{line}{quote},\n")).collect();
        assert_eq!(parse(&strings).unwrap(), separate, "{quote}");
    }
    let spaced = all.replace('\n', "\r\n\r\n");
    assert_eq!(parse(&spaced).unwrap(), separate, "an empty line after each");
    let psql: String = all.lines().map(|line| format!("| {line:<80}+|\n")).collect();
    assert_eq!(parse(&psql).unwrap(), separate, "one value in psql");
}

#[test]
fn a_loop_time_alone_is_an_output() {
    let output = one("on my laptop: Per loop time including overhead: 25.10 ns");
    assert_eq!((output.clocks[0].loop_ns, output.cut_off), (Some(25.1), true));
}

#[test]
fn tables_without_titles_are_parsed() {
    for (name, text) in ALL {
        let untitled: String = text.split_inclusive('\n').filter(|line| !line.contains("count")).collect();
        // The first 9.2 does not print its unit, but its layout is unique.
        assert_eq!(parse(&untitled), parse(text), "{name}");
    }
    let bare: String = I7_TSC.lines().skip(4).map(|line| format!("{line}\n")).collect();
    assert_eq!(parse(&bare), Err(NOTHING_FOUND), "rows alone may be anything");
}

#[test]
fn bounds_are_powers_of_two() {
    let span = |unit, bound| {
        let row = Row { layout: Layout::Share, bound, share: 0.0, rounding: 0.0, count: 7 };
        bin(unit, &row).map(|bin| (bin.ge_ns, bin.le_ns))
    };
    assert_eq!(span(Unit::Microseconds, 1), Some((Some(0), 999)));
    assert_eq!(span(Unit::Microseconds, 2), Some((Some(0), 1999)));
    assert_eq!(span(Unit::Microseconds, 4), Some((Some(1000), 3999)));
    assert_eq!(span(Unit::Nanoseconds, 0), Some((None, 0)));
    assert_eq!(span(Unit::Nanoseconds, 31), Some((None, 31)));
    // The last row of a 64-bit histogram.
    assert_eq!(span(Unit::Nanoseconds, i64::MAX as u64), Some((None, i64::MAX as u64)));
    for (unit, bound) in [
        (Unit::Nanoseconds, u64::MAX),
        (Unit::Microseconds, 1 << 60),
        (Unit::Microseconds, 0),
        (Unit::Microseconds, 3),
        (Unit::Nanoseconds, 8),
    ] {
        assert_eq!(span(unit, bound), None);
    }
}

#[test]
fn numbers_have_separators() {
    for (word, value) in [("35.96", 35.96), ("28,01", 28.01), ("1,044.67", 1044.67), ("1.044,67", 1044.67)] {
        assert_eq!(decimal(word), Some(value), "{word}");
    }
    for word in ["35", ".5", "5.", "1,04.67", "1e9.0", "-nan", "1..5", "x.5"] {
        assert_eq!(decimal(word), None, "{word}");
    }
    assert_eq!(decimal(&format!("{}.5", "9".repeat(400))), None, "too big");
    assert_eq!(
        (whole("1,155,682"), whole("1155682"), whole("1,15"), whole("")),
        (Some(1_155_682), Some(1_155_682), None, None)
    );
}
