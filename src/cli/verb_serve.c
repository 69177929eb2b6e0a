/* SPDX-License-Identifier: MIT */
/* verb_serve.c - recordings and processes over HTTP, until Ctrl-C. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/fleet_source.h"
#include "src/cli/python_program.h"
#include "src/cli/target_errors.h"
#include "src/export/export.h"
#include "src/http/http.h"
#include "src/serve/serve.h"

#define MIN_MEMORY (UINT64_C(16) << 20)
#define MAX_MEMORY (UINT64_C(1) << 43)

enum {
	OPTION_PORT = 0x200,
	OPTION_SOCKET,
	OPTION_TIMEOUT,
	OPTION_LIMIT,
	OPTION_LISTEN,
	OPTION_CERTIFICATE,
	OPTION_KEY,
	OPTION_TOKEN_FILE,
	OPTION_CA_FILE,
	OPTION_ALLOW_EVAL,
	OPTION_MEMORY,
	OPTION_HOSTS,
	OPTION_SSH,
	OPTION_REMOTE,
	OPTION_ALL,
	MAX_TARGETS = 64,
	MAX_COMMAND = 4096,
	PID_BYTES = 16,
	MAX_PEM_BYTES = 1 << 20,
};

struct options {
	const char *words[MAX_TARGETS];
	size_t n_words;
	bool all;                          /* Python processes, too */
	char pids[MAX_TARGETS][PID_BYTES]; /* of --all */
	struct serve_options serve;
	bool has_port;
	const char *listen, *certificate, *key; /* of --listen; NULL: not given */
};

/* What --listen reads; freed at the end. */
struct secrets {
	char *token, *token_path, *ca_path, *key, *certificate;
};

static void secrets_done(struct secrets *secrets)
{
	http_forget(secrets->token);
	http_forget(secrets->key);
	free(secrets->token_path);
	free(secrets->ca_path);
	free(secrets->certificate);
}

static const struct argp_option option_list[] = {
	{ "all", OPTION_ALL, NULL, 0, "Serve all running Python processes that you can inspect", 0 },
	{ "allow-eval", OPTION_ALLOW_EVAL, NULL, 0,
	  "Let clients with the token run Python code in the given processes (default: nobody); not with --listen", 0 },
	{ "port", OPTION_PORT, "PORT", 0, "Listen on this port of 127.0.0.1 (default: any free one)", 0 },
	{ "socket", OPTION_SOCKET, "PATH", 0, "Listen on a new unix socket instead, for your user only", 0 },
	{ "listen", OPTION_LISTEN, "ADDRESS:PORT", 0,
	  "Answer probing cluster of other machines; needs --token-file and, beyond loopback, TLS", 0 },
	{ "tls-certificate", OPTION_CERTIFICATE, "FILE", 0,
	  "With --listen: the server's certificate and its chain, PEM", 0 },
	{ "tls-key", OPTION_KEY, "FILE", 0, "With --listen: its private key, PEM; readable by its owner only", 0 },
	{ "token-file", OPTION_TOKEN_FILE, "FILE", 0,
	  "With --listen: the token that clients send, in the first line; readable by its owner only", 0 },
	{ "ca-file", OPTION_CA_FILE, "FILE", 0,
	  "With --listen: authorities of other servers that are asked from here, PEM (default: the system's)", 0 },
	{ "timeout", OPTION_TIMEOUT, "TIME", 0, "Cancel queries that take longer (default: 30s)", 0 },
	{ "limit", OPTION_LIMIT, "ROWS", 0, "Return at most ROWS rows of each result (default: 10000)", 0 },
	{ "hosts", OPTION_HOSTS, "HOST,...", 0,
	  "Show the ranks of these machines, as probing cluster --hosts does (default: those among the given processes)",
	  0 },
	{ "ssh", OPTION_SSH, "COMMAND", 0,
	  "With --hosts: command to run a command on a host, as of probing cluster --ssh", 0 },
	{ "remote-probing", OPTION_REMOTE, "PATH", 0, "With --hosts: path of probing on the hosts (default: probing)",
	  0 },
	{ "memory", OPTION_MEMORY, "SIZE", 0, "Cancel queries that take more memory (default: 384M)", 0 },
	{ 0 },
};

static bool is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* @text: changed. A link-local address has its interface behind a "%". */
static bool fill_address(char *text, bool is_v6, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	char *scope = is_v6 ? strchr(text, '%') : NULL;

	if (!is_v6) {
		*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
		return inet_pton(AF_INET, text, &v4->sin_addr) == 1;
	}
	*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (scope) {
		*scope = '\0';
		v6->sin6_scope_id = if_nametoindex(scope + 1);
	}
	return inet_pton(AF_INET6, text, &v6->sin6_addr) == 1 && (!scope || v6->sin6_scope_id != 0);
}

/* "10.0.0.7:7070", "[fd00::7]:7070", "[fe80::1%eth0]:7070". */
static void parse_address(struct argp_state *state, struct options *options)
{
	const char *colon = strrchr(options->listen, ':'), *from = options->listen;
	char address[INET6_ADDRSTRLEN + IF_NAMESIZE];
	size_t n = colon ? (size_t)(colon - from) : 0;
	bool is_v6 = n > 2 && from[0] == '[' && from[n - 1] == ']';

	if (is_v6) {
		from++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof address)
		argp_error(state, "--listen needs ADDRESS:PORT, such as 10.0.0.7:7070 or [fd00::7]:7070");
	snprintf(address, sizeof address, "%.*s", (int)n, from);
	if (!is_v6 && strchr(address, ':'))
		argp_error(state, "put an IPv6 address in brackets: [%s]:%s", address, colon + 1);
	options->serve.port = (uint16_t)cli_parse_number(state, colon + 1, "--listen", 0, UINT16_MAX);
	if (!fill_address(address, is_v6, options->serve.port, &options->serve.address))
		argp_error(state, "%s is no %s address", address, is_v6 ? "IPv6" : "IPv4");
	options->serve.is_cluster = true;
}

/* Beyond loopback nothing goes in the clear, and nobody is answered without a token. */
static void check_listen(struct argp_state *state, struct options *options)
{
	bool is_local;

	if (!options->listen) {
		if (options->certificate || options->key || options->serve.token_file || options->serve.ca_file)
			argp_error(state, "--tls-certificate, --tls-key, --token-file and --ca-file go with --listen");
		return;
	}
	if (options->serve.socket || options->has_port)
		argp_error(state, "give --listen, --port or --socket, not two of them");
	if (options->serve.allows_eval)
		argp_error(state, "--allow-eval is for this machine alone: omit it, or --listen");
	parse_address(state, options);
	is_local = is_loopback(&options->serve.address);
	if (!options->serve.token_file)
		argp_error(state, "--listen needs --token-file FILE: openssl rand -hex 32 >FILE; chmod 600 FILE");
	if (!options->certificate != !options->key)
		argp_error(state, "--tls-certificate and --tls-key go together");
	if (!options->certificate && !is_local)
		argp_error(state, "beyond loopback --listen needs --tls-certificate FILE and --tls-key FILE");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_PORT:
		options->serve.port = (uint16_t)cli_parse_number(state, argument, "--port", 0, UINT16_MAX);
		options->has_port = true;
		return 0;
	case OPTION_ALLOW_EVAL:
		options->serve.allows_eval = true;
		return 0;
	case OPTION_SOCKET:
		options->serve.socket = argument;
		return 0;
	case OPTION_TIMEOUT:
		options->serve.timeout_s = cli_parse_duration(state, argument, "--timeout", 0.1, 3600);
		return 0;
	case OPTION_LIMIT:
		options->serve.max_rows = (uint64_t)cli_parse_number(state, argument, "--limit", 1, 1e9);
		return 0;
	case OPTION_ALL:
		options->all = true;
		return 0;
	case OPTION_HOSTS:
		options->serve.hosts = argument;
		return 0;
	case OPTION_SSH:
		options->serve.ssh = argument;
		return 0;
	case OPTION_REMOTE:
		options->serve.remote = argument;
		return 0;
	case OPTION_MEMORY:
		options->serve.max_memory = cli_parse_bytes(state, argument, "--memory", MIN_MEMORY, MAX_MEMORY);
		return 0;
	case OPTION_LISTEN:
		options->listen = argument;
		return 0;
	case OPTION_CERTIFICATE:
		options->certificate = argument;
		return 0;
	case OPTION_KEY:
		options->key = argument;
		return 0;
	case OPTION_TOKEN_FILE:
		options->serve.token_file = argument;
		return 0;
	case OPTION_CA_FILE:
		options->serve.ca_file = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (options->n_words >= MAX_TARGETS)
			argp_error(state, "at most %d targets at a time", MAX_TARGETS);
		options->words[options->n_words++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (options->serve.socket && options->has_port)
			argp_error(state, "give --port or --socket, not both");
		check_listen(state, options);
		if ((options->serve.ssh || options->serve.remote) && !options->serve.hosts)
			argp_error(state, "%s goes with --hosts", options->serve.ssh ? "--ssh" : "--remote-probing");
		if (options->n_words == 0 && !options->listen && !options->all)
			options->words[options->n_words++] = "probing.db";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE|PID|clickhouse://...]",
	.doc = "Show recordings (default: probing.db) and running processes in a browser, and answer HTTP requests of "
	       "scripts. Only this machine can connect, unless --listen is given. Prints a link, whose token one "
	       "browser can use once. Ctrl-C ends it. Nobody can change a recording this way, or run code in a process "
	       "unless --allow-eval is given.\v"
	       "Examples:\n"
	       "  probing serve\n"
	       "  probing serve train.db 4242\n"
	       "  probing serve --all\n"
	       "  probing serve clickhouse://reader@fleet/probing\n"
	       "  PROBING_AUTH_TOKEN=$(openssl rand -hex 16) probing serve 4242 --port 9922\n"
	       "  probing serve train.db --socket /run/user/1000/probing.sock\n"
	       "  probing serve --listen 10.0.0.7:7070 --tls-certificate node.pem --tls-key node.key --token-file token\n"
	       "\n"
	       "With --listen, probing cluster --hosts https://10.0.0.7:7070 reads the ranks of this machine without ssh. It is off "
	       "unless it is asked for.\n"
	       "\n"
	       "With PROBING_AUTH_TOKEN (16 to 256 characters), requests may send Authorization: Bearer TOKEN; without it, the "
	       "token of the link is accepted there until a browser has opened the link. docs/serve.md describes the "
	       "requests.\n",
};

/* ---- Targets ---- */

static int fail_memory(void)
{
	return cli_fail(EXIT_FAILED, "not enough memory");
}

static int fill_process(const char *word, struct serve_target *ret)
{
	ret->pid = (pid_t)strtol(word, NULL, 10);
	ret->word = strdup(word);
	ret->command = proc_text(ret->pid, "cmdline", MAX_COMMAND);
	if (!ret->word || !ret->command)
		return fail_memory();
	if (!python_program(ret->pid, ret->python))
		ret->python[0] = '\0';
	ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	if (ret->pidfd < 0)
		return cli_fail(errno == ESRCH ? EXIT_NO_INPUT : EXIT_FAILED, "process %s cannot be served: %s", word,
				strerror(errno));
	return EXIT_OK;
}

/* The verbs that answer run in this folder too; a path from "/" is never taken for an option or for SQL. */
static int fill_recording(const char *word, struct serve_target *ret)
{
	ret->word = realpath(word, NULL);
	return ret->word ? EXIT_OK : cli_fail(cli_status(-errno), "%s cannot be opened: %s", word, strerror(errno));
}

/* One that cannot be asked now is an error at the start. */
static int fill_target(const char *word, struct serve_target *ret)
{
	struct endpoint endpoint;
	int status;

	*ret = (struct serve_target){ .name = word, .pidfd = -1 };
	if (fleet_source_is_one(word)) { /* its server may come and go */
		ret->is_fleet = true;
		ret->word = strdup(word);
		return ret->word ? EXIT_OK : fail_memory();
	}
	status = endpoint_open(&word, 1, false, &endpoint);
	if (status == EXIT_OK)
		status = endpoint_finish(&endpoint, EXIT_OK);
	if (status != EXIT_OK)
		return status;
	return endpoint_is_process(word) ? fill_process(word, ret) : fill_recording(word, ret);
}

static void target_done(struct serve_target *target)
{
	free((char *)target->word);
	free((char *)target->command);
	if (target->pidfd >= 0)
		close(target->pidfd);
}

static bool is_given(const struct options *options, const char *word)
{
	for (size_t i = 0; i < options->n_words; i++)
		if (strcmp(options->words[i], word) == 0)
			return true;
	return false;
}

/* The Python processes there are now become words, as if the user had given them. */
static int take_all(struct options *options)
{
	CLEANUP(target_options_done) struct target_options wanted = { 0 };
	CLEANUP(targets_done) struct targets targets = { 0 };
	char version[PYTHON_VERSION_BYTES];
	size_t n_left = 0;
	int status;

	if (glob_list_add(&wanted.comms, "*") < 0)
		return fail_memory();
	status = target_find(&wanted, &targets);
	for (size_t i = 0; i < targets.n && status == EXIT_OK; i++) {
		char *word = options->pids[MIN(options->n_words, (size_t)MAX_TARGETS - 1)];

		if (!python_program(targets.pids[i], version))
			continue;
		if (options->n_words == MAX_TARGETS) {
			n_left++;
			continue;
		}
		snprintf(word, PID_BYTES, "%d", (int)targets.pids[i]);
		if (!is_given(options, word))
			options->words[options->n_words++] = word;
	}
	target_print_refused(&targets, "served");
	if (n_left > 0)
		cli_say("probing: %zu more Python processes are not served: at most %d targets at a time\n", n_left,
			MAX_TARGETS);
	if (status == EXIT_OK && options->n_words == 0)
		return cli_fail(EXIT_NO_INPUT, "there is no Python process that you may inspect: probing list");
	return status;
}

/* ---- Serving ---- */

static int read_token(const char **ret)
{
	const char *token = getenv("PROBING_AUTH_TOKEN");
	size_t n = token ? strlen(token) : 0;

	if (n > 0 && (n < SERVE_MIN_TOKEN || n > SERVE_MAX_TOKEN))
		return cli_fail(EXIT_USAGE, "PROBING_AUTH_TOKEN must have %d to %d characters", SERVE_MIN_TOKEN,
				SERVE_MAX_TOKEN);
	*ret = n > 0 ? token : NULL;
	return EXIT_OK;
}

/* A secret that others may read is none. */
static int check_private(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return cli_fail(cli_status(-errno), "%s cannot be read: %s", path, strerror(errno));
	if (st.st_mode & 077)
		return cli_fail(EXIT_USAGE, "%s can be read or written by others: chmod 600 %s", path, path);
	return EXIT_OK;
}

static int read_pem(const char *path, char **ret)
{
	int r = read_file(path, MAX_PEM_BYTES, ret, NULL);

	return r < 0 ? cli_fail(cli_status(r), "%s cannot be read: %s", path, strerror(-r)) : EXIT_OK;
}

/* The files of --listen, for absolute paths: commands that answer read the token again. */
static int read_secrets(struct options *options, struct secrets *ret)
{
	const char *path = options->serve.token_file;
	int r, status = check_private(path);

	if (status != EXIT_OK)
		return status;
	r = http_read_secret(path, &ret->token);
	if (r < 0)
		return cli_fail(cli_status(r), "no token can be read from %s: %s", path, strerror(-r));
	if (strlen(ret->token) < SERVE_MIN_TOKEN || strlen(ret->token) > SERVE_MAX_TOKEN)
		return cli_fail(EXIT_USAGE, "the token in %s must have %d to %d characters", path, SERVE_MIN_TOKEN,
				SERVE_MAX_TOKEN);
	options->serve.token = ret->token;
	options->serve.token_file = ret->token_path = realpath(path, NULL);
	if (options->serve.ca_file)
		options->serve.ca_file = ret->ca_path = realpath(options->serve.ca_file, NULL);
	if (!ret->token_path || (ret->ca_path == NULL && options->serve.ca_file != NULL))
		return cli_fail(cli_status(-errno), "the files of --listen cannot be found: %s", strerror(errno));
	if (!options->certificate)
		return EXIT_OK;
	status = check_private(options->key);
	if (status == EXIT_OK)
		status = read_pem(options->key, &ret->key);
	if (status == EXIT_OK)
		status = read_pem(options->certificate, &ret->certificate);
	options->serve.key = ret->key;
	options->serve.certificate = ret->certificate;
	return status;
}

static int fail_open(const struct options *options, int error)
{
	if (error == -EOPNOTSUPP)
		return cli_fail(EXIT_FAILED, "this probing was built without libmicrohttpd, which serve needs");
	if (error == -ENOPKG)
		return cli_fail(EXIT_FAILED,
				"libmicrohttpd, which serve needs, cannot be loaded: apt install libmicrohttpd12");
	if (error == -EPROTONOSUPPORT)
		return cli_fail(EXIT_FAILED, "the libmicrohttpd of this machine has no TLS");
	if (error == -EKEYREJECTED)
		return cli_fail(EXIT_BAD_DATA, "%s and %s are not a certificate and its key", options->certificate,
				options->key);
	if (error == -EADDRINUSE && options->serve.socket)
		return cli_fail(EXIT_NO_OUTPUT, "%s exists: remove it, or give another path", options->serve.socket);
	if (error == -EADDRINUSE)
		return cli_fail(EXIT_NO_OUTPUT, "port %u is in use: give another one, or none", options->serve.port);
	return cli_fail(EXIT_NO_OUTPUT, "%s cannot be opened: %s",
			options->serve.socket ? options->serve.socket : "the port", strerror(-error));
}

/* nohup(1): a signal that is blocked would be taken all the same. */
static bool is_ignored(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Those that are closed would become connections, and then the input or output of a command. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Signals are blocked before there are threads: only serve_run() takes them. */
static int serve(const struct options *options)
{
	CLEANUP(serve_closep) struct serve *serve = NULL;
	sigset_t ends;
	int r;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* the exit status of each command is read */
	fill_standard_descriptors();
	r = serve_open(&options->serve, &serve);
	if (r < 0)
		return fail_open(options, r);
	if (printf("%s\n", serve_link(serve)) < 0 || fflush(stdout) != 0)
		return cli_fail_write("-", -errno);
	cli_say("Ctrl-C ends it\n");
	r = serve_run(serve, &ends);
	return r < 0 ? cli_fail(EXIT_FAILED, "serving failed: %s", strerror(-r)) : EXIT_OK;
}

static int run_serve(int argc, char **argv)
{
	CLEANUP(secrets_done) struct secrets secrets = { 0 };
	struct options options = { .serve = { .timeout_s = 30,
					      .max_rows = 10000,
					      .max_memory = 384 << 20,
					      .has_html = !export_diff_html_lacks() } };
	struct serve_target targets[MAX_TARGETS];
	size_t n = 0, n_given;
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	n_given = options.n_words;
	status = options.listen ? read_secrets(&options, &secrets) : read_token(&options.serve.token);
	if (status == EXIT_OK && options.all)
		status = take_all(&options);
	for (size_t i = 0; i < options.n_words && status == EXIT_OK; i++) {
		status = fill_target(options.words[i], &targets[n]);
		if (status == EXIT_OK)
			n++;
		else
			target_done(&targets[n]);
		if (i >= n_given) /* one of --all that has ended, say, is left out */
			status = EXIT_OK;
	}
	options.serve.targets = targets;
	options.serve.n_targets = n;
	if (status == EXIT_OK)
		status = serve(&options);
	for (size_t i = 0; i < n; i++)
		target_done(&targets[i]);
	return status;
}

const struct verb verb_serve = {
	.name = "serve",
	.summary = "show recordings and processes in a browser",
	.argp = &argp,
	.run = run_serve,
};
