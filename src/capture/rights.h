/* SPDX-License-Identifier: MIT */
/* rights.h - rights and limits of this process. Private. */
#ifndef PROBING_CAPTURE_RIGHTS_H
#define PROBING_CAPTURE_RIGHTS_H

/* The soft limit is ours to raise up to the hard one. A child that is there keeps its own. */
void raise_descriptor_limit(void);

/*
 * descriptors_suffice - with all events open, are enough descriptors left?
 * A recording opens its file, and those of the libraries whose symbols it resolves. 0 or -EMFILE.
 */
int descriptors_suffice(void);

#endif
