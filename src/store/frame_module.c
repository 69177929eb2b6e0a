/* SPDX-License-Identifier: MIT */
/* frame_module.c - whose code a frame is, where frames are told apart by that. */
#include "src/store/store.h"

const char *profile_frame_module(const struct profile_frame *frame)
{
	if (frame->kind == FRAME_KERNEL)
		return "[kernel]";
	if (frame->kind == FRAME_TASK)
		return "[tasks]";
	if (frame->kind == FRAME_WAIT)
		return "[waits]";
	if (frame->kind == FRAME_UNSAMPLED)
		return "[not sampled]";
	if (frame->kind == FRAME_PYTHON)
		return frame->file ? frame->file : "[python]";
	return frame->module ? frame->module : "[anonymous]";
}

const char *profile_frame_module_label(const struct profile_frame *frame)
{
	const char *path = frame->kind == FRAME_PYTHON ? frame->file : frame->module;
	const char *label = frame->kind == FRAME_PYTHON ? frame->file_label : frame->module_label;
	const char *module = profile_frame_module(frame);

	return module == path && label ? label : module;
}
