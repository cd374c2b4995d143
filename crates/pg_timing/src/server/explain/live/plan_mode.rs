//! The kind of plan that the server uses for a prepared statement with parameters.

/// The server's choice for a prepared statement with parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMode {
    Custom,
    Generic,
}

impl PlanMode {
    /// Returns the name in a report.
    pub fn name(self) -> &'static str {
        match self {
            PlanMode::Custom => "custom",
            PlanMode::Generic => "generic",
        }
    }
}
