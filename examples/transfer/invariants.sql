-- no money comes or goes
SELECT sum(balance) FROM account HAVING coalesce(sum(balance), 0) <> 100 * 1000;

-- nobody owes money
SELECT id, balance FROM account WHERE balance < 0;
