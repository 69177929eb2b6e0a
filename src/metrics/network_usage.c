/* SPDX-License-Identifier: MIT */
/* network_usage.c - network_usage: traffic of each network interface, in the namespaces of the processes and in our own.
 *
 * The kernel has no account of a process' traffic, but one of its network namespace: a container has its own.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "src/metrics/sources.h"

enum { MAX_NAMESPACES = 32, LOOKS = 16, TEXT = 9 };

bool network_parse(const char *line, struct network_row *ret)
{
	unsigned long long n[8];

	if (sscanf(line, " %63[^: \t\n]: %20llu %20llu %20llu %20llu %*u %*u %*u %*u %20llu %20llu %20llu %20llu",
		   ret->interface, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) != 9)
		return false;
	ret->received_bytes = metric_scaled(n[0], 1);
	ret->received_packets = metric_scaled(n[1], 1);
	ret->receive_errors = metric_scaled(n[2], 1);
	ret->receive_drops = metric_scaled(n[3], 1);
	ret->sent_bytes = metric_scaled(n[4], 1);
	ret->sent_packets = metric_scaled(n[5], 1);
	ret->send_errors = metric_scaled(n[6], 1);
	ret->send_drops = metric_scaled(n[7], 1);
	return true;
}

static int put_all(const struct metrics *metrics, const struct metrics_moment *moment, uint64_t namespace,
		   const char *text, const struct metric_sink *sink)
{
	int r = 0;

	for (const char *line = text; line && *line && r >= 0;
	     line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		struct network_row net;

		if (!network_parse(line, &net) || (net.received_packets == 0 && net.sent_packets == 0))
			continue;
		const struct metric_value row[] = {
			metric_real(moment->seconds),         metric_integer((int64_t) namespace),
			metric_text(net.interface),           metric_integer(net.received_bytes),
			metric_integer(net.received_packets), metric_integer(net.receive_errors),
			metric_integer(net.receive_drops),    metric_integer(net.sent_bytes),
			metric_integer(net.sent_packets),     metric_integer(net.send_errors),
			metric_integer(net.send_drops),       metric_text(metrics->host),
		};

		r = sink->put(sink->data, "network_usage", row, N_ELEMENTS(row));
	}
	return r;
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* A process may enter another namespace; that is seen some looks later. 0: unknown. */
static uint64_t namespace_of(struct metrics *metrics, pid_t pid)
{
	struct kept_process *process = metric_process(metrics, pid);
	char path[PROC_PATH_BYTES];

	if (!process)
		return 0;
	if (process->networked == 0 || metrics->look - process->networked >= LOOKS) {
		proc_path(pid, "ns/net", path);
		process->network = inode_of(path);
		process->networked = metrics->look;
	}
	return process->network;
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	uint64_t seen[MAX_NAMESPACES] = { inode_of("/proc/self/ns/net") };
	size_t n_seen = 1;
	int r;

	r = put_all(metrics, moment, seen[0], metric_machine_file(metrics, FILE_NET_DEV), sink);
	for (size_t i = 0; i < moment->n_pids && n_seen < MAX_NAMESPACES && r >= 0; i++) {
		uint64_t namespace = namespace_of(metrics, moment->pids[i]);
		char path[PROC_PATH_BYTES];
		bool is_new = namespace != 0;

		for (size_t k = 0; k < n_seen; k++)
			is_new &= seen[k] != namespace;
		if (!is_new)
			continue;
		seen[n_seen++] = namespace;
		proc_path(moment->pids[i], "net/dev", path);
		r = put_all(metrics, moment, namespace, metric_read_once(metrics, TEXT, path), sink);
	}
	return r;
}

const struct metric_source metric_network_usage = { "network_usage", put };
