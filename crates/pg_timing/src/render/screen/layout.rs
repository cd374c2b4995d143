//! The division of the lines: which part gets how many.

/// The parts, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Header,
    Verdict,
    Clocks,
    Chart,
    Facts,
    Server,
    Findings,
    Events,
    Footer,
}

pub const PARTS: [Part; 9] = [
    Part::Header,
    Part::Verdict,
    Part::Clocks,
    Part::Chart,
    Part::Facts,
    Part::Server,
    Part::Findings,
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

/// Parts with an empty line above them if there is room. The chart contains its own one.
const WITH_GAP: [Part; 4] = [Part::Clocks, Part::Facts, Part::Findings, Part::Events];
/// Lower charts do not show more than the row of the table: an empty line, the title, the axis, and three rows of bars.
pub const LOWEST_CHART: usize = 6;
/// A list of events is readable from this number of lines on, including its head.
const FEW_EVENTS: usize = 4;
/// Enough events for an incident, before the chart gets lines.
const SOME_EVENTS: usize = 8;

/// Divides `height` lines. Parts without lines are left out.
pub fn divide(height: usize, wishes: &Wishes) -> Vec<Place> {
    use Part::*;
    let mut lines = Lines { left: height, of: [0; PARTS.len()] };
    // The most important first: what is wrong, then PostgreSQL's clock, then where and when. The third number is the smallest
    // useful one: a part that would get fewer lines keeps those that it has.
    let until_gaps = [
        (Verdict, 1, 1),
        (Clocks, 1, 1),
        (Findings, wishes.findings[0].min(1), 1),
        (Header, 1, 1),
        (Verdict, wishes.verdict.min(3), 1),
        (Footer, 1, 1),
        (Events, 1, 1),
        (Findings, wishes.findings[0], 1),
        (Clocks, wishes.clocks[0], 2),
        (Findings, wishes.findings[1], wishes.findings[1]),
        (Events, FEW_EVENTS.min(wishes.events), 1),
        (Server, wishes.server[0], 1),
        (Facts, wishes.facts, 1),
    ];
    let after_gaps = [
        (Findings, wishes.findings[2], 1),
        (Verdict, wishes.verdict, 1),
        (Events, SOME_EVENTS.min(wishes.events), 1),
        (Server, wishes.server[1], wishes.server[1]),
        (Clocks, wishes.clocks[1], wishes.clocks[1]),
        (Chart, wishes.chart, LOWEST_CHART),
        (Events, wishes.events, 1),
    ];
    until_gaps.into_iter().for_each(|(part, wish, least)| lines.raise(part, wish, least));
    let mut gaps = WITH_GAP.map(|part| (part, false));
    for (part, gap) in &mut gaps {
        if lines.of[*part as usize] > 0 && lines.left > 0 {
            lines.left -= 1;
            *gap = true;
        }
    }
    after_gaps.into_iter().for_each(|(part, wish, least)| lines.raise(part, wish, least));
    let has_gap = |part| gaps.iter().any(|(with, gap)| *with == part && *gap);
    let places = PARTS.iter().map(|part| Place { part: *part, height: lines.of[*part as usize], gap: has_gap(*part) });
    places.filter(|place| place.height > 0).collect()
}

struct Lines {
    left: usize,
    of: [usize; PARTS.len()],
}

impl Lines {
    /// Gives the part as many lines as it wishes, as far as there are any, but none if it would have fewer than `least`.
    fn raise(&mut self, part: Part, wish: usize, least: usize) {
        let now = self.of[part as usize];
        let more = wish.saturating_sub(now).min(self.left);
        if now + more >= least {
            self.of[part as usize] += more;
            self.left -= more;
        }
    }
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
        fn exactly_the_lines_are_used(height in 0..90usize, events in 0..100usize, alarms in 0..30usize) {
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
