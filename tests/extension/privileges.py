"""Tests of privileges: any user can switch the extension off, and only privileged users can choose a method."""

from servers import Failed, Server

SETTINGS = {"jit": False, "autovacuum": False}


def refused(server, script, message, *options):
    """Yields a complaint unless the script fails with this message."""
    try:
        server.psql(script, *options)
        yield f"not refused: {script}"
    except Failed as failed:
        if message not in str(failed):
            yield f"{script}: {failed}"


def after_loading(server):
    """Any role can switch the extension off, and only privileged roles can choose another method."""
    load, show = "LOAD 'pg_fast_timing';", "SHOW pg_fast_timing.method"
    server.psql("CREATE ROLE owner LOGIN; CREATE DATABASE owned OWNER owner")
    # A superuser loads the library, and another role changes the setting.
    yield from refused(server, f"{load} SET ROLE dba; SET pg_fast_timing.method = tsc", "permission denied")
    yield from refused(server, f"{load} SET ROLE dba; SET LOCAL pg_fast_timing.method = sampling", "permission denied")
    yield from refused(server, f"{load} SET ROLE dba; SET pg_fast_timing.method = off; SET pg_fast_timing.method = auto", "permission denied")
    yield from refused(server, f"{load} SET ROLE dba; ALTER ROLE dba SET pg_fast_timing.method = tsc", "permission denied")
    yield from refused(server, f"{load} SET ROLE owner; ALTER DATABASE owned SET pg_fast_timing.method = tsc", "permission denied")
    yield from refused(server, f"{load} SET ROLE dba; CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql SET pg_fast_timing.method = tsc AS 'SELECT 1'", "permission denied")
    said = server.psql(f"{load} SET ROLE dba; SET pg_fast_timing.method = off; {show}; RESET pg_fast_timing.method; {show}; ALTER ROLE dba SET pg_fast_timing.method = off")
    if said.split() != ["off", "auto"]:
        yield f"an ordinary role sets off, and resets it: {said}"
    server.psql(f"{load} GRANT SET ON PARAMETER pg_fast_timing.method TO dba; SET ROLE dba; SET pg_fast_timing.method = tsc")
    yield from refused(server, f"{load} SET pg_fast_timing.method = never", "Available values")
    yield from refused(server, f"{load} SET ROLE dba; SET pg_fast_timing.count_calls = top", "permission denied")


# A call of this function loads the library with the rights of a superuser.
LOADS = """CREATE EXTENSION pg_fast_timing; CREATE ROLE dba LOGIN; CREATE ROLE joe LOGIN;
CREATE FUNCTION loads() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT method FROM pg_fast_timing_info()';"""
OWN = "SELECT method FROM pg_fast_timing_info()"


def connection(user, value):
    """Returns psql's options for a user who sends a value of the method with the connection."""
    return f"-U{user}", f"-ddbname=postgres options='-c pg_fast_timing.method={value}'"


def before_loading(server):
    """The server accepts any value while the library is not loaded. It applies only if the user may choose it."""
    joe, denied = "-Ujoe", 'permission denied to set parameter "pg_fast_timing.{}"'
    for name, script, options, expected, warning in (
        ("SET", f"SET pg_fast_timing.method = tsc; {OWN}", [joe], "auto", denied.format("method")),
        ("SET LOCAL", f"BEGIN; SET LOCAL pg_fast_timing.method = tsc; {OWN}; COMMIT", [joe], "auto", denied.format("method")),
        ("a function with the rights of a superuser", "SET pg_fast_timing.method = tsc; SELECT loads()", [joe], "auto", denied.format("method")),
        ("the connection", OWN, connection("joe", "tsc"), "auto", denied.format("method")),
        ("off", f"SET pg_fast_timing.method = off; {OWN}", [joe], "off", ""),
        ("an unknown value", f"SET pg_fast_timing.method = never; {OWN}", [joe], "auto", "Available values"),
        ("count_calls", f"SET pg_fast_timing.count_calls = top; {OWN}; SHOW pg_fast_timing.count_calls", [joe], "auto\noff", denied.format("count_calls")),
        ("a superuser", f"SET pg_fast_timing.method = tsc; {OWN}", [], "tsc", ""),
        ("a superuser, with the connection", OWN, connection("postgres", "tsc"), "tsc", ""),
    ):
        said = server.psql(script, *options, notices=True)
        if not said.strip().endswith(expected) or (said.count("WARNING:"), warning in said) != (bool(warning), True):
            yield f"before the library is loaded: {name}: {said}"
    for statement in ("ALTER ROLE joe SET pg_fast_timing.method = tsc", "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql SET pg_fast_timing.method = tsc AS 'SELECT 1'"):
        yield from refused(server, statement, "permission denied", joe)


def preloaded(installation):
    """With session_preload_libraries, the value of the connection is there first."""
    with Server(installation, SETTINGS | {"session_preload_libraries": "pg_fast_timing"}) as server:
        server.psql("CREATE ROLE joe LOGIN")
        for user, value, expected in (("joe", "tsc", "auto"), ("joe", "off", "off"), ("postgres", "tsc", "tsc")):
            said = server.psql("SHOW pg_fast_timing.method", *connection(user, value), notices=True)
            if said.strip().splitlines()[-1] != expected or ("WARNING:" in said) != (value != expected):
                yield f"session_preload_libraries: {user} connects with {value}: {said}"


def check(installation):
    """Yields complaints."""
    with Server(installation, SETTINGS) as server:
        server.psql(LOADS)
        yield from before_loading(server)
        yield from after_loading(server)
    yield from preloaded(installation)
