/* SPDX-License-Identifier: MIT */
/*
 * The questions of bench/series.py, asked of DuckDB: node duckdb.mjs NODE_MODULES FOLDER QUESTIONS.json
 *
 * FOLDER has sample.csv, thread.csv, stack.csv and named_frame.csv, with headers. DuckDB keeps them in a file of its own there, in
 * its own compression, on one thread. Prints JSON: bytes of that file, and for each question the CPU milliseconds, the best
 * of three, and the rows.
 */
import { createRequire } from "node:module";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [modules, folder, questions] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(join(modules, "x"))("@duckdb/node-api");
const file = join(folder, "duck.db");
const connection = await (await DuckDBInstance.create(file, { threads: "1" })).connect();

for (const table of ["sample", "thread", "stack", "named_frame"])
	await connection.run(`CREATE TABLE ${table} AS SELECT * FROM read_csv('${join(folder, table)}.csv', header = true, sample_size = -1)`);
await connection.run("CHECKPOINT");

async function ask(sql) {
	let best = Infinity, rows;
	for (let i = 0; i < 3; i++) {
		const before = process.cpuUsage();
		rows = (await connection.runAndReadAll(sql)).getRows();
		const used = process.cpuUsage(before);
		best = Math.min(best, (used.user + used.system) / 1000);
	}
	return { ms: best, rows };
}

const answers = [];
for (const sql of JSON.parse(readFileSync(questions, "utf8")))
	answers.push(await ask(sql));
process.stdout.write(JSON.stringify({ bytes: statSync(file).size, answers },
	(_, value) => typeof value === "bigint" ? Number(value) : value?.hugeint ?? value));
