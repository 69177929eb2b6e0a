/* SPDX-License-Identifier: MIT */
/* text.h - names as they may be shown, and written into somebody else's format.
 *
 * Names come from other programs: they may hold any byte. Here they become
 * valid UTF-8, on one line where that is asked for, and from there XML.
 */
#ifndef PROBING_BASE_TEXT_H
#define PROBING_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The next character as it is; U+FFFD for a byte that is not UTF-8, 0 at the end. @at: moved behind it. */
int32_t text_decode(const char **at);

/* The same, fit for a terminal: a space for what would act on one (controls, the direction of writing, line ends). */
int32_t text_next_shown(const char **at);

/*
 * text_next - the next character, made harmless.
 * @at: moved behind it.
 * Returns its code point: U+FFFD for a byte that is not UTF-8 and for what
 * XML cannot hold, a space for a control character or line end, 0 at the end.
 */
int32_t text_next(const char **at);

/*
 * text_spell - a character for the eye: what acts on a terminal, or reorders or hides its neighbours, written out
 * (\n, \x1b, \u202e), all others as they are.
 * @to: at least TEXT_SPELL_BYTES, ended with a NUL.
 * Returns whether it was written out.
 */
#define TEXT_SPELL_BYTES 12
bool text_spell(int32_t character, char *to);

/* A text for the eye, each character as text_spell() has it, U+FFFD for a byte that is not UTF-8. */
void text_put_spelled(FILE *out, const char *text, size_t n_bytes);

/* Columns a character takes in a monospaced font: 0, 1 or 2. */
unsigned text_char_columns(int32_t character);
unsigned text_columns(const char *text);
unsigned text_columns_shown(const char *text); /* of text_next_shown() */

/* One character as UTF-8. @to: at least 4 bytes. Returns how many. */
size_t text_encode(int32_t character, char *to);
void text_put(FILE *out, int32_t character);

/* Write a name as XML character data or attribute value; what reorders or hides its neighbours is spelled out. */
void text_put_xml(FILE *out, const char *text);

/* The same, cut after @columns with an ellipsis as the last of them. */
void text_put_xml_cut(FILE *out, const char *text, unsigned columns);

/*
 * text_fixed - a decimal number whatever the locale.
 * @value: in units of 10^-@decimals, at most 19; trailing zeros are left out.
 * @to: at least TEXT_FIXED_BYTES. Returns its length.
 */
#define TEXT_FIXED_BYTES 48
size_t text_fixed(uint64_t value, unsigned decimals, char *to);
void text_put_fixed(FILE *out, uint64_t value, unsigned decimals);

/* As strcmp(3), of what becomes of two names. */
int text_compare(const char *a, const char *b);

/* End of an export: 0, or what went wrong with writing to out. */
int text_finish(FILE *out);

#endif
