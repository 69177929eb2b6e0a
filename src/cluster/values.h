/* SPDX-License-Identifier: MIT */
/* values.h - values of foreign JSON, checked and limited. Private. */
#ifndef PROBING_CLUSTER_VALUES_H
#define PROBING_CLUSTER_VALUES_H

#include <jansson.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct cluster_rank;

/* value_load - a document of at most CLUSTER_MAX_BYTES. -EBADMSG, -E2BIG, -ENOMEM. */
int value_load(const char *text, size_t n_bytes, json_t **ret);
void value_decrefp(json_t **value);

/* A member's text; NULL: it has none. Borrowed. */
const char *value_text(const json_t *object, const char *key);
/* A copy, cut after CLUSTER_MAX_TEXT; replaces *ret, with NULL if there is no text. -ENOMEM. */
int value_copy_text(const json_t *object, const char *key, char **ret);
/* A number from low to high; else @otherwise. */
int64_t value_number(const json_t *object, const char *key, int64_t low, int64_t high, int64_t otherwise);
/* An array of at most so many items; an absent one is empty. -EBADMSG, -E2BIG. */
int value_array(const json_t *object, const char *key, size_t max, const json_t **ret);

/* cluster_rows_read - the tables of a rank (rows.c); without cluster->db, rank->data keeps them. Errors: those of cluster_read_rows(). */
int cluster_rows_read(struct cluster *cluster, struct cluster_rank *rank, const json_t *data);
/* cluster_rows_begin, cluster_rows_end - around a document: if it is refused, the tables lose its rows. -ENOMEM, -EINVAL. */
int cluster_rows_begin(struct cluster *cluster);
int cluster_rows_end(struct cluster *cluster, bool is_refused);

/* collectives.c: of a document. -E2BIG, -EBADMSG, -ENOMEM. */
int cluster_collectives_read(struct cluster_rank *rank, const json_t *from);
/* steps.c: of a document. -E2BIG, -EBADMSG, -ENOMEM. */
int cluster_history_read(struct cluster_rank *rank, const json_t *from);

#endif
