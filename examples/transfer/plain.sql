-- A transfer as in much code: a transaction reads both balances, computes new ones, and writes them back.
-- The isolation level decides whether it is right. SQLite, and PostgreSQL at repeatable read or serializable,
-- refuse a write based on outdated reads, and the retry (--max-tries) is right. At read committed, PostgreSQL's
-- default, the transfer overwrites concurrent changes.
\set payer random(1, 100)
\set payee 1 + (:payer + random(0, 98)) % 100
\set amount random(1, 50)
BEGIN;
SELECT balance AS payer_has FROM account WHERE id = :payer \gset
SELECT balance AS payee_has FROM account WHERE id = :payee \gset
\if :payer_has >= :amount
UPDATE account SET balance = :payer_has - :amount WHERE id = :payer;
UPDATE account SET balance = :payee_has + :amount WHERE id = :payee;
\endif
COMMIT;
