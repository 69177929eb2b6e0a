/* SPDX-License-Identifier: MIT */
/* text.h - names made safe to display, and to write into other formats.
 *
 * Names come from other programs: they may contain any byte. These functions make
 * them valid UTF-8, optionally on one line, and from there XML.
 */
#ifndef PROBING_BASE_TEXT_H
#define PROBING_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The next character as it is; U+FFFD for a byte that is not UTF-8, 0 at the end. @at: moved behind it. */
int32_t text_decode(const char **at);

/* The same for a terminal: a space for characters that act on one (controls, bidirectional marks, line ends). */
int32_t text_next_shown(const char **at);

/*
 * text_next - the next character, in a harmless form.
 * @at: advances past it.
 * Returns its code point: U+FFFD for a byte that is not UTF-8 and for characters that XML cannot
 * contain; a space for a control character or line end; 0 at the end.
 */
int32_t text_next(const char **at);

/*
 * text_spell - a character in visible form: escapes one that acts on a terminal, or reorders or hides its neighbours
 * (\n, \x1b, \u202e); copies all others.
 * @to: at least TEXT_SPELL_BYTES, ended with a NUL.
 * Returns whether it was escaped.
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

/* Write a name as XML character data or attribute value; escapes characters that reorder or hide their neighbours. */
void text_put_xml(FILE *out, const char *text);

/* The same, cut after @columns with an ellipsis as the last of them. */
void text_put_xml_cut(FILE *out, const char *text, unsigned columns);

/*
 * text_fixed - a decimal number, independent of the locale.
 * @value: in units of 10^-@decimals, at most 19; trailing zeros are omitted.
 * @to: at least TEXT_FIXED_BYTES. Returns its length.
 */
#define TEXT_FIXED_BYTES 48
size_t text_fixed(uint64_t value, unsigned decimals, char *to);
void text_put_fixed(FILE *out, uint64_t value, unsigned decimals);

/* As strcmp(3), of the displayed forms of two names. */
int text_compare(const char *a, const char *b);

/* End of an export: 0, or the error of writing to out. */
int text_finish(FILE *out);

#endif
