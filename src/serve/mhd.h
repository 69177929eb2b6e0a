/* SPDX-License-Identifier: MIT */
/* mhd.h - libmicrohttpd, loaded when it is needed.
 *
 * It brings a library for TLS with it, whose start and end every run of probing would otherwise pay for.
 */
#ifndef PROBING_SERVE_MHD_H
#define PROBING_SERVE_MHD_H

#include <microhttpd.h>

/* Its functions, without their prefix. */
#define MHD_FUNCTIONS(X)                                                                                               \
	X(add_response_footer)                                                                                         \
	X(add_response_header)                                                                                         \
	X(create_response_from_buffer)                                                                                 \
	X(create_response_from_callback)                                                                               \
	X(destroy_response)                                                                                            \
	X(get_connection_info)                                                                                         \
	X(is_feature_supported)                                                                                        \
	X(lookup_connection_value)                                                                                     \
	X(queue_response)                                                                                              \
	X(set_connection_option)                                                                                       \
	X(start_daemon)                                                                                                \
	X(stop_daemon)

struct mhd {
#define X(name) __typeof__(&MHD_##name) name;
	MHD_FUNCTIONS(X)
#undef X
};
extern struct mhd mhd; /* after mhd_load() */

/* mhd_load - -ENOENT: the library is not installed, or lacks a function. */
int mhd_load(void);

#endif
