-- A transfer that is right: it takes the write lock before it reads.
\set payer random(1, 100)
\set payee 1 + (:payer + random(0, 98)) % 100
\set amount random(1, 50)
BEGIN IMMEDIATE;
SELECT balance AS has FROM account WHERE id = :payer \gset
\if :has >= :amount
UPDATE account SET balance = balance - :amount WHERE id = :payer;
UPDATE account SET balance = balance + :amount WHERE id = :payee;
\endif
COMMIT;
