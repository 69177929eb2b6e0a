/* SPDX-License-Identifier: MIT */
/* name_place.h - names that say where a function stands, for readers that show names alone. */
#ifndef PROBING_IMPORT_NAME_PLACE_H
#define PROBING_IMPORT_NAME_PLACE_H

#include "src/import/sink.h"

/*
 * name_without_place - "step (nn/train.py:7)" of the file /srv/nn/train.py is "step"; other names stay as they are.
 * What stands in parentheses has to be the end of the file's path, from a slash on.
 */
struct piece name_without_place(struct piece name, struct piece file);

#endif
