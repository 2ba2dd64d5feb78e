/* The tools of memory, with the defaults that ocg's have; how they are answered is the starter's. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "service/services.h"
#include "service/tool_inner.h"

enum {
	SEARCH_LIMIT = 5,
	KNOWN_HITS = 3,
	WORDS_MAX = 8 << 20,
};

static const double least_score = 0.7;
static const double usual_importance = 0.7;

/* In the plural too. What else there is passes for other: clients make up their own. */
static struct text category_of(struct text given)
{
	static const struct {
		const char *name, *plural;
	} known[] = {{"preference", "preferences"},
		     {"decision", "decisions"},
		     {"fact", "facts"},
		     {"entity", "entities"}};

	if (given.len == 0)
		return (struct text) {NULL, 0};
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (text_is(given, known[i].name) || text_is(given, known[i].plural))
			return text_of(known[i].name);
	}
	return TEXT("other");
}

static struct text trim(struct text t)
{
	while (t.len > 0 && isspace((unsigned char)t.data[0]))
		t = (struct text) {.data = t.data + 1, .len = t.len - 1};
	while (t.len > 0 && isspace((unsigned char)t.data[t.len - 1]))
		t.len--;
	return t;
}

static int need(const struct tool_run *r, const char *key, struct text *ret, struct why *why)
{
	int e = tool_text(r, key, true, ret, why);

	if (r->tools->services->memory_off)
		return refuse(why, REFUSE_UNAVAILABLE, "memory store not initialized");
	if (e == 0 && trim(*ret).len == 0)
		e = refuse_field(why, key, "%s is required", key);
	return e;
}

static int say(struct tool_run *r, struct buf *words, struct tool_result *ret)
{
	int e = words->err;

	if (e == 0) {
		ret->text.data = arena_copy(&r->arena, words->data, words->len);
		ret->text.len = words->len;
		e = ret->text.data ? 0 : -ENOMEM;
	}
	buf_done(words);
	return e;
}

/* "search failed: …", of what the service says. */
static int failed(const char *what, int e, struct why *why)
{
	const struct why inner = *why;

	return refuse(why, e > 0 ? (enum refusal)e : REFUSE_INTERNAL, "%s: %.150s", what,
		      e > 0 ? inner.text : strerror(-e));
}

/* ---- search ---- */

static int read_query(const struct tool_run *r, struct memory_query *q, double *ret_least,
		      struct why *why)
{
	struct text category;
	double limit;
	int e = need(r, "query", &q->text, why);

	if (e == 0)
		e = tool_text(r, "category", false, &category, why);
	if (e == 0)
		e = tool_number(r, "limit", 0, &limit, why);
	if (e == 0)
		e = tool_number(r, "minScore", 0, ret_least, why);
	if (e != 0)
		return e;
	q->category = category_of(category);
	q->limit = limit > MEMORY_LIMIT_MAX ? MEMORY_LIMIT_MAX
		   : limit >= 1             ? (int64_t)limit
					    : SEARCH_LIMIT;
	if (!(*ret_least > 0))
		*ret_least = least_score;
	q->by = r->by;
	q->vector = r->vector;
	return 0;
}

int tool_memory_search(struct tool_run *r, int lane, struct tool_result *ret, struct why *why)
{
	struct memory_query q = {.limit = 0};
	struct memory *hits;
	struct buf words;
	double least;
	unsigned n;
	int e = read_query(r, &q, &least, why);

	if (e != 0)
		return e;
	e = memory_search(r->tools->services, lane, &r->arena, &q, &hits, &n, why);
	if (e != 0)
		return failed("search failed", e, why);
	/* Best first. Without a model there is no such score, and it is not looked at. */
	while (q.vector.data && n > 0 && hits[n - 1].similarity < least)
		n--;
	buf_init(&words, WORDS_MAX);
	r->tools->opts.words.found(&words, q.text, hits, n);
	return say(r, &words, ret);
}

/* ---- one ---- */

int tool_memory_get(struct tool_run *r, int lane, struct tool_result *ret, struct why *why)
{
	struct memory m;
	struct buf words;
	struct text id;
	int e = need(r, "path", &id, why);

	if (e == 0)
		e = memory_get(r->tools->services, lane, &r->arena, &r->by, trim(id), &m, why);
	if (e != 0)
		return e;
	buf_init(&words, WORDS_MAX);
	r->tools->opts.words.entry(&words, &m);
	return say(r, &words, ret);
}

/* ---- a new one ---- */

int tool_memory_known(struct tool_run *r, int lane, struct tool_result *ret, struct why *why)
{
	struct memory_query q = {.limit = KNOWN_HITS, .by = r->by};
	struct memory *hits;
	struct buf words;
	unsigned n;
	int e = need(r, "text", &q.text, why);

	if (e != 0)
		return e;
	e = memory_search(r->tools->services, lane, &r->arena, &q, &hits, &n, why);
	if (e != 0)
		return failed("store failed", e, why);
	for (unsigned i = 0; i < n; i++) {
		if (!text_equal(trim(hits[i].content), trim(q.text)))
			continue;
		buf_init(&words, WORDS_MAX);
		r->tools->opts.words.duplicate(&words, &hits[i]);
		return say(r, &words, ret);
	}
	return 0;
}

int tool_memory_store(struct tool_run *r, int lane, struct tool_result *ret, struct why *why)
{
	struct memory_new in = {.source = TEXT("manual"), .by = r->by};
	struct memory m;
	struct buf words;
	int e = need(r, "text", &in.content, why);

	(void)lane;
	if (e == 0)
		e = tool_text(r, "category", false, &in.category, why);
	if (e == 0)
		e = tool_number(r, "importance", 0, &in.importance, why);
	if (e != 0)
		return e;
	in.category = category_of(in.category);
	if (!(in.importance > 0))
		in.importance = usual_importance;
	if (in.importance > 1)
		in.importance = 1;
	e = memory_add(r->tools->services, &r->arena, &in, &m, why);
	if (e != 0)
		return failed("store failed", e, why);
	buf_init(&words, WORDS_MAX);
	r->tools->opts.words.stored(&words, &m);
	return say(r, &words, ret);
}
