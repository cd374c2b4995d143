CREATE TABLE word AS SELECT g AS id, md5(g::text) AS word, g % 500 AS bucket, (g * 7919) % 100003 AS hash FROM generate_series(1, 200000) g;
CREATE INDEX ON word (word);
CREATE INDEX ON word (bucket, id);
CREATE TABLE wide AS SELECT g AS id, (g * 31) % 200000 AS word_id, repeat('x', 300) AS filler, now() - g * interval '1 minute' AS at, array[g, g + 1, g + 2] AS list FROM generate_series(1, 60000) g;
CREATE INDEX ON wide (id);
CREATE TABLE document AS SELECT g AS id, jsonb_build_object('n', g, 'tag', g % 17, 'text', md5(g::text)) AS body FROM generate_series(1, 40000) g;
CREATE TABLE edge AS SELECT g AS source, (g * 3 + 1) % 5000 AS target FROM generate_series(0, 4999) g;
CREATE INDEX ON edge (source);
VACUUM (FREEZE, ANALYZE);
