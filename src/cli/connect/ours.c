#include <errno.h>

#include "base/cleanup.h"
#include "cli/connect/json_file.h"
#include "cli/connect/ours.h"
#include "cli/connect/toml_file.h"
#include "cli/kit/value.h"

/* Takes the first word of a shell's line; single quotes may surround it. */
static struct text next_word(struct text *rest)
{
	struct text word = {.data = rest->data};
	char end = ' ';
	size_t skip = 0;

	if (rest->len > 0 && rest->data[0] == '\'') {
		end = '\'';
		skip = 1;
	}
	word.data += skip;
	while (skip + word.len < rest->len && word.data[word.len] != end)
		word.len++;
	skip = skip * 2 + word.len;
	while (skip < rest->len && rest->data[skip] == ' ')
		skip++;
	*rest = text_skip(*rest, skip < rest->len ? skip : rest->len);
	return word;
}

/* The program of such a line. */
static struct text ours_program(struct text command)
{
	return next_word(&command);
}

bool ours_is_program(struct text path)
{
	return text_is(text_base_name(path), "koine");
}

bool ours_is_command(struct text command)
{
	struct text program;

	if (!command.data)
		return false;
	program = next_word(&command);
	if (!ours_is_program(program))
		return false;
	return command.len == 0 || text_is(next_word(&command), "hook");
}

/* Some agents want the program and its arguments in one array. */
static bool is_our_array(const struct koine_value *v)
{
	const struct koine_value *first = koine_value_first(v);

	bool serves = false;

	for (EACH(word, first))
		serves |= value_is(word, "mcp");
	return serves && ours_is_program(text_of_value(first));
}

/* "http://127.0.0.1:8766/hook", of a hook that has a header Koine-Timeout. */
static bool ours_is_posted(const struct koine_value *hook)
{
	struct text url = member_string(hook, "url");

	return text_begins(url, TEXT("http://")) && text_ends(url, TEXT("/hook")) &&
	       koine_value_get(koine_value_get(hook, "headers"), "Koine-Timeout");
}

/* With a list of arguments beside it, a command is a program's path, blanks and all; without, it is
 * a line for a shell. GitHub Copilot calls that line "bash". */
static bool is_our_text(const struct koine_value *over, const struct koine_value *command)
{
	struct text text = text_of_value(command);

	if (koine_value_kind(koine_value_get(over, "args")) == KOINE_ARRAY)
		return ours_is_program(text);
	return ours_is_command(text);
}

/* Whether a member names a program or a line for a shell. */
static bool ours_is_line(const struct koine_value *v)
{
	struct text key = text_of_key(v);

	return koine_value_kind(v) != KOINE_OBJECT &&
	       (text_is(key, "command") || text_is(key, "bash"));
}

static void tally(bool is_ours, unsigned *ours, unsigned *others)
{
	*ours += is_ours;
	*others += !is_ours;
}

static void count(const struct koine_value *v, unsigned *ours, unsigned *others)
{
	if (member_is(v, "type", "http")) {
		tally(ours_is_posted(v), ours, others);
		return;
	}
	for (EACH(child, koine_value_first(v))) {
		if (!ours_is_line(child))
			count(child, ours, others);
		else if (koine_value_kind(child) == KOINE_ARRAY)
			tally(is_our_array(child), ours, others);
		else
			tally(is_our_text(v, child), ours, others);
	}
}

bool ours_is(const struct koine_value *v, bool *ret_mixed)
{
	unsigned ours = 0;
	unsigned others = 0;

	count(v, &ours, &others);
	*ret_mixed = ours > 0 && others > 0;
	return ours > 0 && others == 0;
}

/* ---- lists that users add to ---- */

/* The word after --socket in a list of arguments; NULL if there is none. */
static const struct koine_value *socket_of(const struct koine_value *list)
{
	const struct koine_value *v = koine_value_first(list);

	while (v && !value_is(v, "--socket"))
		v = koine_value_next(v);
	return v ? koine_value_next(v) : NULL;
}

static void connect_ours_add(struct koine_json *j, struct text word)
{
	koine_json_text_n(j, word.data, word.len);
}

/* Whichever socket is there is replaced, since koine connect decides about it. */
static void join_arguments(const struct koine_value *is, const struct koine_value *wanted,
			   bool with_program, struct koine_json *j)
{
	const struct koine_value *socket = socket_of(wanted);
	const struct koine_value *v = koine_value_first(is);
	bool placed = false;

	if (with_program) {
		connect_ours_add(j, text_of_value(koine_value_first(wanted)));
		v = koine_value_next(v);
	}
	for (; v; v = koine_value_next(v)) {
		struct text word = text_of_value(v);
		bool whole = text_begins(word, TEXT("--socket="));

		if (!whole && !text_is(word, "--socket") && !text_is(word, "-s")) {
			connect_ours_add(j, word);
			continue;
		}
		v = whole ? v : koine_value_next(v);
		if (socket && !placed) {
			koine_json_string(j, "--socket");
			connect_ours_add(j, text_of_value(socket));
		}
		placed = true;
		if (!v)
			break;
	}
	if (value_has(wanted, TEXT("--start")) && !value_has(is, TEXT("--start")))
		koine_json_string(j, "--start");
	if (socket && !placed) {
		koine_json_string(j, "--socket");
		connect_ours_add(j, text_of_value(socket));
	}
}

static void join_words(const struct koine_value *is, const struct koine_value *wanted,
		       struct koine_json *j)
{
	for (EACH(v, koine_value_first(is)))
		connect_ours_add(j, text_of_value(v));
	for (EACH(v, koine_value_first(wanted))) {
		if (!value_has(is, text_of_value(v)))
			connect_ours_add(j, text_of_value(v));
	}
}

static bool has_words(const struct koine_value *list)
{
	const struct koine_value *v = koine_value_first(list);

	while (v && koine_value_kind(v) == KOINE_STRING)
		v = koine_value_next(v);
	return koine_value_kind(list) == KOINE_ARRAY && !v;
}

int ours_join(struct text key, const struct koine_value *is, const struct koine_value *wanted,
	      struct koine_doc **ret_doc)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	bool arguments = text_is(key, "args") || text_is(key, "command");
	const char *text;
	size_t len;

	*ret_doc = NULL;
	if (!has_words(is) || !has_words(wanted) || (arguments && !value_has(is, TEXT("mcp"))))
		return 0;
	if (koine_json_new(&j) != 0)
		return -ENOMEM;
	koine_json_begin_array(j);
	/* Copilot's choice of tools is the user's. */
	if (text_is(key, "tools"))
		join_words(is, is, j);
	else if (arguments)
		join_arguments(is, wanted, text_is(key, "command"), j);
	else
		join_words(is, wanted, j);
	koine_json_end_array(j);
	text = koine_json_text(j, &len);
	return text ? koine_doc_parse(text, len, ret_doc, NULL, 0) : -ENOMEM;
}

/* ---- which koine an agent's file starts ---- */

struct connect_ours_walk {
	void (*fn)(void *arg, struct text program);
	void *arg;
};

/* A line for a shell, a program with a list of arguments beside it, or a list of both. */
static void report(const struct connect_ours_walk *w, const struct koine_value *over,
		   const struct koine_value *command)
{
	const struct koine_value *first = koine_value_first(command);
	struct text text = text_of_value(first ? first : command);
	bool whole = first || koine_value_kind(koine_value_get(over, "args")) == KOINE_ARRAY;

	if (whole && ours_is_program(text))
		w->fn(w->arg, text);
	else if (!whole && ours_is_command(text))
		w->fn(w->arg, ours_program(text));
}

static void walk(const struct connect_ours_walk *w, const struct koine_value *v)
{
	for (EACH(child, koine_value_first(v))) {
		if (ours_is_line(child))
			report(w, v, child);
		else
			walk(w, child);
	}
}

static void each_json(struct text text, const struct connect_ours_walk *w)
{
	CLEANUP(json_file_close) struct json_file f;

	if (json_file_open(&f, text, true, NULL) == 0)
		walk(w, f.root);
}

static void each_toml(struct text text, const struct connect_ours_walk *w)
{
	CLEANUP(toml_file_close) struct toml_file f;
	int r = toml_file_open(&f, text, NULL);

	for (size_t i = 0; r == 0 && i < f.n_items; i++) {
		const struct toml_item *item = &f.items[i];
		struct text value = item->value;

		if (item->kind != TOML_KEY || value.len < 2 ||
		    !text_is(item->path.keys[item->path.n - 1], "command"))
			continue;
		value = (struct text) {.data = value.data + 1, .len = value.len - 2};
		if (ours_is_program(value))
			w->fn(w->arg, value);
	}
}

void program_each(const struct editor *by, struct text text,
		  void (*fn)(void *arg, struct text program), void *arg)
{
	const struct connect_ours_walk w = {.fn = fn, .arg = arg};

	if (by == &toml_editor)
		each_toml(text, &w);
	else
		each_json(text, &w);
}
