/* SPDX-License-Identifier: MIT */
/*
 * export_otlp.c - OTLP profiles, for OpenTelemetry's Collector and what receives from it.
 *
 * A file is one ProfilesData, which has the fields of ExportProfilesServiceRequest: the body of a request to
 * /v1development/profiles. A profile there has one type of values, so there are two: weights with the times of
 * samples, and numbers of samples. A sample is a stack with attributes; entries.h says which samples of ours are one.
 * A message's length precedes it, so profiles are made in memory.
 * Source: opentelemetry-proto 1.11, profiles/v1development/profiles.proto (status: alpha; 1.10 has the same fields).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/export/entries.h"
#include "src/export/export.h"
#include "src/export/gzip.h"
#include "src/export/otlp.h"
#include "src/export/stacks.h"

typedef Probing__Otlp__AnyValue any_value;
typedef Probing__Otlp__KeyValue key_value;
typedef Probing__Otlp__Profile profile_message;
typedef Probing__Otlp__Resource resource_message;
typedef Probing__Otlp__Sample sample_message;
typedef Probing__Otlp__Scope scope_message;
typedef Probing__Otlp__Stack stack_message;
typedef Probing__Otlp__ValueType value_type;

/* Field numbers of messages that are written in pieces. */
enum {
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	PROFILE_SAMPLES = 2,
};
enum { MAX_PROFILES = 2, MAX_RESOURCE_ATTRIBUTES = 12 };

/* A message, packed. */
struct part {
	char *bytes;
	size_t n;
};

struct writing {
	struct otlp otlp;
	const struct profile *profile;
	const struct export_options *options;
	struct entries entries;
	struct stacks stacks;
	struct identity {
		int32_t stack, attributes[OTLP_MAX_ATTRIBUTES];
		uint32_t n_attributes, entry;
	} * identities; /* of the entries, equal ones together: stacks may differ in frames that are not shown */
	int32_t *locations;
	size_t locations_allocated;
	uint32_t *rows; /* of the current sample, in the order of time */
	int64_t *values;
	uint64_t *times;
	size_t rows_allocated, values_allocated, times_allocated;
	struct part profiles[MAX_PROFILES], resource, scope;
	size_t n_profiles;
};

static void writing_done(struct writing *writing)
{
	otlp_done(&writing->otlp);
	entries_done(&writing->entries);
	stacks_done(&writing->stacks);
	free(writing->identities);
	free(writing->locations);
	free(writing->rows);
	free(writing->values);
	free(writing->times);
	for (size_t i = 0; i < MAX_PROFILES; i++)
		free(writing->profiles[i].bytes);
	free(writing->resource.bytes);
	free(writing->scope.bytes);
}

/* ---- Stacks and attributes of samples ---- */

static int add_stack(struct writing *writing, int32_t stack, int32_t *ret)
{
	struct stacks *stacks = &writing->stacks;
	stack_message message = PROBING__OTLP__STACK__INIT;
	const char *nowhere;
	int r;

	r = stacks_read(stacks, stack);
	if (r == 0)
		r = grow(&writing->locations, stacks->path.n, &writing->locations_allocated,
			 sizeof *writing->locations);
	if (r < 0)
		return r;
	message.location_indices = writing->locations;
	nowhere = stacks_nowhere(stacks);
	if (nowhere)
		r = otlp_nowhere(&writing->otlp, nowhere, &writing->locations[message.n_location_indices++]);
	for (size_t at = nowhere ? 0 : stacks->path.n; r == 0 && at > 0;) {
		unsigned n_inlined = stacks_count_inlined(stacks, at - 1);

		r = otlp_location(&writing->otlp, stacks->path.frames[at - 1], n_inlined,
				  &writing->locations[message.n_location_indices++]);
		at -= n_inlined;
	}
	return r < 0 ? r : otlp_add(&writing->otlp, OTLP_STACKS, &message.base, ret);
}

static void flag_answer(struct otlp_attributes *attributes, const char *key, enum answer answer)
{
	if (answer != ANSWER_UNKNOWN)
		otlp_attribute_flag(attributes, key, answer == ANSWER_YES);
}

/* Names without the prefix are OpenTelemetry's. Source: semantic conventions 1.37, registry: process, thread. */
static int add_attributes(struct writing *writing, const struct entry *entry, struct identity *identity)
{
	struct otlp_attributes attributes = { .otlp = &writing->otlp };

	otlp_attribute_number(&attributes, "process.pid", entry->pid);
	otlp_attribute_text(&attributes, "process.executable.name", entry->thread ? entry->thread->process : NULL);
	otlp_attribute_number(&attributes, "thread.id", entry->tid);
	otlp_attribute_text(&attributes, "thread.name", entry->thread ? entry->thread->name : NULL);
	if (entry->has_words) {
		otlp_attribute_text(&attributes, "probing.verdict", verdict_name(entry->verdict));
		otlp_attribute_text(&attributes, "probing.state", thread_state_name(entry->state));
		flag_answer(&attributes, "probing.gil", entry->gil);
		flag_answer(&attributes, "probing.gc", entry->gc);
	}
	memcpy(identity->attributes, attributes.items, sizeof attributes.items);
	identity->n_attributes = (uint32_t)attributes.n;
	return attributes.error;
}

static int compare_identities(const struct identity *left, const struct identity *right)
{
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	return memcmp(left->attributes, right->attributes, sizeof left->attributes);
}

static int compare_entries(const void *a, const void *b)
{
	const struct identity *left = a, *right = b;
	int order = compare_identities(left, right);

	return order != 0 ? order : left->entry < right->entry ? -1 : left->entry > right->entry;
}

static int identify_entries(struct writing *writing)
{
	int r = 0;

	writing->identities = calloc(writing->entries.n + 1, sizeof *writing->identities);
	if (!writing->identities)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < writing->entries.n; i++) {
		writing->identities[i].entry = (uint32_t)i;
		r = add_stack(writing, writing->entries.items[i].stack, &writing->identities[i].stack);
		if (r == 0)
			r = add_attributes(writing, &writing->entries.items[i], &writing->identities[i]);
	}
	qsort(writing->identities, writing->entries.n, sizeof *writing->identities, compare_entries);
	return r;
}

/* The index after the last entry that is the same sample as the first one. */
static size_t end_of_sample(const struct writing *writing, size_t first)
{
	size_t end = first + 1;

	while (end < writing->entries.n &&
	       compare_identities(&writing->identities[first], &writing->identities[end]) == 0)
		end++;
	return end;
}

static const struct entry *entry_of(const struct writing *writing, size_t i)
{
	return &writing->entries.items[writing->identities[i].entry];
}

/* ---- Profiles ---- */

static int put_piece(struct writing *writing, const ProtobufCMessage *message, FILE *out)
{
	int r = packer_pack(&writing->otlp.packer, message);

	if (r == 0)
		fwrite(writing->otlp.packer.bytes, 1, writing->otlp.packer.n, out);
	return r;
}

static int put_sample(struct writing *writing, size_t i, sample_message *sample, FILE *out)
{
	struct identity *identity = &writing->identities[i];
	int r;

	sample->stack_index = identity->stack;
	sample->attribute_indices = identity->attributes;
	sample->n_attribute_indices = identity->n_attributes;
	r = packer_pack(&writing->otlp.packer, &sample->base);
	if (r < 0)
		return r;
	packer_put_head(out, PROFILE_SAMPLES, writing->otlp.packer.n);
	fwrite(writing->otlp.packer.bytes, 1, writing->otlp.packer.n, out);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

/* Put rows of the entries from first to end in the order of time. */
static int collect_rows(struct writing *writing, size_t first, size_t end, size_t *ret)
{
	size_t n = 0;
	int r;

	for (size_t i = first; i < end; i++)
		n += entry_of(writing, i)->n;
	r = grow(&writing->rows, n, &writing->rows_allocated, sizeof *writing->rows);
	if (r == 0)
		r = grow(&writing->values, n, &writing->values_allocated, sizeof *writing->values);
	if (r == 0)
		r = grow(&writing->times, n, &writing->times_allocated, sizeof *writing->times);
	if (r < 0)
		return r;
	*ret = n;
	n = 0;
	for (size_t i = first; i < end; i++) {
		const struct entry *entry = entry_of(writing, i);

		memcpy(writing->rows + n, writing->entries.order + entry->first, entry->n * sizeof *writing->rows);
		n += entry->n;
	}
	if (end - first > 1)
		qsort(writing->rows, n, sizeof *writing->rows, compare_rows);
	return 0;
}

/* Each sample with its time and weight; of sums alone, their weight. */
static int put_weights(struct writing *writing, FILE *out)
{
	const struct profile *profile = writing->profile;
	int r = 0;

	for (size_t i = 0, end; r == 0 && i < writing->entries.n; i = end) {
		sample_message sample = PROBING__OTLP__SAMPLE__INIT;
		size_t n;

		end = end_of_sample(writing, i);
		r = collect_rows(writing, i, end, &n);
		if (r < 0)
			return r;
		writing->values[0] = 0;
		for (size_t j = 0; profile->n_samples > 0 && j < n; j++) {
			writing->values[j] = (int64_t)profile->samples[writing->rows[j]].weight;
			writing->times[j] = profile->samples[writing->rows[j]].time_ns;
		}
		for (size_t j = 0; profile->n_samples == 0 && j < n; j++)
			writing->values[0] += (int64_t)profile->totals[writing->rows[j]].weight;
		sample.values = writing->values;
		sample.n_values = profile->n_samples > 0 ? n : 1;
		sample.timestamps_unix_nano = writing->times;
		sample.n_timestamps_unix_nano = profile->n_samples > 0 ? n : 0;
		r = put_sample(writing, i, &sample, out);
	}
	return r;
}

/* Time that was not sampled has none. */
static int put_counts(struct writing *writing, FILE *out)
{
	int r = 0;

	for (size_t i = 0, end; r == 0 && i < writing->entries.n; i = end) {
		sample_message sample = PROBING__OTLP__SAMPLE__INIT;
		int64_t value = 0;

		end = end_of_sample(writing, i);
		for (size_t j = i; j < end; j++)
			value += (int64_t)entry_of(writing, j)->samples;
		sample.values = &value;
		sample.n_values = 1;
		if (value > 0)
			r = put_sample(writing, i, &sample, out);
	}
	return r;
}

static int value_type_of(struct otlp *otlp, const char *type, const char *unit, value_type *ret)
{
	int r;

	*ret = (value_type)PROBING__OTLP__VALUE_TYPE__INIT;
	r = otlp_string(otlp, type, &ret->type_strindex);
	return r < 0 ? r : otlp_string(otlp, unit, &ret->unit_strindex);
}

/* The name that OpenTelemetry uses for the time of a mode. */
static const char *type_of_mode(const char *mode)
{
	if (!mode || strcmp(mode, "imported") == 0)
		return "cpu";
	return strcmp(mode, "offcpu") == 0 ? "off_cpu" : mode;
}

/* The time from the first to the last sample, and of the recording. */
static void set_times(const struct profile *profile, profile_message *head)
{
	uint64_t first = profile->run.started_ns, end = profile->run.ended_ns;

	if (profile->n_samples > 0) {
		first = first > 0 ? MIN(first, profile->samples[0].time_ns) : profile->samples[0].time_ns;
		end = MAX(end, profile->samples[profile->n_samples - 1].time_ns + 1);
	}
	head->time_unix_nano = first;
	head->duration_nano = end > first ? end - first : 0;
}

static int put_head(struct writing *writing, bool is_count, FILE *out)
{
	const struct profile *profile = writing->profile;
	const struct profile_run *run = &profile->run;
	value_type samples, weight;
	profile_message head = PROBING__OTLP__PROFILE__INIT;
	int r = 0;

	if (is_count)
		r = value_type_of(&writing->otlp, "samples", "count", &samples);
	if (r == 0 && profile_has_weights(profile))
		r = value_type_of(&writing->otlp, profile->unit ?: type_of_mode(run->mode),
				  profile->unit ? "count" : "nanoseconds", &weight);
	if (r < 0)
		return r;
	head.sample_type = is_count ? &samples : &weight;
	if (run->hz > 0 && !profile->unit && profile_has_weights(profile)) {
		head.period_type = &weight;
		head.period = (int64_t)(1e9 / run->hz);
	}
	set_times(profile, &head);
	return put_piece(writing, &head.base, out);
}

static int make_profile(struct writing *writing, bool is_count)
{
	struct part *part = &writing->profiles[writing->n_profiles];
	FILE *out = open_memstream(&part->bytes, &part->n);
	int r;

	if (!out)
		return -ENOMEM;
	writing->n_profiles++;
	r = put_head(writing, is_count, out);
	if (r == 0)
		r = is_count ? put_counts(writing, out) : put_weights(writing, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	return r;
}

/* ---- Resource ---- */

struct resource {
	struct otlp *otlp;
	key_value pairs[MAX_RESOURCE_ATTRIBUTES], *list[MAX_RESOURCE_ATTRIBUTES];
	any_value values[MAX_RESOURCE_ATTRIBUTES];
	size_t n;
	int error;
};

static any_value *add_pair(struct resource *resource, const char *key)
{
	key_value *pair = resource->list[resource->n] = &resource->pairs[resource->n];
	any_value *value = &resource->values[resource->n++];

	*pair = (key_value)PROBING__OTLP__KEY_VALUE__INIT;
	pair->key = (char *)key;
	pair->value = value;
	*value = (any_value)PROBING__OTLP__ANY_VALUE__INIT;
	return value;
}

static void resource_text(struct resource *resource, const char *key, const char *text)
{
	any_value *value;
	int r;

	if (!text || !*text)
		return;
	value = add_pair(resource, key);
	value->value_case = PROBING__OTLP__ANY_VALUE__VALUE_TEXT;
	r = otlp_text(resource->otlp, text, &value->text);
	if (r < 0)
		resource->error = r;
}

static void resource_number(struct resource *resource, const char *key, int64_t number)
{
	any_value *value = add_pair(resource, key);

	value->value_case = PROBING__OTLP__ANY_VALUE__VALUE_NUMBER;
	value->number = number;
}

/*
 * The name of the program that a command runs: "train.py" of "/usr/bin/python3 -m train.py", "server" of "./server -v".
 * @ret_executable: that of the file that runs. Both are owned by the caller; NULL: out of memory.
 */
static char *program_name(const char *command, char **ret_executable)
{
	CLEANUP(freep) char *words = strdup(command ?: "");
	char *at = words, *word = words ? strsep(&at, " ") : NULL, *name = NULL;

	*ret_executable = word ? strdup(path_base_name(word)) : NULL;
	if (!*ret_executable)
		return NULL;
	if (strncmp(*ret_executable, "python", strlen("python")) == 0)
		while ((word = strsep(&at, " ")))
			if (*word && *word != '-') {
				name = word;
				break;
			}
	return strdup(name ? path_base_name(name) : *ret_executable);
}

static int pack_part(struct writing *writing, const ProtobufCMessage *message, struct part *part)
{
	FILE *out = open_memstream(&part->bytes, &part->n);
	int r;

	if (!out)
		return -ENOMEM;
	r = put_piece(writing, message, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	return r;
}

/* Source: semantic conventions 1.37, registry: service, host, process. */
static int make_resource(struct writing *writing)
{
	const struct profile_run *run = &writing->profile->run;
	CLEANUP(freep) char *executable = NULL;
	CLEANUP(freep) char *program = program_name(run->command, &executable);
	struct resource resource = { .otlp = &writing->otlp };
	resource_message message = PROBING__OTLP__RESOURCE__INIT;

	if (!program)
		return -ENOMEM;
	resource_text(&resource, "service.name", writing->options->service ?: (*program ? program : "unknown_service"));
	resource_text(&resource, "host.name", run->host);
	if (run->pid > 0)
		resource_number(&resource, "process.pid", run->pid);
	resource_text(&resource, "process.executable.name", executable);
	resource_text(&resource, "process.command_line", run->command);
	if (run->python) {
		resource_text(&resource, "process.runtime.name", "cpython");
		resource_text(&resource, "process.runtime.version", run->python);
	}
	if (resource.error < 0)
		return resource.error;
	message.attributes = resource.list;
	message.n_attributes = resource.n;
	return pack_part(writing, &message.base, &writing->resource);
}

static int make_scope(struct writing *writing)
{
	scope_message scope = PROBING__OTLP__SCOPE__INIT;
	int r;

	scope.name = "probing";
	r = otlp_text(&writing->otlp, writing->profile->run.probing, &scope.version);
	return r < 0 ? r : pack_part(writing, &scope.base, &writing->scope);
}

/* ---- File ---- */

static void put_part(const struct part *part, unsigned field, FILE *out)
{
	packer_put_head(out, field, part->n);
	fwrite(part->bytes, 1, part->n, out);
}

static void put_data(const struct writing *writing, FILE *out)
{
	uint64_t n_scope = packer_field_bytes(SCOPE_PROFILES_SCOPE, writing->scope.n), n_resource;

	for (size_t i = 0; i < writing->n_profiles; i++)
		n_scope += packer_field_bytes(SCOPE_PROFILES_PROFILES, writing->profiles[i].n);
	n_resource = packer_field_bytes(RESOURCE_PROFILES_RESOURCE, writing->resource.n) +
		     packer_field_bytes(RESOURCE_PROFILES_SCOPE_PROFILES, n_scope);
	packer_put_head(out, DATA_RESOURCE_PROFILES, n_resource);
	put_part(&writing->resource, RESOURCE_PROFILES_RESOURCE, out);
	packer_put_head(out, RESOURCE_PROFILES_SCOPE_PROFILES, n_scope);
	put_part(&writing->scope, SCOPE_PROFILES_SCOPE, out);
	for (size_t i = 0; i < writing->n_profiles; i++)
		put_part(&writing->profiles[i], SCOPE_PROFILES_PROFILES, out);
	otlp_put_dictionary(&writing->otlp, DATA_DICTIONARY, out);
}

static int make_parts(struct writing *writing)
{
	int r;

	r = stacks_init(writing->profile, writing->options, &writing->stacks);
	if (r == 0)
		r = entries_init(writing->profile, &writing->entries);
	if (r == 0)
		r = otlp_init(writing->profile, &writing->otlp);
	if (r == 0)
		r = identify_entries(writing);
	if (r == 0 && profile_has_weights(writing->profile))
		r = make_profile(writing, false);
	if (r == 0)
		r = make_profile(writing, true);
	if (r == 0)
		r = make_resource(writing);
	return r < 0 ? r : make_scope(writing);
}

unsigned export_otlp_count(const struct profile *profile)
{
	return profile_has_weights(profile) ? 2 : 1; /* make_parts() */
}

static int write_otlp(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(writing_done) struct writing writing = { .profile = profile, .options = options };
	FILE *compressed;
	int r;

	r = make_parts(&writing);
	if (r < 0)
		return r;
	if (!options->compress) {
		put_data(&writing, out);
		return text_finish(out);
	}
	r = gzip_open(out, &compressed);
	if (r < 0)
		return r;
	put_data(&writing, compressed);
	return fclose(compressed) != 0 ? -EIO : text_finish(out);
}

const struct exporter export_otlp = {
	.name = "otlp",
	.endings = ".otlp .otlp.gz",
	.summary = "OpenTelemetry profiles (alpha): for Collectors, Pyroscope, Elastic; times, attributes",
	.needs_samples = true,
	.write = write_otlp,
};
