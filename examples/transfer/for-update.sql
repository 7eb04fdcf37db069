-- A transfer that is right on PostgreSQL: before it reads, it locks both rows, in the same order in all sessions.
\set payer random(1, 100)
\set payee 1 + (:payer + random(0, 98)) % 100
\set amount random(1, 50)
BEGIN;
SELECT id FROM account WHERE id IN (:payer, :payee) ORDER BY id FOR UPDATE;
SELECT balance AS has FROM account WHERE id = :payer \gset
\if :has >= :amount
UPDATE account SET balance = balance - :amount WHERE id = :payer;
UPDATE account SET balance = balance + :amount WHERE id = :payee;
\endif
COMMIT;
