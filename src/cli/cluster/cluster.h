/* SPDX-License-Identifier: MIT */
/* cluster.h - the verbs of `probing cluster`, and the steps that they share. */
#ifndef PROBING_CLI_CLUSTER_H
#define PROBING_CLI_CLUSTER_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/cli/cli.h"
#include "src/cli/cluster/hosts.h"
#include "src/cluster/cluster.h"
#include "src/sql/sql.h"

/* All of them, NULL at the end; one without a summary is for probing itself, and in no list. */
extern const struct verb *const cluster_verbs[];

extern const struct verb cluster_verb_attach;
extern const struct verb cluster_verb_backtrace;
extern const struct verb cluster_verb_clock;
extern const struct verb cluster_verb_fetch;
extern const struct verb cluster_verb_flamegraph;
extern const struct verb cluster_verb_nodes;
extern const struct verb cluster_verb_query;
extern const struct verb cluster_verb_record;
extern const struct verb cluster_verb_report;
extern const struct verb cluster_verb_rows;

/* ---- run.c: one way to run every verb that asks ranks; a verb is a description ---- */

/* The options of a verb begin with their struct cluster_options, which stands for all of them. */
struct cluster_question {
	const struct argp *argp;
	bool has_tables; /* the cluster gets a database, unless this answers another machine */
	/* Contradictions that need more than argp; an exit status. NULL: none. */
	int (*check)(struct cluster_options *options);
	/* Read the ranks of this machine, or ask the hosts. Negative errno, or an exit status after its own message. */
	int (*here)(const struct cluster_options *options, struct cluster *cluster);
	int (*hosts)(const struct cluster_options *options, struct cluster *cluster);
	/* Print, for people; an exit status. Other machines get the document. */
	int (*show)(const struct cluster_options *options, struct cluster *cluster);
};

/* cluster_run - parse, read or ask, and show. @options: cluster_options_init() has set them up; ended here. Returns an exit status. */
int cluster_run(const struct cluster_question *question, struct cluster_options *options, int argc, char **argv);

/* ---- output.c: the form of an answer that is text, JSON or a picture, and its file ---- */

struct exporter;

enum { CLUSTER_OPTION_FORMAT = 0x680 };

enum cluster_format { CLUSTER_TEXT, CLUSTER_JSON, CLUSTER_SVG, CLUSTER_HTML, CLUSTER_BY_NAME };

struct cluster_output {
	enum cluster_format format;
	const char *path; /* "-": stdout */
};

#define CLUSTER_OUTPUT_ROWS                                                                                            \
	{ "format",                                                                                                    \
	  CLUSTER_OPTION_FORMAT,                                                                                       \
	  "FORMAT",                                                                                                    \
	  0,                                                                                                           \
	  "Print text, json, svg or html (default: by the file's name, else text)",                                    \
	  0 },                                                                                                         \
		{ "json", 'j', NULL, 0, "The same as --format json", 0 },                                              \
	{                                                                                                              \
		"output", 'o', "FILE", 0, "Write to this file (default: -, stdout)", 0                                 \
	}

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t cluster_output_parse(int key, char *argument, struct argp_state *state, struct cluster_output *output);

/* At the end of the options: the format is no longer CLUSTER_BY_NAME. */
void cluster_output_end(struct cluster_output *output);

bool cluster_output_is_drawn(const struct cluster_output *output);

/* cluster_output_check - 0, or prints why this build cannot write that picture and returns an exit status. */
int cluster_output_check(const struct cluster_output *output);

/* Of a picture. */
const struct exporter *cluster_output_exporter(const struct cluster_output *output);

/* ---- gather.c: answers of other machines, and of readers of ranks here, gathered into one cluster ---- */

/*
 * gather_hosts - ask all hosts "probing cluster WORDS", and read their documents. A host that fails is one with a problem.
 * Errors: -ENOMEM; what running commands reports.
 */
int gather_hosts(const struct cluster_options *options, const char *const *words, struct cluster *cluster);

/* gather_find - add this machine and its ranks, not read yet. -ENOMEM; what opening /proc reports. */
int gather_find(const struct cluster_options *options, struct cluster *cluster);

/*
 * gather_run - read each rank that did not fail by a process "probing WORDS" of its own.
 * @words: end with NULL; "%p" is the PID.
 * @take:  reads the answer of a rank: 0, -ENOMEM, or a negative errno for an answer that makes no sense.
 * Errors: -ENOMEM; what running commands reports.
 */
typedef int gather_take(struct cluster *cluster, struct cluster_rank *rank, const struct command *command);
int gather_run(const struct cluster_options *options, const char *const *words, gather_take *take,
	       struct cluster *cluster);
/* gather_extra - the same for something that a rank may lack: one that does not answer stays as it was. */
int gather_extra(const struct cluster_options *options, const char *const *words, gather_take *take,
		 struct cluster *cluster);
/*
 * gather_collectives - add the last collective of each process group to the ranks that were read and have the agent. One that
 * does not answer stays as it was. -ENOMEM; what running commands reports.
 */
int gather_collectives(const struct cluster_options *options, struct cluster *cluster);
/* gather_find() and gather_run(). */
int gather_ranks(const struct cluster_options *options, const char *const *words, gather_take *take,
		 struct cluster *cluster);

/* Hosts with another version of probing, on stderr. */
void gather_say_versions(const struct cluster *cluster);

/* Processes that may be ranks, and may not be read, on stderr. */
void gather_say_hidden(const struct cluster *cluster);

/* The exit status for a cluster of which this many ranks were read: the first one that was not says why none was. */
int gather_status(const struct cluster *cluster);

/* ---- ask.c: SQL over the gathered answers, in a database in memory ---- */

/* ask_open - give a cluster a database. Returns 0, or prints a message and returns an exit status. */
int ask_open(struct cluster *cluster);
/* End both. */
void ask_close(struct cluster *cluster);

/*
 * ask - add cluster.nodes and the functions of SQL, then print the answer to a statement, which can only read.
 * Returns an exit status.
 */
int ask(struct cluster *cluster, bool expects_all, const char *sql, const struct sql_rules *rules);

/* -f; an unknown format is a usage error. */
void ask_parse_format(struct argp_state *state, const char *name, struct sql_rules *rules);

/* ask_write_document - the answer to another machine, on stdout. Returns an exit status. */
int ask_write_document(const struct cluster *cluster);

/* ---- record_hosts.c: ranks of several machines in one recording ---- */

struct cluster_options;

/*
 * cluster_record_hosts - measure the clocks of all hosts, record on all of them at once, and merge.
 * @words:   options of probing record, end with NULL; NULL: none. -o names the recording here, else cluster.db.
 * @is_drawn: -o names a picture instead, else cluster.svg; the recording stays beside it. Then it returns after a failure only.
 * Returns an exit status.
 */
int cluster_record_hosts(struct cluster_options *options, char **words, bool is_drawn);

/*
 * cluster_record_for_another - the other side: record into a temporary file, and print it.
 * @pids: "812,813". @words: encoded; NULL: none. @start_ns: CLOCK_REALTIME; 0: at once.
 * Returns an exit status.
 */
int cluster_record_for_another(const char *pids, char **words, uint64_t start_ns);

#endif
