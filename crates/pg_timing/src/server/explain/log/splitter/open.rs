//! An entry whose end has not been seen, or text outside of entries.

use crate::server::explain::captured::announcement::is_log_line;
use crate::server::explain::captured::csv_record::{begins_within_field, is_quoted_after, message_at};
use crate::server::explain::captured::root::can_be_root;
use crate::server::explain::captured::transport::{Part, continued};
use crate::server::explain::log::entry::{Content, Damage, MAX_ENTRY_BYTES, Place};
use crate::server::explain::log::log_line_prefix::ProcessPlace;
use crate::server::explain::log::nesting::Session;
use crate::server::explain::log::server_line::{context, prefix};
use crate::server::explain::log::signs::{
    begins_pasted_plan, has_part_of_plan, has_rest_of_plan, has_sign_of_plan, sign_of_plan,
};

pub struct Open {
    pub place: Place,
    kind: Kind,
    text: String,
    /// why the entry cannot be read
    pub damage: Option<Damage>,
    /// what the server wrote before the message
    pub prefix: Box<str>,
    /// what follows `CONTEXT:  `, after the plan
    context: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// the next line shows whether tabs precede the lines
    Announced {
        ms: f64,
    },
    /// the lines of an announced plan, with tabs
    Tabbed {
        ms: f64,
    },
    Csv {
        is_quoted: bool,
    },
    /// an announced plan whose lines have lost their tabs, and what follows it
    WithoutTabs,
    /// text outside of entries
    Outside,
    /// text at the beginning of a file: all of it may be the rest of an entry
    Beginning,
    /// the same, and tabs show that it is the rest of an entry
    Rest,
}

impl Kind {
    /// Returns whether the server's text log has announced the plan.
    pub fn is_entry(self) -> bool {
        matches!(self, Kind::Announced { .. } | Kind::Tabbed { .. } | Kind::WithoutTabs)
    }

    /// Returns whether it is text that need not contain a plan.
    fn is_text(self) -> bool {
        matches!(self, Kind::Outside | Kind::Beginning | Kind::Rest)
    }
}

/// Whether a line belongs to an open entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Added {
    Yes,
    /// it is the entry's last line
    Last,
    /// it belongs to the next entry
    No,
    /// it belongs to the next entry, and the end of this one is missing
    Truncated,
}

/// Text outside of entries is passed on in pieces of this size, which begin at an empty line.
const PIECE_BYTES: usize = 256 << 10;

/// So much text without a sign of a plan ends a piece that is too long, even if no line is empty. A condition with many
/// constants is shorter.
const STEP_BYTES: usize = 1 << 20;

/// Shows that records begin without a tab, so that the lines with tabs before it begin none.
const RECORD: &str = "LOG:  a record";

/// A longer context is cut. A function that calls itself a thousand times has about 100 kB.
const MAX_CONTEXT_BYTES: usize = 1 << 20;

/// Most plans are shorter. Their texts need not grow.
const TYPICAL_BYTES: usize = 2 << 10;

impl Open {
    pub fn new(kind: Kind, line: &str, place: Place) -> Open {
        let text = if kind.is_entry() { String::with_capacity(TYPICAL_BYTES) } else { String::new() };
        let prefix = if kind.is_entry() { prefix(line).into() } else { Box::default() };
        let mut open = Open { place, kind, text, damage: None, prefix, context: None };
        match kind {
            Kind::Announced { .. } | Kind::Tabbed { .. } => {}
            Kind::Rest => open.push_rest(line),
            _ => open.push(line),
        }
        open
    }

    /// Adds a line, if it belongs to the entry.
    pub fn add(&mut self, text: &str, part: Part, process_place: &mut ProcessPlace) -> Added {
        if self.kind.is_entry() {
            if self.adds_context(text, part, process_place) {
                return Added::Yes;
            }
            if self.context.is_some() {
                return Added::No;
            }
        }
        match self.kind {
            Kind::Announced { ms } | Kind::Tabbed { ms } => self.add_to_announced(ms, text, part),
            Kind::Csv { .. } if begins_within_field(text) => Added::Truncated,
            Kind::Csv { is_quoted } => {
                self.push(text);
                let is_quoted = is_quoted_after(text, is_quoted);
                self.kind = Kind::Csv { is_quoted };
                if is_quoted { Added::Yes } else { Added::Last }
            }
            _ if is_log_line(text) || message_at(text).is_some() => {
                let can_begin = |line: &str| line.contains("plan:") || line.contains("Plan") || can_be_root(line);
                if self.kind == Kind::Rest && self.text.lines().filter_map(continued).any(can_begin) {
                    self.push(RECORD);
                }
                Added::No
            }
            Kind::Outside | Kind::WithoutTabs => {
                self.push(text);
                self.after_outside(text)
            }
            Kind::Beginning | Kind::Rest => {
                if continued(text).is_some() {
                    self.kind = Kind::Rest;
                }
                if matches!(part, Part::Next { .. }) && continued(text).is_none() {
                    self.join(text);
                    return Added::Yes;
                }
                self.push_rest(text);
                self.after_outside(text)
            }
        }
    }

    /// Adds a line to the context, if it belongs there. Returns whether it does.
    fn adds_context(&mut self, text: &str, part: Part, process_place: &mut ProcessPlace) -> bool {
        let next = continued(text);
        let is_next_part = matches!(part, Part::Next { .. });
        let Some(known) = &mut self.context else {
            // Most lines are of the plan, and a tab precedes them.
            if next.is_none() {
                let own = context(text).filter(|_| process_place.is_same(&self.prefix, text));
                self.context = own.map(|context| format!("{context}\n"));
            }
            return self.context.is_some();
        };
        // syslog's lines have a limited length.
        if next.is_none() && is_next_part {
            known.pop();
        }
        let is_next =
            next.is_some() || is_next_part || part == Part::Cut || self.kind == Kind::WithoutTabs && !is_log_line(text);
        if is_next && known.len() + text.len() < MAX_CONTEXT_BYTES {
            known.push_str(next.unwrap_or(text));
            known.push('\n');
        }
        is_next
    }

    fn add_to_announced(&mut self, ms: f64, text: &str, part: Part) -> Added {
        if let Some(rest) = continued(text) {
            self.kind = Kind::Tabbed { ms };
            self.push(rest);
            return Added::Yes;
        }
        // The entry's context and statement follow the plan.
        if is_log_line(text) || message_at(text).is_some() {
            return Added::No;
        }
        match part {
            // The context in another language. What continues a line begins with the space where the server has split it.
            Part::Next { .. } if !text.starts_with(' ') && text.contains(":  ") => return Added::No,
            // syslog's lines have a limited length.
            Part::Next { .. } => self.join(text),
            // The transport's prefix can be cut, too: then nothing shows whether the line continues the entry.
            Part::Cut => {}
            _ if self.kind == Kind::Announced { ms } || !has_sign_of_plan(self.text.as_bytes()) => {
                // The tabs are lost. From here on, the text can have other plans, too.
                let query = std::mem::replace(&mut self.text, format!("LOG:  duration: {ms} ms  plan:\n"));
                self.text.push_str(&query);
                self.kind = Kind::WithoutTabs;
                self.push(text);
            }
            _ => return Added::No,
        }
        Added::Yes
    }

    /// Returns whether the text ends with this line because it is long enough.
    fn after_outside(&self, line: &str) -> Added {
        let length = self.text.len();
        let before = length.saturating_sub(line.len() + 1);
        let is_step = before / STEP_BYTES != length / STEP_BYTES && length >= 2 * STEP_BYTES;
        let has_no_sign = || !has_sign_of_plan(&self.text.as_bytes()[length - STEP_BYTES..]);
        let may_end = length > PIECE_BYTES || self.damage.is_some();
        let is_end = may_end && line.trim().is_empty() || is_step && has_no_sign();
        if is_end { Added::Last } else { Added::Yes }
    }

    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() >= MAX_ENTRY_BYTES {
            self.too_long();
        }
        if self.damage != Some(Damage::TooLong) {
            self.text.push_str(text);
            self.text.push('\n');
        }
    }

    /// Text outside of entries need not contain a plan, so only its plan can be too long.
    fn too_long(&mut self) {
        if !self.kind.is_text() || self.text.lines().any(begins_pasted_plan) {
            self.damage = Some(Damage::TooLong);
        }
        self.text = String::new();
    }

    /// Adds a line of an entry whose beginning is missing. Its tabs can be escaped.
    fn push_rest(&mut self, text: &str) {
        match continued(text) {
            Some(rest) if !text.starts_with('\t') => self.push(&["\t", rest].concat()),
            _ => self.push(text),
        }
    }

    /// Adds the rest of a line to the line before it.
    fn join(&mut self, text: &str) {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        self.push(text);
    }

    /// Returns whether it has lines of a plan in a text log, and nothing shows whether more follow.
    pub fn may_go_on(&self) -> bool {
        matches!(self.kind, Kind::Announced { .. } | Kind::Tabbed { .. }) && self.context.is_none()
    }

    /// Returns whether it is text outside of entries.
    pub fn is_outside(&self) -> bool {
        self.kind == Kind::Outside
    }

    /// Returns whether a function or a trigger may have executed the plan. A CSV log is read later.
    pub fn may_be_nested(&self) -> bool {
        self.context.is_some() || matches!(self.kind, Kind::Csv { .. })
    }

    /// Returns the place and the content, if it can have a plan. `at_end` is the damage if the text ends before the entry does.
    pub fn end(self, session: Session, at_end: Option<Damage>) -> Option<(Place, Content)> {
        let Open { mut place, kind, text, damage, prefix, context } = self;
        let context = context.unwrap_or_default();
        let content = match kind {
            // Nothing shows that the lost parts were those of a plan.
            _ if damage == Some(Damage::LostParts) && kind.is_text() && !has_sign_of_plan(text.as_bytes()) => {
                return None;
            }
            _ if damage.is_some() => Content::Damaged(damage?),
            Kind::Outside | Kind::Beginning | Kind::Rest => {
                let sign = sign_of_plan(text.as_bytes());
                let is_rest = match kind {
                    Kind::Rest => has_rest_of_plan(&text),
                    Kind::Beginning => has_part_of_plan(&text),
                    _ => false,
                };
                let plan = sign.or(is_rest.then_some(0))?;
                place.line += text[..plan].matches('\n').count() as u64;
                match kind {
                    Kind::Rest => Content::Rest(text),
                    Kind::Beginning => Content::Beginning(text),
                    _ => Content::Pasted(text),
                }
            }
            Kind::WithoutTabs => Content::WithoutTabs { text, session, prefix, context },
            _ if at_end.is_some() => Content::Damaged(at_end?),
            Kind::Csv { is_quoted: true } => Content::Damaged(Damage::Truncated),
            Kind::Csv { is_quoted: false } => Content::Csv(text),
            Kind::Announced { ms } | Kind::Tabbed { ms } => Content::Announced { ms, text, session, prefix, context },
        };
        Some((place, content))
    }
}
