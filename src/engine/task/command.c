/*
 * A command: a task that a program works on, not an agent. Its words are kept as they were given,
 * and are never read by a shell unless they name one. What stands as its prompt is the line that a
 * shell would read the same way, for everybody who shows tasks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/command/words.h"
#include "base/buf.h"
#include "base/pack.h"
#include "engine/task/inner.h"

int task_command_check(const struct value *words, struct why *why)
{
	size_t total = 0;
	unsigned n = 0;

	if (words->kind != VALUE_ARRAY || words->len == 0)
		return refuse_field(why, "command",
				    "command must be an array of a program and its arguments");
	if (words->len > TASK_WORDS_MAX)
		return refuse_field(why, "command", "command has more than %d elements",
				    TASK_WORDS_MAX);
	value_each (word, words) {
		if (word->kind != VALUE_STRING)
			return refuse_field(why, "command", "command[%u] must be a string", n);
		if (memchr(word->text, '\0', word->len))
			return refuse_field(why, "command", "command[%u] has a NUL byte", n);
		if (word->len >= COMMAND_WORD_MAX)
			return refuse_field(why, "command", "command[%u] is longer than %d bytes",
					    n, COMMAND_WORD_MAX - 1);
		total += word->len + 1;
		n++;
	}
	if (words->first->len == 0)
		return refuse_field(why, "command", "command[0] is empty");
	if (total > TASK_COMMAND_MAX)
		return refuse_field(why, "command", "command is longer than %d bytes",
				    TASK_COMMAND_MAX);
	return 0;
}

/* ---- as a line ---- */

static bool is_plain(struct text word)
{
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];
		bool alphanumeric =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alphanumeric && !strchr("_@%+=:,./-", c))
			return false;
	}
	return word.len > 0;
}

static void quote(struct buf *out, struct text word)
{
	buf_add_char(out, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] == '\'')
			buf_add_str(out, "'\\''");
		else
			buf_add_char(out, word.data[i]);
	}
	buf_add_char(out, '\'');
}

int task_command_line(struct arena *a, const struct value *words, struct text *ret_line)
{
	struct buf line;
	int r;

	/* A quote becomes four bytes. */
	buf_init(&line, 4 * TASK_COMMAND_MAX + 2 * TASK_WORDS_MAX);
	value_each (word, words) {
		if (word != words->first)
			buf_add_char(&line, ' ');
		if (is_plain(value_text(word)))
			buf_add(&line, word->text, word->len);
		else
			quote(&line, value_text(word));
	}
	r = line.err
		    ?: arena_copy_text(a, (struct text) {.data = line.data, .len = line.len},
				       ret_line);
	buf_done(&line);
	return r;
}

/* ---- as a program ---- */

int task_command_argv(struct arena *a, struct text packed, const char ***ret_argv)
{
	struct value *words;
	const char **argv;
	unsigned n = 0;
	int r = value_unpack(a, packed, &words);

	if (r != 0)
		return r;
	/* What this program has not written may be anything. */
	if (words->kind != VALUE_ARRAY || words->len == 0 || words->len > TASK_WORDS_MAX)
		return -EBADMSG;
	argv = calloc(words->len + 1, sizeof(argv[0]));
	if (!argv)
		return -ENOMEM;
	value_each (word, words) {
		argv[n] = word->kind == VALUE_STRING ? arena_copy(a, word->text, word->len) : NULL;
		if (!argv[n++]) {
			free((void *)argv);
			return -ENOMEM;
		}
	}
	*ret_argv = argv;
	return 0;
}
