-- about; /* ; */
SELECT ';' /* ; /* ; */ ; */, ";", $$;$$, $a$;$$;$a$, E'\';', '''', U&'d\0061t', B'1' FROM t WHERE a$1 = 'x';
-- done
