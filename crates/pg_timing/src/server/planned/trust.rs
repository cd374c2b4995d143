//! Whether code of other users can run while this user plans a statement.
//!
//! The planner evaluates IMMUTABLE and STABLE functions with the rights of the session's user. Some of them run any query, for
//! example table_to_xml, and then VOLATILE functions run, too. A statement in pg_stat_statements comes from any role, and so
//! do the views, tables and functions in it. A superuser has no safe way to give up these rights for a while: SET ROLE can be
//! undone by such code. So a list of dangerous functions is no protection, and the role that wrote a statement decides.
//!
//! A session plans the statements of its own role: that role has executed them before, with the same rights. It plans the
//! statements of other roles only if no role could have hidden code in this database: each object belongs to a superuser or
//! to this role, and no other role may create objects. Then no role can begin to do so while statements are planned.

use crate::error::Error;
use crate::server::session::Session;

/// Returns the session's role, and the number of other roles that own an object in this database or may create one.
/// Superusers do not count: they have all rights. Predefined roles do not count: their members do.
const ROLES: &str = "SELECT
        (SELECT oid::text FROM pg_catalog.pg_roles WHERE rolname = session_user),
        (SELECT pg_catalog.count(*)::text FROM pg_catalog.pg_roles r
            WHERE NOT r.rolsuper AND r.rolname <> session_user AND r.rolname !~ '^pg_'
                AND (EXISTS (SELECT FROM pg_catalog.pg_shdepend d
                        WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.refobjid = r.oid
                            AND d.deptype = 'o' AND d.dbid = (SELECT oid FROM pg_catalog.pg_database
                                WHERE datname = pg_catalog.current_database()))
                    OR pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CREATE')
                    OR EXISTS (SELECT FROM pg_catalog.pg_namespace n
                        WHERE n.nspname !~ '^pg_(temp|toast)'
                            AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'))))";

/// Whose statements are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// the session's role
    own: Option<u32>,
    /// no other role can have hidden code
    all: bool,
}

impl Trust {
    pub fn of(session: &mut Session) -> Result<Trust, Error> {
        let rows = session.query(ROLES)?;
        let column = |number: usize| rows.rows.first().and_then(|row| row.get(number)?.as_deref());
        Ok(Trust { own: column(0).and_then(|oid| oid.parse().ok()), all: column(1) == Some("0") })
    }

    /// Returns whether a statement that this role has executed is planned.
    pub fn includes(self, user: u32) -> bool {
        self.all || self.own == Some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_other_roles_need_a_database_without_their_objects() {
        let own = Trust { own: Some(10), all: false };
        assert!(own.includes(10) && !own.includes(11));
        assert!(Trust { all: true, ..own }.includes(11));
        assert!(!Trust { own: None, all: false }.includes(10));
    }
}
