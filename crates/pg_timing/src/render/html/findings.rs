//! The findings of a host: evidence, reason, and what to type.

use super::page::{Place, scrolling, signed, titled};
use super::verdict::{badge, class};
use crate::render::host_text::{Alarm, Alarms};
use crate::report::{Finding, Fix, Report, Severity, finding_id};
use maud::{Markup, html};

/// Returns each warning and critical finding. The consequences of a demoted TSC are folded.
pub fn alarms(report: &Report, place: Place) -> Markup {
    let Alarms { shown, consequences } = Alarms::of(report);
    html! {
        @for Alarm { finding, fixes } in &shown {
            (block(finding, fixes, place))
            @if finding.id == finding_id::TSC_DEMOTED && !consequences.is_empty() {
                details {
                    summary {
                        "consequence: " (consequences.iter().map(|f| f.id.as_str()).collect::<Vec<_>>().join(", "))
                    }
                    @for finding in &consequences {
                        (block(finding, &finding.fix.iter().collect::<Vec<_>>(), place))
                    }
                }
            }
        }
    }
}

/// Returns a table of all checks, folded.
pub fn all_checks(report: &Report) -> Markup {
    html! {
        details {
            summary { "all " (report.findings.len()) " checks" }
            (scrolling("all checks", html! {
                table {
                    thead { tr { th scope="col" { "check" } th scope="col" { "result" } th scope="col" { "summary" } } }
                    tbody {
                        @for finding in &report.findings {
                            tr {
                                th scope="row" { code { (finding.id) } }
                                td { (badge(finding.severity)) }
                                td.text { (signed(&finding.summary)) }
                            }
                        }
                    }
                }
            }))
        }
    }
}

/// Returns the checks that were not possible, with the reasons.
pub fn not_determined(report: &Report) -> impl Iterator<Item = (&str, &str)> {
    let unknown = report.findings.iter().filter(|finding| finding.severity == Severity::Unknown);
    unknown.map(|finding| (finding.id.as_str(), finding.summary.as_str()))
}

fn block(finding: &Finding, fixes: &[&Fix], place: Place) -> Markup {
    html! {
        article class={ "finding " (class(finding.severity)) } {
            p.label { (badge(finding.severity)) code { (finding.id) } }
            (titled(place.level + 2, None, html! { (signed(&finding.summary)) }))
            dl.facts {
                @if !finding.evidence.is_empty() { dt { "evidence" } }
                @for line in &finding.evidence { dd { (signed(line)) } }
                @if !finding.why.is_empty() { dt { "why" } dd { (finding.why) } }
                @if !fixes.is_empty() { dt { "fix" } }
                @for fix in fixes { dd { (self::fix(fix)) } }
            }
        }
    }
}

fn fix(fix: &Fix) -> Markup {
    let asides = [("undo", &fix.undo), ("permanent", &fix.lasting), ("risk", &fix.risk)];
    html! {
        (fix.what)
        @if let Some(command) = &fix.command { pre.command { (command) } }
        @for (name, aside) in asides {
            @if let Some(text) = aside { p.aside { (name) ": " (text) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    #[test]
    fn a_finding_shows_its_evidence_and_its_commands() {
        let fix = Fix::new("switch <it>").command("echo 'a' > \"b\"").undo("u&").lasting("l").risk("r");
        let finding = Finding::new(finding_id::TSC_DEMOTED, Severity::Warning, "5 +- 1 <ns>")
            .evidence("seen & heard")
            .why("because <b>")
            .fix(fix);
        let mut report = Report::empty(Origin::Measured, "x");
        report.findings = vec![finding, Finding::new(finding_id::CLOCK_SYSCALL, Severity::Critical, "slow")];
        let text = alarms(&report, Place::ALONE).into_string();
        for part in [
            "<h3>5 ± 1 &lt;ns&gt;</h3>",
            "<dd>seen &amp; heard</dd>",
            "<dd>because &lt;b&gt;</dd>",
            "<pre class=\"command\">echo 'a' &gt; &quot;b&quot;</pre>",
            "undo: u&amp;",
            "permanent: l",
            "risk: r",
            "consequence: clock-syscall",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
