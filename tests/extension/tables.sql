-- The objects that the statements read and write: small, and the same each time.
CREATE TABLE one (i int PRIMARY KEY, k int, t text);
INSERT INTO one SELECT g, g % 10, 'row ' || g FROM generate_series(1, 5000) g;
CREATE INDEX ON one (k);
CREATE TABLE two (i int, k int, n numeric);
INSERT INTO two SELECT g % 700, g % 37, g / 7.0 FROM generate_series(1, 7000) g;
CREATE INDEX ON two (i);
CREATE INDEX ON two (k);
CREATE TABLE parts (i int, k int) PARTITION BY RANGE (i);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (1000) TO (3000);
INSERT INTO parts SELECT g, g % 5 FROM generate_series(0, 2999) g;
CREATE INDEX ON parts (i);
CREATE TABLE wide AS SELECT g AS i, repeat('x', 200) AS filler FROM generate_series(1, 20000) g;
CREATE TABLE log (what text, n bigint);
-- 200 scans share one SubPlan.
CREATE TABLE many_parts (i int, k int) PARTITION BY LIST (k);
SELECT format('CREATE TABLE many_part_%s PARTITION OF many_parts FOR VALUES IN (%s)', g, g) FROM generate_series(1, 200) g \gexec
INSERT INTO many_parts SELECT g, g % 200 + 1 FROM generate_series(1, 40000) g;
CREATE TABLE small AS SELECT g % 10 AS k, g AS v FROM generate_series(1, 100) g;

-- Nodes that only a transition table has.
CREATE FUNCTION count_new() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN INSERT INTO log SELECT tg_op, count(*) FROM new_rows; RETURN NULL; END$$;
CREATE TRIGGER counted AFTER INSERT ON two REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION count_new();

-- A function whose own statements are timed as well.
CREATE FUNCTION nested(a int) RETURNS bigint LANGUAGE plpgsql AS
$$DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM two WHERE i = a; RETURN n; END$$;

-- An error in the midst of a node, caught below it.
CREATE FUNCTION survives(a int) RETURNS int LANGUAGE plpgsql AS
$$DECLARE n int; BEGIN
	SELECT sum(100 / (i - 50)) INTO n FROM one WHERE one.i < 50 + a; RETURN n;
EXCEPTION WHEN division_by_zero THEN RETURN -1; END$$;

VACUUM (FREEZE, ANALYZE);

-- The server reads itself as another one: foreign scans, and an Append that waits for both at once.
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'socket', port :'port', dbname 'far', async_capable 'true');
CREATE SERVER self_2 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'socket', port :'port', dbname 'far', async_capable 'true');
CREATE USER MAPPING FOR CURRENT_USER SERVER self;
CREATE USER MAPPING FOR CURRENT_USER SERVER self_2;
CREATE FOREIGN TABLE far_one (i int, k int, t text) SERVER self OPTIONS (table_name 'one');
CREATE TABLE far_parts (i int, k int) PARTITION BY RANGE (i);
CREATE FOREIGN TABLE far_1 PARTITION OF far_parts FOR VALUES FROM (0) TO (1000) SERVER self OPTIONS (table_name 'part_1');
CREATE FOREIGN TABLE far_2 PARTITION OF far_parts FOR VALUES FROM (1000) TO (3000) SERVER self_2 OPTIONS (table_name 'part_2');
