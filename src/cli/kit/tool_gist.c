#include "cli/kit/tool_gist.h"

#include "cli/kit/glyph.h"
#include "cli/kit/value.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* The member that says what is done. */
static const struct {
	const char *tool;
	const char *member;
} tools[] = {
	{"Bash", "command"},
	{"exec", "command"},
	{"process", "command"},
	{"Write", "file_path"},
	{"Edit", "file_path"},
	{"MultiEdit", "file_path"},
	{"Read", "file_path"},
	{"NotebookEdit", "notebook_path"},
	{"NotebookRead", "notebook_path"},
	{"read", "path"},
	{"write", "path"},
	{"edit", "path"},
	{"LS", "path"},
	{"Glob", "pattern"},
	{"Grep", "pattern"},
	{"WebFetch", "url"},
	{"WebSearch", "query"},
	{"memory_search", "query"},
	{"Task", "prompt"},
};

/* Members that say enough if there is no other. */
static const char *const plain[] = {"command", "file_path", "path",    "url",    "pattern",
				    "query",   "msg",       "message", "prompt", "question"};

static const char *main_member(struct text tool, const struct koine_value *input)
{
	const struct koine_value *first = koine_value_first(input);

	for (size_t i = 0; i < COUNT(tools); i++) {
		if (text_is(tool, tools[i].tool))
			return tools[i].member;
	}
	for (size_t i = 0; first && !koine_value_next(first) && i < COUNT(plain); i++) {
		if (text_is(text_of_key(first), plain[i]))
			return plain[i];
	}
	return NULL;
}

/* The only text of that name; NULL: there is none, or more than one. */
static const struct koine_value *find_only(const struct koine_value *input, const char *name)
{
	const struct koine_value *found = NULL;

	for (EACH(m, name ? koine_value_first(input) : NULL)) {
		if (!text_is(text_of_key(m), name))
			continue;
		if (found || koine_value_kind(m) != KOINE_STRING)
			return NULL;
		found = m;
	}
	return found;
}

static void add_others(struct buf *out, const struct koine_value *input,
		       const struct koine_value *shown)
{
	size_t n = koine_value_count(input);
	const char *before = ": ";

	if (n < 2)
		return;
	buf_printf(out, "  +%zu more", n - 1);
	for (EACH(m, koine_value_first(input))) {
		if (m == shown)
			continue;
		buf_add_str(out, before);
		text_add_exact(out, text_of_key(m));
		before = ", ";
	}
}

void tool_gist(struct buf *out, struct text tool, const struct koine_value *input)
{
	const struct koine_value *m = find_only(input, main_member(tool, input));
	struct text t = text_of_value(m);

	if (t.len > 0) {
		text_add_exact(out, t);
		add_others(out, input, m);
		return;
	}
	t = text_of_raw(input);
	text_add_exact(out, t.data ? t : TEXT("{}"));
}
