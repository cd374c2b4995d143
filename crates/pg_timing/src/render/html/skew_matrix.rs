//! The bounds between any two CPUs. Only some pairs were measured; those of other pairs follow from them.

use super::page::scrolling;
use crate::human::duration;
use crate::report::Skew;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// A matrix of more CPUs is not readable.
const MOST_CPUS: usize = 32;
/// Two CPUs have one pair, which the table of measured pairs already shows.
const LEAST_CPUS: usize = 3;

/// Returns a matrix for each clock. A matrix without a difference is folded.
pub fn matrices(skew: &[Skew]) -> Markup {
    let clocks: BTreeSet<&str> = skew.iter().map(|s| s.clock.as_str()).collect();
    html! { @for clock in clocks { (matrix(clock, skew)) } }
}

fn matrix(clock: &str, skew: &[Skew]) -> Markup {
    // An offset that changes has no bounds that could be added.
    let of_clock: Vec<&Skew> = skew.iter().filter(|s| s.clock == clock && !s.moving).collect();
    let Some(bounds) = Bounds::of(&of_clock) else { return html! {} };
    html! {
        details open[bounds.has_difference()] {
            summary { (clock) ": all pairs of CPUs" }
            p.muted {
                "From the measured pairs. ≤: two CPUs' readings at the same instant differ by at most this time. ≥: they differ by at \
                 least this time."
            }
            (scrolling(&format!("{clock}: all pairs of CPUs"), bounds.table()))
        }
    }
}

/// How much later the clock of CPU `b` is than that of CPU `a`, at most, for each `a` and `b`.
struct Bounds {
    cpus: Vec<usize>,
    most_ns: Vec<Vec<f64>>,
}

impl Bounds {
    /// Returns the tightest bounds that follow from the measured pairs: the shortest paths, by Floyd's algorithm. `None` if
    /// there are too few or too many CPUs.
    fn of(skew: &[&Skew]) -> Option<Bounds> {
        let cpus: Vec<usize> = skew.iter().flat_map(|s| [s.a, s.b]).collect::<BTreeSet<_>>().into_iter().collect();
        if !(LEAST_CPUS..=MOST_CPUS).contains(&cpus.len()) {
            return None;
        }
        let at = |cpu: usize| cpus.binary_search(&cpu).unwrap_or_default();
        let mut most_ns = vec![vec![f64::INFINITY; cpus.len()]; cpus.len()];
        for s in skew {
            let (a, b) = (at(s.a), at(s.b));
            most_ns[a][b] = most_ns[a][b].min(s.high_ns);
            most_ns[b][a] = most_ns[b][a].min(-s.low_ns);
        }
        for through in 0..cpus.len() {
            for a in 0..cpus.len() {
                for b in 0..cpus.len() {
                    most_ns[a][b] = most_ns[a][b].min(most_ns[a][through] + most_ns[through][b]);
                }
            }
        }
        Some(Bounds { cpus, most_ns })
    }

    /// Returns the bounds of the reading of the `b`th CPU minus that of the `a`th CPU.
    fn between(&self, a: usize, b: usize) -> (f64, f64) {
        (-self.most_ns[b][a], self.most_ns[a][b])
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let number = self.cpus.len();
        (0..number).flat_map(move |a| (a + 1..number).map(move |b| (a, b)))
    }

    fn has_difference(&self) -> bool {
        self.pairs().any(|(a, b)| difference(self.between(a, b)).is_some())
    }

    fn table(&self) -> Markup {
        let others = || self.cpus.iter().enumerate().skip(1);
        html! {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { "CPU" }
                        @for (_, cpu) in others() { th.number scope="col" { (cpu) } }
                    }
                }
                tbody {
                    @for (a, cpu) in self.cpus.iter().enumerate().take(self.cpus.len() - 1) {
                        tr {
                            th scope="row" { (cpu) }
                            @for (b, _) in others() { td.number { @if b > a { (cell(self.between(a, b))) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns how much two readings differ at least. `None` if they may be equal.
fn difference((low, high): (f64, f64)) -> Option<f64> {
    (low > 0.0 || high < 0.0).then(|| low.abs().min(high.abs()))
}

fn cell(bounds: (f64, f64)) -> Markup {
    let most = bounds.0.abs().max(bounds.1.abs());
    html! {
        @match difference(bounds) {
            Some(least) => span.differs { "≥ " (duration(least)) },
            None if most.is_finite() => { "≤ " (duration(most)) }
            None => "-",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skew(a: usize, b: usize, low_ns: f64, high_ns: f64) -> Skew {
        Skew { clock: "<c>".into(), a, b, low_ns, high_ns, moving: false, passes: 9 }
    }

    #[test]
    fn bounds_of_other_pairs_follow_from_the_measured_ones() {
        let skew = [skew(0, 1, -20.0, 30.0), skew(0, 8, 1000.0, 1100.0), skew(12, 0, -1150.0, -1050.0)];
        let bounds = Bounds::of(&skew.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(bounds.cpus, [0, 1, 8, 12]);
        assert_eq!(
            [(0, 1), (1, 2), (2, 3)].map(|(a, b)| bounds.between(a, b)),
            [(-20.0, 30.0), (970.0, 1120.0), (-50.0, 150.0)]
        );
        let text = matrices(&skew).into_string();
        for part in ["<details open>", "≥ 970 ns", "≤ 150 ns", "&lt;c&gt;"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn pairs_without_a_path_are_not_known() {
        let text = matrices(&[skew(0, 1, -1.0, 1.0), skew(2, 3, -1.0, 1.0)]).into_string();
        assert!(text.contains("<td class=\"number\">-</td>") && text.contains("<details>"), "{text}");
    }

    #[test]
    fn too_few_or_too_many_cpus_have_no_matrix() {
        let star = |number| (1..number).map(|b| skew(0, b, -1.0, 1.0)).collect::<Vec<_>>();
        let has_matrix = |number| matrices(&star(number)).into_string().contains("<table");
        assert_eq!([2, 3, 32, 33].map(has_matrix), [false, true, true, false]);
        let moving = star(3).into_iter().map(|s| Skew { moving: true, ..s }).collect::<Vec<_>>();
        assert!(!matrices(&moving).into_string().contains("<table"));
    }
}
