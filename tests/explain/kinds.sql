-- Statements with kinds of nodes that the other workloads do not have, one per line.
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
INSERT INTO w SELECT i, k FROM t WHERE k < 200 RETURNING i
SELECT i, k FROM t WHERE k < 700 LIMIT 150000
SELECT count(*) FROM (SELECT i FROM t UNION ALL SELECT i FROM v) AS both_tables
