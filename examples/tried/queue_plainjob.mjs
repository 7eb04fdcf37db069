// plainjob 0.0.14, better-sqlite3 12.11.1: a job must go to one worker only. Each input line is one operation.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { better, defineQueue } from "plainjob";

const path = process.env.SQLSTRESS_DATABASE;
const quiet = { error() {}, warn() {}, info() {}, debug() {} };
const queue = defineQueue({ connection: better(new Database(path)), logger: quiet });

for await (const line of createInterface({ input: process.stdin }))
  try {
    queue.add("mail", { line });
    const job = queue.getAndMarkJobAsProcessing("mail");
    if (job) appendFileSync(`${path}.taken`, `${job.id}\n`);
    console.log("ok");
  } catch (error) {
    console.log(`error ${error.code} ${error.message}`);
  }
