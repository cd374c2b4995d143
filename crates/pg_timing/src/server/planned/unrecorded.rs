//! Settings that keep statements out of pg_stat_statements although auto_explain times them.

use crate::error::Error;
use crate::server::settings::{Server, set_hint};

const TRACK: &str = "pg_stat_statements.track";
const TRACK_UTILITY: &str = "pg_stat_statements.track_utility";

/// Returns why timed statements can be missing from pg_stat_statements, and what to do about it.
pub fn unrecorded(server: &Server) -> Option<Error> {
    let of_role = server.other_settings.iter().find(|setting| setting.starts_with(TRACK));
    if let Some(setting) = of_role {
        return Some(Error::new(
            format!("sessions override {setting}, so pg_stat_statements may not record their statements"),
            "remove this setting from the role or database: ALTER ROLE ... RESET, or ALTER DATABASE ... RESET",
        ));
    }
    if server.is("auto_explain.log_nested_statements", "on") && !server.is(TRACK, "all") {
        return Some(Error::new(
            "auto_explain times statements within functions (log_nested_statements), and pg_stat_statements.track does not record \
             them",
            set_hint(TRACK, "'all'"),
        ));
    }
    if server.is(TRACK_UTILITY, "off") {
        return Some(Error::new(
            "auto_explain times statements within CALL, DO and cursors, which are not recorded with pg_stat_statements.track_utility = off",
            set_hint(TRACK_UTILITY, "on"),
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_hide_timed_statements_are_named() {
        let with = |settings: &[(&str, &str)], other: &str| {
            let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let other_settings =
                [other].iter().filter(|other| !other.is_empty()).map(|other| other.to_string()).collect();
            unrecorded(&Server { settings, other_settings, ..Server::default() }).map(|error| error.what)
        };
        let nested = ("auto_explain.log_nested_statements", "on");
        assert_eq!(with(&[(TRACK, "top"), (TRACK_UTILITY, "on")], "track_functions (role app)"), None);
        assert_eq!(with(&[nested, (TRACK, "all")], ""), None);
        for (settings, other, why) in [
            (vec![nested, (TRACK, "top")], "", "log_nested_statements"),
            (vec![(TRACK, "top"), (TRACK_UTILITY, "off")], "", "track_utility = off"),
            (vec![(TRACK, "top")], "pg_stat_statements.track (role joe)", "track (role joe)"),
        ] {
            assert!(with(&settings, other).is_some_and(|found| found.contains(why)), "{settings:?} {other}");
        }
    }
}
