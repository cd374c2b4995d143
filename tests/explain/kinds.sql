-- Statements with kinds of nodes and mixes of nodes that the other workloads do not have, one per line.
SET enable_hashjoin = off; SET enable_nestloop = off; SELECT count(*) FROM t a JOIN u b USING (i)
SET enable_hashagg = off; SELECT count(*) FROM (SELECT DISTINCT i, k FROM t) AS rows
SET enable_hashagg = off; SELECT k, i FROM t GROUP BY k, i
SELECT i FROM t INTERSECT SELECT i FROM v
SET enable_seqscan = off; SELECT i, k FROM u ORDER BY i, k
SELECT generate_series(1, 5) FROM t WHERE i < 60000
SELECT count(*) FROM (SELECT i FROM u WHERE i < 100000 FOR UPDATE) AS locked
SELECT count(*) FROM t TABLESAMPLE SYSTEM (50)
SELECT count(*) FROM t WHERE ctid < '(900,1)'
SELECT k, i % 2, count(*) FROM t GROUP BY CUBE (k, (i % 2))
SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(*) FROM u WHERE i BETWEEN 1 AND 60000 OR i BETWEEN 90000 AND 150000
SELECT count(*) FROM (SELECT i, k FROM t OFFSET 0) AS rows WHERE k < 900
WITH new AS (INSERT INTO w SELECT i, k FROM t WHERE k < 200 RETURNING i) SELECT count(*) FROM new
SELECT i, k FROM t WHERE k < 700 LIMIT 150000
SELECT count(*) FROM (SELECT i FROM t UNION ALL SELECT i FROM v) AS both_tables
-- other mixes of nodes, with many calls
SELECT count(*) FROM t WHERE i % 2 = 0
SELECT max(i), min(k) FROM t WHERE k > 1
SELECT count(*) FROM (SELECT i FROM t UNION ALL SELECT i FROM u UNION ALL SELECT i FROM v) AS three_tables
SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT count(*) FROM v JOIN u ON u.i = v.i
SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM u WHERE i > 50000
SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum(k) FROM u WHERE i > 50000
SELECT count(*) FROM (SELECT i, row_number() OVER () AS n FROM t OFFSET 0) AS numbered
SELECT sum(n) FROM generate_series(1, 500000) AS n WHERE n % 3 = 0
SELECT count(*) FROM s a JOIN s b ON a.k < b.k
SELECT count(*) FROM t LEFT JOIN v USING (i)
SET enable_hashjoin = off; SELECT count(*) FROM t a JOIN v b USING (i)
SELECT count(*) FROM (SELECT i FROM t ORDER BY k OFFSET 10) AS sorted
SELECT count(*) FROM (SELECT DISTINCT i FROM t) AS different
SELECT count(*) FROM (SELECT i, count(*) FROM u GROUP BY i OFFSET 0) AS hashed
SET enable_hashagg = off; SELECT count(*) FROM (SELECT i, count(*) FROM u GROUP BY i OFFSET 0) AS grouped
WITH c AS MATERIALIZED (SELECT i FROM t) SELECT count(*) FROM c
WITH c AS MATERIALIZED (SELECT i FROM t WHERE k < 300) SELECT count(*) FROM c JOIN v USING (i)
SELECT count(*) FROM t WHERE k = ANY (ARRAY[1, 2, 3, 4, 5, 6, 7, 8])
SELECT count(*) FROM p WHERE k < 10
SELECT count(*) FROM t, (VALUES (1), (2), (3)) AS x (n)
SELECT count(*) FROM t, unnest(ARRAY[1, 2]) AS x
SELECT count(*) FROM (SELECT i FROM t EXCEPT ALL SELECT i FROM v) AS rest
SELECT sum(x.k) FROM s, LATERAL (SELECT k FROM u WHERE u.i BETWEEN s.i AND s.i + 50) AS x
SELECT count(*) FROM u a JOIN u b ON a.i = b.i + 1
SELECT count(*) FROM t a JOIN s b ON a.k = b.i WHERE a.i < 100000
