/* SPDX-License-Identifier: MIT */
/* event_loop.c - see target.h. */
#include "src/target/target.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/capture.h"

int event_loop_init(struct event_loop *loop, void *data)
{
	*loop = (struct event_loop){ .epoll = epoll_create1(EPOLL_CLOEXEC), .data = data };
	return loop->epoll < 0 ? -errno : 0;
}

void event_loop_done(struct event_loop *loop)
{
	for (unsigned i = 0; i < loop->n_sources; i++)
		event_loop_unwatch(loop, i);
	if (loop->epoll >= 0)
		close(loop->epoll);
	loop->epoll = -1;
}

void event_loop_end(struct event_loop *loop)
{
	loop->is_over = true;
}

/* ---- Sources ---- */

static int add(struct event_loop *loop, const struct event_source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = loop->n_sources };
	int r = loop->n_sources == EVENT_SOURCES ? -ENOSPC : 0;

	if (r >= 0 && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0)
		r = -errno;
	if (r >= 0) {
		loop->sources[loop->n_sources] = *source;
		return (int)loop->n_sources++;
	}
	if (source->is_owned)
		close(source->fd);
	return r;
}

int event_loop_watch(struct event_loop *loop, int fd, bool is_owned, event_serve *serve)
{
	return fd < 0 ? fd : add(loop, &(struct event_source){ .fd = fd, .is_owned = is_owned, .serve = serve });
}

/* The capture adds its own descriptors to the epoll, under the number of the source. */
int event_loop_watch_capture(struct event_loop *loop, struct capture *capture, event_serve *serve)
{
	int r = loop->n_sources == EVENT_SOURCES ? -ENOSPC : capture_watch(capture, loop->epoll, loop->n_sources);

	if (r < 0)
		return r;
	loop->sources[loop->n_sources] = (struct event_source){ .fd = capture_fd(capture), .serve = serve };
	return (int)loop->n_sources++;
}

int event_loop_watch_signals(struct event_loop *loop, const sigset_t *signals, event_take_signal *take)
{
	int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	return add(loop, &(struct event_source){ .fd = fd, .is_owned = true, .take_signal = take });
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

static int set_timer(int fd, uint64_t first_ns, uint64_t every_ns)
{
	const struct itimerspec spec = { .it_value = to_timespec(first_ns), .it_interval = to_timespec(every_ns) };

	return timerfd_settime(fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int event_loop_watch_timer(struct event_loop *loop, uint64_t first_ns, uint64_t every_ns, event_serve *serve)
{
	CLEANUP(closep) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r = fd < 0 ? -errno : set_timer(fd, first_ns, every_ns);

	if (r < 0)
		return r;
	return add(loop,
		   &(struct event_source){ .fd = TAKE_FD(fd), .is_owned = true, .is_timer = true, .serve = serve });
}

int event_loop_set_timer(struct event_loop *loop, unsigned source, uint64_t first_ns, uint64_t every_ns)
{
	return set_timer(loop->sources[source].fd, first_ns, every_ns);
}

void event_loop_unwatch(struct event_loop *loop, unsigned source)
{
	struct event_source *ended = &loop->sources[source];

	if (ended->fd < 0)
		return;
	(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, ended->fd, NULL); /* a capture's is not in it */
	if (ended->is_owned)
		close(ended->fd);
	ended->fd = -1;
}

/* ---- Run ---- */

static void take_signals(struct event_loop *loop, const struct event_source *source)
{
	struct signalfd_siginfo info;

	while (!loop->is_over && read(source->fd, &info, sizeof info) == sizeof info)
		source->take_signal(loop->data, &info);
}

static void serve(struct event_loop *loop, const struct event_source *source)
{
	uint64_t expirations;

	if (source->fd < 0)
		return; /* another function of this round has ended it */
	if (source->take_signal)
		take_signals(loop, source);
	else if (!source->is_timer || read(source->fd, &expirations, sizeof expirations) == sizeof expirations)
		source->serve(loop->data);
}

/* Each ring of a capture has its own event, but the first one reads all rings. */
static bool is_served(const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 == events[n].data.u32)
			return true;
	return false;
}

int event_loop_run(struct event_loop *loop)
{
	struct epoll_event events[EVENT_SOURCES];

	while (!loop->is_over) {
		int n = epoll_wait(loop->epoll, events, EVENT_SOURCES, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !loop->is_over; i++)
			if (!is_served(events, i))
				serve(loop, &loop->sources[events[i].data.u32]);
	}
	return 0;
}
