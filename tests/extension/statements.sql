-- Every kind of plan node. A line `-- name: settings` begins a statement that is one line.
-- result:
SELECT 1 WHERE random() >= 0
-- project_set:
SELECT generate_series(1, 3), i FROM one WHERE i < 100
-- seq_scan:
SELECT count(*), sum(k) FROM one WHERE t LIKE '%7'
-- sample_scan:
SELECT count(*) FROM one TABLESAMPLE system (50) REPEATABLE (7)
-- index_scan: enable_bitmapscan=off enable_seqscan=off
SELECT t FROM one WHERE i BETWEEN 10 AND 400
-- index_only_scan: enable_bitmapscan=off enable_seqscan=off
SELECT count(i) FROM one WHERE i < 3000
-- bitmap_heap_scan: enable_indexscan=off enable_seqscan=off enable_indexonlyscan=off
SELECT sum(n) FROM two WHERE i < 100
-- bitmap_and: enable_indexscan=off enable_seqscan=off enable_indexonlyscan=off
SELECT sum(n) FROM two WHERE i < 350 AND k < 10
-- bitmap_or: enable_indexscan=off enable_seqscan=off enable_indexonlyscan=off
SELECT sum(n) FROM two WHERE i = 5 OR k = 3
-- tid_scan:
SELECT * FROM one WHERE ctid = '(1,1)'
-- tid_range_scan:
SELECT count(*) FROM one WHERE ctid >= '(1,1)' AND ctid < '(5,1)'
-- subquery_scan:
SELECT count(*) FROM (SELECT i, row_number() OVER (ORDER BY i) AS n FROM one) s WHERE n < 400
-- function_scan:
SELECT count(*) FROM generate_series(1, 3000) g WHERE g % 3 = 0
-- table_function_scan:
SELECT * FROM xmltable('/r/c' PASSING (XMLPARSE (DOCUMENT '<r><c>1</c><c>2</c></r>')) COLUMNS n int PATH '.')
-- values_scan:
SELECT sum(column1) FROM (VALUES (1), (2), (3)) v
-- cte_scan:
WITH c AS MATERIALIZED (SELECT k, count(*) AS n FROM one GROUP BY k) SELECT a.k FROM c a JOIN c b ON a.n = b.n AND a.k = b.k
-- recursive_union:
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 2000) SELECT sum(n) FROM r
-- nested_loop: enable_hashjoin=off enable_mergejoin=off enable_memoize=off
SELECT count(*) FROM one JOIN two ON two.i = one.i WHERE one.i < 600
-- nested_loop_left: enable_hashjoin=off enable_mergejoin=off enable_memoize=off
SELECT count(two.k) FROM one LEFT JOIN two ON two.i = one.i WHERE one.i < 900
-- memoize: enable_hashjoin=off enable_mergejoin=off
SELECT count(*) FROM two JOIN one ON one.i = two.k
-- materialize: enable_hashjoin=off enable_mergejoin=off enable_memoize=off enable_indexscan=off enable_bitmapscan=off enable_indexonlyscan=off
SELECT count(*) FROM two a JOIN one b ON a.k = b.i WHERE a.i < 20 AND b.i < 40
-- merge_join: enable_hashjoin=off enable_nestloop=off
SELECT count(*) FROM one JOIN two USING (i)
-- merge_full_join: enable_hashjoin=off
SELECT count(*) FROM one FULL JOIN two USING (i)
-- hash_join: enable_mergejoin=off enable_nestloop=off
SELECT count(*) FROM one JOIN two USING (i)
-- hash_join_batches: enable_mergejoin=off enable_nestloop=off work_mem=64kB
SELECT count(*) FROM wide a JOIN wide b USING (i)
-- sort:
SELECT t FROM one ORDER BY t DESC
-- sort_on_disk: work_mem=64kB
SELECT count(*) FROM (SELECT filler, i FROM wide ORDER BY filler, i OFFSET 0) s
-- incremental_sort: enable_seqscan=off enable_bitmapscan=off
SELECT k, t FROM one ORDER BY k, t
-- group: enable_hashagg=off
SELECT k FROM one GROUP BY k
-- agg_sorted: enable_hashagg=off
SELECT k, count(*) FROM two GROUP BY k
-- agg_hashed: enable_sort=off
SELECT k, count(*) FROM two GROUP BY k
-- agg_spilling: work_mem=64kB enable_sort=off
SELECT count(*) FROM (SELECT i, count(*) FROM wide GROUP BY i) s
-- grouping_sets:
SELECT k, i % 3, count(*) FROM one GROUP BY CUBE (k, i % 3)
-- window:
SELECT sum(s) FROM (SELECT sum(k) OVER (PARTITION BY k ORDER BY i) AS s FROM one) w
-- unique: enable_hashagg=off
SELECT DISTINCT k FROM two
-- set_op:
SELECT k FROM one EXCEPT SELECT k FROM two WHERE k < 5
-- intersect_all:
SELECT i FROM one INTERSECT ALL SELECT i FROM two
-- append:
SELECT count(*) FROM parts WHERE k = 2
-- merge_append: enable_sort=off enable_seqscan=off enable_bitmapscan=off
SELECT i FROM (SELECT i FROM part_1 UNION ALL SELECT i FROM part_2) u ORDER BY i LIMIT 1500
-- limit:
SELECT i FROM one ORDER BY i LIMIT 10 OFFSET 20
-- lock_rows:
SELECT i FROM one WHERE i < 50 FOR UPDATE
-- init_plan:
SELECT count(*) FROM one WHERE i > (SELECT avg(i) FROM two)
-- sub_plan:
SELECT i, (SELECT count(*) FROM two WHERE two.i = one.i) FROM one WHERE i < 300
-- shared_sub_plan:
SELECT count(*) FROM many_parts WHERE i > (SELECT sum(s.v) / 300 FROM small s WHERE s.k = many_parts.k % 10)
-- nested_shared_sub_plans:
SELECT count(*) FROM parts WHERE i > (SELECT sum(p.k) / 300 FROM parts p WHERE p.k > (SELECT sum(s.v) / 300 FROM small s WHERE s.k = p.k AND s.k = parts.k) AND p.i < 50)
-- sub_plan_in_index_qual: enable_hashjoin=off enable_mergejoin=off enable_indexscan=off enable_seqscan=off enable_indexonlyscan=off work_mem=64kB
SELECT count(*) FROM one JOIN two ON two.k = (SELECT max(s.k) FROM small s WHERE s.v = one.i) WHERE one.i < 100
-- hashed_sub_plan:
SELECT count(*) FROM one WHERE i NOT IN (SELECT i FROM two)
-- exists: enable_hashjoin=off enable_mergejoin=off
SELECT count(*) FROM one WHERE EXISTS (SELECT 1 FROM two WHERE two.i = one.i AND two.k = 3)
-- lateral:
SELECT count(*) FROM one, LATERAL (SELECT n FROM two WHERE two.i = one.i ORDER BY n LIMIT 3) l WHERE one.i < 200
-- insert:
INSERT INTO log SELECT t, i FROM one WHERE i < 500
-- insert_with_trigger:
INSERT INTO two SELECT g, g, g FROM generate_series(1, 100) g RETURNING i
-- upsert:
INSERT INTO one SELECT g, g, 'x' FROM generate_series(4990, 5010) g ON CONFLICT (i) DO UPDATE SET k = excluded.k
-- update:
UPDATE one SET k = k + 1 WHERE i < 200
-- update_moves_partition:
UPDATE parts SET i = i + 900 WHERE i BETWEEN 500 AND 600
-- delete:
DELETE FROM two WHERE i < 20 RETURNING *
-- merge:
MERGE INTO one USING (SELECT DISTINCT i FROM two) s ON one.i = s.i + 4800 WHEN MATCHED THEN UPDATE SET k = 0 WHEN NOT MATCHED THEN DO NOTHING
-- modifying_cte:
WITH d AS (DELETE FROM two WHERE k = 1 RETURNING *), u AS (UPDATE one SET k = 9 WHERE i < 9) SELECT count(*) FROM d LIMIT 1
-- function_with_statements:
SELECT sum(nested(i)) FROM one WHERE i < 100
-- error_caught:
SELECT sum(survives(i)) FROM one WHERE i < 20
-- foreign_scan:
SELECT count(*) FROM far_one WHERE t LIKE '%3'
-- foreign_join:
SELECT count(*) FROM far_one a JOIN two b ON a.i = b.i
-- async_append:
SELECT count(*) FROM far_parts
