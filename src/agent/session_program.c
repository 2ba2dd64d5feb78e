/* The arguments of a session's program; see session_program.h. */
#include "agent/session_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/command/words.h"
#include "base/cleanup.h"

struct session_program_layout {
	const struct session_program_opts *opts;
	char *const *words; /* of the program */
	bool by_stdin;
};

static void lay_out(struct argv *a, const void *arg)
{
	const struct session_program_layout *l = arg;
	const struct session_program_opts *o = l->opts;
	char turns[24] = "";

	if (o->max_turns > 0)
		snprintf(turns, sizeof(turns), "%lld", (long long)o->max_turns);
	argv_add_words(a, (const char *const *)l->words);
	argv_add_flag(a, "--resume", o->resume);
	argv_add_flag(a, "--model", o->model);
	argv_add_flag(a, "--output-format", TEXT("stream-json"));
	argv_add(a, TEXT("--verbose"));
	argv_add_flag(a, "--mcp-config", o->mcp_file);
	argv_add_flag(a, "--permission-prompt-tool", o->permission_prompt_tool);
	argv_add_flag(a, "--max-turns", text_of(turns));
	argv_add_flag(a, "--system-prompt", o->system_prompt);
	argv_add_flag(a, "--append-system-prompt", o->append_system_prompt);
	argv_add_list(a, "--allowedTools", o->allowed, o->n_allowed);
	argv_add_list(a, "--disallowedTools", o->disallowed, o->n_disallowed);
	for (unsigned i = 0; i < o->n_folders; i++)
		argv_add_flag(a, "--add-dir", o->folders[i]);
	argv_add(a, TEXT("--print"));
	if (l->by_stdin)
		return;
	argv_add(a, TEXT("--"));
	argv_add(a, o->query);
}

/* ---- what no argument can be ---- */

static int check_nul(const char *field, struct text t, struct error *error)
{
	if (t.len > 0 && memchr(t.data, '\0', t.len))
		return refuse_field(error, field, "%s has a NUL byte", field);
	return 0;
}

static int check_len(const char *field, size_t len, struct error *error)
{
	if (len < COMMAND_WORD_MAX)
		return 0;
	return refuse_field(error, field,
			    "%s of %zu bytes is too long for an argument (at most %d)", field, len,
			    COMMAND_WORD_MAX - 1);
}

static int check_list(const char *field, const struct text *list, unsigned n, struct error *error)
{
	size_t len = 0;
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		len += list[i].len + (i > 0);
		r = check_nul(field, list[i], error) ?: check_len(field, len, error);
	}
	return r;
}

static int session_program_check(const struct session_program_opts *o, struct error *error)
{
	const struct {
		const char *field;
		struct text text;
	} texts[] = {
		{"resume", o->resume},
		{"model", o->model},
		{"mcp_config", o->mcp_file},
		{"permission_prompt_tool", o->permission_prompt_tool},
		{"system_prompt", o->system_prompt},
		{"append_system_prompt", o->append_system_prompt},
	};
	int r = check_nul("query", o->query, error);

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = check_list(texts[i].field, &texts[i].text, 1, error);
	return r ?:
		check_list("allowed_tools", o->allowed, o->n_allowed, error) ?:
		check_list("disallowed_tools", o->disallowed, o->n_disallowed, error) ?:
		check_list("additional_directories", o->folders, o->n_folders, error);
}

/* ---- all of it ---- */

int session_program_make(const struct session_program_opts *o, struct session_program *ret,
			 struct error *error)
{
	CLEANUP(freep) char **words = NULL;
	struct session_program_layout l = {.opts = o, .by_stdin = o->query.len >= COMMAND_WORD_MAX};
	char **argv;
	int r = session_program_check(o, error) ?: command_split(o->program, &words, NULL, error);

	if (r != 0)
		return r;
	l.words = words;
	argv = argv_make(lay_out, &l);
	if (!argv)
		return -ENOMEM;
	*ret = (struct session_program) {.argv = argv};
	if (l.by_stdin)
		ret->input = o->query;
	return 0;
}

bool session_program_is_there(const char *program)
{
	CLEANUP(freep) char **words = NULL;
	char path[PATH_MAX];

	return command_split(program, &words, NULL, NULL) == 0 &&
	       command_find(words[0], "", path, sizeof(path), NULL) == 0;
}
