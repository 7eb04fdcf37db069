#!/bin/sh
# Take the next number in two steps. Two processes can take the same number:
#   sqlstress exec -c 4 --setup examples/tickets.sql --check examples/tickets_checks.sql -- sh examples/next_ticket.sh
next=$(sqlite3 -cmd ".timeout 5000" "$SQLSTRESS_DATABASE" "SELECT coalesce(max(number), 0) + 1 FROM ticket")
exec sqlite3 -cmd ".timeout 5000" "$SQLSTRESS_DATABASE" "INSERT INTO ticket (number) VALUES ($next)"
