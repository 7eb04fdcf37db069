-- Checks before, during and after a trial: each query must return no rows.

-- no number twice
SELECT number, count(*) FROM ticket GROUP BY number HAVING count(*) > 1;

-- no number left out
SELECT count(*), max(number) FROM ticket HAVING count(*) < max(number);
