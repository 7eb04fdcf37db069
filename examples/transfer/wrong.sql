-- A transfer that loses updates: it reads both balances, each in its own transaction, and writes new ones in a third.
-- This overwrites changes that were made in between.
\set payer random(1, 100)
\set payee 1 + (:payer + random(0, 98)) % 100
\set amount random(1, 50)
SELECT balance AS payer_has FROM account WHERE id = :payer \gset
SELECT balance AS payee_has FROM account WHERE id = :payee \gset
\if :payer_has >= :amount
BEGIN IMMEDIATE;
UPDATE account SET balance = :payer_has - :amount WHERE id = :payer;
UPDATE account SET balance = :payee_has + :amount WHERE id = :payee;
COMMIT;
\endif
