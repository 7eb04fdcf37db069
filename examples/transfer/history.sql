-- The transfer of plain.sql, whose history is recorded: each statement returns the key and the version of what it
-- read or wrote. At read committed, PostgreSQL's default, the report names two transactions of which one has
-- overwritten the other.
\set payer random(1, 100)
\set payee 1 + (:payer + random(0, 98)) % 100
\set amount random(1, 50)
BEGIN;
-- @history account
SELECT id, version, balance AS payer_has FROM account WHERE id = :payer \gset
-- @history account
SELECT id, version, balance AS payee_has FROM account WHERE id = :payee \gset
\if :payer_has >= :amount
-- @history account
UPDATE account SET balance = :payer_has - :amount, version = version + 1 WHERE id = :payer RETURNING id, version;
-- @history account
UPDATE account SET balance = :payee_has + :amount, version = version + 1 WHERE id = :payee RETURNING id, version;
\endif
COMMIT;
