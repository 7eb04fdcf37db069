-- A transfer as much code has it: within a transaction it reads both balances, reckons, and writes them back.
-- Whether it holds is up to how transactions are kept apart. SQLite, and PostgreSQL at repeatable read or
-- serializable, refuse who read what is out of date: begun again (--max-tries), it holds. At read committed,
-- PostgreSQL's default, what others wrote meanwhile is gone.
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
