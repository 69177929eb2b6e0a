/* SPDX-License-Identifier: MIT */
/* slots.h - the function slots of a Python type: offsets and Python's names. */
#ifndef PROBING_SYMBOLIZE_SLOTS_H
#define PROBING_SYMBOLIZE_SLOTS_H

#include <stddef.h>
#include <stdint.h>

/* The structures that contain slots. */
enum slot_table { SLOT_TYPE, SLOT_ASYNC, SLOT_NUMBER, SLOT_SEQUENCE, SLOT_MAPPING, SLOT_BUFFER, SLOT_N_TABLES };

struct python_slot {
	uint8_t id; /* in a PyType_Spec; 0: none */
	uint8_t table;
	uint16_t offset;  /* in its table */
	const char *name; /* "__call__"; with a leading blank if Python has no name; NULL: the
			     type itself */
};

extern const struct python_slot python_slots[];
extern const size_t n_python_slots;

/* Offsets of the pointers to the other tables in PyTypeObject; 0 for SLOT_TYPE itself. */
extern const uint16_t slot_table_offsets[SLOT_N_TABLES];

/* The slot of an id in a PyType_Spec; NULL: not a function, or unknown. */
const struct python_slot *python_slot_by_id(uint64_t id);

enum {
	SLOT_ID_METHODS = 64,
	SLOT_ID_GETSET = 73,
	SLOT_ID_MAX = 128, /* larger ones are no slot array */
};

#endif
