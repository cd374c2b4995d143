//! `pg_fast_timing.method`: a cheaper method to time plan nodes, also for auto_explain.

use super::facts::Facts;
use crate::report::{Action, EventsAre, SettingAdvice};
use crate::server::settings::{FAST_TIMING_METHOD as NAME, Server};

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let server = &facts.server;
    let value = server.setting(NAME);
    let used = server.times_plans();
    let (advice, summary, line, undo) = match (value, used) {
        (Some("off"), true) => (
            Action::TurnOn,
            "makes auto_explain's timing cheap",
            Some(format!("{NAME} = 'auto'")),
            Some(format!("{NAME} = 'off'")),
        ),
        (Some("off"), false) => {
            (Action::None, "the server itself times plan nodes; auto_explain does not time any", None, None)
        }
        (Some("tsc"), _) => (Action::None, "the CPU's counter times each call; the method auto costs less", None, None),
        (Some(_), _) => (Action::Keep, "it times plan nodes at low cost", None, None),
        (None, true) => (
            Action::TurnOn,
            // No line to paste: it would replace the present value, and without the library no session could start.
            "makes auto_explain's timing cheap: install it, try LOAD 'pg_fast_timing' in a session, then append it to session_preload_libraries",
            None,
            None,
        ),
        (None, false) => {
            (Action::None, "useful only if auto_explain times plans, which it does not do on this server", None, None)
        }
    };
    Some(SettingAdvice {
        name: NAME.into(),
        value: value.unwrap_or("not loaded").into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: 0.0,
        core_share: None,
        limit_per_s: None,
        advice,
        summary: summary.into(),
        hint: None,
        why: why(server),
        line,
        undo,
        extrapolated: false,
    })
}

fn why(server: &Server) -> String {
    let how = match server.setting(NAME) {
        Some("tsc") => "it reads the CPU's counter twice per call",
        Some("sampling") => {
            "it reads no clock per call, and estimates times with a clock that ticks 1000 times per second"
        }
        _ => "it times all calls of a node only while that is cheap",
    };
    format!("it times plan nodes instead of the server: {how}. pg_fast_timing_info() shows its overhead")
}
