//! Findings: the results of checks.

use serde::{Deserialize, Serialize};

/// The severity of a finding. The order is that of the exit status, except that `Unknown` is the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Unknown,
    Ok,
    Warning,
    Critical,
}

impl Severity {
    /// Returns the exit status, as monitoring plugins define it.
    pub fn exit_status(self) -> u8 {
        [3, 0, 1, 2][self as usize]
    }

    /// Returns whether it is a warning or critical.
    pub fn is_alarm(self) -> bool {
        self >= Severity::Warning
    }

    /// Returns the severity in capital letters.
    pub fn word(self) -> &'static str {
        ["UNKNOWN", "OK", "WARNING", "CRITICAL"][self as usize]
    }
}

/// The result of one check. It is decided and worded in one place (`check/`), and all outputs show the same text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// stable id, see docs/findings.md
    pub id: String,
    pub severity: Severity,
    /// one sentence
    pub summary: String,
    /// figures that prove it
    pub evidence: Vec<String>,
    /// why it matters
    pub why: String,
    /// what to do, the best first
    pub fix: Vec<Fix>,
}

/// A way to fix a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fix {
    /// what it does
    pub what: String,
    /// command to type
    pub command: Option<String>,
    /// how to undo it
    pub undo: Option<String>,
    /// how to keep it after a restart
    pub lasting: Option<String>,
    /// what can go wrong
    pub risk: Option<String>,
}

/// The worst finding, in one sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    pub severity: Severity,
    pub summary: String,
}

impl Finding {
    pub fn new(id: &str, severity: Severity, summary: impl Into<String>) -> Finding {
        Finding { id: id.into(), severity, summary: summary.into(), ..Finding::default() }
    }

    pub fn evidence(self, line: impl Into<String>) -> Finding {
        self.evidence_lines([line.into()])
    }

    /// Adds several lines of evidence.
    pub fn evidence_lines(mut self, lines: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(lines);
        self
    }

    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    pub fn fix(self, fix: Fix) -> Finding {
        self.fixes([fix])
    }

    /// Adds several fixes.
    pub fn fixes(mut self, fixes: impl IntoIterator<Item = Fix>) -> Finding {
        self.fix.extend(fixes);
        self
    }
}

impl Fix {
    pub fn new(what: impl Into<String>) -> Fix {
        Fix { what: what.into(), ..Fix::default() }
    }

    pub fn command(mut self, line: impl Into<String>) -> Fix {
        self.command = Some(line.into());
        self
    }

    pub fn undo(mut self, line: impl Into<String>) -> Fix {
        self.undo = Some(line.into());
        self
    }

    pub fn lasting(mut self, how: impl Into<String>) -> Fix {
        self.lasting = Some(how.into());
        self
    }

    pub fn risk(mut self, risk: impl Into<String>) -> Fix {
        self.risk = Some(risk.into());
        self
    }
}
