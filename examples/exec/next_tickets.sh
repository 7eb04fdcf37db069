#!/bin/sh
# Take $1 numbers, each in two steps. Two processes can take the same number:
#   sqlstress exec -c 4 --inner 20 --setup examples/tickets.sql --check examples/tickets_checks.sql -- sh examples/exec/next_tickets.sh {inner}
set -e
i=0
while [ "$i" -lt "$1" ]; do
    next=$(sqlite3 -cmd ".timeout 5000" "$SQLSTRESS_DATABASE" "SELECT coalesce(max(number), 0) + 1 FROM ticket")
    sqlite3 -cmd ".timeout 5000" "$SQLSTRESS_DATABASE" "INSERT INTO ticket (number) VALUES ($next)"
    i=$((i + 1))
done
