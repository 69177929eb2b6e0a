/* SPDX-License-Identifier: MIT */
/* fleet.h - recordings of many hosts in ClickHouse.
 *
 * A shipment is a fixed range of a recording's samples. It is written down on the disk before it is sent (plan.h), has a
 * number, and is sent until the server has it. After any doubt the server is asked for the rows of that number first.
 * Names, stacks and threads go before it; rows of them that arrive twice are one.
 */
#ifndef PROBING_FLEET_H
#define PROBING_FLEET_H

#include "src/fleet/read.h"
#include "src/fleet/tables.h"

enum { FLEET_MAX_SENTENCE = 1024, FLEET_MAX_URLS = 64, FLEET_MAX_ROWS = 65536 };

/* How to talk to the servers. Strings are borrowed. */
struct fleet_access {
	const char *const *urls; /* http[s]://USER@HOST[:PORT]/DATABASE: a single server, or one of each shard */
	size_t n_urls;           /* 1 .. FLEET_MAX_URLS */
	const char *password;
	const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's authorities, no certificate of ours */
	bool (*keep_going)(void *data);             /* called about once a second; false ends the work; may be NULL */
	void *keep_going_data;
};

/* A range of a recording's samples, which was written down before it is sent. */
struct fleet_range {
	const char *path;
	int64_t first, last;         /* numbers of samples, both included */
	uint64_t since_ns, until_ns; /* from its earliest sample to its latest one, both included */
};

/* Another receiver than ClickHouse. */
struct fleet_sink {
	const char *target; /* plans are of it: the address without secrets */
	/*
	 * Send a range. @ret_bytes: sent. @why: a sentence, of FLEET_MAX_SENTENCE bytes.
	 * Returns 0: it has arrived; -EAGAIN: it is sent again later; -EMSGSIZE: it is too large, and sent as two halves;
	 * -EREMOTEIO: it is refused, and set aside; -EREMOTE: a part of it is, so it is set aside; another error ends the
	 * shipper.
	 */
	int (*send)(void *data, const struct fleet_range *range, uint64_t *ret_bytes, char *why);
	void *data;
};

struct fleet_options {
	struct fleet_access access;
	const struct fleet_sink *sink; /* instead of the servers of access; NULL: ClickHouse */
	bool retries_refused;          /* send again what a sink has refused */
	const char *job;               /* of all recordings */
	int rank;                      /* of processes whose environment says nothing; -1: unknown */
	double raw_s;                  /* send samples themselves if they are younger; 0: none, INFINITY: all */
	unsigned max_rows;             /* samples of a shipment, at most FLEET_MAX_ROWS; 0: that many */
	double every_s;                /* of a recording that is still written: how long its samples wait at most */
	const char *state;             /* folder of the plans; NULL: the user's state folder */
	void (*say)(void *data, const char *sentence); /* news on the way: a server that does not answer; may be NULL */
	void *say_data;
	/* Between requests: samples sent by this call, and those with all that wait; may be NULL. */
	void (*show)(void *data, uint64_t n_sent, uint64_t n_all);
	void *show_data;
};

struct fleet_result {
	uint64_t n_shipments, n_samples, n_bytes; /* sent by this call; bytes of blocks */
	uint64_t n_refused;                       /* samples that a sink has refused; the recording keeps them */
	uint64_t n_partly;                        /* of them those of shipments of which it has taken a part */
	char error[FLEET_MAX_SENTENCE];           /* after an error */
};

/*
 * fleet_ship - send recordings to the end; those that are still written are followed.
 * Errors: -ECANCELED keep_going() said so; -EACCES user or password, or rights; -ENOENT no tables, or no recording;
 *         -EBUSY another shipper has that recording; -EBADE the server has other rows than were sent;
 *         -EKEYREJECTED its certificate; -EREMOTEIO a sink refuses all shipments; others of reading and writing. ret->error has a sentence.
 * Of several recordings those that can be read are sent before such an error; say() has a sentence about each of the others.
 * Lost connections and overloaded servers are no errors: they are waited for without end.
 * A sink gets each range at least once: it cannot be asked whether one has arrived whose answer was lost.
 */
int fleet_ship(const char *const *paths, size_t n_paths, const struct fleet_options *options, struct fleet_result *ret);

/* A table's or user's statement, and whether it was carried out; for --init. */
struct fleet_init {
	struct fleet_access access;
	const char *cluster; /* NULL: a single server */
	bool is_replicated;
	unsigned keep_days, keep_totals_days; /* 0: for ever */
	const char *writer_password;          /* with both: users DATABASE_writer and DATABASE_reader */
	const char *reader_password;
	bool is_dry; /* print the statements, for a server's version, and change nothing */
	void (*print)(void *data,
		      const char *statement); /* each statement, before it is run; never one with a password */
	void *print_data;
};

/*
 * fleet_init - create the database and its tables on each server; add new columns to older tables; change retention.
 * May run while others send. @error: of FLEET_MAX_SENTENCE bytes.
 */
int fleet_init(const struct fleet_init *init, char *error);

/* What the server and the plan say about one recording. */
struct fleet_status {
	uint64_t run;
	int64_t n_recorded;                 /* number of its newest sample */
	int64_t n_planned;                  /* number of the last sample that a shipment has */
	uint64_t n_done, n_open, n_samples; /* shipments that arrived, that did not; samples of the former */
	uint64_t n_dropped;                 /* samples that the recording had dropped before they were sent */
	uint64_t n_refused;                 /* samples that a sink has refused */
	uint64_t n_wrong;                   /* fleet_verify(): shipments whose rows differ */
	uint64_t n_lost, n_doubled;         /* and by how many samples */
};

/* fleet_status - by the plan alone. */
int fleet_status(const char *path, const struct fleet_options *options, struct fleet_status *ret, char *error);

/* fleet_verify - also count the server's rows of each shipment. @wrong: called for each that differs; may be NULL. */
int fleet_verify(const char *path, const struct fleet_options *options,
		 void (*wrong)(void *data, uint32_t block, uint64_t there, uint64_t here), void *data,
		 struct fleet_status *ret, char *error);

/* fleet_drop_before - remove whole days of samples and totals, for servers without TTL. @days: how many stay. */
int fleet_drop_before(const struct fleet_access *access, unsigned days, unsigned totals_days, char *error);

#endif
