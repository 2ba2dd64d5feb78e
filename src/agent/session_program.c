/* The words of a session's program; see session_program.h. */
#include "agent/session_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/command_words.h"
#include "base/cleanup.h"

/* Laid out twice: first only measured, then written. */
struct layout {
	char **argv; /* NULL: it is measured */
	char *at;
	unsigned n;
	size_t size; /* of the words, NULs included */
};

static void put(struct layout *l, const char *data, size_t len)
{
	if (l->argv && len > 0)
		l->at = mempcpy(l->at, data, len);
	l->size += len;
}

static void begin_word(struct layout *l)
{
	if (l->argv)
		l->argv[l->n] = l->at;
	l->n++;
}

static void add_word(struct layout *l, struct text word)
{
	begin_word(l);
	put(l, word.data, word.len);
	put(l, "", 1);
}

static void add_str(struct layout *l, const char *word)
{
	add_word(l, text_of(word));
}

static void add_flag(struct layout *l, const char *flag, struct text value)
{
	if (value.len == 0)
		return;
	add_str(l, flag);
	add_word(l, value);
}

/* "a,b" */
static void add_list(struct layout *l, const char *flag, const struct text *list, unsigned n)
{
	if (n == 0)
		return;
	add_str(l, flag);
	begin_word(l);
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			put(l, ",", 1);
		put(l, list[i].data, list[i].len);
	}
	put(l, "", 1);
}

static void lay_out(struct layout *l, const struct session_program_opts *o, char *const *words,
		    bool by_stdin)
{
	char turns[24] = "";

	if (o->max_turns > 0)
		snprintf(turns, sizeof(turns), "%lld", (long long)o->max_turns);
	for (unsigned i = 0; words[i]; i++)
		add_str(l, words[i]);
	add_flag(l, "--resume", o->resume);
	add_flag(l, "--model", o->model);
	add_flag(l, "--output-format", TEXT("stream-json"));
	add_str(l, "--verbose");
	add_flag(l, "--mcp-config", o->mcp_file);
	add_flag(l, "--permission-prompt-tool", o->permission_prompt_tool);
	add_flag(l, "--max-turns", text_of(turns));
	add_flag(l, "--system-prompt", o->system_prompt);
	add_flag(l, "--append-system-prompt", o->append_system_prompt);
	add_list(l, "--allowedTools", o->allowed, o->n_allowed);
	add_list(l, "--disallowedTools", o->disallowed, o->n_disallowed);
	add_str(l, "--print");
	if (by_stdin)
		return;
	add_str(l, "--");
	add_word(l, o->query);
}

/* ---- what no argument can be ---- */

static int check_nul(const char *field, struct text t, struct why *why)
{
	if (t.len > 0 && memchr(t.data, '\0', t.len))
		return refuse_field(why, field, "%s has a NUL byte", field);
	return 0;
}

static int check_len(const char *field, size_t len, struct why *why)
{
	if (len < COMMAND_WORD_MAX)
		return 0;
	return refuse_field(why, field, "%s of %zu bytes is too long for an argument (at most %d)",
			    field, len, COMMAND_WORD_MAX - 1);
}

static int check_list(const char *field, const struct text *list, unsigned n, struct why *why)
{
	size_t len = 0;
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		len += list[i].len + (i > 0);
		r = check_nul(field, list[i], why);
		if (r == 0)
			r = check_len(field, len, why);
	}
	return r;
}

static int check(const struct session_program_opts *o, struct why *why)
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
	int r = check_nul("query", o->query, why);

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++) {
		r = check_nul(texts[i].field, texts[i].text, why);
		if (r == 0)
			r = check_len(texts[i].field, texts[i].text.len, why);
	}
	if (r == 0)
		r = check_list("allowed_tools", o->allowed, o->n_allowed, why);
	if (r == 0)
		r = check_list("disallowed_tools", o->disallowed, o->n_disallowed, why);
	return r;
}

/* ---- all of it ---- */

int session_program_make(const struct session_program_opts *o, struct session_program *ret,
			 struct why *why)
{
	CLEANUP(freep) char **words = NULL;
	bool by_stdin = o->query.len >= COMMAND_WORD_MAX;
	struct layout measured = {0};
	struct layout l = {0};
	unsigned n_words;
	int r = check(o, why);

	if (r == 0)
		r = command_split(o->program, &words, &n_words, why);
	if (r != 0)
		return r;
	lay_out(&measured, o, words, by_stdin);
	l.argv = malloc((measured.n + 1) * sizeof(l.argv[0]) + measured.size);
	if (!l.argv)
		return -ENOMEM;
	l.at = (char *)&l.argv[measured.n + 1];
	lay_out(&l, o, words, by_stdin);
	l.argv[l.n] = NULL;
	*ret = (struct session_program) {.argv = l.argv};
	if (by_stdin)
		ret->input = o->query;
	return 0;
}

bool session_program_is_there(const char *program)
{
	CLEANUP(freep) char **words = NULL;
	char path[PATH_MAX];
	unsigned n;

	return command_split(program, &words, &n, NULL) == 0 &&
	       command_find(words[0], "", path, sizeof(path), NULL) == 0;
}
