/* naming.h - modules, functions and frames get their rows and names. Private;
 * used by one thread at a time: the writing thread, or rename.c afterwards. */
#ifndef PROBING_NAMING_H
#define PROBING_NAMING_H

#include "src/pipeline/batch.h"
#include "src/pipeline/generated_names.h"
#include "src/pipeline/name_client.h"
#include "src/store/store.h"
#include "symbolize/symbolize.h"

struct naming;

/* Where a module's names come from. */
struct naming_finder {
	/* Called once a module, at the first look-up in it. *ret is the naming's on success.
	 * Errors: -ENOMEM ends all; any other: the module has no names. */
	int (*open)(void *data, int64_t module_id, struct symbol_module **ret);
	void *data;
	const char *kallsyms; /* the kernel's symbols; NULL: those of /proc */
};

/*
 * @store:  borrowed.
 * @finder: NULL: the files as the recorded processes see them, told by naming_put_modules().
 */
int naming_new(struct store *store, const struct naming_finder *finder, struct naming **ret);
void naming_free(struct naming *names);

/* Read no file in this process: all names but those of the kernel come from @client, the naming's from here on. */
void naming_confine(struct naming *names, struct name_client *client);
/* What has gone wrong there; all zero: nothing, or names are found here. */
void naming_troubles(const struct naming *names, struct pipeline_name_troubles *ret);

/* Leave places in files and in the kernel without a name: nothing is opened but the kernel's symbols. */
void naming_without_files(struct naming *names);

/* Inside a transaction of the caller's: */
int naming_put_modules(struct naming *names, const struct new_module *modules, size_t n);
/* Python frames are named at once, others wait for naming_look_up. */
int naming_put_frames(struct naming *names, const struct new_frame *frames, size_t n);
/* The batch's programs and dumps; the next naming_look_up reads on in what all programs write. */
int naming_put_programs(struct naming *names, struct batch *batch);
/* The memory that the files take which names come from is given back meanwhile, when it is much. */
int naming_look_up(struct naming *names, size_t max);

/* Functions whose rows have been removed are new ones when they come again. Outside of transactions. */
int naming_forget_dropped(struct naming *names);

/* Whether naming_look_up has something to do. */
bool naming_is_waiting(const struct naming *names);

/* Places in generated code where other code lies now, since the last call; appended. -ENOMEM. */
int naming_take_stale(struct naming *names, struct stale_places *to);

/* ---- For a file that has rows already ---- */

/* The largest ids in it (functions below 2^31), and what stands under them. -ENOMEM. */
int naming_know_ids(struct naming *names, int64_t last_frame, int64_t last_function);
int naming_know_function(struct naming *names, const struct function_row *row);

/* How much a name says; more is larger. */
enum naming_quality { UNNAMED, NAMED_BY_OFFSET, NAMED, NAMED_WITH_LINE };

/*
 * naming_improve - look a place up, and name it where what is found says no less than @least.
 * @frame: id, kind, module_id and address are used.
 * @ret:   what its name says now.
 * Returns 1 where it was named, 0 where all is as it was, -ENOMEM, or what the store reports.
 */
int naming_improve(struct naming *names, const struct new_frame *frame, enum naming_quality least,
		   enum naming_quality *ret);

/* What the files of a module have turned out to hold, until it is closed; false: it has none. */
bool naming_sources(const struct naming *names, int64_t module_id, struct symbol_sources *ret);

/* What the recorder's own modules have been left without; zeroed where files are somebody else's to find. */
void naming_limited(const struct naming *names, struct symbol_limited *ret);

/* Let go of a module's files; it is not looked up again. */
void naming_close_module(struct naming *names, int64_t module_id);

/* Frames made for inlined functions so far, those of the file included. */
int64_t naming_inlined(const struct naming *names);

#endif
