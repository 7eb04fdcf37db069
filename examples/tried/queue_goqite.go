// goqite 0.4.0: a message must go to one receiver only. Each line of the input is one operation, with one answer.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"maragu.dev/goqite"
)

func work(queue *goqite.Queue, line, path string) error {
	ctx := context.Background()
	if err := queue.Send(ctx, goqite.Message{Body: []byte(line)}); err != nil {
		return err
	}
	message, err := queue.Receive(ctx)
	if err != nil || message == nil {
		return err
	}
	notes, err := os.OpenFile(path+".taken", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer notes.Close()
	if _, err := fmt.Fprintln(notes, message.ID); err != nil {
		return err
	}
	return queue.Delete(ctx, message.ID)
}

func main() {
	path := os.Getenv("SQLSTRESS_DATABASE")
	db, err := sql.Open("sqlite3", path+"?_journal=WAL&_timeout=5000&_fk=true")
	if err != nil {
		panic(err)
	}
	queue := goqite.New(goqite.NewOpts{DB: db, Name: "jobs", Timeout: time.Minute})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := work(queue, lines.Text(), path); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok")
		}
	}
}
