//! Which statement executed a plan: the client's, or a statement in a function, whose time is also in its caller's time.

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
    /// the client's command has no plan, like DO and CALL
    pub is_in_command: bool,
}

/// Commands of a client that have no plan, but can execute functions or triggers. Deferred triggers run at COMMIT.
const COMMANDS: [&str; 3] = ["DO", "CALL", "COMMIT"];

/// In the last line of a context: a DO block in PL/pgSQL, and in PL/Perl and PL/Python.
const DO_BLOCKS: [&str; 2] = ["inline_code_block", "anonymous code block"];

/// With log_parameter_max_length_on_error, the context of the client's statement has its parameters.
const PARAMETERS: [&str; 3] = ["unnamed portal with parameters: ", "portal \"", "extended query "];

impl Nesting {
    /// Reads the context of an entry, and the client's command if the log has it.
    pub fn new(session: Session, context: &str, command: Option<&str>) -> Nesting {
        let is_caller = |line: &&str| !PARAMETERS.iter().any(|start| line.starts_with(start));
        let lines = context.lines().map(str::trim).filter(|line| !line.is_empty()).take_while(is_caller);
        let lines: Vec<&str> = lines.collect();
        let is_in_block = lines.last().is_some_and(|line| DO_BLOCKS.iter().any(|block| line.contains(block)));
        let is_in_command = is_in_block || command.is_some_and(|command| COMMANDS.contains(&command));
        let mut outer = 0;
        let callers = lines.iter().rev().map(|line| {
            outer = hash(&(outer, line));
            outer
        });
        Nesting { session, callers: callers.collect(), is_in_command }
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

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nesting(context: &str) -> Nesting {
        Nesting::new(Session::default(), context, None)
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
        for (command, is_within) in [("CALL", false), ("SELECT", true)] {
            let plan = Nesting::new(Session::default(), INNER, Some(command));
            assert_eq!(plan.is_within(&client), is_within, "{command}");
        }
    }

    #[test]
    fn parameters_are_no_callers() {
        assert!(!nesting("unnamed portal with parameters: $1 = '7'").is_nested());
        let parameters = format!("{INNER}portal \"p\" with parameters: $1 = 'a\nb'");
        assert_eq!(nesting(&parameters), nesting(INNER));
    }
}
