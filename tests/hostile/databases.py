"""Databases of the hostile role mallory, and a test that her traps work."""

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TRAPS = (Path(__file__).parent / "traps.sql").read_text()
TEMPLATE = "evil"


@dataclass(frozen=True)
class Database:
    """A copy of the template. `setup` is a script of its owner; {name} is the database, {temp} the schema of a session's temporary
    objects."""

    name: str
    setup: str
    # pg_timing can give its answers. Otherwise one clear error is enough.
    works: bool = True
    # The owner of the database owns the schema of the extensions, too.
    owns_extensions: bool = False
    # A script of the superuser, which runs before.
    given: str = ""


FORMATS = "bytea_output = escape;DateStyle = German;IntervalStyle = sql_standard;TimeZone = 'Asia/Tokyo';extra_float_digits = -15;client_encoding = latin1"
PLANS = "default_transaction_deferrable = on;plan_cache_mode = force_generic_plan;jit_above_cost = 0;enable_seqscan = off;max_parallel_workers_per_gather = 8"
NAMED = 'search_path = "$user", public, pg_catalog;'
PARSER = "quote_all_identifiers = on;transform_null_equals = on;array_nulls = off;xmloption = content"
TIMEOUTS = "statement_timeout = '1ms';lock_timeout = '1ms';default_transaction_isolation = serializable;restrict_nonsystem_relation_kind = 'view,foreign-table'"


def settings(texts, whose="DATABASE {name}"):
    return ";".join(f"ALTER {whose} SET {text}" for text in texts.split(";"))


OWNED_VIEW = """DO $$BEGIN EXECUTE 'CREATE OR REPLACE RULE "_RETURN" AS ON SELECT TO stats.pg_stat_statements DO INSTEAD '
    || rtrim(pg_get_viewdef('stats.pg_stat_statements'::regclass), ';') || ' WHERE h.early(''owned view'')'; END$$"""
# The owner of a database may set all of this, for everybody who connects. The traps are in the schema e, which some databases rename.
DATABASES = [
    # Without settings. The test of the traps uses it, too.
    Database("usual", ""),
    # Traps come before the server's objects.
    Database("first", settings(f"search_path = e, pg_catalog;{FORMATS};default_transaction_read_only = on")),
    # Traps fit the arguments better than the server's objects.
    Database("better", settings(f"search_path = e;{PLANS}", "ROLE ALL IN DATABASE {name}")),
    # The schema has the name of the superuser.
    Database("named", f"ALTER SCHEMA e RENAME TO postgres;{settings(NAMED + PARSER)}"),
    # The extensions are in `old`, and traps are where the extensions were.
    Database("moved", f"ALTER SCHEMA public RENAME TO old;ALTER SCHEMA e RENAME TO public;{settings('search_path = public, pg_catalog')}", owns_extensions=True),
    # The owner was a superuser when the extension was created, and still owns its view.
    Database("owned", OWNED_VIEW, given="GRANT USAGE ON SCHEMA stats TO mallory; ALTER VIEW stats.pg_stat_statements OWNER TO mallory"),
    # Temporary objects of another session.
    Database("temporary", settings("search_path = {temp}, pg_catalog")),
    # The session has the owner's rights until it switches back. The owner may not switch auto_explain off, so explain refuses.
    Database("switched", settings("search_path = e, pg_catalog;role = mallory"), works=False),
    # Statements of the user reach their limits.
    Database("limited", settings(f"search_path = e, pg_catalog;{TIMEOUTS}"), works=False),
]
QUICK = [database for database in DATABASES if database.name in ("usual", "first", "owned", "switched")]
# The schemas of the extensions change their names all the time. A name can be gone when a command uses it.
RACED = Database("raced", "", works=False, owns_extensions=True)

# Only a superuser can create these extensions. Since PostgreSQL 15, the owner of the database owns the schema public.
EXTENSIONS = """CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_fast_timing; CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;
GRANT USAGE ON SCHEMA dblink TO public"""
MOVE_EXTENSIONS = """CREATE SCHEMA stats; ALTER EXTENSION pg_stat_statements SET SCHEMA stats;
ALTER EXTENSION pg_fast_timing SET SCHEMA stats"""
AS_SUPERUSER = """CREATE FUNCTION h.as_superuser(name) RETURNS text LANGUAGE sql AS
$$SELECT dblink.dblink_exec('host={host} dbname=postgres user=' || $1 || ' options=-clock_timeout=1s', 'ALTER ROLE mallory SUPERUSER')$$"""
# An event trigger belongs to a superuser, who can let it call a function of somebody else.
EVENT_TRIGGER = "CREATE EVENT TRIGGER trap ON ddl_command_start EXECUTE FUNCTION h.on_ddl()"
# The superuser ran this statement before the owner replaced the view. pg_stat_statements has recorded it, and it took more time than others.
RECORDED = "SELECT n FROM data.report"
REPLACED = "CREATE OR REPLACE VIEW data.report AS SELECT count(*) AS n FROM data.plain WHERE h.early('view')"

# Scripts of a superuser that spring traps, each with the reports of these traps.
SPRUNG = [
    ("SET search_path = e, pg_catalog; SELECT set_config('a.b', 'c', true)", ["function set_config("]),
    ("SET search_path = e, pg_catalog; SELECT concat_ws(', ', 'a', 'b')", ["function concat_ws("]),
    ("SET search_path = e, pg_catalog; SELECT count(*) FROM data.plain", ["aggregate count()"]),
    ("SET search_path = e, pg_catalog; SELECT count(i) FROM data.plain", ["aggregate count(int4)"]),
    ("SET search_path = e, pg_catalog; SELECT pg_catalog.concat('a') = 'b'", ["operator =(text,text)"]),
    ("SET search_path = e; SELECT pg_catalog.current_database() || 1::pg_catalog.oid", ["operator ||(name,oid)"]),
    ("SET search_path = e, pg_catalog; SELECT 1::text", ["type text"]),
    ("SET search_path = e, pg_catalog; TABLE pg_settings", ["relation pg_settings"]),
    ("TABLE e.pg_stat_statements", ["relation pg_stat_statements"]),
    ("TABLE e.pg_stat_statements_info", ["relation pg_stat_statements_info"]),
    ("SELECT * FROM e.pg_fast_timing_info()", ["function pg_fast_timing_info("]),
    ("SELECT pg_catalog.quote_ident('1'::h.lure)", ["cast to text"]),
    ("INSERT INTO data.guarded VALUES (DEFAULT)", ["default", "check", "generated column", "index", "predicate", "trigger"]),
    ("SET ROLE mallory; BEGIN READ ONLY; TABLE data.guarded", ["policy"]),
    ("TABLE data.report", ["view"]),
    ("CREATE TABLE h.made ()", ["event trigger"]),
]
# RIGHT also undoes it.
IS_SUPERUSER = "SELECT 'superuser' FROM pg_roles WHERE rolname = 'mallory' AND rolsuper"
RIGHT = f"ROLLBACK; RESET ROLE; SET search_path = pg_catalog; {IS_SUPERUSER}; ALTER ROLE mallory NOSUPERUSER;"
# In each database whose settings name the schema of the traps, this springs one.
WITHOUT_PATH = ("usual", "owned", "raced")
IN_PATH = ("SET default_transaction_read_only = off; SELECT pg_catalog.concat('a') = 'b', pg_catalog.current_database() || 1::pg_catalog.oid", ["operator"])


@contextmanager
def create(server, databases):
    """Creates the databases. Temporary objects exist until the end of the block."""
    server.psql(f"CREATE ROLE mallory LOGIN; CREATE DATABASE {TEMPLATE} OWNER mallory")
    server.psql(EXTENSIONS, "-d", TEMPLATE)
    as_mallory = ("-U", "mallory", "-d")
    server.psql(TRAPS, *as_mallory, TEMPLATE)
    server.psql(AS_SUPERUSER.format(host=server.inside(server.folder)), *as_mallory, TEMPLATE)
    sessions = []
    try:
        for database in databases:
            server.psql(f"CREATE DATABASE {database.name} TEMPLATE {TEMPLATE} OWNER mallory")
        # pg_timing reads about those statements that took most time. Those that create the traps would hide the others.
        server.psql("SELECT pg_stat_statements_reset()", "-d", TEMPLATE)
        for database in databases:
            name, temp = database.name, ""
            if not database.owns_extensions:
                server.psql(MOVE_EXTENSIONS, "-d", name)
            server.psql(f"{RECORDED}; {database.given}; {EVENT_TRIGGER}", "-d", name)
            server.psql(REPLACED, *as_mallory, name)
            if "{temp}" in database.setup:
                session = temporary_objects(server, name)
                sessions.append(session)
                temp = session.stdout.readline().strip()
            server.psql(database.setup.format(name=name, temp=temp), *as_mallory, name)
        yield
    finally:
        for session in sessions:
            session.stdin.close()
            session.wait()


def temporary_objects(server, database):
    """Starts a session of mallory with traps in its temporary schema. Prints the name of this schema."""
    command = server.installation.command("psql", "-X", "-A", "-t", "-q", "-U", "mallory", "-d", database)
    session = subprocess.Popen(command, env=server.env_inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    session.stdin.write("SET search_path = pg_catalog; CREATE TEMP TABLE first (); SELECT pg_my_temp_schema()::regnamespace AS temp \\gset\nDO 'BEGIN PERFORM h.plant(''pg_temp''); END';\n\\echo :temp\n")
    session.stdin.flush()
    return session


def traps_spring(server, databases, sprung):
    """Yields a complaint for each kind of trap that does not work: a trap that cannot spring is no test."""
    if server.psql(IS_SUPERUSER):
        yield "mallory is a superuser before the first trap springs"
    for kind, least in (("f", 4000), ("a", 140)):
        number = server.psql(f"SELECT count(*) FROM pg_proc WHERE pronamespace = 'e'::regnamespace AND prokind = '{kind}'", "-d", TEMPLATE)
        if int(number) < least:
            yield f"{number} traps of the kind {kind}"
    probes = [(databases[0].name, SPRUNG)]
    probes += [(database.name, [IN_PATH]) for database in databases if database.name not in WITHOUT_PATH]
    for name, scripts in probes:
        start = server.log.stat().st_size
        # The limit of a database would also stop a SET that ends it.
        connection = f"dbname={name} options='-c statement_timeout=0'"
        rights = server.psql("".join(f"{script};{RIGHT}" for script, _ in scripts), "-d", connection).split()
        found = sprung(name, start)
        for script, expected in scripts:
            for trap in expected:
                if not any(report.startswith(trap) for report in found):
                    yield f"{trap} does not spring in {name}: {script}: {found}"
        if rights.count("superuser") != len(scripts):
            yield f"not every trap in {name} made mallory a superuser: {rights}"
