-- Add a comment to a ticket as Trac does: count the comments first.
\set ticket random(1, 5)
\set time random(1, 9000000000000000)
BEGIN IMMEDIATE;
SELECT count(*) + 1 AS number FROM ticket_change WHERE ticket = :ticket AND field = 'comment' \gset
INSERT INTO ticket_change (ticket, time, author, field, oldvalue, newvalue)
  VALUES (:ticket, :time, 'somebody', 'comment', :number, 'It does not work here either');
UPDATE ticket SET changetime = :time WHERE id = :ticket;
COMMIT;
