/* SPDX-License-Identifier: MIT */
// read_pprof.mjs FILE - what a pprof file holds, as JSON, read with the package pprof-format.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { createRequire } from 'node:module';

const require = createRequire(process.env.PROBING_READERS + '/package.json');
const { Profile } = require('pprof-format');
const profile = Profile.decode(gunzipSync(readFileSync(process.argv[2])));
const text = (index) => profile.stringTable.strings[Number(index)];
const byId = (items) => new Map(items.map((item) => [Number(item.id), item]));
const locations = byId(profile.location), functions = byId(profile.function), mappings = byId(profile.mapping);

const lineOf = (line) => {
	const it = functions.get(Number(line.functionId));
	return { name: text(it.name), symbol: text(it.systemName), file: text(it.filename), line: Number(line.line) };
};
const placeOf = (id) => {
	const it = locations.get(Number(id)), mapping = mappings.get(Number(it.mappingId));
	return {
		address: Number(it.address),
		inlined: it.line.map(lineOf),
		module: mapping ? text(mapping.filename) : null,
		buildId: mapping ? text(mapping.buildId) : null,
		inside: !mapping || (it.address >= mapping.memoryStart && it.address < mapping.memoryLimit),
	};
};
process.stdout.write(JSON.stringify({
	types: profile.sampleType.map((type) => [text(type.type), text(type.unit)]),
	comments: profile.comment.map(text),
	samples: profile.sample.map((sample) => ({
		places: sample.locationId.map(placeOf), // innermost first
		values: sample.value.map(Number),
		labels: Object.fromEntries(sample.label.map((label) => [text(label.key), text(label.str) || Number(label.num)])),
	})),
}));
