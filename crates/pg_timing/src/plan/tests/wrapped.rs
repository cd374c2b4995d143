//! Plans whose lines a mail program or a terminal has broken.

use super::psql::real_plans;
use crate::plan::Unusable;
use crate::plan::find::read_text;
use crate::plan::layout::joined;
use crate::plan::text::column;
use proptest::prelude::*;

const PLAN: &str = "\
Nested Loop Left Join  (cost=4.30..37.33 rows=5 width=8) (actual time=0.036..0.075 rows=5.00 loops=1)
  InitPlan 1
    ->  Parallel Index Only Scan using t_i on \"T x\" t  (cost=0.15..3.30 rows=1 width=4) (actual time=0.010..0.011 rows=1.00 loops=1)
          Index Cond: ((i > 10) AND (i < 20))
  ->  Seq Scan on a  (cost=0.00..1.00 rows=5 width=4) (actual time=0.010..0.012 rows=5.00 loops=1)
        Filter: ((i > (InitPlan 1).col1) AND ((j -> 'a'::text) <> '(actual time=1.000..2.000 rows=1 loops=1)'::jsonb))
        Rows Removed by Filter: 3
  ->  Index Scan using b_i on b  (cost=0.15..6.17 rows=1 width=4) (never executed)
        Index Cond: (i = a.i)
        SubPlan 2
          ->  Result  (cost=0.00..0.01 rows=1 width=4) (actual rows=1.00 loops=12)
Planning Time: 0.316 ms
Execution Time: 0.130 ms
";

/// Breaks lines as a mail program does, at spaces.
fn in_mail(plan: &str, width: usize) -> String {
    let mut text = String::new();
    for line in plan.lines() {
        let mut rest = line;
        while rest.len() > width {
            let indentation = column(rest);
            let Some(at) = rest[..=width].rfind(' ').filter(|&at| at > indentation) else { break };
            text += rest[..at].trim_end();
            text += "\n";
            rest = rest[at..].trim_start();
        }
        text += rest;
        text += "\n";
    }
    text
}

/// Breaks lines as a terminal does, at its width. Copying loses the spaces at the end of lines.
fn in_terminal(plan: &str, width: usize) -> String {
    let mut text = String::new();
    for line in plan.lines() {
        for part in line.as_bytes().chunks(width) {
            text += std::str::from_utf8(part).unwrap().trim_end();
            text += "\n";
        }
    }
    text
}

fn read(plan: &str) -> crate::plan::Explained {
    read_text(plan).0.unwrap_or_else(|why| panic!("{why:?}: {plan}\n{}", joined(plan)))
}

#[test]
fn wrapped_plans_are_the_same() {
    let plan = read(PLAN);
    for width in 50..130 {
        assert_eq!(read(&in_mail(PLAN, width)), plan, "{}", in_mail(PLAN, width));
    }
    for width in [72, 80, 100, 120] {
        assert_eq!(read(&in_terminal(PLAN, width)), plan, "{}", in_terminal(PLAN, width));
    }
}

#[test]
fn wrapped_real_plans_are_the_same() {
    for plan in real_plans() {
        let whole = read(&plan);
        for width in [60, 72, 80, 100] {
            for wrapped in [in_mail(&plan, width), in_terminal(&plan, width)] {
                match read_text(&wrapped).0 {
                    Ok(read) => assert_eq!(read, whole, "{wrapped}"),
                    Err(why) => {
                        assert!(
                            matches!(why, Unusable::NodeLineIncomplete | Unusable::RootMissing),
                            "{why:?}: {wrapped}"
                        )
                    }
                }
            }
        }
    }
}

proptest! {
    /// Whatever the width is, a figure is right or the plan is refused.
    #[test]
    fn a_break_anywhere_changes_no_figure(width in 20..140usize) {
        let figures = |text: &str| read_text(text).0.map(|plan| {
            crate::plan::Plan::new(plan).nodes.into_iter().map(|node| (node.path, node.calls, node.reported_ms)).collect::<Vec<_>>()
        });
        if let Ok(read) = figures(&in_terminal(PLAN, width)) {
            prop_assert_eq!(read, figures(PLAN).unwrap());
        }
    }
}
