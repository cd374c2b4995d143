//! Statements that were not planned, and why.

use crate::report::SkippedStatements;

/// Why a statement was not planned.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// the statement has no plan nodes, like COMMIT
    NoPlanNodes,
    /// utility statements that can run a plan, like COPY
    Utility,
    Hidden,
    NoText,
    OtherDatabase,
    Incomplete,
    Several,
    NotTrusted,
    /// the server's message
    Refused(String),
    /// why the server's plan cannot be used
    Plan(&'static str),
    TimeOver,
    NotSelected,
}

impl Reason {
    /// Returns the text for the screen, without examples. Equal texts are counted together.
    fn text(&self) -> &'static str {
        match self {
            Reason::NoPlanNodes => "utility statements without plan nodes",
            Reason::Utility => "utility statements that pg_timing does not plan",
            Reason::Hidden => "text hidden: needs the role pg_read_all_stats",
            Reason::NoText => "no text in pg_stat_statements",
            Reason::OtherDatabase => "in other databases: connect to each",
            Reason::Incomplete => "the text is truncated",
            Reason::Several => "the text is not exactly one statement",
            Reason::NotTrusted => {
                "of other roles, while ordinary roles have objects in this database: their code could run with your \
                 rights. Connect as the role that executes the statements, with pg_read_all_stats"
            }
            Reason::Refused(_) => "the server refused to plan them",
            Reason::Plan(why) => why,
            Reason::TimeOver => "no time was left to plan them",
            Reason::NotSelected => "little execution time: not planned",
        }
    }

    /// Returns whether these statements have no timed nodes.
    pub fn has_no_nodes(&self) -> bool {
        *self == Reason::NoPlanNodes
    }
}

/// Counts of skipped statements by reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skipped(Vec<SkippedStatements>);

impl Skipped {
    /// Adds a statement with its share of the execution time.
    pub fn add(&mut self, reason: &Reason, time_share: f64) {
        let why = reason.text();
        let example = match reason {
            Reason::Refused(message) => Some(message.clone()),
            _ => None,
        };
        match self.0.iter_mut().find(|entry| entry.why == why) {
            Some(entry) => {
                entry.statements += 1;
                entry.time_share += time_share;
            }
            None => self.0.push(SkippedStatements { why: why.into(), statements: 1, time_share, example }),
        }
    }

    /// Returns the reasons, those with the longest execution time first.
    pub fn into_list(mut self) -> Vec<SkippedStatements> {
        self.0.sort_by(|a, b| b.time_share.total_cmp(&a.time_share));
        self.0
    }
}
