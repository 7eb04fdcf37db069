-- What must hold, before, during and after: each query returns no rows.

-- no number twice
SELECT number, count(*) FROM ticket GROUP BY number HAVING count(*) > 1;

-- no number left out
SELECT count(*), max(number) FROM ticket HAVING count(*) < max(number);
