-- The changes that Trac shows below a ticket.
\set ticket random(1, 5)
SELECT time, author, field, oldvalue, newvalue FROM ticket_change WHERE ticket = :ticket ORDER BY time;
