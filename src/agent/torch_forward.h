/* SPDX-License-Identifier: MIT */
/* torch_forward.h - hooks of a module's forward pass, and builtins of torch.h. Private to torch*.c. */
#ifndef PROBING_AGENT_TORCH_FORWARD_H
#define PROBING_AGENT_TORCH_FORWARD_H

#include "src/agent/torch_objects.h"

object *enter(object *self, object *const *arguments, ssize_t n);
object *leave(object *self, object *const *arguments, ssize_t n);

#endif
