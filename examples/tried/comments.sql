-- comments of a ticket have different numbers
SELECT ticket, oldvalue, count(*) FROM ticket_change WHERE field = 'comment' GROUP BY 1, 2 HAVING count(*) > 1;

-- every change is of a ticket that is there
SELECT ticket FROM ticket_change WHERE ticket NOT IN (SELECT id FROM ticket);
