-- Twenty statements in addition to TPC-H's, one per line.
-- tight loops
SELECT count(*) FROM t
SELECT count(*) FROM generate_series(1, 1000000)
SELECT sum(i) FROM t WHERE k > 3
-- nested loops, up to a million loops
SELECT count(*) FROM s a, s b
SELECT count(*) FROM t JOIN u USING (i) WHERE u.k < 300
SELECT count(*) FROM generate_series(1, 1000000) a, LATERAL (SELECT a OFFSET 0) b
SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.i = a.i AND u.k = a.k)
-- sorts
SELECT * FROM t ORDER BY k, i DESC
SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i) FROM t
SELECT DISTINCT k FROM t ORDER BY k LIMIT 10
-- hash joins
SELECT count(*) FROM t JOIN v USING (i)
SELECT v.k, count(*), avg(t.i) FROM t JOIN v ON t.k = v.k AND t.i < 3000 GROUP BY v.k
-- CTEs and subplans
WITH c AS MATERIALIZED (SELECT i, k FROM t WHERE k < 500) SELECT count(*) FROM c a JOIN c b USING (i)
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 300000) SELECT sum(n) FROM r
SELECT i, (SELECT max(k) FROM u WHERE u.i = s.i) FROM s
SELECT count(*) FROM s WHERE i NOT IN (SELECT i FROM v WHERE k > 100)
-- partitions, parallel
SELECT p.k, count(*) FROM p JOIN s ON p.i = s.i GROUP BY p.k
SELECT sum(k) FROM big WHERE i % 7 = 0
-- writes
INSERT INTO w SELECT i, k FROM t WHERE k < 200
UPDATE u SET k = k + 1 WHERE i < 50000
