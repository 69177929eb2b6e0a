/* SPDX-License-Identifier: MIT */
/* otlp.h - the dictionary of an OTLP profiles file. Private to export_otlp.c.
 *
 * Each table is a set of packed messages: an index is their number in the order of insertion, so no item is there
 * twice. Items refer to items of other tables by index. The first item of each table is the zero value, which
 * stands for "none".
 * Source: opentelemetry-proto 1.11, profiles/v1development/profiles.proto, ProfilesDictionary.
 */
#ifndef PROBING_EXPORT_OTLP_H
#define PROBING_EXPORT_OTLP_H

#include <otlp.pb-c.h> /* generated from otlp.proto */

#include "base/interner.h"
#include "src/export/images.h"
#include "src/export/names.h"
#include "src/export/packer.h"
#include "src/profile/profile.h"

/* By field number in ProfilesDictionary; strings are in names instead. */
enum otlp_table {
	OTLP_MAPPINGS = 1,
	OTLP_LOCATIONS,
	OTLP_FUNCTIONS,
	OTLP_LINKS,
	OTLP_STRINGS,
	OTLP_ATTRIBUTES,
	OTLP_STACKS,
	OTLP_N_TABLES
};

/* Ended with otlp_done(). */
struct otlp {
	const struct profile *profile;
	struct packer packer;
	struct images images;
	struct names strings;
	struct names texts; /* those in attributes; never written */
	struct interner tables[OTLP_N_TABLES];
	struct otlp_place {
		unsigned n_inlined;
		int32_t location;
	} * places; /* by frame: its last location; n_inlined 0: none yet */
};

/* otlp_init - tables with their zero values. @profile outlives @ret. Errors of all: -ENOMEM; -EOVERFLOW a full table. */
int otlp_init(const struct profile *profile, struct otlp *ret);
void otlp_done(struct otlp *otlp);

/* otlp_add - the index of a message in a table. */
int otlp_add(struct otlp *otlp, enum otlp_table table, const ProtobufCMessage *message, int32_t *ret);
/* otlp_string - the index of a text; NULL is "". */
int otlp_string(struct otlp *otlp, const char *text, int32_t *ret);
/* otlp_text - a text as valid UTF-8 that lives as long as @otlp; NULL is "". */
int otlp_text(struct otlp *otlp, const char *text, char **ret);

/*
 * otlp_location - the index of a place.
 * @frame: the innermost of the n functions that are inlined into each other there.
 */
int otlp_location(struct otlp *otlp, int32_t frame, unsigned n, int32_t *ret);
/* otlp_nowhere - the index of a place that is no code, and has a name only: "[no stack]". */
int otlp_nowhere(struct otlp *otlp, const char *name, int32_t *ret);

/* Attributes of an item. The first error stays. */
enum { OTLP_MAX_ATTRIBUTES = 8 };
struct otlp_attributes {
	struct otlp *otlp;
	int32_t items[OTLP_MAX_ATTRIBUTES];
	size_t n;
	int error;
};
void otlp_attribute_text(struct otlp_attributes *attributes, const char *key, const char *text); /* NULL, "": none */
void otlp_attribute_number(struct otlp_attributes *attributes, const char *key, int64_t number);
void otlp_attribute_flag(struct otlp_attributes *attributes, const char *key, bool flag);

/* otlp_put_dictionary - write the tables as a field of a message. Errors of writing stay in out. */
void otlp_put_dictionary(const struct otlp *otlp, unsigned field, FILE *out);

#endif
