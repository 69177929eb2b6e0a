/* SPDX-License-Identifier: MIT */
/* rights.h - what we may. Private. */
#ifndef PROBING_CAPTURE_RIGHTS_H
#define PROBING_CAPTURE_RIGHTS_H

/* The soft limit is ours to raise up to the hard one. A child that is there keeps its own. */
void raise_descriptor_limit(void);

/*
 * descriptors_suffice - after all that takes many are open, is enough left for the rest?
 * A recording opens its file, and those of the libraries that it names. 0 or -EMFILE.
 */
int descriptors_suffice(void);

#endif
