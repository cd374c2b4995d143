//! Plans that have lost their indentation.

use super::psql::{plans, real_plans};
use crate::plan::Explained;
use crate::plan::layout::restored;
use crate::plan::{Unusable, text};
use proptest::prelude::*;

fn flat(plan: &str) -> String {
    plan.lines().map(|line| line.trim().to_string() + "\n").collect()
}

fn read(plan: &str) -> Explained {
    text::plan(plan.lines()).unwrap_or_else(|why| panic!("{why:?}: {plan}"))
}

#[test]
fn real_plans_get_their_tree_or_are_refused() {
    let plans = real_plans();
    let mut restored_plans = 0;
    for plan in &plans {
        match restored(&flat(plan)) {
            Ok(restored) => {
                assert_eq!(read(&restored), read(plan), "{plan}\n{restored}");
                restored_plans += 1;
            }
            // EXPLAIN shows the owner of a subplan only if a condition contains the subplan. An InitPlan after a CTE can
            // belong to the CTE's last node.
            Err(why) => assert!(matches!(why, Unusable::LostIndentation(_)), "{why:?}: {plan}"),
        }
    }
    assert!(restored_plans * 100 >= plans.len() * 90, "{restored_plans} of {}", plans.len());
}

#[test]
fn a_reconstructed_tree_has_a_note() {
    let plan = &real_plans()[0];
    let [Ok(read)] = &plans(&flat(plan))[..] else { panic!("{plan}") };
    assert!(read.notes[0].contains("reconstructed from the kinds"), "{:?}", read.notes);
}

#[test]
fn a_node_with_two_possible_parents_is_named() {
    let two = "Append  (cost=0.00..9.00 rows=2 width=4) (actual time=0.010..9.000 rows=0 loops=1)
->  Append  (cost=0.00..8.00 rows=2 width=4) (actual time=0.010..8.000 rows=0 loops=1)
->  Seq Scan on a  (cost=0.00..1.00 rows=2 width=4) (actual time=0.010..1.000 rows=0 loops=1)
->  Seq Scan on b  (cost=0.00..1.00 rows=2 width=4) (actual time=0.010..1.000 rows=0 loops=1)
";
    assert_eq!(
        restored(two),
        Err(Unusable::LostIndentation("Seq Scan on a can be below Append or below Append".into()))
    );
    let missing = "Hash Join (actual time=1.000..2.000 rows=7 loops=1)\n->  Seq Scan on a (actual time=0.100..1.000 rows=7 loops=1)\n";
    assert_eq!(restored(missing), Err(Unusable::LostIndentation("Hash Join has too few inputs".into())));
}

/// A node of a random plan.
#[derive(Clone, Debug)]
struct Made {
    kind: usize,
    rows: u32,
    /// half of them cost and take nothing, because equal figures allow more trees
    own: u32,
    label: Option<&'static str>,
    below: Vec<Made>,
}

const KINDS: [(&str, usize); 9] = [
    ("Seq Scan on t", 0),
    ("Result", 0),
    ("Sort", 1),
    ("Limit", 1),
    ("Aggregate", 1),
    ("Nested Loop", 2),
    ("Hash Join", 2),
    ("Append", usize::MAX),
    ("Bitmap Heap Scan on t", 0),
];

fn made() -> impl Strategy<Value = Made> {
    let label =
        prop_oneof![9 => Just(None), 1 => prop::sample::select(vec!["InitPlan", "CTE c", "SubPlan"]).prop_map(Some)];
    let node = (0..KINDS.len(), 0..3u32, prop_oneof![Just(0), 0..2000u32], label);
    let node = node.prop_map(|(kind, rows, own, label)| Made { kind, rows, own, label, below: vec![] });
    node.clone().prop_recursive(6, 24, 3, move |below| {
        (node.clone(), prop::collection::vec(below, 0..4)).prop_map(|(node, below)| Made { below, ..node })
    })
}

/// The figures of a written node in all loops.
#[derive(Clone, Copy, Default)]
struct Written {
    rows: u32,
    us: u32,
    cost: u32,
}

/// Writes a node in the layout of explain.c. Returns its figures.
fn write(node: &Made, column: usize, loops: u32, label: Option<&str>, out: &mut Vec<String>) -> Written {
    let (name, most) = KINDS[node.kind];
    let mut column = column;
    let arrow = if out.is_empty() { "" } else { "->  " };
    if let Some(label) = label {
        out.push(format!("{}{label}", " ".repeat(column)));
        column += 2;
    }
    let line = out.len();
    out.push(String::new());
    let inner = column + if arrow.is_empty() { 2 } else { 6 };
    let subplans = |is_last: bool| {
        node.below.iter().filter(move |below| below.label.is_some_and(|label| label.starts_with("SubPlan") == is_last))
    };
    subplans(false).for_each(|below| _ = write(below, inner, loops.min(1), below.label, out));
    let mut inputs: Vec<Written> = Vec::new();
    let leaf = Made { kind: 0, rows: node.rows, own: node.own, label: None, below: vec![] };
    let given: Vec<&Made> = node.below.iter().filter(|below| below.label.is_none()).take(most).collect();
    let missing = if most == usize::MAX { 0 } else { most - given.len() };
    for below in given.into_iter().chain(std::iter::repeat_n(&leaf, missing)) {
        let is_inner = inputs.len() == 1;
        if is_inner && name == "Hash Join" {
            let at = out.len();
            out.push(String::new());
            let input = write(below, inner + 6, loops, None, out);
            out[at] = line_of("Hash", inner, "->  ", input, loops, (input.cost, input.cost));
            inputs.push(input);
        } else {
            let loops = if is_inner && name == "Nested Loop" { inputs[0].rows } else { loops };
            inputs.push(write(below, inner, loops, None, out));
        }
    }
    if name.starts_with("Bitmap") {
        let input = Written { rows: 0, us: node.own, cost: node.own };
        out.push(line_of("Bitmap Index Scan on i", inner, "->  ", input, loops, (0, input.cost)));
        inputs.push(input);
    }
    subplans(true).for_each(|below| _ = write(below, inner, node.rows, below.label, out));
    let sum = |figure: fn(&Written) -> u32| inputs.iter().map(figure).sum::<u32>();
    let written = Written {
        rows: if name == "Append" { sum(|input| input.rows) } else { node.rows * loops },
        us: sum(|input| input.us) + node.own * loops,
        cost: sum(|input| input.cost) + node.own,
    };
    let startup = if ["Sort", "Aggregate"].contains(&name) { sum(|input| input.cost) } else { 0 };
    let startup = if name == "Limit" { written.cost } else { startup };
    out[line] = line_of(name, column, arrow, written, loops, (startup, written.cost));
    if label.is_some_and(|label| label.ends_with("Plan")) {
        // PostgreSQL numbers a subplan after those within it.
        let number = out.iter().filter(|line| line.contains("Plan ")).count() + 1;
        out[line - 1] += &format!(" {number}");
    }
    written
}

fn line_of(name: &str, column: usize, arrow: &str, written: Written, loops: u32, costs: (u32, u32)) -> String {
    let per_loop = |figure: u32| f64::from(figure) / f64::from(loops.max(1));
    let actual = match loops {
        0 => "(never executed)".into(),
        _ => format!(
            "(actual time=0.000..{:.3} rows={:.2} loops={loops})",
            per_loop(written.us) / 1000.0,
            per_loop(written.rows)
        ),
    };
    format!("{}{arrow}{name}  (cost={}.00..{}.00 rows=1 width=4) {actual}", " ".repeat(column), costs.0, costs.1)
}

proptest! {
    #[test]
    fn random_plans_get_their_tree_or_are_refused(root in made()) {
        let mut lines = Vec::new();
        write(&root, 0, 1, None, &mut lines);
        let plan = lines.join("\n") + "\nExecution Time: 1.000 ms\n";
        match restored(&flat(&plan)) {
            Ok(restored) => prop_assert_eq!(restored, plan),
            Err(why) => prop_assert!(matches!(why, Unusable::LostIndentation(_)), "{:?}\n{}", why, plan),
        }
    }
}
