/* SPDX-License-Identifier: MIT */
/* torch.h - hooks of torch's modules and autograd nodes: the hot part of python/probing/_torch.py in C. Private.
 *
 * The package finds it as sys._probing_rings[2], a dict of builtins:
 *
 *   begin(trace, local, is_grad_enabled, is_tracing, Tensor, AccumulateGrad, dummy, OrderedDict)
 *                          the functions and classes of this torch; forgets all modules. trace has identify(module),
 *                          begin_outermost(grad), is_outermost(), end_inference() and fail(error, traceback). local is a
 *                          threading.local. dummy is None, or, before torch 2.0, a callable that makes a tensor
 *   step(append, step, local_step, global_step, rank, step_began, layer_rate, backward)
 *                          later rows have these; seq begins with 0
 *   cuda(cuda)             times and memory of the GPU: begin(), end(pass, output) and end_backward(pass) of _torch.Cuda; or None
 *   know(module, number, name, class, is_root), forget(id(module))
 *   enter(module, inputs), leave(module, inputs, output)
 *                          hooks for register_module_forward_pre_hook() and register_module_forward_hook()
 *   clear()                forget the calls that this thread is in
 *   sequence()             the next seq
 *   registrar(register)    a function for torch.autograd.Function._register_hook: registers the hooks of this file, and calls
 *                          register for all others
 *   start(), end()         append rows, or none any more
 */
#ifndef PROBING_AGENT_TORCH_H
#define PROBING_AGENT_TORCH_H

/* torch_builtins - the dict, a new reference; NULL: the interpreter lacks a function, or has no memory. With its lock. */
void *torch_builtins(void);

/* In a forked child, which has one thread. */
void torch_fork(void);

#endif
