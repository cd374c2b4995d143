//! Executions of a period, and sums of their ranges.

use super::entries::{Figures, Key};
use crate::report::Range;

/// How often a statement was executed in a period.
pub struct Executions {
    pub key: Key,
    pub figures: Figures,
    /// executions, or parts of them, in the period
    pub number: Range,
}

impl Executions {
    /// Returns all executions of the period.
    pub fn of(key: Key, figures: Figures) -> Executions {
        Executions { key, figures, number: Range::between(figures.calls, figures.calls) }
    }

    /// Returns the executions that ended in the window. An execution longer than the window began before it, and an unknown part
    /// of its calls is in the window.
    pub fn in_window(key: Key, figures: Figures, window_s: f64) -> Executions {
        let longest_ms = window_s * 1e3;
        match figures.mean_ms() > longest_ms {
            false => Executions::of(key, figures),
            true => {
                let most = figures.calls * longest_ms / figures.mean_ms();
                Executions { key, figures, number: Range { low: 0.0, estimate: most / 2.0, high: most } }
            }
        }
    }
}

/// A sum of ranges. Guesses are too low or too high for the same reasons, so the lower bounds add up. Only some statements
/// reach their upper bounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    low: f64,
    estimate: f64,
    squared_margin: f64,
}

impl Sum {
    pub fn add(&mut self, range: Range) {
        self.low += range.low;
        self.estimate += range.estimate;
        self.squared_margin += (range.high - range.estimate).powi(2);
    }

    pub fn range(self) -> Range {
        Range { low: self.low, estimate: self.estimate, high: self.estimate + self.squared_margin.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_of_a_long_execution_is_in_the_window() {
        let number = |mean_ms| {
            let figures = Figures { calls: 2.0, rows: 2.0, exec_ms: 2.0 * mean_ms };
            Executions::in_window(Key::of(1), figures, 5.0).number
        };
        assert_eq!(number(4000.0), Range { low: 2.0, estimate: 2.0, high: 2.0 });
        assert_eq!(number(20_000.0), Range { low: 0.0, estimate: 0.25, high: 0.5 });
    }

    #[test]
    fn upper_bounds_add_up_as_independent_errors() {
        let mut sum = Sum::default();
        sum.add(Range { low: 1.0, estimate: 10.0, high: 40.0 });
        sum.add(Range { low: 2.0, estimate: 20.0, high: 60.0 });
        assert_eq!(sum.range(), Range { low: 3.0, estimate: 30.0, high: 80.0 });
    }
}
