-- Twenty statements to which the cost of a call was not fitted, one per line.
-- text keys and wide rows
SELECT count(*) FROM word WHERE word LIKE '%ab%'
SELECT bucket, min(word), max(word) FROM word GROUP BY bucket
SELECT count(DISTINCT word) FROM word WHERE bucket < 100
SELECT max(length(filler)) FROM wide
SELECT date_trunc('day', at), count(*) FROM wide GROUP BY 1
-- indexes
SELECT count(*) FROM word WHERE word BETWEEN '2' AND '6'
SELECT count(*) FROM word WHERE bucket IN (3, 5, 7, 11, 13, 17, 19, 23)
SELECT sum(w.hash) FROM wide JOIN word w ON w.id = wide.word_id AND w.bucket = 77
SELECT * FROM word ORDER BY word LIMIT 50000
-- joins
SELECT count(*) FROM wide JOIN word ON word.id = wide.word_id
SELECT count(*) FROM word a LEFT JOIN wide b ON b.word_id = a.id WHERE b.id IS NULL
SELECT e.source, f.target FROM edge e JOIN edge f ON f.source = e.target JOIN edge g ON g.source = f.target
SELECT count(*) FROM word a JOIN word b ON a.hash = b.id WHERE a.bucket < 50
-- functions, arrays and JSON
SELECT sum(element) FROM wide, unnest(list) AS element
SELECT body ->> 'tag', count(*) FROM document GROUP BY 1
SELECT id, sum((body ->> 'n')::int) OVER (ORDER BY id ROWS 10 PRECEDING) FROM document
-- sets, recursion and lateral subqueries
SELECT id FROM wide EXCEPT SELECT word_id FROM wide
SELECT id FROM word UNION SELECT hash FROM word
WITH RECURSIVE walk (node, step) AS (SELECT 1, 0 UNION ALL SELECT e.target, step + 1 FROM walk JOIN edge e ON e.source = walk.node WHERE step < 20000) SELECT count(*) FROM walk
SELECT count(*) FROM wide w, LATERAL (SELECT hash FROM word WHERE word.bucket = w.id % 500 ORDER BY id LIMIT 3) AS three
