/* SPDX-License-Identifier: MIT */
/* cluster.h - the processes of a distributed job, their stacks, and all stacks as one tree.
 *
 * A job has ranks: processes with numbers from 0 on, on one machine or many. Each machine reads its own ranks and sends a
 * document; what reads documents (cluster_read()) trusts nothing in them. The tree (merge.c) begins with outermost
 * frames and knows which ranks are in each branch.
 */
#ifndef PROBING_CLUSTER_H
#define PROBING_CLUSTER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/interner.h"
#include "base/rank.h"
#include "base/sample.h"

enum {
	CLUSTER_FORMAT = 1,              /* of a document: "probing_cluster" */
	CLUSTER_MAX_BYTES = 64 << 20,    /* of a document */
	CLUSTER_MAX_ALL_BYTES = 1 << 30, /* of the documents of all hosts */
	CLUSTER_MAX_HOSTS = 1 << 14,
	CLUSTER_MAX_RANKS = 1 << 16,   /* of all hosts together */
	CLUSTER_MAX_JOBS = 1 << 10,    /* that are shown; each takes time for all ranks */
	CLUSTER_MAX_THREADS = 1 << 14, /* of a rank */
	CLUSTER_MAX_FRAMES = 4096,     /* of a thread */
	CLUSTER_MAX_TABLES = 64,       /* of a rank */
	CLUSTER_MAX_COLUMNS = 256,     /* of a table */
	CLUSTER_MAX_GROUPS = 256,      /* process groups of a rank */
	CLUSTER_MAX_STEPS = 2000,      /* of a rank's history: the last ones */
	CLUSTER_MAX_TEXT = 4096,       /* bytes of any text of a document; longer ones are cut */
};

/* ---- What was read ---- */

struct cluster_frame {
	enum frame_kind kind;
	bool is_builtin;
	const char *function, *file, *module; /* file and module: NULL unknown */
	int line;                             /* 0: unknown */
};

struct cluster_thread {
	pid_t tid;
	char *name, *python_name; /* python_name: NULL unknown */
	char state;               /* as in /proc; '?': unknown */
	char *wait;               /* "read for descriptor 6: pipe:[12]"; NULL: unknown, or it does not wait */
	bool holds_gil, is_approximate;
	uint32_t *frames; /* outermost first: indices into the cluster's frames */
	size_t n_frames;
};

enum rank_status { RANK_READ, RANK_GONE, RANK_REFUSED, RANK_SLOW, RANK_FAILED };

/* What a rank used in a time; negative: unknown. */
struct rank_usage {
	double seconds;     /* that time; 0: none was measured */
	double cpu_s;       /* of all of its threads */
	double queued_s;    /* they were ready, and waited for a processor */
	double throttled_s; /* its control group had used up its quota */
	double stolen_s;    /* of the machine: its hypervisor ran others instead */
	double limit_cpus;  /* quota of its control group */
	double memory_mb;   /* resident, at the end */
	double comm_s;      /* in operations of torch.distributed; several at once count once, those of GPUs each */
	double step_ms;     /* mean of its last steps; so are all that follow, of a step */
	double forward_ms, backward_ms, comm_ms, data_ms;
};
extern const struct rank_usage rank_usage_unknown; /* of no time, and nothing is known */

/* What the times of a rank's steps are. */
enum history_kind {
	HISTORY_STEP,    /* from step to step: where ranks wait for each other, all have the same */
	HISTORY_OUTSIDE, /* the same without communication */
	HISTORY_PASSES,  /* forward, backward and waits for data */
	N_HISTORY_KINDS,
};

/* The last steps of a rank, the oldest first: numbers grow. */
struct rank_history {
	enum history_kind kind;
	int64_t *steps;
	double *ms;
	size_t n, allocated; /* allocated: of both arrays */
};

/* The last collective that a rank has called in a process group of torch.distributed. Strings are owned. */
struct cluster_collective {
	char *group, *op;
	int64_t seq;  /* its number in the group, from 1 */
	bool is_open; /* it has not ended */
};

struct cluster_rank {
	size_t host; /* index */
	struct rank_identity identity;
	pid_t pid;
	enum rank_status status;
	char *problem; /* a sentence; NULL: it was read */
	char *command, *python;
	struct rank_usage usage;
	struct rank_history history;
	char *note;          /* why some of its tables are missing or incomplete; NULL: none is */
	char *data;          /* of cluster_write(): an answer of `probing cluster rows`, as it came; NULL: none */
	uint64_t started_ns; /* CLOCK_REALTIME, when it was read; 0: unknown */
	struct cluster_thread *threads; /* the main thread first */
	size_t n_threads, threads_allocated;
	struct cluster_collective *collectives;
	size_t n_collectives, collectives_allocated;
	struct cluster_look *looks; /* of cluster_report(), beside threads */
	size_t n_looks, looks_allocated;
};

/* A stack that many ranks share. */
struct cluster_stack {
	uint32_t *frames; /* outermost first: indices into the cluster's frames */
	size_t n_frames;
};

/* How many samples of a rank have that stack. */
struct cluster_look {
	uint32_t stack; /* index */
	uint64_t n;
};

struct cluster_host {
	char *name;      /* as the machine calls itself; NULL: it did not answer */
	char *address;   /* as the user named it; NULL: it is this machine */
	char *version;   /* of its probing; NULL: unknown */
	char *problem;   /* a sentence; NULL: it answered */
	size_t n_hidden; /* Python processes there that may be ranks, and may not be read */
};

/* All zero: empty. */
struct cluster {
	struct cluster_host *hosts;
	size_t n_hosts, hosts_allocated;
	struct cluster_rank *ranks;
	size_t n_ranks, ranks_allocated;
	struct cluster_frame *frames;
	size_t n_frames, frames_allocated;
	struct interner frame_keys; /* by all that a frame has: its index */
	struct cluster_stack *stacks;
	size_t n_stacks, stacks_allocated;
	sqlite3 *db; /* of the caller's: receives the ranks' tables; NULL: they stay in their rank's data */
};
void cluster_done(struct cluster *cluster);

/* cluster_add_host, cluster_add_rank - one more. @ret: valid until the next one. -ENOMEM, -E2BIG. */
int cluster_add_host(struct cluster *cluster, const char *name, const char *address, const char *version,
		     struct cluster_host **ret);
int cluster_add_rank(struct cluster *cluster, size_t host, pid_t pid, const struct rank_identity *identity,
		     struct cluster_rank **ret);
/* cluster_cut - forget hosts and ranks behind the first ones, as they were before a document that is refused. */
void cluster_cut(struct cluster *cluster, size_t n_hosts, size_t n_ranks);
/* cluster_add_thread - a thread without frames. -ENOMEM, -E2BIG. */
int cluster_add_thread(struct cluster_rank *rank, pid_t tid, char state);
/*
 * cluster_add_frame - the index of a frame, which is added if it is new.
 * @frame: its texts are copied. Errors: -ENOMEM, -EOVERFLOW.
 */
int cluster_add_frame(struct cluster *cluster, const struct cluster_frame *frame, uint32_t *ret);
/* cluster_add_stack - one more stack. @frames: indices, outermost first; copied. @ret: its index. -ENOMEM, -EOVERFLOW. */
int cluster_add_stack(struct cluster *cluster, const uint32_t *frames, size_t n_frames, uint32_t *ret);
/* cluster_add_looks - n samples of the rank have that stack. -ENOMEM. */
int cluster_add_looks(struct cluster_rank *rank, uint32_t stack, uint64_t n);
/* cluster_fail_rank - say why it was not read. @problem: copied. -ENOMEM. */
int cluster_fail_rank(struct cluster_rank *rank, enum rank_status status, const char *problem);
const char *rank_status_name(enum rank_status status);
/* A host as messages call it: its address, else its name. Never NULL. */
const char *cluster_host_label(const struct cluster_host *host);

/* cluster_sort - by job, rank, host, PID: what is printed comes in this order. */
void cluster_sort(struct cluster *cluster);

/* ---- Documents ---- */

/*
 * cluster_read - add all hosts and ranks of a document, as cluster_write() makes it.
 * @text:    any bytes.
 * @address: the host as the user named it: the document must be of one host; NULL: this machine, or a file.
 * Errors: -EBADMSG no such document; -EPROTONOSUPPORT of another format; -E2BIG; -ENOMEM. Then *cluster has none of its
 * hosts and ranks.
 */
int cluster_read(struct cluster *cluster, const char *text, size_t n_bytes, const char *address);

/*
 * cluster_read_backtrace - take the threads of a rank from what `probing backtrace --json` prints.
 * Errors: -EBADMSG, -E2BIG, -ENOMEM.
 */
int cluster_read_backtrace(struct cluster *cluster, struct cluster_rank *rank, const char *text, size_t n_bytes);

/*
 * cluster_read_collectives - take the collectives of a rank from what `probing cluster rows --each` prints for
 * cluster_collectives_sql. Errors: -EBADMSG, -E2BIG, -ENOMEM.
 */
extern const char cluster_collectives_sql[];
int cluster_read_collectives(struct cluster_rank *rank, const char *text, size_t n_bytes);

/*
 * cluster_read_steps - take the times of a rank's steps from what `probing cluster rows --each` prints for the statements
 * of cluster_steps_sql. A table that a rank does not have leaves its times unknown. Errors: -EBADMSG, -ENOMEM.
 */
enum { STEPS_OF_PROGRAM, STEPS_OF_PASSES, STEPS_OF_COMM, N_STEPS_SQL };
extern const char *const cluster_steps_sql[N_STEPS_SQL];
int cluster_read_steps(struct cluster_rank *rank, const char *text, size_t n_bytes);

/*
 * cluster_read_rows - put the rows of a rank into tables of cluster->db, from what `probing cluster rows` prints. Each table
 * has the columns host, rank and local_rank in front; its own columns of these names, or rowid, get a "_". Rows come by rank.
 * Errors: -EBADMSG, -E2BIG, -ENOMEM, -EINVAL SQLite refuses.
 */
int cluster_read_rows(struct cluster *cluster, struct cluster_rank *rank, const char *text, size_t n_bytes);

/*
 * cluster_add_nodes - make the table cluster.nodes in cluster->db. It has all ranks, the missing ones (the
 * first CLUSTER_MAX_RANKS of all jobs together) and hosts that did not answer. -ENOMEM, -EINVAL SQLite
 * refuses.
 */
int cluster_add_nodes(const struct cluster *cluster, bool expects_all);

struct cluster_tree;
/*
 * cluster_write - as JSON. @version: of this probing. @tree: with its classes; NULL: without.
 * 0, -ENOMEM, or the error of writing.
 */
int cluster_write(const struct cluster *cluster, const char *version, const struct cluster_tree *tree, FILE *out);

/* ---- Clocks ---- */

/* A question for the time and its answer, in ns of CLOCK_REALTIME: ours before and after, theirs between. */
struct clock_exchange {
	int64_t asked_ns, theirs_ns, answered_ns;
};

/* error_ns: the offset is wrong by at most so much, however unequal the two ways were. */
struct clock_offset {
	int64_t offset_ns, error_ns; /* offset_ns: how much their clock is ahead of ours */
};

/*
 * clock_offset_of - of the exchange with the shortest round trip: theirs is taken for the middle of it.
 * Returns false if no exchange makes sense. Source: RFC 5905, section 8.
 */
bool clock_offset_of(const struct clock_exchange *exchanges, size_t n, struct clock_offset *ret);

/* clock_parse - a time as other machines answer it: a decimal number alone. -EBADMSG. */
int clock_parse(const char *text, int64_t *ret);

/* ---- Many commands at once ---- */

struct command {
	char **argv; /* ends with NULL; borrowed */
	void *data;  /* of the caller */
	/* The result: */
	int error;       /* negative errno: it could not be started; -ETIMEDOUT: it was too slow, and killed; -E2BIG */
	int wait_status; /* of waitpid(2) */
	char *output, *complaint; /* stdout, and the last of stderr, NUL-terminated */
	size_t output_bytes;
	uint64_t duration_ns;
};

struct commands_options {
	unsigned n_at_once;   /* at most so many */
	uint64_t each_ns;     /* deadline of each, from its start */
	uint64_t all_ns;      /* deadline of all; those that wait then are -ETIMEDOUT; 0: none */
	size_t max_bytes;     /* of each output; one with more is killed, -E2BIG */
	size_t max_all_bytes; /* of all outputs together, in the same way; 0: no limit */
	/* Called for each that has ended, in that order; may be NULL. */
	void (*ended)(void *data, struct command *command);
	void *data;
};

/*
 * commands_run - run commands in parallel, each in a process group of its own that is killed at its deadline.
 * Their stdin is /dev/null. SIGINT, SIGTERM and SIGHUP, unless ignored, end them all, then take their effect on the caller.
 * Returns 0, -ENOMEM, -EINTR after such a signal, or what poll(2) and the like report.
 */
int commands_run(struct command *commands, size_t n, const struct commands_options *options);
void commands_done(struct command *commands, size_t n);
/* What a failed command said, in one line: its last sentence on stderr, or how it ended. */
void command_explain(const struct command *command, char *to, size_t n_bytes);

/* ---- One tree ---- */

struct tree_options {
	bool all_threads; /* false: the main thread of each rank */
	bool no_native;   /* Python frames alone */
	bool whole;       /* with frames of the start, and with each of a run of equal frames */
	const char *job;  /* only its ranks; NULL: all */
};

struct tree_node {
	uint32_t parent, frame;  /* node 0 is the root, without a frame */
	uint32_t child, sibling; /* first child, next sibling: fewest stacks first; 0: none */
	uint32_t n_stacks;
	uint32_t first;       /* its stacks are n_stacks from here on, in order */
	uint32_t least, most; /* how often the frame stands there in a row, in different stacks */
};

/* A thread of a rank in the tree. */
struct tree_stack {
	uint32_t rank, thread; /* indices */
	uint32_t leaf;         /* 0: it has no frames */
	uint32_t class;        /* index */
};

/* Stacks with equal Python frames or, if they have none, equal native frames. Those of stopped processes are apart. */
struct tree_class {
	uint32_t n_stacks;
	uint32_t first; /* stack: its lowest rank */
	uint32_t start; /* its stacks are n_stacks of by_class from here on */
};

struct cluster_tree {
	const struct cluster *cluster;
	struct tree_node *nodes;
	size_t n_nodes, nodes_allocated;
	struct tree_stack *stacks; /* by rank and thread */
	size_t n_stacks, stacks_allocated;
	uint32_t *order;            /* stacks, those of each node side by side */
	uint32_t *by_class;         /* stacks, those of each class side by side, by rank */
	struct tree_class *classes; /* fewest stacks first */
	size_t n_classes, classes_allocated;
	struct id_map by_place;     /* node by parent and frame */
	struct interner class_keys; /* class by its frames */
};

/* cluster_merge - @ret: borrows the cluster, which cluster_sort() has put in order; cluster_tree_done() ends it. -ENOMEM. */
int cluster_merge(const struct cluster *cluster, const struct tree_options *options, struct cluster_tree *ret);
void cluster_tree_done(struct cluster_tree *tree);

/*
 * The ranks of a node, or of a class, each once: "rank 3", "ranks 0-6,8", or "pid 31" of those without a rank. Owned by
 * the caller; NULL: no memory.
 */
char *tree_node_ranks(const struct cluster_tree *tree, uint32_t node);
char *tree_class_ranks(const struct cluster_tree *tree, uint32_t class_index);

/* cluster_ranks_text - the same of some of the cluster's ranks, by index. */
char *cluster_ranks_text(const struct cluster *cluster, const uint32_t *ranks, size_t n);

/*
 * cluster_missing - ranks of a job that its world size promises and no host has, as ranges. @ret: NULL: none.
 * @ret_n: how many. -ENOMEM.
 */
int cluster_missing(const struct cluster *cluster, const char *job, char **ret, uint64_t *ret_n);
/* cluster_each_missing - the same one by one; a negative result of take ends it and is returned. -ENOMEM. */
int cluster_each_missing(const struct cluster *cluster, const char *job,
			 int (*take)(void *data, const char *job, int64_t rank, int64_t world_size), void *data);

/* Where a stack is. NULL: there is no such frame. */
struct stack_place {
	const struct cluster_frame *own;        /* the innermost one of the user's own code */
	const struct cluster_frame *collective; /* the outermost one of torch.distributed and the like that it calls */
	const struct cluster_frame *python;     /* the innermost Python frame */
	const struct cluster_frame *builtin;    /* the outermost builtin that it calls */
	const struct cluster_frame *innermost;
};
void tree_place(const struct cluster_tree *tree, const struct tree_stack *stack, struct stack_place *ret);
/* The same of frames, outermost first. @ret: borrows the cluster's frames until the next one is added. */
void frames_place(const struct cluster *cluster, const uint32_t *frames, size_t n_frames, struct stack_place *ret);

/* ---- Output ---- */

/* The first CLUSTER_MAX_JOBS jobs of a cluster, each once, in order. @ret: free(3) ends it; borrows the names. -ENOMEM. */
int cluster_jobs(const struct cluster *cluster, const char *const **ret, size_t *ret_n);

/* cluster_print - all jobs: what is wrong, classes, trees. 0, -ENOMEM, -EIO. */
int cluster_print(const struct cluster *cluster, const struct tree_options *options, bool colour, bool expects_all,
		  FILE *out);

/*
 * cluster_put_collectives - print for each process group the ranks that have not called the collective in which others
 * wait; nothing if none waits. @job: NULL: of all jobs. -ENOMEM.
 */
int cluster_put_collectives(const struct cluster *cluster, const char *job, FILE *out);

/*
 * cluster_report - compare the ranks of each job by their usage, by the times of their steps and by the places they are in:
 * who differs, by how much, since when, and in what. The places are those of their threads, which are repeated looks at the
 * main thread, or of their samples (cluster_add_looks()). cluster_report_json() writes the same for programs.
 * @max_paths: of stacks in which a rank differs, each. 0, -ENOMEM, -EIO.
 */
int cluster_report(const struct cluster *cluster, unsigned max_paths, FILE *out);
int cluster_report_json(const struct cluster *cluster, unsigned max_paths, FILE *out);

/*
 * cluster_report_picture - the stacks of a rank against those of the others of its job, as a flame graph of differences.
 * @rank: number; negative: the rank that differs most, of the first job.
 * Errors: -ENOENT there is no such rank with samples, or no other one; -ENOMEM; -EIO.
 */
int cluster_report_picture(const struct cluster *cluster, int64_t rank, bool is_html, FILE *out);

/*
 * report_fisher - how probable it is that of n and of m looks, k and l or a more uneven number met a place. Both sides
 * are assumed to be there equally often: Fisher's exact test, two-sided.
 */
double report_fisher(unsigned k, unsigned n, unsigned l, unsigned m);

/* cluster_profile - the tree as a profile, a sample per stack, for the exporters. -ENOMEM. */
struct profile;
int cluster_profile(const struct cluster_tree *tree, struct profile **ret);

#endif
