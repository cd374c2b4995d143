//! `pg_fast_timing.method`: another way to time plan nodes, which makes auto_explain's timing cheap.

use super::auto_explain;
use super::facts::Facts;
use crate::report::{Action, EventsAre, SettingAdvice};
use crate::server::settings::Server;

const NAME: &str = "pg_fast_timing.method";

pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let value = server.setting(NAME);
    let used = auto_explain::is_on(server);
    let (advice, summary, line, undo) = match (value, used) {
        (Some("off"), true) => (
            Action::TurnOn,
            "makes auto_explain's timing cheap",
            Some(format!("{NAME} = 'auto'")),
            Some(format!("{NAME} = 'off'")),
        ),
        (Some("off"), false) => {
            (Action::None, "plan nodes are timed by the server; auto_explain times none here", None, None)
        }
        (Some("tsc"), _) => {
            (Action::None, "each call is timed by the CPU's counter; the method auto costs less", None, None)
        }
        (Some(_), _) => (Action::Keep, "plan nodes are timed by it, for little", None, None),
        (None, true) => (
            Action::TurnOn,
            // A line to paste would take out what is there, and lock everybody out where it is not installed.
            "would make auto_explain's timing cheap: install it, try LOAD 'pg_fast_timing' in a session, and then add it to what session_preload_libraries has",
            None,
            None,
        ),
        (None, false) => (Action::None, "of use where auto_explain times plans, which it does not here", None, None),
    };
    Some(SettingAdvice {
        name: NAME.into(),
        value: value.unwrap_or("not loaded").into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: 0.0,
        core_share: None,
        advice,
        summary: summary.into(),
        why: why(server),
        line,
        undo,
        extrapolated: false,
    })
}

fn why(server: &Server) -> String {
    let how = match server.setting(NAME) {
        Some("tsc") => "it reads the CPU's counter, twice a call",
        _ => "it times a node's calls exactly only as long as that takes little of the time",
    };
    format!("it times plan nodes in place of the server: {how}. What it took is told by pg_fast_timing_info()")
}
