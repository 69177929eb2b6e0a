/* SPDX-License-Identifier: MIT */
/* slots.c - the function slots of a Python type: offsets and Python's names.
 *
 * One row per slot. Offsets are those of 64-bit CPython 3.8 to 3.14 without
 * free threading; they have not changed in between (new fields were only added at the
 * end). To add a slot, add its row; the order does not matter.
 * Source: Include/cpython/object.h and Include/typeslots.h, CPython 3.13.
 */
#include "symbolize/slots.h"

#include "base/util.h"

const uint16_t slot_table_offsets[SLOT_N_TABLES] = {
	[SLOT_ASYNC] = 80, [SLOT_NUMBER] = 96, [SLOT_SEQUENCE] = 104, [SLOT_MAPPING] = 112, [SLOT_BUFFER] = 160,
};

const struct python_slot python_slots[] = {
	{ 52, SLOT_TYPE, 48, " deallocation" },    { 57, SLOT_TYPE, 64, "__getattribute__" },
	{ 68, SLOT_TYPE, 72, "__setattr__" },      { 66, SLOT_TYPE, 88, "__repr__" },
	{ 59, SLOT_TYPE, 120, "__hash__" },        { 50, SLOT_TYPE, 128, "__call__" },
	{ 70, SLOT_TYPE, 136, "__str__" },         { 58, SLOT_TYPE, 144, "__getattribute__" },
	{ 69, SLOT_TYPE, 152, "__setattr__" },     { 71, SLOT_TYPE, 184, " GC traversal" },
	{ 51, SLOT_TYPE, 192, " GC clearing" },    { 67, SLOT_TYPE, 200, " comparison" },
	{ 62, SLOT_TYPE, 216, "__iter__" },        { 63, SLOT_TYPE, 224, "__next__" },
	{ 54, SLOT_TYPE, 272, "__get__" },         { 55, SLOT_TYPE, 280, "__set__" },
	{ 60, SLOT_TYPE, 296, "__init__" },        { 47, SLOT_TYPE, 304, " allocation" },
	{ 65, SLOT_TYPE, 312, "__new__" },         { 74, SLOT_TYPE, 320, " freeing" },
	{ 61, SLOT_TYPE, 328, " GC test" },        { 53, SLOT_TYPE, 376, "__del__" },
	{ 80, SLOT_TYPE, 392, "__del__" },         { 82, SLOT_TYPE, 400, NULL }, /* tp_vectorcall: calls of the type */

	{ 77, SLOT_ASYNC, 0, "__await__" },        { 78, SLOT_ASYNC, 8, "__aiter__" },
	{ 79, SLOT_ASYNC, 16, "__anext__" },       { 81, SLOT_ASYNC, 24, " am_send" },

	{ 7, SLOT_NUMBER, 0, "__add__" },          { 36, SLOT_NUMBER, 8, "__sub__" },
	{ 29, SLOT_NUMBER, 16, "__mul__" },        { 34, SLOT_NUMBER, 24, "__mod__" },
	{ 10, SLOT_NUMBER, 32, "__divmod__" },     { 33, SLOT_NUMBER, 40, "__pow__" },
	{ 30, SLOT_NUMBER, 48, "__neg__" },        { 32, SLOT_NUMBER, 56, "__pos__" },
	{ 6, SLOT_NUMBER, 64, "__abs__" },         { 9, SLOT_NUMBER, 72, "__bool__" },
	{ 27, SLOT_NUMBER, 80, "__invert__" },     { 28, SLOT_NUMBER, 88, "__lshift__" },
	{ 35, SLOT_NUMBER, 96, "__rshift__" },     { 8, SLOT_NUMBER, 104, "__and__" },
	{ 38, SLOT_NUMBER, 112, "__xor__" },       { 31, SLOT_NUMBER, 120, "__or__" },
	{ 26, SLOT_NUMBER, 128, "__int__" },       { 11, SLOT_NUMBER, 144, "__float__" },
	{ 14, SLOT_NUMBER, 152, "__iadd__" },      { 23, SLOT_NUMBER, 160, "__isub__" },
	{ 18, SLOT_NUMBER, 168, "__imul__" },      { 21, SLOT_NUMBER, 176, "__imod__" },
	{ 20, SLOT_NUMBER, 184, "__ipow__" },      { 17, SLOT_NUMBER, 192, "__ilshift__" },
	{ 22, SLOT_NUMBER, 200, "__irshift__" },   { 15, SLOT_NUMBER, 208, "__iand__" },
	{ 25, SLOT_NUMBER, 216, "__ixor__" },      { 19, SLOT_NUMBER, 224, "__ior__" },
	{ 12, SLOT_NUMBER, 232, "__floordiv__" },  { 37, SLOT_NUMBER, 240, "__truediv__" },
	{ 16, SLOT_NUMBER, 248, "__ifloordiv__" }, { 24, SLOT_NUMBER, 256, "__itruediv__" },
	{ 13, SLOT_NUMBER, 264, "__index__" },     { 75, SLOT_NUMBER, 272, "__matmul__" },
	{ 76, SLOT_NUMBER, 280, "__imatmul__" },

	{ 45, SLOT_SEQUENCE, 0, "__len__" },       { 40, SLOT_SEQUENCE, 8, "__add__" },
	{ 46, SLOT_SEQUENCE, 16, "__mul__" },      { 44, SLOT_SEQUENCE, 24, "__getitem__" },
	{ 39, SLOT_SEQUENCE, 40, "__setitem__" },  { 41, SLOT_SEQUENCE, 56, "__contains__" },
	{ 42, SLOT_SEQUENCE, 64, "__iadd__" },     { 43, SLOT_SEQUENCE, 72, "__imul__" },

	{ 4, SLOT_MAPPING, 0, "__len__" },         { 5, SLOT_MAPPING, 8, "__getitem__" },
	{ 3, SLOT_MAPPING, 16, "__setitem__" },

	{ 1, SLOT_BUFFER, 0, "__buffer__" },       { 2, SLOT_BUFFER, 8, "__release_buffer__" },
};

const size_t n_python_slots = N_ELEMENTS(python_slots);

const struct python_slot *python_slot_by_id(uint64_t id)
{
	for (size_t i = 0; i < N_ELEMENTS(python_slots); i++)
		if (id != 0 && python_slots[i].id == id)
			return &python_slots[i];
	return NULL;
}
