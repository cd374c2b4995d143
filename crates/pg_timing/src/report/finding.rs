//! One thing worth telling.

use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is. The order is that of the exit status, but for `Unknown`, which never outweighs
/// what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Unknown,
    Ok,
    Warning,
    Critical,
}

impl Severity {
    /// The exit status, which is also that of a monitoring plugin.
    pub fn exit_status(self) -> u8 {
        match self {
            Severity::Ok => 0,
            Severity::Warning => 1,
            Severity::Critical => 2,
            Severity::Unknown => 3,
        }
    }

    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Ok => "OK",
            Severity::Warning => "WARNING",
            Severity::Critical => "CRITICAL",
            Severity::Unknown => "UNKNOWN",
        }
    }
}

/// What one check found. Decided in one place (`check/`), worded once, rendered everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// stable: see docs/reading.md
    pub id: &'static str,
    pub severity: Severity,
    /// one sentence
    pub summary: String,
    /// the figures it rests on
    pub evidence: Vec<String>,
    /// why it matters to whoever reads plans
    pub why: String,
    /// what to do, best first
    pub fix: Vec<Fix>,
}

/// One thing to do about a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Fix {
    /// what it does
    pub what: String,
    /// the line to type, if it is one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// the way back
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// how to make it last beyond a reboot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// what can go wrong
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
}

/// The worst of what is known, in one sentence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    pub severity: Severity,
    pub summary: String,
}

impl Finding {
    /// A finding that is fine.
    pub fn ok(id: &'static str, summary: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Ok, summary)
    }

    /// A finding that cannot be decided, and why.
    pub fn unknown(id: &'static str, why: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Unknown, why)
    }

    pub fn new(id: &'static str, severity: Severity, summary: impl Into<String>) -> Finding {
        Finding { id, severity, summary: summary.into(), evidence: Vec::new(), why: String::new(), fix: Vec::new() }
    }

    pub fn evidence(mut self, line: impl Into<String>) -> Finding {
        self.evidence.push(line.into());
        self
    }

    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    pub fn fix(mut self, fix: Fix) -> Finding {
        self.fix.push(fix);
        self
    }
}

impl Finding {
    /// Adds what there is to do, if anything.
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
