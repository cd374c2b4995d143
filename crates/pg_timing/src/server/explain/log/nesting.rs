//! Which statement executed a plan: the client's, or a statement in a function, whose time is also in its caller's time.

use super::evidence::Evidence;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The server process that executed a plan. The plans of a session are in the log in the order in which they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    Known(u64),
    /// the log does not show the process, so this is the host or container that sent the line
    Unknown(u64),
}

impl Default for Session {
    fn default() -> Session {
        Session::Unknown(0)
    }
}

impl Session {
    /// Returns the session with this process or session identifier.
    pub fn of(host: impl Hash, process: &str) -> Session {
        Session::Known(hash(&(host, process)))
    }

    pub fn is_known(self) -> bool {
        matches!(self, Session::Known(_))
    }
}

/// Where a plan was executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nesting {
    pub session: Session,
    /// One hash per line of the entry's context, from the outermost function to the innermost. Each hash includes the lines
    /// before it. Empty for a statement of the client.
    pub callers: Box<[u64]>,
    /// the outermost function
    pub function: Option<Box<str>>,
    /// the context shows that the client's command has no plan
    pub is_in_command: bool,
    pub evidence: Evidence,
}

/// In the last line of a context: a DO block in PL/pgSQL, and in PL/Perl and PL/Python.
const DO_BLOCKS: [&str; 2] = ["inline_code_block", "anonymous code block"];

/// The beginnings of the last line of a context, if a trigger or an expression runs for a row that COPY or a subscription reads.
const ROWS: [&str; 2] = ["COPY ", "processing remote data"];

/// With log_parameter_max_length_on_error, the context of the client's statement has its parameters.
const PARAMETERS: [&str; 3] = ["unnamed portal with parameters: ", "portal \"", "extended query "];

impl Nesting {
    /// Reads the context of an entry.
    pub fn new(session: Session, context: &str, evidence: Evidence) -> Nesting {
        let is_caller = |line: &&str| !PARAMETERS.iter().any(|start| line.starts_with(start));
        let lines = context.lines().map(str::trim).filter(|line| !line.is_empty()).take_while(is_caller);
        let lines: Vec<&str> = lines.collect();
        let is_in_command = lines.last().is_some_and(|line| {
            DO_BLOCKS.iter().any(|block| line.contains(block)) || ROWS.iter().any(|start| line.starts_with(start))
        });
        let function = lines.last().and_then(|line| function(line)).map(Box::from);
        let mut outer = 0;
        let callers = lines.iter().rev().map(|line| {
            outer = hash(&(outer, line));
            outer
        });
        Nesting { session, callers: callers.collect(), function, is_in_command, evidence }
    }

    /// Returns whether another statement executed this plan.
    pub fn is_nested(&self) -> bool {
        !self.callers.is_empty()
    }

    /// Returns whether `caller` can have executed this plan: the context then ends with the caller's context.
    pub fn is_within(&self, caller: &Nesting) -> bool {
        match caller.callers.last() {
            None => self.is_nested() && !self.is_in_command,
            Some(last) => {
                let length = caller.callers.len();
                self.callers.len() > length && self.callers[length - 1] == *last
            }
        }
    }
}

/// Returns the name in a line like `PL/pgSQL function public.f(integer) line 3 at PERFORM` or `SQL function "f" statement 1`.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("function ")?;
    let name = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        Some((name, after)) if !after.starts_with(['.', '(']) => name,
        _ => {
            let (name, _) = rest.split_once('(')?;
            let name = name.rsplit('.').next().unwrap_or(name);
            name.trim_matches('"')
        }
    };
    Some(name).filter(|name| !name.is_empty())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nesting(context: &str) -> Nesting {
        Nesting::new(Session::default(), context, Evidence::default())
    }

    const INNER: &str =
        "SQL function \"g\" statement 1\nPL/pgSQL assignment \"b := g()\"\nPL/pgSQL function f() line 5\n";

    #[test]
    fn the_context_of_a_plan_ends_with_that_of_its_caller() {
        let inner = nesting(INNER);
        let caller = nesting("PL/pgSQL assignment \"b := g()\"\nPL/pgSQL function f() line 5");
        let client = nesting("");
        assert!(inner.is_within(&caller) && inner.is_within(&client) && caller.is_within(&client));
        for (plan, other) in [(&caller, &inner), (&caller, &caller), (&client, &client), (&client, &caller)] {
            assert!(!plan.is_within(other), "{plan:?} {other:?}");
        }
        assert!(!inner.is_within(&nesting("PL/pgSQL function f() line 6")));
        assert_eq!([&inner, &caller, &client].map(Nesting::is_nested), [true, true, false]);
    }

    #[test]
    fn commands_without_a_plan_contain_no_plan() {
        let client = nesting("");
        let block = "SQL statement \"select f()\"\nPL/pgSQL function inline_code_block line 1 at PERFORM";
        let in_block = nesting(block);
        assert!(in_block.is_nested() && !in_block.is_within(&client));
        assert!(nesting(&format!("{INNER}{block}")).is_within(&in_block));
        for context in
            ["PL/pgSQL function t() line 1 at PERFORM\nCOPY c, line 1: \"1\"", "PL/Perl anonymous code block"]
        {
            assert!(!nesting(context).is_within(&client), "{context}");
        }
    }

    #[test]
    fn the_outermost_function_is_named() {
        for (line, name) in [
            ("PL/pgSQL function f(integer) line 3 at PERFORM", Some("f")),
            ("SQL function \"g.h\" statement 1", Some("g.h")),
            ("PL/pgSQL function public.\"F\"(text) line 3", Some("F")),
            ("PL/pgSQL function \"A b\".f(text) line 3", Some("f")),
            ("PL/Python function \"p\"", Some("p")),
            ("SQL statement \"SELECT 1 FROM ONLY x\"", None),
            ("PL/pgSQL function ", None),
            ("function \"\"", None),
        ] {
            assert_eq!(nesting(&format!("SQL statement \"x\"\n{line}")).function.as_deref(), name, "{line}");
        }
    }

    #[test]
    fn parameters_are_no_callers() {
        assert!(!nesting("unnamed portal with parameters: $1 = '7'").is_nested());
        let parameters = format!("{INNER}portal \"p\" with parameters: $1 = 'a\nb'");
        assert_eq!(nesting(&parameters), nesting(INNER));
    }
}
