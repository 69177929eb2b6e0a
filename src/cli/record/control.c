/* SPDX-License-Identifier: MIT */
/* control.c - see run.h.
 *
 * A pause begins by noting each process' program; then sampling stops, then pending
 * samples are taken. It ends by starting sampling; state without events meanwhile is read again
 * before the first event after it.
 */
#include "src/cli/record/run.h"

#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/target/target.h"

uint64_t recording_recorded_ns(const struct recording *recording)
{
	uint64_t now_ns = monotonic_ns(), until_ns = recording->is_paused ? recording->paused_ns : now_ns;

	return until_ns - recording->began_ns - recording->pauses_ns;
}

/* While paused, the remaining time stops: zeros disarm the timer. */
static void set_end(const struct recording *recording)
{
	uint64_t wanted_ns = (uint64_t)(recording->duration_s * 1e9), spent_ns = recording_recorded_ns(recording);
	uint64_t left_ns = spent_ns < wanted_ns ? wanted_ns - spent_ns : 1;

	if (recording->loop && recording->end_timer >= 0)
		(void)event_loop_set_timer(recording->loop, (unsigned)recording->end_timer,
					   recording->is_paused ? 0 : left_ns, 0);
}

void recording_pause(struct recording *recording)
{
	int r;

	if (recording->is_paused)
		return;
	if (recording->follows_waits) {
		fputs("not paused: a recording of waits has no pauses\n", stderr);
		return;
	}
	r = pipeline_pause(recording->pipeline);
	capture_pause(recording->capture);
	recording->paused_ns = monotonic_ns();
	recording->is_paused = true;
	set_end(recording);
	if (r >= 0)
		r = recording_take_all(recording);
	if (r >= 0)
		r = pipeline_flush(recording->pipeline);
	if (r < 0)
		recording->error = r;
}

void recording_end_pause(struct recording *recording)
{
	if (!recording->is_paused)
		return;
	recording->pauses_ns += monotonic_ns() - recording->paused_ns;
	recording->is_paused = false;
	if (pipeline_resume(recording->pipeline, false) < 0)
		recording->error = -ENOMEM;
}

void recording_resume(struct recording *recording)
{
	int r;

	if (!recording->is_paused)
		return;
	r = capture_resume(recording->capture);
	if (r >= 0)
		r = pipeline_resume(recording->pipeline, r > 0);
	recording->pauses_ns += monotonic_ns() - recording->paused_ns;
	recording->is_paused = false;
	set_end(recording);
	if (r < 0)
		recording->error = r;
}

static void tell_status(const struct recording *recording)
{
	struct pipeline_counts counts;
	struct capture_counts captured;
	char text[256];

	pipeline_read_counts(recording->pipeline, &counts);
	capture_read_counts(recording->capture, &captured);
	snprintf(text, sizeof text, "%s seconds=%.1f samples=%llu lost=%llu bytes=%lld",
		 recording->is_paused ? "paused" : "recording", (double)recording_recorded_ns(recording) / 1e9,
		 (unsigned long long)counts.samples, (unsigned long long)captured.lost,
		 (long long)pipeline_store_bytes(recording->pipeline));
	if (recording->control.reply_fd > 0)
		control_reply(&recording->control, "ok %s", text);
	else
		fprintf(stderr, "%s%s\n", recording->progress ? "\r\033[K" : "", text);
}

static void refuse(const struct recording *recording, const char *line)
{
	if (recording->progress)
		fputs("\r\033[K", stderr);
	cli_say("probing: unknown command on --control: '%s': use pause, resume, flush, stop or status\n", line);
	control_reply(&recording->control, "error unknown command '%s'", line);
}

static void obey(struct recording *recording, enum control_command command, const char *line)
{
	const struct control *control = &recording->control;

	switch (command) {
	case CONTROL_PAUSE:
		recording_pause(recording);
		control_reply(control, "ok pause");
		break;
	case CONTROL_RESUME:
		recording_resume(recording);
		control_reply(control, "ok resume");
		break;
	case CONTROL_FLUSH:
		recording->error = pipeline_flush(recording->pipeline);
		recording->n_flushes_asked++;
		break;
	case CONTROL_STOP:
		control_reply(control, "ok stop");
		break;
	case CONTROL_STATUS:
		tell_status(recording);
		break;
	case CONTROL_UNKNOWN:
		refuse(recording, line);
		break;
	}
}

/* Handle a few commands at a time: samples come first, whatever is written into the FIFO. */
bool recording_obey(struct recording *recording)
{
	enum { AT_ONCE = 16 };
	enum control_command command;
	const char *line;

	for (int i = 0; i < AT_ONCE && recording->error == 0 && control_next(&recording->control, &command, &line);
	     i++) {
		obey(recording, command, line);
		if (command == CONTROL_STOP)
			return true;
	}
	return false;
}

static void answer_flushes(struct recording *recording, const char *answer)
{
	for (; recording->n_flushes_asked > 0; recording->n_flushes_asked--)
		control_reply(&recording->control, "%s", answer);
}

void recording_answer_flush(struct recording *recording)
{
	if (recording->n_flushes_asked > 0 && pipeline_is_written(recording->pipeline))
		answer_flushes(recording, "ok flush");
}

void recording_answer_last(struct recording *recording, int error)
{
	answer_flushes(recording, error < 0 ? "error the recording has failed" : "ok flush");
}
