// Take the next number in two steps, for each line of the input. Two processes can take the same number:
//
//	go build -o next_ticket examples/exec/next_ticket.go
//	sqlstress exec -c 4 --lines --setup examples/tickets.sql --check examples/tickets_checks.sql -- ./next_ticket
//
// With database/sql, open the database once and use it in place of sqlite.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func sqlite(statement string) (string, error) {
	command := exec.Command("sqlite3", "-cmd", ".timeout 5000", os.Getenv("SQLSTRESS_DATABASE"), statement)
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

func take() error {
	next, err := sqlite("SELECT coalesce(max(number), 0) + 1 FROM ticket")
	if err != nil {
		return err
	}
	_, err = sqlite("INSERT INTO ticket (number) VALUES (" + next + ")")
	return err
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := take(); err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Println("ok")
		}
	}
}
