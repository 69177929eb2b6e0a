/* SPDX-License-Identifier: MIT */
/* pipeline_fixture.h - a pipeline that is given events made here, and interpreters from images of their memory. */
#ifndef PROBING_TESTS_PIPELINE_FIXTURE_H
#define PROBING_TESTS_PIPELINE_FIXTURE_H

#include <signal.h>
#include <sys/prctl.h>

#include "tests/unit/memory_image.h"
#include "tests/unit/store_fixture.h"

#include "base/util.h"
#include "src/pipeline/pipeline.h"
#include "src/pipeline/pipeline_private.h"

/* PIDs above the kernel's limit (PID_MAX_LIMIT, 4194304), so /proc never has them. */
enum { PARENT_PID = 5000000, CHILD_PID, GRANDCHILD_PID, OTHER_PID };

static inline struct pipeline *pipeline_with(const char *path, const struct pipeline_options *options)
{
	static const struct run_row run = { .started_ns = 1,
					    .command = "none",
					    .mode = "cpu",
					    .host = "here",
					    .kernel = "6",
					    .probing = "0",
					    .stack_source = "wakeup" };
	struct pipeline *pipeline;
	struct store *store;

	assert_int_equal(store_create(path, NULL, &store), 0);
	assert_int_equal(store_put_run(store, &run), 0);
	assert_int_equal(pipeline_new(store, options, &pipeline), 0);
	return pipeline;
}

static inline struct pipeline *new_pipeline(const char *path)
{
	return pipeline_with(path, &(struct pipeline_options){ 0 });
}

/* A time after the maps that the next event reads from /proc; these include older events. */
static inline uint64_t later(void)
{
	return monotonic_ns() + 1000000000;
}

static inline void take(struct pipeline *pipeline, struct capture_event event)
{
	assert_int_equal(pipeline_take_event(pipeline, &event), 0);
}

static inline struct capture_event forked(pid_t parent, pid_t child, uint64_t time_ns)
{
	return (struct capture_event){
		.type = CAPTURE_FORK, .time_ns = time_ns, .pid = child, .tid = child, .fork = { parent, parent }
	};
}

static inline struct capture_event named(pid_t pid, pid_t tid, const char *name, bool is_exec, uint64_t time_ns)
{
	return (struct capture_event){
		.type = CAPTURE_COMM, .time_ns = time_ns, .pid = pid, .tid = tid, .comm = { name, is_exec }
	};
}

static inline struct capture_event ended(pid_t pid, pid_t tid, uint64_t time_ns)
{
	return (struct capture_event){ .type = CAPTURE_EXIT, .time_ns = time_ns, .pid = pid, .tid = tid };
}

/* A page of code. */
static inline struct capture_event mapped(pid_t pid, uint64_t start, uint64_t time_ns)
{
	return (struct capture_event){
		.type = CAPTURE_MMAP,
		.time_ns = time_ns,
		.pid = pid,
		.tid = pid,
		.mmap = { .start = start, .end = start + 4096, .executable = true, .path = "/made/code" },
	};
}

/* A child of the test, which waits for its end, at the latest the test's own. */
static inline pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static inline void end_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The interpreter of fixtures/images/NAME.image; NAME.truth has its threads. */
static inline struct py_runtime *runtime_of_image(const char *name, struct memory_image *image)
{
	CLEANUP(freep) char *bytes = NULL;
	const char *root = getenv("PROBING_SOURCE_ROOT");
	struct py_runtime *runtime;
	char path[512], version[32];
	size_t n_bytes;

	assert_non_null(root);
	snprintf(path, sizeof path, "%s/fixtures/images/%s.image", root, name);
	assert_int_equal(read_file(path, 1 << 20, &bytes, &n_bytes), 0);
	image_parse(image, (const uint8_t *)bytes, n_bytes);
	assert_int_equal(image_open(image, &image->base, version, &runtime), 0);
	return runtime;
}

#endif
