//! The result of `explain --against`: the answer, the nodes of both plans, and both plans side by side.

use super::explain::{MARGINS, baseline, settings};
use super::{Block, Cell, Column, Document, Facts, Position, Row, Table, html, without_line_ends};
use crate::human::{PLUS_MINUS, count, digits, grouped, is_even, ms, with_margin};
use crate::report::{ComparedNode, ComparedStatement, Difference, NodePair, Range, StatementComparison, depth};

pub const TITLE: &str = "Two statements compared";

/// The longest name of a fact, `rounds`, and a space.
const NAMES: usize = 7;

pub fn document(comparison: &StatementComparison) -> Document {
    let sides = [("A", &comparison.a), ("B", &comparison.b)];
    let plan = |(name, side): (&'static str, &ComparedStatement)| {
        Block::Part(name, vec![Block::Code(side.statement.clone()), Block::Table(plan(side))])
    };
    let mut facts = vec![(PLUS_MINUS, MARGINS.into()), ("rounds", format!("{}: A, B and A again", comparison.rounds))];
    facts.extend(sides.map(|(name, side)| (name, times(side))));
    facts.extend(comparison.notes.iter().map(|note| ("note", note.clone())));
    let settings = settings(&comparison.settings, |_| true);
    let server = format!("PostgreSQL {}, {}; {settings}", comparison.server_version, comparison.server);
    facts.push(("server", server));
    let mut blocks = Vec::new();
    if !comparison.nodes.is_empty() {
        blocks.push(Block::Part("Where they differ", vec![Block::Table(differences(comparison))]));
        blocks.push(Block::Page(vec![Block::Beside(sides.map(plan).into())]));
    }
    blocks.push(Block::Part(
        "How these figures were made, and their limits",
        vec![Block::Facts(Facts::new(NAMES, facts))],
    ));
    Document::answer(&answer(comparison)).with(blocks)
}

/// Returns a page about the comparison.
pub fn page(comparison: &StatementComparison) -> String {
    html::page(TITLE, &document(comparison), None)
}

/// Returns the headline: `B takes 12% less (+-2%): 88.1 instead of 100 ms.`
fn answer(comparison: &StatementComparison) -> String {
    let StatementComparison { a, b, ratio, .. } = comparison;
    let [times, of_a] = [format!("{} instead of {}", digits(b.ms), ms(a.ms)), ms(a.ms)];
    let answer = match (comparison.difference, ratio) {
        (Difference::Faster, Some(ratio)) => {
            format!("B takes {}: {times}.", percent(ratio.subtracted_from(1.0), "less"))
        }
        // From a factor of 2 on, the factor is easier to read.
        (Difference::Slower, Some(ratio)) if ratio.estimate >= 2.0 => {
            format!("B takes {:.1} times as long ({:.1} to {:.1}): {times}.", ratio.estimate, ratio.low, ratio.high)
        }
        (Difference::Slower, Some(ratio)) => {
            format!("B takes {}: {times}.", percent(ratio.minus(Range::exactly(1.0)), "more"))
        }
        (Difference::NoneFound, Some(ratio)) => {
            let [less, more] = [1.0 - ratio.low, ratio.high - 1.0].map(|share| (1000.0 * share - 1e-6).ceil() / 10.0);
            format!("No difference was found: A takes {of_a}, and B between {less}% less and {more}% more.")
        }
        (Difference::Faster | Difference::Slower, None) => {
            let (short, long, longer) = if a.ms < b.ms { ("A", "B", b.ms) } else { ("B", "A", a.ms) };
            let trip = ms(comparison.round_trip_ms);
            format!(
                "{long} takes longer: {}. {short} is too short to measure: the round trip to the server takes {trip}.",
                ms(longer)
            )
        }
        _ if comparison.is_too_short => format!(
            "Not determined: the statements are too short to compare. The round trip to the server takes {}, A {of_a} and B {}.",
            ms(comparison.round_trip_ms),
            ms(b.plain_ms)
        ),
        _ => "Not determined: there are too few rounds.".into(),
    };
    match a.rows.zip(b.rows).filter(|(of_a, of_b)| of_a != of_b) {
        Some((of_a, of_b)) => {
            let [of_a, of_b] = [of_a, of_b].map(|rows| grouped(rows as u64));
            format!("{answer} They have different numbers of rows: A {of_a}, and B {of_b}.")
        }
        None => answer,
    }
}

/// Returns a share with its error: `12% less (+-2%)`, or `8% less (1% to 18%)` if the error is uneven.
fn percent(share: Range, word: &str) -> String {
    // Below 10%, a decimal matters, and so it does if the error is small.
    let decimals = usize::from(share.estimate < 0.0995 || share.margin() < 0.0095);
    // No statement takes 100% less.
    let [low, estimate, high] =
        [share.low, share.estimate, share.high].map(|share| format!("{:.decimals$}", 100.0 * share.min(0.999)));
    match is_even(share) {
        true => format!("{estimate}% {word} ({PLUS_MINUS}{:.decimals$}%)", 100.0 * share.margin()),
        false => format!("{estimate}% {word} ({low}% to {high}%)"),
    }
}

/// Returns what the runs of a statement took, and its settings.
fn times(side: &ComparedStatement) -> String {
    let runs = baseline(side.samples.len(), side.fastest_plain_ms, side.spread_ms);
    let mode = side.plan_mode.as_ref().map_or(String::new(), |mode| format!("; {mode} plan"));
    let settings: String = side.settings.iter().map(|setting| format!("; {}", without_line_ends(setting))).collect();
    format!("{runs}{mode}{settings}")
}

/// Nodes below this share of the time do not matter.
const MATTERS: f64 = 0.01;

/// Returns the nodes of both plans, those that differ first.
fn differences(comparison: &StatementComparison) -> Table {
    let StatementComparison { a, b, nodes, .. } = comparison;
    let ms = |head: &str| Column::right(head).group("self time, ms");
    let mut columns = vec![ms("A"), ms("B"), ms("B - A")];
    columns.extend(["rows", "calls", "blocks"].map(Column::right));
    columns.push(Column::left("node").at(Position::Below));
    let least_ms = MATTERS * a.ms.max(b.ms);
    let longest = |pair: &NodePair| {
        let of = |nodes: &[ComparedNode], nth: Option<usize>| {
            nth.and_then(|nth| nodes.get(nth)).map_or(0.0, |node| node.self_ms.estimate)
        };
        of(&a.nodes, pair.a).max(of(&b.nodes, pair.b))
    };
    let (shown, small): (Vec<_>, Vec<_>) =
        nodes.iter().partition(|pair| pair.has_other_rows || longest(pair) >= least_ms);
    let mut rows: Vec<Row> = shown.into_iter().map(|pair| row(pair, &a.nodes, &b.nodes)).collect();
    if a.outside_ms.estimate.max(b.outside_ms.estimate) >= least_ms {
        let [in_a, in_b] = [a, b].map(|side| digits(side.outside_ms.estimate));
        let name = "outside of the nodes: triggers, start and end, sending rows".to_string();
        let difference = difference(b.outside_ms.minus(a.outside_ms));
        rows.push(Row::new([in_a, in_b, difference, String::new(), String::new(), String::new(), name]));
    }
    let note = match small.len() {
        0 => String::new(),
        more => format!("Nodes not shown, each with less than 1% of the time: {more}"),
    };
    Table { name: "differences".into(), columns, rows, note }
}

fn row(pair: &NodePair, a: &[ComparedNode], b: &[ComparedNode]) -> Row {
    let (in_a, in_b) = (pair.a.and_then(|nth| a.get(nth)), pair.b.and_then(|nth| b.get(nth)));
    let self_ms = |node: Option<&ComparedNode>| node.map_or("-".into(), |node| digits(node.self_ms.estimate));
    let both = |text: &dyn Fn(&ComparedNode) -> String| match (in_a.map(text), in_b.map(text)) {
        (Some(in_a), Some(in_b)) if in_a != in_b => format!("{in_a} -> {in_b}"),
        (in_a, in_b) => in_a.or(in_b).unwrap_or_default(),
    };
    let number = |number: f64| count(number.round() as u64);
    let rows = match pair.has_other_rows {
        true => both(&|node| rows(node)) + " !",
        false => in_a.or(in_b).map(rows).unwrap_or_default(),
    };
    let node = match (in_a, in_b) {
        (Some(in_a), Some(in_b)) if in_a.title == in_b.title => in_a.title.clone(),
        (Some(in_a), Some(in_b)) => format!("{} -> {}", in_a.title, in_b.title),
        (Some(only), None) => format!("only in A: {}", only.title),
        (None, Some(only)) => format!("only in B: {}", only.title),
        (None, None) => String::new(),
    };
    let (calls, blocks) = (both(&|node| number(node.calls)), both(&|node| number(node.blocks)));
    Row::new([self_ms(in_a), self_ms(in_b), difference(pair.difference_ms), rows, calls, blocks, node])
}

/// Returns a node's rows, or their upper bound if they are mostly rounding error.
fn rows(node: &ComparedNode) -> String {
    match node.rows_error > node.rows / 4.0 {
        true => format!("<{}", count((node.rows + node.rows_error).ceil() as u64)),
        false => count(node.rows as u64),
    }
}

/// Returns a difference, or its bounds if it can be zero.
fn difference(Range { low, estimate, high }: Range) -> String {
    // EXPLAIN prints microseconds.
    let sign = |ms: f64| if ms > 0.0 { "+" } else { "" };
    let signed = |ms: f64| if ms.abs() < 0.0005 { "0".into() } else { format!("{}{}", sign(ms), digits(ms)) };
    if low > 0.0 || high < 0.0 { signed(estimate) } else { format!("{} to {}", signed(low), signed(high)) }
}

/// Returns a statement's plan as a tree.
fn plan(side: &ComparedStatement) -> Table {
    let row = |node: &ComparedNode| {
        let cells = [with_margin(node.self_ms), digits(node.corrected_ms.estimate), rows(node)];
        let title = Cell { depth: depth(&node.path), ..node.title.as_str().into() };
        Row::new(cells.into_iter().map(Cell::from).chain([title]))
    };
    let ms = |head: &str| Column::right(head).group("ms");
    Table {
        name: "plan".into(),
        columns: vec![ms("self"), ms("with children"), Column::right("rows"), Column::left("node").at(Position::Tree)],
        rows: side.nodes.iter().map(row).collect(),
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(ratio: Option<[f64; 3]>, rows: [f64; 2]) -> StatementComparison {
        let ratio = ratio.map(|[low, estimate, high]| Range { low, estimate, high });
        let side = |ms: f64, rows: f64| ComparedStatement { ms, plain_ms: ms, rows: Some(rows), ..Default::default() };
        StatementComparison {
            schema_version: 1,
            version: String::new(),
            difference: ratio.map_or(Difference::NotDetermined, Difference::of),
            ratio,
            rounds: 8,
            is_too_short: false,
            round_trip_ms: 0.1,
            a: side(100.0, rows[0]),
            b: side(100.0 * ratio.map_or(1.0, |ratio| ratio.estimate), rows[1]),
            nodes: Vec::new(),
            notes: Vec::new(),
            server_version: "17.2".into(),
            server: String::new(),
            settings: Default::default(),
        }
    }

    #[test]
    fn the_answer_claims_a_difference_only_if_the_interval_excludes_1() {
        let answer = |ratio: Option<[f64; 3]>| answer(&comparison(ratio, [1.0, 1.0]));
        assert_eq!(answer(Some([0.86, 0.88, 0.90])), "B takes 12% less (+-2%): 88.0 instead of 100 ms.");
        assert_eq!(answer(Some([0.036, 0.039, 0.042])), "B takes 96.1% less (+-0.3%): 3.90 instead of 100 ms.");
        assert_eq!(answer(Some([1.02, 1.05, 1.08])), "B takes 5.0% more (+-3.0%): 105 instead of 100 ms.");
        assert_eq!(answer(Some([2.9, 3.0, 3.2])), "B takes 3.0 times as long (2.9 to 3.2): 300 instead of 100 ms.");
        let none = "No difference was found: A takes 100 ms, and B between 2% less and 3.1% more.";
        assert_eq!(answer(Some([0.98, 1.01, 1.031])), none);
        assert_eq!(answer(Some([0.815, 0.921, 0.998])), "B takes 7.9% less (0.2% to 18.5%): 92.1 instead of 100 ms.");
        assert_eq!(
            answer(Some([0.0001, 0.0002, 0.0004])),
            "B takes 99.9% less (99.9% to 99.9%): 0.020 instead of 100 ms."
        );
        assert_eq!(answer(None), "Not determined: there are too few rounds.");
        let short = StatementComparison { is_too_short: true, ..comparison(None, [1.0; 2]) };
        assert!(super::answer(&short).starts_with("Not determined: the statements are too short"));
        let mut one_short = StatementComparison { difference: Difference::Slower, ..short };
        one_short.a.ms = 0.1;
        let text = "B takes longer: 100 ms. A is too short to measure: the round trip to the server takes 0.100 ms.";
        assert_eq!(super::answer(&one_short), text);
    }

    #[test]
    fn other_rows_are_said() {
        let text = answer(&comparison(Some([0.4, 0.5, 0.6]), [10.0, 9.0]));
        assert!(text.ends_with("They have different numbers of rows: A 10, and B 9."), "{text}");
    }

    #[test]
    fn a_difference_that_can_be_zero_has_no_estimate() {
        assert_eq!(difference(Range { low: 1.0, estimate: 2.0, high: 3.0 }), "+2.00");
        assert_eq!(difference(Range { low: -3.0, estimate: -2.0, high: -1.0 }), "-2.00");
        assert_eq!(difference(Range { low: -1.0, estimate: 2.0, high: 3.0 }), "-1.00 to +3.00");
        assert_eq!(difference(Range { low: -0.0001, estimate: 0.0, high: 0.0001 }), "0 to 0");
    }
}
