//! The division of the lines: which part gets how many.

/// The parts, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Header,
    Verdict,
    Clocks,
    Chart,
    Findings,
    Facts,
    Server,
    Events,
    Footer,
}

pub const PARTS: [Part; 9] = [
    Part::Header,
    Part::Verdict,
    Part::Clocks,
    Part::Chart,
    Part::Findings,
    Part::Facts,
    Part::Server,
    Part::Events,
    Part::Footer,
];

/// Lines that the parts can use. Each list starts with the smallest useful number.
#[derive(Clone, Debug)]
pub struct Wishes {
    pub verdict: usize,
    pub clocks: [usize; 2],
    pub chart: usize,
    pub facts: usize,
    pub server: [usize; 2],
    pub findings: [usize; 3],
    pub events: usize,
}

/// A part with its lines, and whether an empty line is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub part: Part,
    pub height: usize,
    pub gap: bool,
}

/// Lines of a chart: an empty line, the title, the axis, and rows of bars. Fewer rows do not show more than the table, and more
/// rows only repeat the same figures.
const LOW_CHART: usize = 3 + 4;
pub const HIGH_CHART: usize = 3 + 8;
/// On lower screens, events are more useful than a high chart.
const WITH_HIGH_CHART: usize = 48;
/// A list of events is readable from this number of lines on, including its head.
const FEW_EVENTS: usize = 4;
/// Enough events for an incident, before the chart gets lines.
const SOME_EVENTS: usize = 8;

/// The lost time, a failure, and one more. Empty lines between the parts are more useful than further facts.
const FEW_FACTS: usize = 3;

/// One step of the division.
enum Step {
    /// The part gets this number of lines in total, or fewer if there are not enough.
    Lines(Part, usize),
    /// The part gets this number of lines in total. It gets none if there are not enough.
    All(Part, usize),
    /// An empty line above the part
    Gap(Part),
}

/// Divides `height` lines. Parts without lines are left out.
pub fn divide(height: usize, wishes: &Wishes) -> Vec<Place> {
    use Part::*;
    use Step::*;
    let chart = if height >= WITH_HIGH_CHART { wishes.chart } else { wishes.chart.min(LOW_CHART) };
    // The most important first: what is wrong, then PostgreSQL's clock, then where and when.
    let steps = [
        Lines(Verdict, 1),
        Lines(Clocks, wishes.clocks[0].min(1)),
        Lines(Findings, wishes.findings[0].min(1)),
        Lines(Header, 1),
        Lines(Verdict, wishes.verdict.min(3)),
        Lines(Footer, 1),
        Lines(Events, 1),
        Lines(Findings, wishes.findings[0]),
        Lines(Clocks, wishes.clocks[0]),
        All(Findings, wishes.findings[1]),
        Lines(Events, wishes.events.min(FEW_EVENTS)),
        Lines(Server, wishes.server[0]),
        Lines(Facts, wishes.facts.min(FEW_FACTS)),
        Gap(Clocks),
        Gap(Findings),
        Gap(Facts),
        Lines(Facts, wishes.facts),
        Gap(Events),
        Lines(Findings, wishes.findings[2]),
        Lines(Verdict, wishes.verdict),
        Lines(Events, wishes.events.min(SOME_EVENTS)),
        All(Server, wishes.server[1]),
        All(Clocks, wishes.clocks[1]),
        All(Chart, chart),
        Lines(Events, wishes.events),
    ];
    let mut places = PARTS.map(|part| Place { part, height: 0, gap: false });
    let mut left = height;
    for step in steps {
        let (Lines(part, _) | All(part, _) | Gap(part)) = step;
        let place = &mut places[part as usize];
        let wish = match step {
            Lines(_, wish) | All(_, wish) => wish.saturating_sub(place.height),
            Gap(_) => usize::from(place.height > 0),
        };
        let more = match step {
            All(..) if wish > left => 0,
            _ => wish.min(left),
        };
        left -= more;
        match step {
            Gap(_) => place.gap = more > 0,
            _ => place.height += more,
        }
    }
    places.into_iter().filter(|place| place.height > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wishes() -> Wishes {
        Wishes { verdict: 2, clocks: [5, 9], chart: 10, facts: 6, server: [0, 0], findings: [1, 1, 2], events: 40 }
    }

    fn shown(height: usize) -> Vec<Part> {
        divide(height, &wishes()).iter().map(|place| place.part).collect()
    }

    #[test]
    fn a_small_screen_shows_the_most_important_parts() {
        use Part::*;
        assert_eq!(shown(1), [Verdict]);
        assert_eq!(shown(3), [Verdict, Clocks, Findings]);
        assert_eq!(shown(7), [Header, Verdict, Clocks, Findings, Events, Footer]);
        assert_eq!(shown(60), PARTS.into_iter().filter(|part| *part != Server).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn exactly_the_lines_are_used(height in 0..90usize, events in 1..100usize, alarms in 0..30usize) {
            let wishes = Wishes { events, findings: [alarms.max(1), 2 * alarms, 2 * alarms + 2], ..wishes() };
            let places = divide(height, &wishes);
            let used: usize = places.iter().map(|place| place.height + usize::from(place.gap)).sum();
            prop_assert!(used <= height);
            // Lines remain only if the parts have what they wish.
            let has_all = places.iter().all(|place| place.part != Part::Events || place.height == events);
            prop_assert!(used == height || has_all);
        }
    }
}
