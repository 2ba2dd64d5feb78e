#include "cli/complete/usage.h"

#include <string.h>

/* The words that mean the same in every usage. What is not here is free text. */
static const struct {
	const char *word;
	enum completes what;
	bool by_row; /* unless the command's row says what it is */
} meanings[] = {
	{"ID", COMPLETES_NOTHING, true},
	{"NAME", COMPLETES_NOTHING, true},
	{"NUMBER", COMPLETES_NOTHING, true},
	{"AGENT", COMPLETES_AGENT, true},
	{"DIR", COMPLETES_FOLDER, true},
	{"COMMAND", COMPLETES_COMMAND},
	{"FILE", COMPLETES_FILE},
	{"PATH", COMPLETES_FILE},
	{"METHOD", COMPLETES_METHOD},
	{"key=value", COMPLETES_PARAM},
	{"GROUP", COMPLETES_GROUP},
	{"RULE", COMPLETES_RULE},
	{"PROJECT", COMPLETES_PROJECT},
	{"DIALECT", COMPLETES_DIALECT},
};

enum completes usage_meaning(struct text word, enum completes row)
{
	struct text first = {.data = word.data};

	while (first.len < word.len && word.data[first.len] != '|')
		first.len++;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (text_is(first, meanings[i].word))
			return meanings[i].by_row && row ? row : meanings[i].what;
	}
	return COMPLETES_NOTHING;
}

bool usage_is_literal(struct text word)
{
	for (size_t i = 0; i < word.len; i++) {
		if (word.data[i] < 'a' || word.data[i] > 'z')
			return false;
	}
	return word.len > 0;
}

/* ---- its words ---- */

struct complete_usage_walk {
	const char *at;
	int depth;    /* of brackets */
	bool skips;   /* the other alternatives of these brackets */
	bool repeats; /* the word just read */
};

/* Whether dots follow the bracket that closes this one: "[a | b]..." */
static bool brackets_repeat(const char *open)
{
	int depth = 0;

	for (; *open; open++) {
		depth += *open == '[';
		depth -= *open == ']';
		if (depth == 0)
			return strncmp(open + 1, "...", 3) == 0;
	}
	return false;
}

/* The next word between spaces, without brackets and dots. False: the alternative ends. */
static bool next_word(struct complete_usage_walk *w, struct text *ret)
{
	size_t n;

	w->at += strspn(w->at, " ");
	n = strcspn(w->at, " ");
	if (n == 0 || (n == 1 && *w->at == '|' && w->depth == 0))
		return false;
	*ret = (struct text) {.data = w->at, .len = n};
	w->at += n;
	w->repeats = n >= 3 && memcmp(w->at - 3, "...", 3) == 0;
	if (w->repeats)
		ret->len -= 3;
	while (ret->len > 0 && ret->data[0] == '[') {
		w->repeats = w->repeats || brackets_repeat(ret->data);
		w->depth++;
		ret->data++;
		ret->len--;
	}
	for (; ret->len > 0 && ret->data[ret->len - 1] == ']'; ret->len--)
		w->depth--;
	/* "[ID...]" repeats, too. */
	if (ret->len >= 3 && memcmp(ret->data + ret->len - 3, "...", 3) == 0) {
		w->repeats = true;
		ret->len -= 3;
	}
	return true;
}

/* The next argument: no option, and no value of one. */
static bool next_argument(struct complete_usage_walk *w, struct text *ret)
{
	while (next_word(w, ret)) {
		bool was_skipped = w->skips;

		if (text_is(*ret, "|"))
			w->skips = true;
		if (w->depth == 0)
			w->skips = false;
		if (was_skipped || ret->len == 0 || text_is(*ret, "|") || text_is(*ret, "OPTION") ||
		    text_is(*ret, "-"))
			continue;
		if (ret->len < 2 || ret->data[0] != '-')
			return true;
		/* "--" and "[--force]" are alone; "--comment" has a value behind it. */
		if ((ret->len > 2 || ret->data[1] != '-') && w->at == ret->data + ret->len &&
		    w->at[0] == ' ' && w->at[1] != '|')
			(void)next_word(w, ret);
	}
	return false;
}

/* Whether what was typed fits the words before the one at its place. */
static bool find_word(struct complete_usage_walk *w, const struct usage *u, struct text *ret)
{
	for (int i = 0; next_argument(w, ret); i++) {
		if (i == u->n_typed || w->repeats)
			return true;
		if (usage_is_literal(*ret) && !text_is(*ret, u->typed[i]))
			return false;
	}
	return false;
}

/* A "|" outside of brackets; NULL: this was the last alternative. */
static const char *behind_bar(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		depth += *at == '[';
		depth -= *at == ']';
		if (*at == '|' && depth == 0 && at[1] == ' ')
			return at + 1;
	}
	return NULL;
}

bool usage_next(struct usage *u, struct text *ret_word)
{
	while (u->left) {
		struct complete_usage_walk w = {.at = u->left};

		u->left = behind_bar(u->left);
		if (find_word(&w, u, ret_word))
			return true;
	}
	return false;
}
