/* SPDX-License-Identifier: MIT */
// check_speedscope.mjs FILE - hold a file against the JSON schema that speedscope publishes; says what is wrong.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.env.PROBING_READERS + '/package.json');
const Ajv = require('ajv');
const schema = JSON.parse(readFileSync(process.env.PROBING_READERS + '/node_modules/speedscope/dist/release/file-format-schema.json'));
const check = new Ajv({ strict: false }).compile(schema);

if (!check(JSON.parse(readFileSync(process.argv[2])))) {
	console.log(JSON.stringify(check.errors.slice(0, 5)));
	process.exit(1);
}
