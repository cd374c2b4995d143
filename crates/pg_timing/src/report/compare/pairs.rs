//! The two reports, and a figure of both.

use super::{Compared, ComparedFigure, Effect, FigureName, Measure};
use crate::report::{COUNTER, Origin, Report, SYSTEM};

/// The two reports.
pub struct Pair<'a> {
    pub before: &'a Report,
    pub after: &'a Report,
}

impl Pair<'_> {
    /// Returns whether PostgreSQL reads this clock before and after: the system clock, and the counter if PostgreSQL 19 uses it
    /// by default.
    pub fn is_read_by_postgres(&self, clock: &str) -> bool {
        let uses_tsc = [self.before, self.after].iter().all(|report| report.tsc.used_by_default == Some(true));
        clock == SYSTEM || uses_tsc && needs_postgres_19(clock)
    }
}

/// Returns whether only PostgreSQL 19 can read this clock: the counter.
pub fn needs_postgres_19(clock: &str) -> bool {
    clock == COUNTER || clock == "rdtscp"
}

/// What an increase of a figure means, if it exceeds the noise. A decrease means the opposite.
pub fn numbers(
    figure: FigureName,
    clock: Option<&str>,
    before: Measure,
    after: Measure,
    increase: impl FnOnce(Measure, Measure) -> Effect,
) -> ComparedFigure {
    let effect = match before.differs_from(&after) {
        false => Effect::Same,
        true if after.low > before.high => increase(before, after),
        true => increase(after, before).mirrored(),
    };
    let estimates = before.estimate.zip(after.estimate);
    ComparedFigure {
        figure,
        clock: clock.map(Into::into),
        before: Compared::Number(before),
        after: Compared::Number(after),
        relative_change: estimates.map(|(a, b)| (b - a) / a).filter(|change| change.is_finite()),
        noise: before.noise_against(&after),
        effect,
    }
}

/// Compares two texts. `effect` is that of a difference.
pub fn texts(figure: FigureName, before: String, after: String, effect: Effect) -> ComparedFigure {
    ComparedFigure {
        figure,
        clock: None,
        effect: if before == after { Effect::Same } else { effect },
        before: Compared::Text(before),
        after: Compared::Text(after),
        relative_change: None,
        noise: None,
    }
}

/// Returns the reason why a report does not contain a figure.
pub fn absent(report: &Report) -> &'static str {
    match report.origin {
        Origin::PgTestTiming => "not in the output of pg_test_timing",
        Origin::Measured | Origin::Captured => "not in the report",
    }
}
