//! Notes below the sums: what they do not contain, and which limits were reached.

use super::calls::Uncertain;
use super::entry::Place;
use super::pipeline::ReadLog;
use super::shapes::MAX_SHAPES;
use super::source::Sources;
use super::statements::{MAX_NODES, MAX_STATEMENTS, Statement};
use super::totals::Sum;
use crate::human::grouped;
use crate::report::LogHost;

/// Returns what the user should know about the files: plans that count twice, and plans of several servers.
pub fn on_input(hosts: &[LogHost], read: &ReadLog, sources: &Sources) -> Vec<String> {
    let mut notes = Vec::new();
    if !hosts.is_empty() {
        notes.push(of_several_hosts(hosts));
    }
    if read.destinations.len() > 1 {
        let formats: Vec<String> = read.destinations.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "the input has the server's logs in several formats ({}). A server writes each plan to all of them, so plans may \
             count several times: give the files of one format",
            formats.join(", ")
        ));
    }
    let repeated = (0..sources.paths.len()).filter(|file| sources.is_repeated(*file));
    notes.extend(repeated.map(|file| format!("{} is given more than once; it was read once", sources.name(file))));
    notes
}

/// The number of hosts whose names a note has.
const NAMED_HOSTS: usize = 5;

fn of_several_hosts(hosts: &[LogHost]) -> String {
    let named = hosts.iter().take(NAMED_HOSTS).map(|host| format!("{} ({})", host.name, grouped(host.plans)));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match hosts.len().saturating_sub(NAMED_HOSTS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the plans are from {} hosts or containers (number of plans): {named}{more}. Each host has its own clock, so the \
         figures are right only for plans of the host whose clock was given: read the lines of one host at a time",
        hosts.len()
    )
}

/// Returns what the user should know about the plans of nested statements.
pub fn on_nested_plans(sum: &Sum, sources: &Sources) -> Vec<String> {
    let mut notes = Vec::new();
    if sum.nested_plans > 0 {
        notes.push(
            "nested statements below auto_explain.log_min_duration are not in the log, so their overhead is not included"
                .into(),
        );
    }
    let Uncertain { plans, first, without_command } = sum.uncertain();
    if let Some(Place { file, line }) = first {
        let hint = match without_command {
            0 => "",
            _ => "; add %i and %v to log_line_prefix, or log in CSV or JSON format",
        };
        notes.push(format!(
            "nested plans whose caller is not certain: {} (first: {} line {line}). The rows of their callers do not include \
             their overhead, and the sum of all plans may count their time twice{hint}",
            grouped(plans),
            sources.file(file)
        ));
    }
    if sum.nested_without_session > 0 {
        notes.push(format!(
            "nested plans without a known process in their prefix: {}. The rows of their callers do not include their \
             overhead, and the sum of all plans may count some of their time twice; add %c to log_line_prefix",
            grouped(sum.nested_without_session)
        ));
    }
    notes
}

/// Returns what the limits of the memory affect.
pub fn on_limits(plans_without_row: u64, statements: &[Statement]) -> Vec<String> {
    let mut notes = Vec::new();
    if plans_without_row > 0 {
        notes.push(format!(
            "only the first {} statements of the log have their own rows; the other {} plans are one row",
            grouped(MAX_STATEMENTS as u64),
            grouped(plans_without_row)
        ));
    }
    let number_of =
        |has: &dyn Fn(&Statement) -> bool| statements.iter().filter(|statement| has(statement)).count() as u64;
    let plural = |number: u64| match number {
        1 => "1 statement has".to_string(),
        number => format!("{} statements have", grouped(number)),
    };
    let more = number_of(&|statement| statement.shapes.has_more);
    if more > 0 {
        notes.push(format!(
            "{} more than {MAX_SHAPES} different plans; the ranks are from the first {MAX_SHAPES}",
            plural(more)
        ));
    }
    let unranked = number_of(&|statement| statement.shapes.has_unranked);
    if unranked > 0 {
        notes.push(format!(
            "{} plans without ranks: the ranks are limited to the first {} nodes of different plans",
            plural(unranked),
            grouped(MAX_NODES as u64)
        ));
    }
    notes
}
