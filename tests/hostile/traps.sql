-- Traps of the role mallory, who owns the database and has no other rights. She runs this script herself.
--
-- A trap is an object that has the name of an object that a program means to use. It reports who called it, and then tries
-- to make mallory a superuser with the caller's rights.
SET search_path = pg_catalog;
CREATE SCHEMA h;
GRANT USAGE ON SCHEMA h TO public;

-- Reports a call once per transaction. The test finds the report in the server's log, which also has the statement.
CREATE FUNCTION h.sprung(trap text) RETURNS bool LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    -- Her own calls give mallory nothing. A session of another user that has become mallory can switch back.
    IF session_user = 'mallory' OR strpos(current_setting('h.reported', true), trap) > 0 THEN
        RETURN true;
    END IF;
    RAISE LOG 'SPRUNG: % as % in a session of %', trap, current_user, session_user;
    PERFORM set_config('h.reported', concat(current_setting('h.reported', true), trap, E'\n'), true);
    PERFORM set_config('role', 'none', true);
    BEGIN
        -- A connection of its own also writes if the caller's transaction is read-only.
        PERFORM h.as_superuser(session_user);
    EXCEPTION WHEN OTHERS THEN
        ALTER ROLE mallory SUPERUSER;
    END;
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    RETURN true;
END $$;

-- The planner calls this one.
CREATE FUNCTION h.early(trap text) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN h.sprung(trap); END';

-- Creates a function that is a trap, or leaves it out if PL/pgSQL does not support one of its types.
CREATE FUNCTION h.trap(trap text, signature text, result text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE FUNCTION %s RETURNS %s IMMUTABLE LANGUAGE plpgsql AS %L', signature, result,
        format('BEGIN PERFORM h.sprung(%L); %s END', trap, body));
EXCEPTION WHEN OTHERS THEN
END $$;

-- Functions and aggregates. The variants fit arguments better for which the server's own function needs a conversion.
CREATE FUNCTION h.plant_functions(schema text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    it record;
    variant text;
BEGIN
    FOR it IN SELECT oid, proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result,
            CASE WHEN proretset OR prorettype = 'void'::regtype OR 'o' = ANY (proargmodes) THEN ''
                 WHEN prorettype = 'bool'::regtype THEN 'RETURN true;' ELSE 'RETURN NULL;' END AS body
        FROM pg_proc
        WHERE pronamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace) AND prokind = 'f'
            AND NOT proargtypes::regtype[] && '{internal,cstring}' AND prorettype::regtype NOT IN ('internal', 'cstring', 'trigger')
    LOOP
        FOR variant IN
            SELECT replace(replace(it.arguments, 'VARIADIC "any"', 'VARIADIC text[]'), '"any"', type)
                FROM unnest('{text,name,int4,int8,bool,timestamptz}'::text[]) type
            UNION SELECT regexp_replace(it.arguments, '\mtext\M(?!\[)', 'name', 'g')
        LOOP
            PERFORM h.trap(format('function %s(%s)', it.proname, left(variant, 40)), format('%I.%I(%s)', schema, it.proname, variant), it.result, it.body);
        END LOOP;
    END LOOP;
    FOR it IN SELECT p.oid, proname, arguments, prorettype::regtype AS result
        FROM pg_proc p, unnest('{text,name,int4,int8,bool,timestamptz}'::text[]) type, replace(pg_get_function_arguments(p.oid), '"any"', type) arguments
        WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'a'
            AND (SELECT aggkind = 'n' FROM pg_aggregate a WHERE aggfnoid = p.oid)
    LOOP
        PERFORM h.trap(format('aggregate %s(%s)', it.proname, it.arguments),
            format('%I.%I(%s)', schema, 'aggregate ' || it.proname, concat_ws(', ', it.result, nullif(it.arguments, ''))), it.result::text, 'RETURN NULL;');
        BEGIN
            EXECUTE format('CREATE AGGREGATE %1$I.%2$I(%3$s) (SFUNC = %1$I.%4$I, STYPE = %5$s)', schema, it.proname, coalesce(nullif(it.arguments, ''), '*'),
                'aggregate ' || it.proname, it.result);
        EXCEPTION WHEN OTHERS THEN
        END;
    END LOOP;
END $$;

-- Operators: those of the server, and others for pairs of types that the server converts.
CREATE FUNCTION h.plant_operators(schema text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    it record;
BEGIN
    FOR it IN
        SELECT oprname AS name, nullif(oprleft, 0)::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result
            FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprright <> 0
        UNION SELECT name, l::regtype, r::regtype, CASE WHEN name IN ('||', '+', '-', '*', '/') THEN r::regtype ELSE 'bool'::regtype END
            FROM unnest('{=,<>,<,>,~,!~,||,+,-,*,/}'::text[]) name,
                unnest('{name,text,oid,int4,int8,float8,numeric,"\"char\"",anyelement}'::text[]) l,
                unnest('{name,text,oid,int4,int8,float8,numeric,"\"char\"",anyelement}'::text[]) r
            WHERE (l = 'anyelement') = (r = 'anyelement')
                AND NOT EXISTS (SELECT FROM pg_operator WHERE oprname = name AND oprleft = l::regtype AND oprright = r::regtype)
    LOOP
        PERFORM h.trap(format('operator %s(%s,%s)', it.name, it.l, it.r),
            format('%I.%I(%s)', schema, 'operator ' || it.name, concat_ws(', ', it.l, it.r)), it.result::text,
            CASE it.result WHEN 'bool'::regtype THEN 'RETURN true;' ELSE 'RETURN NULL;' END);
        BEGIN
            EXECUTE format('CREATE OPERATOR %1$I.%2$s (FUNCTION = %1$I.%3$I, RIGHTARG = %4$s', schema, it.name, 'operator ' || it.name, it.r)
                || coalesce(', LEFTARG = ' || it.l, '') || ')';
        EXCEPTION WHEN OTHERS THEN
        END;
    END LOOP;
END $$;

-- Tables, views and types.
CREATE FUNCTION h.plant_relations(schema text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    it record;
BEGIN
    FOR it IN SELECT relnamespace::regnamespace AS place, relname FROM pg_class
        WHERE relnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace) AND relkind IN ('r', 'v')
    LOOP
        BEGIN
            EXECUTE format('CREATE VIEW %1$I.%2$I AS SELECT * FROM %3$s.%2$I WHERE h.early(%4$L)', schema, it.relname, it.place, 'relation ' || it.relname);
        EXCEPTION WHEN OTHERS THEN
        END;
    END LOOP;
    FOR it IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typcategory <> 'A' LOOP
        EXECUTE format('CREATE DOMAIN %1$I.%2$I AS pg_catalog.%2$I CHECK (h.sprung(%3$L))', schema, it.typname, 'type ' || it.typname);
    END LOOP;
END $$;

CREATE FUNCTION h.plant(schema text) RETURNS void BEGIN ATOMIC
    SELECT h.plant_functions(schema);
    SELECT h.plant_operators(schema);
    SELECT h.plant_relations(schema);
END;

-- A type with casts to the server's types. Nobody can create a cast between types of others.
CREATE TYPE h.lure AS ENUM ('1');
SELECT h.trap('cast to ' || target, format('h.%I(h.lure)', target), target, 'RETURN ''1'';') FROM unnest('{text,name,int4,int8,float8,numeric,bool}'::text[]) target;
SELECT format('CREATE CAST (h.lure AS %s) WITH FUNCTION h.%1$I(h.lure) AS IMPLICIT', target) FROM unnest('{text,name,int4,int8,float8,numeric,bool}'::text[]) target \gexec

-- A table with everything that runs when somebody uses it, and one without.
CREATE SCHEMA data;
CREATE TABLE data.plain AS SELECT g AS i FROM generate_series(1, 1000) g;
CREATE TABLE data.guarded (i int DEFAULT h.sprung('default')::int CHECK (h.sprung('check')), g bool GENERATED ALWAYS AS (h.early('generated column')) STORED);
CREATE INDEX ON data.guarded ((h.early('index'))) WHERE h.early('predicate');
ALTER TABLE data.guarded ENABLE ROW LEVEL SECURITY;
ALTER TABLE data.guarded FORCE ROW LEVEL SECURITY;
CREATE POLICY trap ON data.guarded USING (h.sprung('policy')) WITH CHECK (h.sprung('policy'));
CREATE FUNCTION h.on_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM h.sprung(''trigger''); RETURN NEW; END';
CREATE TRIGGER trap BEFORE INSERT ON data.guarded FOR EACH ROW EXECUTE FUNCTION h.on_row();
INSERT INTO data.guarded VALUES (1);
CREATE FUNCTION h.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM h.sprung(''event trigger''); END';

-- Others use this view. Later mallory replaces it.
CREATE VIEW data.report AS SELECT count(*) AS n FROM data.plain a, data.plain b;
GRANT USAGE ON SCHEMA data TO public;
GRANT SELECT ON data.report TO public;

-- Exchanges the names of two schemas until the session ends. A procedure with settings of its own could not commit.
CREATE PROCEDURE h.swap(a text, b text) LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        EXECUTE pg_catalog.format('ALTER SCHEMA %1$I RENAME TO swapped; ALTER SCHEMA %2$I RENAME TO %1$I; ALTER SCHEMA swapped RENAME TO %2$I', a, b);
        COMMIT;
    END LOOP;
END $$;

CREATE SCHEMA e;
SELECT h.plant('e');
