// SPDX-License-Identifier: MIT
// read_arrow.mjs - Arrow's own library for JavaScript reads a file of streams that follow each other.
//
// Usage: read_arrow.mjs FILE
// Prints an array with an object for each stream: fields ([name, type, nullable]), batches (their rows), and columns (values; integers and
// binaries as text, NaN and the infinities as text, too).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { RecordBatchReader } = createRequire(join(process.env.PROBING_READERS, "node_modules", "x"))("apache-arrow");

function plain(value) {
	if (value instanceof Uint8Array)
		return Buffer.from(value).toString("hex");
	return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
}

const streams = [];

for (const reader of RecordBatchReader.readAll(readFileSync(process.argv[2]))) {
	const batches = [...reader];
	const fields = reader.schema.fields;

	streams.push({ fields: fields.map((field) => [field.name, String(field.type), field.nullable]), batches: batches.map((batch) => batch.numRows),
		columns: fields.map((field, i) => batches.flatMap((batch) => [...batch.getChildAt(i)].map(plain))) });
}
console.log(JSON.stringify(streams));
