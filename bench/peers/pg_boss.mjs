// Empty jobs through pg-boss, from fetch to completion.
//
//   node pg_boss.mjs FOLDER SOCKETS PORT DATABASE JOBS BATCH LOOPS
//
// FOLDER has node_modules; SOCKETS is where the server's Unix socket is. LOOPS of `fetch` and `complete` run side by side, each
// with batches of BATCH and without a pause: its own workers (`work`) do the same two calls, but wait for at least
// half a second between two batches unless the last one was full.
// Prints {"jobs", "seconds"}: from the first fetch to the last job in the state completed.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, host, port, database, jobs, batch, loops] = process.argv.slice(2);
const require = createRequire(folder + "/package.json");
const { PgBoss } = await import(pathToFileURL(require.resolve("pg-boss")));
const n = Number(jobs);
const boss = new PgBoss({ host, port: Number(port), database, user: "koine", max: Number(loops) + 4,
  // Its own housekeeping is none of the work.
  supervise: true, schedule: false });
boss.on("error", (error) => { console.error(error); process.exit(1); });
await boss.start();
await boss.createQueue("jobs");
for (let from = 0; from < n; from += 1000)
  await boss.insert("jobs", Array.from({ length: Math.min(1000, n - from) }, () => ({ data: {} })));

async function completed() {
  const { rows } = await boss.getDb().executeSql(
    "SELECT count(*)::int AS n FROM pgboss.job WHERE name = 'jobs' AND state = 'completed'");
  return rows[0].n;
}

async function loop() {
  for (;;) {
    const list = await boss.fetch("jobs", { batchSize: Number(batch) });
    if (list.length === 0) return;
    await boss.complete("jobs", list.map((job) => job.id));
  }
}

const start = process.hrtime.bigint();
await Promise.all(Array.from({ length: Number(loops) }, loop));
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
if (await completed() !== n) throw new Error("not all jobs were completed");
console.log(JSON.stringify({ jobs: n, seconds }));
await boss.stop({ graceful: false });
process.exit(0);
