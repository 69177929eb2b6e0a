/* SPDX-License-Identifier: MIT */
/* name_place.h - names that include a function's file and line, for viewers that show names alone. */
#ifndef PROBING_IMPORT_NAME_PLACE_H
#define PROBING_IMPORT_NAME_PLACE_H

#include "src/import/sink.h"

/*
 * name_without_place - "step (nn/train.py:7)" of the file /srv/nn/train.py is "step"; other names remain unchanged.
 * The text in parentheses must be the end of the file's path, from a slash on.
 */
struct piece name_without_place(struct piece name, struct piece file);

#endif
