// Take the next number in two steps, for each line of the input. Two processes can take the same number:
//   sqlstress exec -c 4 --lines --setup examples/tickets.sql --check examples/tickets_checks.sql -- node examples/exec/next_ticket.js
// To test your own library, call it in place of sqlite().
const { execFileSync } = require("node:child_process");
const readline = require("node:readline");

function sqlite(statement) {
  const options = ["-cmd", ".timeout 5000", process.env.SQLSTRESS_DATABASE, statement];
  return execFileSync("sqlite3", options, { encoding: "utf8" });
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
