//! A host's report, of `check` and `read`.

use super::histogram::Histogram;
use super::{Block, Cell, Column, Document, Facts, Row, Table};
use crate::human::{PLUS_MINUS, capital, count, duration, khz, times, uptime};
use crate::report::{
    AccessPath, ClaimReport, ClockReport, Finding, Fix, KernelMessage, KernelReport, MessageLevel, Origin, Report,
    SYSTEM, Severity, Skew, finding_id,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The columns of the names beside facts.
const NAMES: usize = 11;

/// Returns the document. If `details` is a command, it names that one instead of the details.
pub fn document(report: &Report, details: Option<&str>) -> Document {
    let is_brief = details.is_some();
    let alarms = alarms(report);
    let has_risks = alarms.iter().any(|(finding, _)| finding.fix.iter().any(|fix| fix.risk.is_some()));
    let left_out = if has_risks { "details and risks" } else { "details" };
    let details = details.filter(|_| !alarms.is_empty() || has_details(report));
    let details = details.map_or(String::new(), |command| format!("{left_out}: {command}"));
    let alarm = |(finding, consequences)| match is_brief {
        true => Block::Finding(brief(finding), Vec::new()),
        false => Block::Finding(finding, consequences),
    };
    let alarms: Vec<Block> = alarms.into_iter().map(alarm).collect();
    let verdict = verdict(report, is_brief);
    let stopped = || format!("Stopped after {:.1} s. The figures are from this time.", report.measured_seconds);
    let stopped = report.interrupted.then(stopped).map(Block::Text);
    let mut first = vec![Block::Text(measured(report)), verdict.clone()];
    first.extend(stopped.clone());
    first.push(Block::Part("Findings", alarms.clone()));
    let mut blocks = vec![Block::Page(first), Block::Part("Clocks", clocks(report, is_brief))];
    let mut counter = vec![Block::Facts(Facts::new(NAMES, counter(report, is_brief)))];
    counter.extend(skew_table(&report.cpus.skew).map(|table| Block::Page(vec![Block::Table(table)])));
    blocks.push(Block::Part("Counter and CPUs", counter));
    blocks.extend(kernel_log(report, is_brief));
    // An output of pg_test_timing has too little for most checks.
    let is_unknown = |f: &&Finding| f.severity == Severity::Unknown && report.origin != Origin::PgTestTiming;
    let unknown: Vec<&str> = report.findings.iter().filter(is_unknown).map(|finding| finding.id.as_str()).collect();
    let unknown = (!unknown.is_empty()).then(|| ("not determined:", unknown.join(", ")));
    // The verdict is the last block on the screen, where the shell's prompt is.
    let unknown = Block::Facts(Facts::new(0, unknown).dim());
    let last = alarms.into_iter().chain([unknown, Block::Details(details), verdict]).chain(stopped);
    blocks.extend([all_checks(report), Block::Screen(last.collect())]);
    Document::named(name(report), host_facts(report).join(", ")).with(blocks)
}

/// Returns whether a short document leaves out more than the details of alarms.
fn has_details(report: &Report) -> bool {
    let messages = report.kernel.known().map_or(Vec::new(), |kernel| important(&kernel.messages));
    let has_messages = messages.len() > 1 && messages.iter().any(|message| message.level == MessageLevel::Fault);
    has_messages || other_clocks(report).next().is_some() || counter(report, true) != counter(report, false)
}

/// Returns the host's name, or what the report is about.
fn name(report: &Report) -> &str {
    let unnamed = if report.origin == Origin::Captured { "captured host" } else { "this host" };
    match (report.origin, &report.missing) {
        (Origin::PgTestTiming, Some(_)) => "pg_test_timing output (incomplete)",
        (Origin::PgTestTiming, None) => "pg_test_timing output",
        _ => report.host.name.known().map_or(unnamed, String::as_str),
    }
}

/// Returns the facts of the first line: the kernel, the processor, the number of CPUs and the clock sources.
fn host_facts(report: &Report) -> Vec<String> {
    let host = &report.host;
    let platform = host.platform.known().map(|platform| format!("{platform}, ")).unwrap_or_default();
    let guest = host.virtualization.known().filter(|guest| *guest != "none");
    let guest = guest.map(|hypervisor| format!("{platform}{hypervisor} guest"));
    let processor = match (host.cpu_model.known(), guest) {
        (Some(model), Some(guest)) => Some(format!("{model} ({guest})")),
        (model, guest) => model.cloned().or(guest),
    };
    let cpus = report.cpus.online.known().or(report.cpus.allowed.known());
    let cpus = cpus.map(|cpus| format!("{} CPU{}", cpus.len(), if cpus.len() == 1 { "" } else { "s" }));
    let clocksource = report.clocksource.current.known().map(|current| {
        let available = report.clocksource.available.known().into_iter().flatten().map(String::as_str);
        match available.filter(|name| name != current).collect::<Vec<_>>().as_slice() {
            [] => format!("clock source {current}"),
            others => format!("clock source {current} (also: {})", others.join(" ")),
        }
    });
    let facts = [host.kernel.known().cloned(), processor, cpus, clocksource].into_iter().flatten();
    facts.filter(|fact| !fact.is_empty()).collect()
}

/// Returns the verdict. Without details, it does not repeat what the findings above it say.
fn verdict(report: &Report, is_brief: bool) -> Block {
    let mut verdict = report.verdict.clone();
    for finding in report.findings.iter().filter(|_| is_brief) {
        verdict.summary = verdict.summary.replacen(&format!(". {}.", capital(&finding.summary)), ".", 1);
    }
    Block::from(&verdict)
}

/// Returns when and for how long this was measured.
fn measured(report: &Report) -> String {
    let seconds = report.measured_seconds;
    let on = match (report.origin, &report.measured_at) {
        (Origin::PgTestTiming, _) => return "measured by pg_test_timing: the read cost, and nothing else".into(),
        _ if report.clocks.is_empty() => return "nothing was measured".into(),
        (Origin::Captured, _) => " on the host that was captured".into(),
        (_, Some(at)) => format!(" on {}", at.replace('T', ", ").replace('Z', " UTC")),
        (_, None) => String::new(),
    };
    format!("measured for {seconds:.1} s{on}")
}

/// Returns the warnings and critical findings, each with its consequences: those of a demoted TSC belong to its finding. A fix
/// of several findings is shown once.
fn alarms(report: &Report) -> Vec<(Finding, Vec<Finding>)> {
    let alarms: Vec<&Finding> = report.findings.iter().filter(|f| f.severity >= Severity::Warning).collect();
    let demoted = alarms.iter().any(|f| f.id == finding_id::TSC_DEMOTED);
    let is_consequence = |f: &&Finding| demoted && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&f.id.as_str());
    let (consequences, shown): (Vec<&Finding>, Vec<&Finding>) = alarms.into_iter().partition(is_consequence);
    let mut fixes: Vec<Fix> = Vec::new();
    let alarm = |finding: &Finding| {
        let mut finding = finding.clone();
        finding.fix.retain(|fix| !fixes.contains(fix));
        fixes.extend_from_slice(&finding.fix);
        let below = consequences.iter().filter(|_| finding.id == finding_id::TSC_DEMOTED);
        let below = below.map(|finding| (*finding).clone()).collect();
        (finding, below)
    };
    shown.into_iter().map(alarm).collect()
}

/// Returns a finding without its reason, its risks and all evidence but the first, which is the most convincing.
fn brief(mut finding: Finding) -> Finding {
    finding.why.clear();
    finding.evidence.truncate(1);
    finding.fix.iter_mut().for_each(|fix| fix.risk = None);
    finding
}

/// Returns the table of all checks, with the reasons why some were not possible.
fn all_checks(report: &Report) -> Block {
    let row = |finding: &Finding| {
        let result = Cell { severity: Some(finding.severity), ..finding.severity.word().into() };
        Row::new([finding.id.as_str().into(), result, finding.summary.as_str().into()])
    };
    let heads = ["check", "result", "summary"];
    let checks = Table::new("all checks", heads.map(Column::left), report.findings.iter().map(row));
    Block::Folded(format!("all {} checks", report.findings.len()), vec![Block::Table(checks)])
}

/// The clocks with a row of their own: PostgreSQL's clock, and the counter's read instructions.
pub const MAIN: &[&str] = &[SYSTEM, "rdtscp", "rdtsc", "isb_cntvct", "cntvct"];

fn is_main(report: &Report, clock: &ClockReport) -> bool {
    report.origin == Origin::PgTestTiming || MAIN.contains(&clock.name.as_str()) || clock.backward_steps > 0
}

/// Returns the table of clocks and their histograms.
fn clocks(report: &Report, is_brief: bool) -> Vec<Block> {
    if report.clocks.is_empty() {
        return Vec::new();
    }
    let is_output = report.origin == Origin::PgTestTiming;
    let (main, others): (Vec<&ClockReport>, Vec<&ClockReport>) =
        report.clocks.iter().partition(|clock| is_main(report, clock));
    let heads = ["clock", "one read", "step", "99.9%", "worst", "went back", "access"];
    let rows = main.iter().map(|clock| if is_output { loop_row(clock) } else { row(clock) });
    let also: Vec<String> = other_clocks(report).collect();
    let also = (!is_brief && !also.is_empty()).then(|| Row::wide("also", also.join(", ")));
    let mut blocks = vec![Block::Table(Table::new("clocks", heads.map(Column::left), rows.chain(also)))];
    blocks.extend(Histogram::all(&main, &report.clocks));
    if let Some(pictures) = Histogram::all(&others, &report.clocks) {
        blocks.push(Block::Folded("clocks that PostgreSQL does not read".into(), vec![pictures]));
    }
    blocks
}

fn row(clock: &ClockReport) -> Row {
    if let Some(why) = &clock.unavailable {
        let text = match clock.reads {
            0 => format!("not measured: {why}"),
            reads => format!("no times: {why} ({} reads)", count(reads)),
        };
        return Row::wide(&clock.name, text);
    }
    let or_dash = |ns: Option<f64>| ns.map_or("-".into(), duration);
    let percentiles = clock.percentiles;
    let step = clock.granularity_unavailable.as_ref().map(|_| "unknown".into());
    // The finding `clock-backward` says by how much.
    let went_back = match (clock.backward_steps, clock.reads) {
        (0, 0) => "-".to_string(),
        (0, reads) => format!("never in {}", count(reads)),
        (steps, _) => times(steps),
    };
    Row::new([
        clock.name.clone(),
        one_read(clock),
        step.unwrap_or_else(|| or_dash(clock.granularity_ns)),
        or_dash(percentiles.map(|p| p.p99_9_ns)),
        or_dash(percentiles.map(|p| p.max_ns)),
        went_back,
        clock.access_path.map_or("", access).into(),
    ])
}

/// Returns the row of a clock in an output of pg_test_timing.
fn loop_row(clock: &ClockReport) -> Row {
    let mut parts = vec![clock.loop_ns.map_or("no loop time".into(), |ns| format!("{ns:.2} ns per loop"))];
    parts.extend((clock.reads > 0).then(|| format!("{} reads", count(clock.reads))));
    parts.extend(clock.percentiles.map(|p| {
        format!("median {}, 99.9% {}, worst {}", duration(p.p50_ns), duration(p.p99_9_ns), duration(p.max_ns))
    }));
    parts.extend(clock.distribution());
    if clock.backward_steps > 0 {
        parts.push(format!("went back by {}", duration(clock.largest_backward_ns)));
    }
    parts.retain(|part| !part.is_empty());
    Row::wide(&clock.name, parts.join("; "))
}

/// Returns the figures of the clocks that PostgreSQL does not read.
fn other_clocks(report: &Report) -> impl Iterator<Item = String> {
    /// A smaller step does not matter for such a clock.
    const COARSE_NS: f64 = 1000.0;
    let figures = |clock: &ClockReport| {
        let step = clock.granularity_ns.filter(|step| *step >= COARSE_NS);
        let step = step.map(|step| format!(" in steps of {}", duration(step))).unwrap_or_default();
        Some(format!("{} {}{step}", clock.name, duration(clock.read_ns?)))
    };
    report.clocks.iter().filter(|clock| !is_main(report, clock)).filter_map(figures)
}

/// Returns the read cost with its spread.
pub fn one_read(clock: &ClockReport) -> String {
    match (clock.read_ns, clock.read_spread_ns) {
        // A smaller spread would be shown as 0.0, but every figure has an error.
        (Some(read), Some(spread)) if read < 999.5 => format!("{read:.1} {PLUS_MINUS} {:.1} ns", spread.max(0.1)),
        (Some(read), Some(spread)) => {
            format!("{:.1} {PLUS_MINUS} {:.1} us", read / 1e3, (spread / 1e3).max(0.1))
        }
        (Some(read), None) => duration(read),
        _ => "-".into(),
    }
}

/// Returns the name of an access path.
pub fn access(path: AccessPath) -> &'static str {
    match path {
        AccessPath::Instruction => "instruction",
        AccessPath::Vdso => "vDSO",
        AccessPath::Syscall => "system call",
        AccessPath::Interposed => "intercepted",
    }
}

/// Returns what is known about the CPU's counter and about the CPUs.
fn counter(report: &Report, is_brief: bool) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(tsc) = tsc(report, is_brief) {
        facts.push((if report.tsc.counter == "cntvct" { "CNTVCT" } else { "TSC" }, tsc));
        facts.extend(claims(report).filter(|_| !is_brief).map(|claims| ("", claims)));
    }
    facts.extend(cpus(report).map(|cpus| ("CPUs", cpus.into())));
    facts
}

/// Returns what is known about the counter. `None` if nothing is.
fn tsc(report: &Report, is_brief: bool) -> Option<String> {
    let tsc = &report.tsc;
    let reference = match tsc.independent {
        Some(false) => " (same counter)",
        Some(true) => " (other hardware)",
        None => "",
    };
    let how = if is_brief { String::new() } else { format!(", measured against the kernel's clock{reference}") };
    let rate = match (tsc.frequency_khz.known(), tsc.uncertainty_ppm) {
        (Some(rate), Some(ppm)) => format!("{} {PLUS_MINUS} {ppm} ppm{how}", khz(*rate)),
        (Some(rate), None) => format!("{} in use", khz(*rate)),
        (None, _) if tsc.distrust.is_empty() && report.origin != Origin::Measured => return None,
        (None, _) => "rate not measured".into(),
    };
    let mut parts = vec![rate];
    if !tsc.distrust.is_empty() {
        let why = if is_brief { String::new() } else { format!(": {}", tsc.distrust.join("; ")) };
        parts.push(format!("not safe to read directly{why}"));
    }
    let calibrated = tsc.calibrated_khz.map(khz);
    parts.extend(calibrated.map(|khz| format!("{khz} by PostgreSQL's own calibration, which may be 1000 ppm off")));
    if report.origin != Origin::PgTestTiming && tsc.counter == "rdtsc" {
        let uses = tsc.used_by_default.map(|by_default| if by_default { "uses" } else { "does not use" });
        parts.extend(uses.map(|uses| format!("PostgreSQL 19 {uses} it by default")));
    }
    Some(parts.join("; "))
}

/// Returns the disagreement of other sources with the counter's measured rate. `None` if there are none.
fn claims(report: &Report) -> Option<String> {
    let claim = |claim: &ClaimReport| {
        // Avoid -0.0.
        let ppm = claim.disagreement_ppm.map(|ppm| if ppm.abs() < 0.05 { 0.0 } else { ppm })?;
        Some(format!("{} {ppm:+.1} ppm", claim.source))
    };
    let sources: Vec<String> = report.tsc.claims.iter().filter_map(claim).collect();
    (!sources.is_empty()).then(|| format!("other sources: {}", sources.join("; ")))
}

/// Returns whether the CPUs' clocks agree, with the finding's text. An alarm has its own block.
fn cpus(report: &Report) -> Option<&str> {
    let finding = report.findings.iter().find(|f| f.id == finding_id::CPU_SKEW)?;
    let one = report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1);
    if report.cpus.skew.is_empty() && (one || report.origin != Origin::Measured) {
        return None;
    }
    Some(match finding.severity {
        Severity::Warning | Severity::Critical => "the clocks differ: see cpu-skew",
        _ => finding.summary.strip_prefix("CPUs ").unwrap_or(&finding.summary),
    })
}

/// Returns the offsets between CPUs' clocks: one row per pair, one column per clock.
fn skew_table(skew: &[Skew]) -> Option<Table> {
    let clocks: BTreeSet<&str> = skew.iter().map(|s| s.clock.as_str()).collect();
    let pairs: BTreeSet<(usize, usize)> = skew.iter().map(|s| (s.a, s.b)).collect();
    let cell = |pair: (usize, usize), clock: &str| {
        let measured = skew.iter().find(|s| (s.a, s.b) == pair && s.clock == clock);
        measured.map_or_else(|| "-".into(), offset)
    };
    let row = |&pair: &(usize, usize)| {
        let name = format!("{} and {}", pair.0, pair.1);
        Row::new([name].into_iter().chain(clocks.iter().map(|clock| cell(pair, clock))))
    };
    const NOTE: &str = "Bounds of the second CPU's reading minus the first CPU's reading at the same instant. The clocks agree \
        if the bounds include zero.";
    let columns = ["CPUs"].into_iter().chain(clocks.iter().copied()).map(Column::left);
    let table = Table::new("offsets between CPUs", columns, pairs.iter().map(row));
    (!skew.is_empty()).then_some(Table { note: NOTE.into(), ..table })
}

fn offset(skew: &Skew) -> String {
    let differs = if skew.low_ns > 0.0 || skew.high_ns < 0.0 { ", differ" } else { "" };
    let changes = if skew.moving { ", changes" } else { "" };
    format!("{} to {}{differs}{changes}", duration(skew.low_ns), duration(skew.high_ns))
}

/// Reads the kernel log of this host as root.
const READ_LOG: &str = "sudo dmesg | pg_timing check --kernel-log -";

/// Returns what the kernel log says about clocks: the messages that matter, or a summary. JSON has all messages.
fn kernel_log(report: &Report, is_brief: bool) -> Option<Block> {
    let kernel = match report.kernel.get() {
        Ok(kernel) => kernel,
        Err(why) => {
            let text = format!("cannot read the kernel log ({why}); type:");
            let facts = Block::Facts(Facts::new(NAMES, [("kernel", text)]));
            let part = Block::Part("Kernel log", vec![facts, Block::Command(READ_LOG.into())]);
            return Some(part).filter(|_| report.origin == Origin::Measured);
        }
    };
    let other = kernel.other_host.as_ref();
    let other =
        other.map(|why| format!("this log is from another host: {why}. It is judged alone, and nothing was measured"));
    let messages = important(&kernel.messages);
    let summary = other.or_else(|| messages.is_empty().then(|| summary(report, kernel)));
    let first_fault = messages.iter().find(|message| message.level == MessageLevel::Fault);
    // The first fault explains the messages after it.
    let shown = first_fault.filter(|_| is_brief).map_or(messages.as_slice(), std::slice::from_ref);
    let mut facts: Vec<(&str, String)> = summary.into_iter().map(|text| ("", text)).collect();
    // Neighbors with the same meaning share it.
    for same in shown.chunk_by(|a, b| a.meaning == b.meaning) {
        facts.extend(same.iter().map(|message| ("", format!("{}{}", time(message), message.text))));
        facts.extend(same.last().map(|message| ("             =", meaning(message))));
    }
    if let Some((name, _)) = facts.first_mut() {
        *name = "kernel";
    }
    if let (Some((_, last)), others @ 1..) = (facts.last_mut(), messages.len() - shown.len()) {
        *last += &format!(" ({others} more message{})", if others == 1 { "" } else { "s" });
    }
    Some(Block::Part("Kernel log", vec![Block::Facts(Facts::new(NAMES, facts))]))
}

/// More messages do not help a reader.
const MOST_MESSAGES: usize = 6;

/// Returns faults and notes, and the clock sources after them.
fn important(messages: &[KernelMessage]) -> Vec<&KernelMessage> {
    let from_first = messages.iter().skip_while(|message| message.level < MessageLevel::Note);
    let mut shown: Vec<(usize, &KernelMessage)> = from_first.enumerate().collect();
    // The level decides first, and then the order.
    shown.sort_by_key(|(_, message)| Reverse(message.level));
    shown.truncate(MOST_MESSAGES);
    shown.sort_by_key(|(nth, _)| *nth);
    shown.into_iter().map(|(_, message)| message).collect()
}

fn summary(report: &Report, kernel: &KernelReport) -> String {
    let now = report.clocksource.current.known();
    if kernel.recognized_lines == 0 {
        return "no recognized line about clocks in the kernel log".into();
    }
    if now.is_some_and(|now| kernel.other_last_clocksource(now).is_some()) {
        return "the kernel log ends with another clock source than the current one: it is old, or from another host"
            .into();
    }
    if !kernel.since_boot {
        return "no clock problems in the kernel log (incomplete: its beginning is missing)".into();
    }
    let up = report.host.uptime_seconds.known();
    let since = up.map(|up| format!(", {} ago", uptime(*up))).unwrap_or_default();
    format!("no clock problems in the kernel log since boot{since}")
}

/// Returns what a message means, and how often it came.
fn meaning(message: &KernelMessage) -> String {
    let repeated = match (message.times, message.last_seconds) {
        (..=1, _) => String::new(),
        (times, Some(last)) => format!(" ({times} such messages, the last {last:.0} s after boot)"),
        (times, None) => format!(" ({times} such messages)"),
    };
    format!("{}{repeated}", message.meaning)
}

/// Returns the time as the log prints it.
fn time(message: &KernelMessage) -> String {
    match (message.seconds, &message.stamp) {
        (Some(seconds), _) => format!("[{seconds:.6}] "),
        (None, Some(stamp)) => format!("{stamp} "),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_shown_as_missing() {
        let mut report = Report::empty(Origin::Measured, "x");
        let main = ClockReport { name: SYSTEM.into(), ..ClockReport::default() };
        report.clocks =
            vec![main, ClockReport::unavailable("rdtsc", "denied"), ClockReport::unavailable("other", "no")];
        let text = crate::document::text::piped(&document(&report, None));
        assert!(text.contains("system  -         -     -      -      -\nrdtsc   not measured: denied\n"), "{text}");
    }

    #[test]
    fn a_fix_of_several_findings_is_shown_once() {
        let fix = || Fix::new("restart");
        let finding = |id| Finding::new(id, Severity::Warning, "bad").fix(fix());
        let mut report = Report::empty(Origin::Measured, "x");
        report.findings = vec![
            finding(finding_id::TSC_DEMOTED),
            finding(finding_id::CLOCK_BACKWARD),
            finding(finding_id::CLOCK_SYSCALL),
        ];
        let fixes = |(finding, consequences): &(Finding, Vec<Finding>)| (finding.fix.len(), consequences.len());
        assert_eq!(alarms(&report).iter().map(fixes).collect::<Vec<_>>(), [(1, 1), (0, 0)]);
    }

    #[test]
    fn bounds_without_zero_differ() {
        let skew = |clock: &str, b, low_ns, high_ns| Skew {
            clock: clock.into(),
            a: 0,
            b,
            low_ns,
            high_ns,
            moving: false,
            passes: 9,
        };
        let table =
            skew_table(&[skew("system", 1, -20.0, 30.0), skew("system", 2, 50.0, 100.0), skew("r", 1, 0.0, 0.0)]);
        let rows = table.unwrap().rows;
        let texts = |row: &Row| row.cells.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&rows[0]), ["0 and 1", "0 ns to 0 ns", "-20 ns to 30 ns"]);
        assert_eq!(texts(&rows[1]), ["0 and 2", "-", "50 ns to 100 ns, differ"]);
    }
}
