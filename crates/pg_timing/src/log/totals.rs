//! Adds up the plans of a log by statement, in limited memory. Statements that differ only in their constants count together.

use crate::human::grouped;
use crate::plan::Estimate;
use crate::report::{CallCost, LogPlace, LogReport, LogTotal, LoggedStatement, Range};
use crate::statistics::root_sum_squares;
use crate::tokens::{Kind, Tokens};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Statements with rows of their own: the first ones of the log. A log with more has statements that differ in more than
/// their constants, for example in the names of temporary tables. The others are added up in one row.
const MAX_STATEMENTS: usize = 5_000;

/// Bytes of a statement's text that are kept.
const MAX_TEXT_BYTES: usize = 1000;

/// A run of a statement.
pub struct Run {
    key: Key,
    /// the statement's row if this is its only run, without shares
    row: LoggedStatement,
    /// what the user should know about the clock
    note: Option<String>,
    /// relative error that the overhead of all plans has in common
    common_error: f64,
}

/// Which executions are counted together. The default is the key of plans without a statement, and of all statements for
/// which there is no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    query_id: Option<i64>,
    /// hash of the text without constants; letters outside of quotation marks are lower case
    text: Option<u64>,
    is_nested: bool,
}

impl Run {
    /// Returns the run of a plan.
    pub fn of(estimate: Estimate, query_id: Option<i64>, is_nested: bool, slowest: LogPlace) -> Run {
        let Estimate { report, clock_note: note, .. } = estimate;
        let capture = report.capture.unwrap_or_default();
        let text = report.statement.as_deref().map(normalized);
        let total = LogTotal {
            runs: 1,
            nested_runs: is_nested.into(),
            reported_ms: report.reported_ms,
            corrected_ms: report.corrected_ms,
            clock_ms: capture.clock_share.times(report.reported_ms),
            ..LogTotal::default()
        };
        Run {
            key: Key { query_id, text: text.as_deref().map(hash_of_words), is_nested },
            row: LoggedStatement {
                statement: text.map(|text| beginning(&text, MAX_TEXT_BYTES).into()),
                query_id,
                total,
                slowest,
            },
            note,
            common_error: capture.read_ns.map_or(0.0, |_| CallCost::common_error(capture.timed_call_ns.is_some())),
        }
    }
}

/// Returns a hash that does not depend on the case of letters, except in quotation marks.
fn hash_of_words(text: &str) -> u64 {
    let mut is_quoted = false;
    let folded = text.bytes().map(|byte| {
        is_quoted ^= byte == b'"';
        if is_quoted { byte } else { byte.to_ascii_lowercase() }
    });
    let mut hasher = DefaultHasher::new();
    folded.collect::<Vec<u8>>().hash(&mut hasher);
    hasher.finish()
}

/// The sums over all plans.
#[derive(Default)]
pub struct Totals {
    /// the rows in the order of the log, each with the time of its slowest run
    rows: Vec<(f64, LoggedStatement)>,
    numbers: HashMap<Key, usize>,
    /// plans of statements beyond [`MAX_STATEMENTS`]
    plans_without_row: u64,
    notes: BTreeSet<String>,
    common_error: f64,
}

impl Totals {
    /// Adds a plan. The plans must have the order of the log, so that the limits affect the same statements in each run.
    pub fn add(&mut self, Run { mut key, mut row, note, common_error }: Run) {
        self.notes.extend(note);
        self.common_error = self.common_error.max(common_error);
        if self.numbers.len() >= MAX_STATEMENTS && !self.numbers.contains_key(&key) {
            self.plans_without_row += 1;
            key = Key { is_nested: key.is_nested, ..Key::default() };
            row = LoggedStatement { total: row.total, slowest: row.slowest, ..LoggedStatement::default() };
        }
        let LogTotal { nested_runs, reported_ms, corrected_ms, clock_ms, .. } = row.total;
        let number = *self.numbers.entry(key).or_insert(self.rows.len());
        let Some((slowest_ms, known)) = self.rows.get_mut(number) else { return self.rows.push((reported_ms, row)) };
        if reported_ms > *slowest_ms {
            (*slowest_ms, known.slowest) = (reported_ms, row.slowest);
        }
        // The executions of a statement have the same nodes, so their errors have the same sign and are added up.
        let total = &mut known.total;
        (total.runs, total.nested_runs) = (total.runs + 1, total.nested_runs + nested_runs);
        total.reported_ms += reported_ms;
        total.corrected_ms = total.corrected_ms + corrected_ms;
        total.clock_ms = total.clock_ms + clock_ms;
    }

    /// Returns a report with the sum without nested statements, whose time is within that of their callers, the reported time of
    /// nested statements, the rows, the one with the largest overhead first, and notes.
    pub fn into_report(self) -> LogReport {
        let mut statements: Vec<LoggedStatement> = self.rows.into_iter().map(|(_, row)| row).collect();
        statements.sort_by(|a, b| b.total.overhead_ms().estimate.total_cmp(&a.total.overhead_ms().estimate));
        let (nested, of_clients): (Vec<LogTotal>, Vec<LogTotal>) =
            statements.iter().map(|statement| statement.total).partition(|total| total.nested_runs > 0);
        let nested_runs = nested.iter().map(|total| total.runs).sum();
        let mut notes: Vec<String> = self.notes.into_iter().collect();
        if self.plans_without_row > 0 {
            notes.push(format!(
                "only the first {} statements of the log have their own rows; the other {} plans are one row",
                grouped(MAX_STATEMENTS as u64),
                grouped(self.plans_without_row)
            ));
        }
        statements.iter_mut().for_each(|statement| statement.total = with_shares(statement.total));
        LogReport {
            total: LogTotal { nested_runs, ..sum(&of_clients, self.common_error) },
            nested_ms: nested.iter().fold(0.0, |sum, total| sum + total.reported_ms),
            notes,
            statements,
            ..LogReport::default()
        }
    }
}

/// Returns the sum over statements. Their errors are independent, except for the relative error of the overhead that all
/// statements of a host have in common.
fn sum(totals: &[LogTotal], common_error: f64) -> LogTotal {
    let reported_ms = totals.iter().fold(0.0, |sum, total| sum + total.reported_ms);
    let range = |range: fn(&LogTotal) -> Range, overhead: fn(f64, f64) -> f64| {
        let ranges = || totals.iter().map(range);
        let estimate = ranges().fold(0.0, |sum, range| sum + range.estimate);
        let common = common_error * overhead(reported_ms, estimate);
        let below = root_sum_squares(ranges().map(|range| range.estimate - range.low)).hypot(common);
        let above = root_sum_squares(ranges().map(|range| range.high - range.estimate)).hypot(common);
        Range { low: (estimate - below).max(0.0), estimate, high: estimate + above }
    };
    with_shares(LogTotal {
        runs: totals.iter().map(|total| total.runs).sum(),
        reported_ms,
        corrected_ms: range(|total| total.corrected_ms, |reported, corrected| reported - corrected),
        clock_ms: range(|total| total.clock_ms, |_, clock| clock),
        ..LogTotal::default()
    })
}

/// Returns the total with its shares, and no time longer than the reported one.
fn with_shares(total: LogTotal) -> LogTotal {
    let limit = |range: Range| range.clamp(0.0, total.reported_ms);
    let in_shares = if total.reported_ms > 0.0 { 1.0 / total.reported_ms } else { 0.0 };
    let mut total = LogTotal { corrected_ms: limit(total.corrected_ms), clock_ms: limit(total.clock_ms), ..total };
    total.overhead_share = total.overhead_ms().times(in_shares);
    total.clock_share = total.clock_ms.times(in_shares);
    total
}

/// The sign for a constant.
const CONSTANT: &str = "?";
/// The sign for a list of constants.
const LIST: &str = "?, ...";

/// A longer statement is cut: it identifies itself by its beginning.
const MAX_STATEMENT_BYTES: usize = 100_000;

/// A longer row of constants is not compared with the row before it, so that the time stays linear.
const MAX_ROW_WORDS: usize = 500;

/// A word of a normalized statement, and whether a space is before it.
type Word<'a> = (bool, &'a str);

/// Returns the statement with `?` instead of constants, one space between words, and without comments. A list of constants
/// becomes `?, ...`, and a list of such rows one row.
fn normalized(statement: &str) -> String {
    let (mut words, mut end) = (Vec::new(), 0);
    for token in Tokens::of(beginning(statement, MAX_STATEMENT_BYTES)) {
        let last = words.last().map_or("(", |&(_, last)| last);
        // No space stands before these signs, and none after an opening bracket, so that the layout does not matter.
        let is_closing = matches!(token.text, "," | ")" | ";" | "]");
        let has_space = !is_closing && (last == "," || token.start > end && !matches!(last, "(" | "["));
        end = token.end();
        match token.kind {
            Kind::Text | Kind::Number => push_constant(&mut words, has_space),
            _ => words.push((has_space, token.text)),
        }
        if token.is_symbol(")") {
            merge_rows(&mut words);
        }
    }
    while words.pop_if(|(_, last)| *last == ";").is_some() {}
    words.into_iter().flat_map(|(has_space, word)| [if has_space { " " } else { "" }, word]).collect()
}

/// Returns at most `bytes` bytes from the beginning of a text.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Adds a constant. In brackets, it becomes a part of the list of constants before it.
fn push_constant(words: &mut Vec<Word>, mut has_space: bool) {
    // The sign of a negative constant, as in `= -1`. After a word, a minus can be an operator.
    if let [.., (_, before), (_, "-")] = words[..]
        && matches!(before, "," | "(" | "[" | "=" | "<" | ">" | "+" | "*" | "/" | "-")
    {
        has_space = !matches!(before, "(" | "[");
        words.pop();
    }
    match &mut words[..] {
        [.., (_, "(" | "["), (_, list @ (CONSTANT | LIST)), (_, ",")] => {
            *list = LIST;
            words.pop();
        }
        _ => words.push((has_space, CONSTANT)),
    }
}

/// Removes the last row of constants if the row before it is equal, as in `values (1, 2), (3, 4)`.
fn merge_rows(words: &mut Vec<Word>) {
    let near = words.len().saturating_sub(MAX_ROW_WORDS);
    let open = words[near..].iter().rposition(|(_, word)| *word == "(").map_or(0, |at| near + at);
    let (before, row) = words.split_at(open);
    let is_constant = row.iter().all(|(_, word)| matches!(*word, "(" | ")" | "," | CONSTANT | LIST)) && row.len() > 2;
    if let [before @ .., (_, ",")] = before
        && is_constant
        && before.len() >= row.len()
        && before.iter().rev().zip(row.iter().rev()).all(|(one, other)| one.1 == other.1)
    {
        words.truncate(open - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constants_become_question_marks() {
        for (statement, expected) in [
            ("SELECT abalance FROM t WHERE aid = 42;", "SELECT abalance FROM t WHERE aid = ?"),
            ("select  'it''s', E'a\\'b',\n\t$$x$$, $a$ $$ $a$, 1.5e-3, .5, 0xff", "select ?, ?, ?, ?, ?, ?, ?"),
            ("select a -- one\n, /* two /* three */ */ b", "select a, b"),
            ("update t set a = a + -7 where b = - 7 and c = d - 7", "update t set a = a + ? where b = ? and c = d - ?"),
            (
                "select * from t where a in (1,2, 3) and b = any ('{1}')",
                "select * from t where a in (?, ...) and b = any (?)",
            ),
            ("insert into t values (1, 'a'), (2, 'b'),(3,'c')", "insert into t values (?, ...)"),
            ("insert into t values (1, a), (2, a)", "insert into t values (?, a), (?, a)"),
            ("select $1, \"a 1\", t1.c2 from t1", "select $1, \"a 1\", t1.c2 from t1"),
            ("select array[1,2], f( 1 , x )", "select array[?, ...], f(?, x)"),
            ("select 'never ends", "select ?"),
            ("select \u{2026} from \u{201c}a\u{201d}", "select \u{2026} from \u{201c}a\u{201d}"),
            ("", ""),
        ] {
            assert_eq!(normalized(statement), expected);
        }
    }

    #[test]
    fn a_sign_is_a_part_of_its_constant() {
        for (statement, expected) in [
            ("select a, -1, (-3), a[-1], f(- 2)", "select a, ?, (?), a[?], f(?)"),
            ("a = -1 and b <-2 and d = 2 - -1", "a = ? and b < ? and d = ? - ?"),
            // An operator between two values, or a sign that only the grammar shows.
            ("a -1, f(x) - 1, 1 - 1, a between -1 and 5", "a -?, f(x) - ?, ? - ?, a between -? and ?"),
        ] {
            assert_eq!(normalized(statement), expected);
        }
    }

    #[test]
    fn a_beginning_has_whole_characters() {
        assert_eq!([1, 2, 3, 9].map(|bytes| beginning("a\u{e4}b", bytes)), ["a", "a", "a\u{e4}", "a\u{e4}b"]);
    }

    proptest! {
        #[test]
        fn any_text_is_normalized_once(text in "[a-z1'\"$/*, ()\\[\\]=;.\n\u{e4}\u{2026}-]{0,60}") {
            let once = normalized(&text);
            prop_assert!(once.len() <= 3 * text.len() + 8);
        }

        #[test]
        fn the_values_of_constants_do_not_matter(a in any::<u32>(), b in "[a-z']{0,9}") {
            let text = b.replace('\'', "''");
            let statement = format!("select {a}, '{text}' from t where x > -{a}");
            prop_assert_eq!(normalized(&statement), "select ?, ? from t where x > ?");
        }
    }
}
