// Takes the next number in two steps, once for each line of its input. Two of these at once can take the same number:
//   sqlstress exec -c 4 --lines --setup examples/tickets.sql --check examples/tickets_checks.sql -- node examples/exec/next_ticket.js
// With a library of your own, call it in place of sqlite().
const { execFileSync } = require("node:child_process");
const readline = require("node:readline");

function sqlite(statement) {
  const words = ["-cmd", ".timeout 5000", process.env.SQLSTRESS_DATABASE, statement];
  return execFileSync("sqlite3", words, { encoding: "utf8" });
}

readline.createInterface({ input: process.stdin }).on("line", () => {
  try {
    const next = sqlite("SELECT coalesce(max(number), 0) + 1 FROM ticket");
    sqlite(`INSERT INTO ticket (number) VALUES (${next})`);
    console.log("ok");
  } catch (error) {
    console.log(`error ${error.message.replaceAll("\n", " ")}`);
  }
});
