/* SPDX-License-Identifier: MIT */
/* tracepoint.c - the values of a tracepoint's raw record; see event.h.
 *
 * Invariant: no byte outside the record is read, for any field and record. The kernel
 * writes lengths and offsets into records, and descriptions come from a file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/syscall_name.h"
#include "base/util.h"
#include "src/capture/event.h"

void tracepoint_free(struct tracepoint *tracepoint)
{
	if (!tracepoint)
		return;
	free(tracepoint->fields);
	free(tracepoint);
}

void tracepoint_freep(struct tracepoint **tracepoint)
{
	tracepoint_free(*tracepoint);
}

/* Read an integer in native byte order, as the kernel wrote it. False: no integer has this width. */
static bool read_integer(const uint8_t *at, size_t n_bytes, bool is_signed, int64_t *ret)
{
	uint64_t value = 0;
	uint16_t half;
	uint32_t word;

	switch (n_bytes) {
	case 1:
		*ret = is_signed ? (int8_t)*at : *at;
		return true;
	case 2:
		memcpy(&half, at, sizeof half);
		*ret = is_signed ? (int16_t)half : half;
		return true;
	case 4:
		memcpy(&word, at, sizeof word);
		*ret = is_signed ? (int64_t)(int32_t)word : (int64_t)word;
		return true;
	case 8:
		memcpy(&value, at, sizeof value);
		*ret = (int64_t)value;
		return true;
	default:
		return false;
	}
}

/*
 * An unsigned value in the kernel's half of the address space could reveal the kernel's base address. The last page
 * holds no memory: error codes and -1 lie there. Source: IS_ERR_VALUE(), include/linux/err.h, Linux 6.18.
 */
static bool is_kernel_address(const struct tracepoint_field *field, size_t n_bytes, int64_t value)
{
	enum { MAX_ERRNO = 4095 };

	return n_bytes == 8 && !field->is_signed && (uint64_t)value >= UINT64_C(0xffff800000000000) &&
	       value < -MAX_ERRNO;
}

/* The bytes of a field. NULL: they lie outside the record. */
static const uint8_t *find_bytes(const struct tracepoint_field *field, const uint8_t *raw, size_t n_raw,
				 size_t *ret_bytes)
{
	uint64_t offset = field->offset, n_bytes = field->n_bytes;
	uint32_t word;

	if (offset + n_bytes > n_raw)
		return NULL;
	if (field->is_dynamic) {
		if (n_bytes != sizeof word)
			return NULL;
		memcpy(&word, raw + offset, sizeof word);
		offset = (word & 0xffff) + (field->is_relative ? offset + sizeof word : 0);
		n_bytes = word >> 16;
		if (offset + n_bytes > n_raw)
			return NULL;
	}
	*ret_bytes = n_bytes;
	return raw + offset;
}

/* Length of the UTF-8 character at this position; 0: malformed. RFC 3629, section 4. */
static size_t character_bytes(const uint8_t *at, size_t n_left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
	uint32_t value = n == 1 ? *at : *at & (0x7fu >> n);

	if (n == 0 || n > n_left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (at[i] >> 6 != 2)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	return value < least[n] || value > 0x10ffff || value >> 11 == 0x1b ? 0 : n;
}

static bool is_utf8(const uint8_t *bytes, size_t n_bytes)
{
	size_t n;

	for (size_t i = 0; i < n_bytes; i += n) {
		n = character_bytes(bytes + i, n_bytes - i);
		if (n == 0)
			return false;
	}
	return true;
}

/* A string up to NUL or the field's end. Malformed UTF-8 stays bytes. */
static struct tracepoint_value text_value(const uint8_t *bytes, size_t n_bytes)
{
	size_t n = strnlen((const char *)bytes, n_bytes);

	return (struct tracepoint_value){ .type = is_utf8(bytes, n) ? VALUE_TEXT : VALUE_BYTES,
					  .bytes = bytes,
					  .n_bytes = n };
}

/* Format "1 2 3", as many numbers as fit; "?" replaces a kernel address. */
static struct tracepoint_value numbers_value(const struct tracepoint_field *field, const uint8_t *bytes, size_t n_bytes,
					     char *room, size_t room_bytes)
{
	size_t n_element = field->element_bytes, used = 0;
	int64_t value;

	for (size_t i = 0; n_element > 0 && i + n_element <= n_bytes; i += n_element) {
		char number[32];
		int n;

		if (!read_integer(bytes + i, n_element, field->is_signed, &value))
			return (struct tracepoint_value){ .type = VALUE_BYTES, .bytes = bytes, .n_bytes = n_bytes };
		if (is_kernel_address(field, n_element, value))
			n = snprintf(number, sizeof number, "%s?", i > 0 ? " " : "");
		else
			n = snprintf(number, sizeof number, field->is_signed ? "%s%" PRId64 : "%s%" PRIu64,
				     i > 0 ? " " : "", value);
		if (n < 0 || (size_t)n > room_bytes - used)
			break;
		memcpy(room + used, number, (size_t)n);
		used += (size_t)n;
	}
	return (struct tracepoint_value){ .type = VALUE_TEXT, .bytes = room, .n_bytes = used };
}

static struct tracepoint_value syscall_value(int64_t number)
{
	const char *name = syscall_name(number);

	return name ? (struct tracepoint_value){ .type = VALUE_TEXT, .bytes = name, .n_bytes = strlen(name) }
		    : (struct tracepoint_value){ .type = VALUE_NONE };
}

struct tracepoint_value tracepoint_decode(const struct tracepoint_field *field, const void *raw, size_t n_bytes,
					  char *room, size_t room_bytes)
{
	struct tracepoint_value value = { .type = VALUE_NONE };
	const uint8_t *bytes;
	size_t n;

	bytes = find_bytes(field, raw, n_bytes, &n);
	if (!bytes)
		return value;
	switch (field->type) {
	case TRACEPOINT_INTEGER:
		if (read_integer(bytes, n, field->is_signed, &value.integer) &&
		    !is_kernel_address(field, n, value.integer))
			value.type = VALUE_INTEGER;
		return value;
	case TRACEPOINT_TEXT:
		return text_value(bytes, n);
	case TRACEPOINT_NUMBERS:
		return numbers_value(field, bytes, n, room, room_bytes);
	case TRACEPOINT_SYSCALL:
		return read_integer(bytes, n, field->is_signed, &value.integer) ? syscall_value(value.integer) : value;
	case TRACEPOINT_BYTES:
		break;
	}
	return (struct tracepoint_value){ .type = VALUE_BYTES, .bytes = bytes, .n_bytes = n };
}
