//! Facts about the hosts.

use super::missing::Missing;
use super::pairs::{Pair, texts};
use super::{ComparedFigure, Effect, FigureName};
use crate::report::{Fact, Report};

/// Which fact, its name on the screen, and its value.
type HostFact = (FigureName, &'static str, fn(&Report) -> &Fact<String>);

const FACTS: [HostFact; 4] = [
    (FigureName::ClockSource, "clock source", |report| &report.clocksource.current),
    (FigureName::Kernel, "kernel", |report| &report.host.kernel),
    (FigureName::CpuModel, "CPU model", |report| &report.host.cpu_model),
    (FigureName::Virtualization, "virtualization", |report| &report.host.virtualization),
];

/// Returns the facts. A difference is neither better nor worse: the costs and the findings decide.
pub fn figures(pair: &Pair, missing: &mut Missing) -> Vec<ComparedFigure> {
    let compared = FACTS.iter().filter_map(|(figure, name, fact)| {
        let (before, after) = missing.both(name, fact(pair.before).clone(), fact(pair.after).clone())?;
        Some(texts(*figure, before, after, Effect::Changed))
    });
    compared.collect()
}
