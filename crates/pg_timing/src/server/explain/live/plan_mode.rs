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

    /// Returns the SQL that keeps the choice until the end of the transaction.
    pub fn set_local(self) -> String {
        format!("SET LOCAL plan_cache_mode = force_{}_plan", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_the_server_is_kept() {
        assert_eq!(PlanMode::Generic.set_local(), "SET LOCAL plan_cache_mode = force_generic_plan");
    }
}
