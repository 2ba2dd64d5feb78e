/*
 * Splits a command as a shell would: blanks separate words, '…' is literal, "…" knows \" \\ \$
 * \`, and a backslash elsewhere makes the next character literal. Nothing is expanded.
 */
#include "agent/command/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool command_words_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* After the closing quote; NULL if there is none. */
static const char *read_double(const char *p, char **out)
{
	for (; *p != '"'; p++) {
		if (*p == '\\' && p[1] == '\n') {
			p++;
			continue;
		}
		if (*p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		if (!*p)
			return NULL;
		*(*out)++ = *p;
	}
	return p + 1;
}

static const char *read_single(const char *p, char **out)
{
	for (; *p != '\''; p++) {
		if (!*p)
			return NULL;
		*(*out)++ = *p;
	}
	return p + 1;
}

/* One word with its NUL; NULL for an open quote. */
static const char *read_word(const char *p, char **out)
{
	while (p && *p && !command_words_is_blank(*p)) {
		if (*p == '"')
			p = read_double(p + 1, out);
		else if (*p == '\'')
			p = read_single(p + 1, out);
		else if (*p != '\\')
			*(*out)++ = *p++;
		else if (!p[1])
			return NULL;
		else {
			if (p[1] != '\n')
				*(*out)++ = p[1];
			p += 2;
		}
	}
	*(*out)++ = '\0';
	return p;
}

int command_split(const char *command, char ***ret_words, unsigned *ret_n, struct error *error)
{
	const size_t head = (COMMAND_WORDS_MAX + 1) * sizeof(char *);
	CLEANUP(freep) char **words = malloc(head + strlen(command) + 2);
	const char *p = command;
	char *out;
	unsigned n = 0;

	if (!words)
		return -ENOMEM;
	out = (char *)words + head;
	for (;;) {
		while (command_words_is_blank(*p))
			p++;
		if (!*p)
			break;
		if (n == COMMAND_WORDS_MAX)
			return refuse(error, REFUSE_PARAMS, "the command has more than %d words",
				      COMMAND_WORDS_MAX);
		words[n++] = out;
		p = read_word(p, &out);
		if (!p)
			return refuse(error, REFUSE_PARAMS, "unclosed quote or trailing backslash");
	}
	if (n == 0 || !words[0][0])
		return refuse(error, REFUSE_PARAMS, "the command is empty");
	words[n] = NULL;
	*ret_words = TAKE(words);
	if (ret_n)
		*ret_n = n;
	return 0;
}

/* ---- one piece of memory for all words ---- */

struct argv {
	char **words; /* NULL: it is measured */
	char *at;
	unsigned n;
	size_t size; /* of the words, NULs included */
};

static void command_words_put(struct argv *a, const char *data, size_t len)
{
	if (a->words && len > 0)
		a->at = mempcpy(a->at, data, len);
	a->size += len;
}

static void command_words_begin(struct argv *a)
{
	if (a->words)
		a->words[a->n] = a->at;
	a->n++;
}

static void command_words_end(struct argv *a)
{
	command_words_put(a, "", 1);
}

void argv_add(struct argv *a, struct text word)
{
	command_words_begin(a);
	command_words_put(a, word.data, word.len);
	command_words_end(a);
}

void argv_add_words(struct argv *a, const char *const *words)
{
	for (; *words; words++)
		argv_add(a, text_of(*words));
}

static void begin_value(struct argv *a, const char *flag, bool dash)
{
	command_words_begin(a);
	command_words_put(a, flag, strlen(flag));
	if (dash) {
		command_words_put(a, "=", 1);
		return;
	}
	command_words_end(a);
	command_words_begin(a);
}

void argv_add_list(struct argv *a, const char *flag, const struct text *list, unsigned n)
{
	if (n == 0)
		return;
	begin_value(a, flag, list[0].len > 0 && list[0].data[0] == '-');
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			command_words_put(a, ",", 1);
		command_words_put(a, list[i].data, list[i].len);
	}
	command_words_end(a);
}

void argv_add_flag(struct argv *a, const char *flag, struct text value)
{
	argv_add_list(a, flag, &value, value.len > 0);
}

char **argv_make(void (*fill)(struct argv *a, const void *arg), const void *arg)
{
	struct argv measured = {0};
	struct argv a = {0};

	fill(&measured, arg);
	a.words = malloc((measured.n + 1) * sizeof(a.words[0]) + measured.size);
	if (!a.words)
		return NULL;
	a.at = (char *)&a.words[measured.n + 1];
	fill(&a, arg);
	a.words[a.n] = NULL;
	return a.words;
}

/* ---- the prompt ---- */

/*
 * A prompt that begins with a dash would be an option of the program, unless "--" stands right
 * before it (an earlier one may be a wrapper's own): with a blank before it, it is text. The
 * position after the last word, NULL, is also the prompt's.
 */
static bool needs_blank(char *const *words, unsigned i, struct text prompt)
{
	if (prompt.len == 0 || prompt.data[0] != '-')
		return false;
	if (words[i] && strncmp(words[i], COMMAND_PROMPT, strlen(COMMAND_PROMPT)) != 0)
		return false;
	return i == 0 || strcmp(words[i - 1], "--") != 0;
}

size_t command_room(char *const *words)
{
	size_t room = COMMAND_WORD_MAX - 1;

	for (unsigned i = 0; words[i]; i++) {
		size_t fixed = strlen(words[i]) + 1;
		size_t places = 0;

		for (const char *p = words[i]; (p = strstr(p, COMMAND_PROMPT)); places++)
			p += strlen(COMMAND_PROMPT);
		fixed -= places * strlen(COMMAND_PROMPT);
		if (places > 0 && fixed < COMMAND_WORD_MAX &&
		    (COMMAND_WORD_MAX - fixed) / places < room)
			room = (COMMAND_WORD_MAX - fixed) / places;
	}
	return room;
}

struct filling {
	char *const *words;
	struct text with;
};

static void put_filled(struct argv *a, const char *word, const char *mark, struct text with)
{
	const char *place;

	for (; (place = strstr(word, mark)); word = place + strlen(mark)) {
		command_words_put(a, word, (size_t)(place - word));
		command_words_put(a, with.data, with.len);
	}
	command_words_put(a, word, strlen(word));
	command_words_end(a);
}

static size_t filled_len(const char *word, const char *mark, size_t len)
{
	size_t size = strlen(word) + 1;

	for (const char *p = word; (p = strstr(p, mark)); p += strlen(mark))
		size = size - strlen(mark) + len;
	return size;
}

bool command_has_tools(char *const *words)
{
	for (; *words; words++) {
		if (strstr(*words, COMMAND_TOOLS))
			return true;
	}
	return false;
}

static void fill_tools(struct argv *a, const void *arg)
{
	const struct filling *f = arg;

	for (char *const *word = f->words; *word; word++) {
		if (!f->with.data && strstr(*word, COMMAND_TOOLS))
			continue;
		command_words_begin(a);
		put_filled(a, *word, COMMAND_TOOLS, f->with);
	}
}

int command_with_tools(char *const *words, struct text tools, char ***ret_words)
{
	const struct filling f = {words, tools};

	*ret_words = argv_make(fill_tools, &f);
	return *ret_words ? 0 : -ENOMEM;
}

static int check_prompt(char *const *words, struct text prompt, struct error *error)
{
	if (prompt.len > 0 && memchr(prompt.data, '\0', prompt.len))
		return refuse(error, REFUSE_PARAMS,
			      "a prompt with a NUL byte cannot be an argument; set input = stdin");
	for (unsigned i = 0; words[i]; i++) {
		size_t len = filled_len(words[i], COMMAND_PROMPT, prompt.len) +
			     needs_blank(words, i, prompt);

		if (len > COMMAND_WORD_MAX || prompt.len + 1 > COMMAND_WORD_MAX)
			return refuse(error, REFUSE_TOO_LARGE,
				      "a prompt of %zu bytes is too long for an argument (at most "
				      "%d); set input = stdin",
				      prompt.len, COMMAND_WORD_MAX - 1);
	}
	return 0;
}

static void fill_prompt(struct argv *a, const void *arg)
{
	const struct filling *f = arg;
	bool placed = false;

	for (unsigned i = 0; f->words[i] || !placed; i++) {
		const char *word = f->words[i] ?: COMMAND_PROMPT;

		placed |= strstr(word, COMMAND_PROMPT) != NULL;
		command_words_begin(a);
		if (needs_blank(f->words, i, f->with))
			command_words_put(a, " ", 1);
		put_filled(a, word, COMMAND_PROMPT, f->with);
		if (!f->words[i])
			return;
	}
}

int command_fill(char *const *words, struct text prompt, char ***ret_argv, struct error *error)
{
	const struct filling f = {words, prompt};
	int r = check_prompt(words, prompt, error);

	if (r != 0)
		return r;
	*ret_argv = argv_make(fill_prompt, &f);
	return *ret_argv ? 0 : -ENOMEM;
}

/* ---- the program ---- */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_program(const char *path)
{
	return is_file(path) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *program, char *out, size_t size)
{
	const char *at = getenv("PATH");

	/* Without the variable, as execvp would. */
	for (at = at ? at : "/bin:/usr/bin"; *at;) {
		size_t n = strcspn(at, ":");
		int len = snprintf(out, size, "%.*s%s%s", (int)n, at, n ? "/" : "./", program);

		if (len > 0 && (size_t)len < size && is_program(out))
			return true;
		at += at[n] ? n + 1 : n;
	}
	return false;
}

int command_find(const char *program, const char *cwd, char *out, size_t size, struct error *error)
{
	int len;

	if (!strchr(program, '/')) {
		if (find_in_path(program, out, size))
			return 0;
		return refuse(error, REFUSE_UNAVAILABLE, "no program '%s' in PATH", program);
	}
	if (program[0] == '/' || !cwd[0])
		len = snprintf(out, size, "%s", program);
	else
		len = snprintf(out, size, "%s/%s", cwd, program);
	if (len > 0 && (size_t)len < size && is_program(out))
		return 0;
	if (len > 0 && (size_t)len < size && is_file(out))
		return refuse(error, REFUSE_UNAVAILABLE, "'%s' is not executable", program);
	return refuse(error, REFUSE_UNAVAILABLE, "no program at '%s'", program);
}
