SELECT * FROM t WHERE i = $1 AND k = :value
