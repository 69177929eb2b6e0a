/* SPDX-License-Identifier: MIT */
/* completion.c - scripts that complete command lines in bash, zsh and fish, from the descriptors of verbs.
 *
 * The scripts hold the options. Words that change (PIDs, events, functions) come from "probing help --words KIND" when
 * somebody presses Tab.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/described.h"

/* Text between single quotes of a shell. */
static void put_quoted(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
	fputc('\'', out);
}

/* All verbs with their other names, as one pattern a verb: "backtrace|dump|bt|b". */
static void put_pattern(const struct verb *verb, const char *separator, FILE *out)
{
	const char *alias = verb->aliases ? verb->aliases : "";

	fputs(verb->name, out);
	while (*(alias += strspn(alias, " "))) {
		size_t n = strcspn(alias, " ");

		fputs(separator, out);
		fwrite(alias, 1, n, out);
		alias += n;
	}
}

typedef void put_verb(const struct described *described, FILE *out);

static int each_verb(put_verb *put, FILE *out)
{
	for (size_t i = 0; verbs[i]; i++) {
		CLEANUP(described_done) struct described described = { 0 };
		int r = described_init(verbs[i], &described);

		if (r < 0)
			return r;
		put(&described, out);
	}
	return 0;
}

static const char *kind_of(const struct described_option *option)
{
	return words_of_argument(option->names[0] ? option->names[0] : "", option->argument);
}

/* ---- bash ---- */

static void put_bash_words(const struct described *described, FILE *out)
{
	fputs("\t", out);
	put_pattern(described->verb, "|", out);
	fputs(") verb=", out);
	fprintf(out, "%s; break ;;\n", described->verb->name);
}

static void put_bash_options(const struct described *described, FILE *out)
{
	const char *kind = words_of_argument(NULL, described->verb->argp->args_doc);

	fprintf(out, "\t%s)\n\t\targuments=%s\n\t\toptions='", described->verb->name, kind ? kind : "none");
	for (size_t i = 0; i < described->n; i++)
		for (unsigned j = 0; j < MAX_OPTION_NAMES && described->options[i].names[j]; j++)
			fprintf(out, "--%s%s ", described->options[i].names[j],
				described->options[i].argument && !described->options[i].may_lack_argument ? "=" : "");
	fputs("'\n\t\tcase $option in\n", out);
	for (size_t i = 0; i < described->n; i++) {
		const struct described_option *option = &described->options[i];

		if (!option->argument || option->may_lack_argument)
			continue;
		fputs("\t\t", out);
		for (unsigned j = 0; j < MAX_OPTION_NAMES && option->names[j]; j++)
			fprintf(out, "%s--%s", j > 0 ? "|" : "", option->names[j]);
		for (const char *letter = option->letters; *letter; letter++)
			fprintf(out, "%s-%c", option->names[0] || letter > option->letters ? "|" : "", *letter);
		kind = kind_of(option);
		fprintf(out, ") kind=%s ;;\n", kind ? kind : "none");
	}
	fputs("\t\tesac ;;\n", out);
}

/*
 * Names of processes and functions are foreign text. compgen -W would expand them, and so run what "$(...)" says: compare them
 * here, and quote what the command line gets.
 */
static int write_bash(FILE *out)
{
	int r;

	fputs("# bash completion for probing: made by 'probing help --completion bash'.\n"
	      "_probing() {\n"
	      "\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} verb= kind= arguments=verbs options= found i\n"
	      "\t# bash takes '=' for a word of its own\n"
	      "\tif [[ $word == = ]]; then word=\n"
	      "\telif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	      "\tCOMPREPLY=()\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tcase ${COMP_WORDS[i]} in\n"
	      "\t\t--) [[ $verb ]] && break ;;\n",
	      out);
	r = each_verb(put_bash_words, out);
	fputs("\t\tesac\n\tdone\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then kind=commands; fi\n"
	      "\tdone\n"
	      "\tif [[ ! $kind ]]; then\n"
	      "\tcase $verb in\n",
	      out);
	if (r >= 0)
		r = each_verb(put_bash_options, out);
	fputs("\tesac\n\tfi\n"
	      "\tif [[ ! $kind ]]; then\n"
	      "\t\tif [[ $word == -* ]]; then\n"
	      "\t\t\t[[ $verb ]] || options='--help --version'\n"
	      "\t\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	      "\t\t\t[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	      "\t\t\treturn\n"
	      "\t\tfi\n"
	      "\t\tkind=$arguments\n"
	      "\tfi\n"
	      "\tlocal IFS=$'\\n'\n"
	      "\tcase $kind in\n"
	      "\tnone) ;;\n"
	      "\tfiles) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
	      "\tfolders) compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")) ;;\n"
	      "\trecordings) compopt -o filenames\n"
	      "\t\tCOMPREPLY=($(compgen -f -X '!*.db' -- \"$word\") $(compgen -d -- \"$word\")) ;;\n"
	      "\tcommands) COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\")) ;;\n"
	      "\t*) while IFS= read -r found; do\n"
	      "\t\t\tfound=${found%%$'\\t'*}\n"
	      "\t\t\t[[ $found == \"$word\"* ]] && printf -v found %q \"$found\" && COMPREPLY+=(\"$found\")\n"
	      "\t\tdone < <(probing help --words \"$kind\" 2>/dev/null) ;;\n"
	      "\tesac\n"
	      "\tif [[ $kind == pids* && ! $word == -* && $arguments == pids* ]]; then\n"
	      "\t\tcompopt -o filenames; COMPREPLY+=($(compgen -f -X '!*.db' -- \"$word\"))\n"
	      "\tfi\n"
	      "}\n"
	      "complete -F _probing probing\n",
	      out);
	return r;
}

/* ---- zsh ---- */

/* In an option's description zsh takes brackets and colons for its own. */
static void put_zsh_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			fputc('\\', out);
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static void put_zsh_option(const struct described *described, const struct described_option *option, FILE *out)
{
	CLEANUP(freep) char *text = described_text(described->verb, option->row->key, option->row->doc);
	const char *kind = kind_of(option);

	for (unsigned j = 0; j < MAX_OPTION_NAMES + strlen(option->letters); j++) {
		bool is_letter = j >= MAX_OPTION_NAMES;

		if (!is_letter && !option->names[j])
			continue;
		fputs("\t\t\t'*", out);
		if (is_letter)
			fprintf(out, "-%c%s", option->letters[j - MAX_OPTION_NAMES],
				option->argument && !option->may_lack_argument ? "+" : "");
		else
			fprintf(out, "--%s%s", option->names[j],
				!option->argument           ? ""
				: option->may_lack_argument ? "=-"
							    : "=");
		fputc('[', out);
		put_zsh_text(text ? text : "", out);
		fputc(']', out);
		if (option->argument) {
			fputs(option->may_lack_argument ? "::" : ":", out);
			put_zsh_text(option->argument, out);
			fprintf(out, ": _probing_words %s", kind ? kind : "none");
		}
		fputs("' \\\n", out);
	}
}

static void put_zsh_verb(const struct described *described, FILE *out)
{
	const char *kind = words_of_argument(NULL, described->verb->argp->args_doc);

	fputs("\t\t", out);
	put_pattern(described->verb, "|", out);
	fputs(")\n\t\t\t_arguments -s \\\n", out);
	for (size_t i = 0; i < described->n; i++)
		put_zsh_option(described, &described->options[i], out);
	fprintf(out, "\t\t\t'*:argument: _probing_words %s' ;;\n", kind ? kind : "none");
}

static void put_zsh_name(const struct described *described, FILE *out)
{
	fprintf(out, "\t\t'%s:", described->verb->name);
	put_zsh_text(described->verb->summary, out);
	fputs("'\n", out);
}

static int write_zsh(FILE *out)
{
	int r;

	fputs("#compdef probing\n"
	      "# zsh completion for probing: made by 'probing help --completion zsh'.\n"
	      "_probing_words() {\n"
	      "\tlocal line\n"
	      "\tlocal -a words\n"
	      "\tcase $1 in\n"
	      "\tnone) _message 'a value' ;;\n"
	      "\tfiles) _files ;;\n"
	      "\tfolders) _files -/ ;;\n"
	      "\trecordings) _files -g '*.db' ;;\n"
	      "\tcommands) _command_names -e; _files ;;\n"
	      "\t*)\n"
	      "\t\tfor line in ${(f)\"$(probing help --words $1 2>/dev/null)\"}; do\n"
	      "\t\t\twords+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
	      "\t\tdone\n"
	      "\t\t_describe -V $1 words\n"
	      "\t\t[[ $1 == pids* ]] && _files -g '*.db' ;;\n"
	      "\tesac\n"
	      "}\n"
	      "_probing() {\n"
	      "\tlocal state line curcontext=$curcontext\n"
	      "\tlocal -a names\n"
	      "\tnames=(\n",
	      out);
	r = each_verb(put_zsh_name, out);
	fputs("\t)\n"
	      "\t_arguments -C '(- *)--help[list the verbs]' '(- *)--version[print the version]' '1:verb:->verb' '*::argument:->rest'\n"
	      "\tcase $state in\n"
	      "\tverb) _describe verb names; _probing_words pids ;;\n"
	      "\trest)\n"
	      "\t\tcase $words[1] in\n",
	      out);
	if (r >= 0)
		r = each_verb(put_zsh_verb, out);
	fputs("\t\t*) _describe verb names ;;\n\t\tesac ;;\n\tesac\n}\n_probing \"$@\"\n", out);
	return r;
}

/* ---- fish ---- */

static void put_fish_kind(const char *kind, FILE *out)
{
	if (!kind)
		fputs(" -x", out);
	else if (strcmp(kind, "files") == 0)
		fputs(" -rF", out);
	else if (strcmp(kind, "folders") == 0)
		fputs(" -x -a '(__fish_complete_directories)'", out);
	else if (strcmp(kind, "recordings") == 0)
		fputs(" -x -a '(__fish_complete_suffix .db)'", out);
	else if (strcmp(kind, "commands") == 0)
		fputs(" -x -a '(__fish_complete_subcommand)'", out);
	else
		fprintf(out, " -x -a '(probing help --words %s 2>/dev/null)'", kind);
}

static void put_fish_option(const struct described *described, const struct described_option *option, FILE *out)
{
	CLEANUP(freep) char *text = described_text(described->verb, option->row->key, option->row->doc);

	fputs("complete -c probing -n '__fish_seen_subcommand_from ", out);
	put_pattern(described->verb, " ", out);
	fputc('\'', out);
	for (unsigned j = 0; j < MAX_OPTION_NAMES && option->names[j]; j++)
		fprintf(out, " -l %s", option->names[j]);
	for (const char *letter = option->letters; *letter; letter++)
		fprintf(out, " -s %c", *letter);
	if (option->argument && !option->may_lack_argument)
		put_fish_kind(kind_of(option), out);
	fputs(" -d ", out);
	put_quoted(text ? text : "", out);
	fputc('\n', out);
}

static void put_fish_verb(const struct described *described, FILE *out)
{
	const char *kind = words_of_argument(NULL, described->verb->argp->args_doc);

	fprintf(out, "complete -c probing -n __fish_use_subcommand -a %s -d ", described->verb->name);
	put_quoted(described->verb->summary, out);
	fputs("\ncomplete -c probing -n '__fish_seen_subcommand_from ", out);
	put_pattern(described->verb, " ", out);
	fputc('\'', out);
	put_fish_kind(kind, out);
	fputc('\n', out);
	if (kind && strncmp(kind, "pids", strlen("pids")) == 0) {
		fputs("complete -c probing -n '__fish_seen_subcommand_from ", out);
		put_pattern(described->verb, " ", out);
		fputs("' -x -a '(__fish_complete_suffix .db)'\n", out);
	}
	for (size_t i = 0; i < described->n; i++)
		put_fish_option(described, &described->options[i], out);
}

static int write_fish(FILE *out)
{
	fputs("# fish completion for probing: made by 'probing help --completion fish'.\n"
	      "complete -c probing -f\n",
	      out);
	return each_verb(put_fish_verb, out);
}

static const struct {
	const char *name;
	int (*write)(FILE *out);
} shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };

int completion_write(const char *shell, FILE *out)
{
	for (size_t i = 0; i < N_ELEMENTS(shells); i++)
		if (strcmp(shells[i].name, shell) == 0)
			return shells[i].write(out);
	return -ENOENT;
}
