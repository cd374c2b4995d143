//! Whether code of other users can run while this user plans a statement.
//!
//! The planner evaluates functions that are IMMUTABLE or STABLE, and the functions of operators, if their arguments are
//! known. It does so with the rights of the session's user. A statement in pg_stat_statements comes from any user, and so do
//! the functions in it, or in a view that it reads. A superuser has no safe way to give up these rights for a while: SET ROLE
//! can be undone by such a function.

use crate::error::Error;
use crate::server::session::Session;

/// Counts functions that the planner can call and that belong neither to a superuser nor to this user. The count is 0 if
/// this user has no rights worth stealing: no superuser, and no access to the server's files and programs.
const FOREIGN_FUNCTIONS: &str = "SELECT pg_catalog.count(*)::text
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
    WHERE NOT o.rolsuper AND o.rolname <> session_user
        AND (p.provolatile <> 'v' OR EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oprcode = p.oid))
        AND EXISTS (SELECT FROM pg_catalog.pg_roles r
            WHERE (r.rolsuper OR r.rolcreaterole OR r.rolname IN ('pg_execute_server_program', 'pg_read_server_files',
                'pg_write_server_files')) AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER'))";

/// Returns whether only trusted code can run while statements are planned.
pub fn plans_only_trusted_code(session: &mut Session) -> Result<bool, Error> {
    Ok(session.query(FOREIGN_FUNCTIONS)?.value() == Some("0"))
}
