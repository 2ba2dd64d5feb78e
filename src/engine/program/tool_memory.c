/* The tools of memory. Their defaults are those of ocg; whoever made the tools determines how
 * they answer. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "engine/memory/lenient.h"
#include "engine/program/tool_inner.h"

enum { ANSWER_MAX = 8 << 20 };

static int need(const struct tool_run *r, const char *key, struct text *ret, struct error *error)
{
	int e = tool_text(r, key, true, ret, error);

	if (memories_off(r->tools->opts.memories))
		return refuse(error, REFUSE_UNAVAILABLE, "memory store not initialized");
	if (e == 0 && text_trim(*ret, TEXT_SPACE).len == 0)
		e = refuse_field(error, key, "%s is required", key);
	return e;
}

static int say(struct tool_run *r, struct buf *answer, struct tool_result *ret, struct error *error)
{
	int e = answer->err;

	if (e == -EMSGSIZE)
		e = refuse(error, REFUSE_TOO_LARGE, "the result is larger than %zu bytes",
			   answer->max);
	if (e == 0)
		e = arena_copy_text(&r->arena,
				    (struct text) {answer->data ? answer->data : "", answer->len},
				    &ret->text);
	buf_done(answer);
	return e;
}

/* Puts "search failed: …" before memory's own message. */
static int program_tool_memory_failed(const char *what, int e, struct error *error)
{
	const struct error inner = *error;

	if (e == WORK_WAITS)
		return e;
	return refuse(error, e > 0 ? (enum refusal)e : REFUSE_INTERNAL, "%s: %.150s", what,
		      e > 0 ? inner.text : fault_words(e));
}

/* ---- search ---- */

static int read_query(struct tool_run *r, struct memory_query *q, struct error *error)
{
	struct text category;
	double limit;
	double least;
	int e = need(r, "query", &q->text, error)
			?: tool_text(r, "category", false, &category, error)
			?: tool_number(r, "limit", 0, &limit, error)
			?: tool_number(r, "minScore", 0, &least, error);

	if (e != 0)
		return e;
	q->category = memory_lenient_category(category);
	/* A double may exceed any integer. */
	q->limit = limit > MEMORY_LIMIT_MAX ? MEMORY_LIMIT_MAX
					    : memory_lenient_limit(limit >= 1 ? (int64_t)limit : 0);
	q->by = r->by;
	q->vector = r->vector;
	q->wait = &r->wait;
	memory_lenient_least(least, q);
	return 0;
}

int tool_memory_search(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	struct memory_query q = {.limit = 0};
	struct memory *hits;
	struct buf answer;
	unsigned n;
	int e = read_query(r, &q, error);

	if (e != 0)
		return e;
	e = memory_search(r->tools->opts.memories, lane, &r->arena, &q, &hits, &n, error);
	if (e != 0)
		return program_tool_memory_failed("search failed", e, error);
	buf_init(&answer, ANSWER_MAX);
	r->tools->opts.answers.found(&answer, q.text, hits, n);
	e = say(r, &answer, ret, error);
	return e != 0 ? program_tool_memory_failed("search failed", e, error) : 0;
}

/* ---- get ---- */

int tool_memory_get(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	struct memory m;
	struct buf answer;
	struct text id;
	int e = need(r, "path", &id, error)
			?: memory_get(r->tools->opts.memories, lane, &r->arena, &r->by,
				      text_trim(id, TEXT_SPACE), &m, error);

	if (e != 0)
		return e;
	buf_init(&answer, ANSWER_MAX);
	r->tools->opts.answers.entry(&answer, &m);
	return say(r, &answer, ret, error);
}

/* ---- store ---- */

int tool_memory_known(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	struct memory known;
	struct buf answer;
	struct text text;
	bool is_known;
	int e = need(r, "text", &text, error);

	if (e != 0)
		return e;
	e = memory_lenient_known(r->tools->opts.memories, lane, &r->arena, text, &r->by, &r->wait,
				 &known, &is_known, error);
	if (e != 0)
		return program_tool_memory_failed("store failed", e, error);
	if (!is_known)
		return 0;
	buf_init(&answer, ANSWER_MAX);
	r->tools->opts.answers.duplicate(&answer, &known);
	return say(r, &answer, ret, error);
}

int tool_memory_store(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	struct memory_new in = {.source = TEXT("manual"), .by = r->by};
	struct memory m;
	struct buf answer;
	int e = need(r, "text", &in.content, error)
			?: tool_text(r, "category", false, &in.category, error)
			?: tool_number(r, "importance", 0, &in.importance, error);

	if (e != 0)
		return e;
	in.category = memory_lenient_category(in.category);
	in.importance = memory_lenient_importance(in.importance);
	e = memory_add(r->tools->opts.memories, &r->arena, &in, &m, error);
	if (e != 0)
		return program_tool_memory_failed("store failed", e, error);
	buf_init(&answer, ANSWER_MAX);
	if (m.repeated)
		r->tools->opts.answers.duplicate(&answer, &m);
	else
		r->tools->opts.answers.stored(&answer, &m);
	return say(r, &answer, ret, error);
}
