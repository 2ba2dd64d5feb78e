/* The memory methods: parameters to the service's terms, and its refusals in the original's words. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "call/call.h"
#include "call/server.h"
#include "dialect/ocg/memory_words.h"
#include "dialect/ocg/ocg.h"
#include "dialect/search_vector.h"
#include "service/services.h"

enum { LIMIT_DEFAULT = 5, ALIKE_MAX = 3 };

static const double min_score_default = 0.7;
static const double importance_default = 0.7;

static int need_memory(struct call *c)
{
	const struct services *s = call_services(c);

	if (s && s->store && !s->memory_off)
		return 0;
	return refuse(&c->why, REFUSE_UNAVAILABLE, "memory store not initialized");
}

static struct text trimmed(struct text t)
{
	while (t.len > 0 && isspace((unsigned char)t.data[0])) {
		t.data++;
		t.len--;
	}
	while (t.len > 0 && isspace((unsigned char)t.data[t.len - 1]))
		t.len--;
	return t;
}

/* In the plural too, as the original's documents have them. What else there is, it takes for
 * other: it lets its clients make up categories. {NULL, 0} for none. */
static struct text category_of(struct text given)
{
	static const struct {
		const char *name;
		const char *plural;
	} known[] = {{"preference", "preferences"},
		     {"decision", "decisions"},
		     {"fact", "facts"},
		     {"entity", "entities"}};

	if (given.len == 0)
		return (struct text) {0};
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (text_is(given, known[i].name) || text_is(given, known[i].plural))
			return text_of(known[i].name);
	}
	return TEXT("other");
}

/* "search failed: …", of what the service says. */
static struct done fail_as(struct call *c, const char *what, int r)
{
	const struct why inner = c->why;

	if (r < 0)
		return call_fail(c, refuse(&c->why, REFUSE_INTERNAL, "%s: %s", what, strerror(-r)));
	return call_fail(c, refuse(&c->why, r, "%s: %.150s", what, inner.text));
}

/* Becomes {Result}; takes the text. */
static struct done reply(struct call *c, struct buf *text)
{
	struct json *j = call_result(c);
	int r = text->err;

	json_begin_object(j);
	json_member_text(j, "Result", (struct text) {.data = text->data, .len = text->len});
	json_end_object(j);
	buf_done(text);
	return r == 0 ? call_reply(c) : call_fail(c, r);
}

static void begin_text(struct call *c, struct buf *text)
{
	buf_init(text, c->out.max);
}

/* ---- search ---- */

static int check_search(struct call *c)
{
	const struct ocg_search_in *in = c->in;
	int r = need_memory(c);

	if (r == 0 && trimmed(in->query).len == 0)
		r = refuse(&c->why, REFUSE_PARAMS, "query is required");
	return r;
}

void ocg_before_search(struct call *c)
{
	const struct ocg_search_in *in = c->in;

	if (check_search(c) == 0)
		search_vector_ask(c, in->query);
	else
		call_go_on(c);
}

/* Best first, so what is left out is at the end. */
static unsigned above(const struct memory *hits, unsigned n, double min_score)
{
	while (n > 0 && hits[n - 1].similarity < min_score)
		n--;
	return n;
}

struct done ocg_search(struct call *c)
{
	const struct ocg_search_in *in = c->in;
	const struct memory_query q = {
		.text = in->query,
		.limit = in->limit > 0 ? in->limit : LIMIT_DEFAULT,
		.category = category_of(in->category),
		.by = ocg_asker(c),
		.vector = search_vector(c),
	};
	struct memory *hits;
	struct buf text;
	unsigned n;
	int r = check_search(c);

	if (r != 0)
		return call_fail(c, r);
	r = memory_search(call_services(c), c->lane, &c->arena, &q, &hits, &n, &c->why);
	if (r != 0)
		return fail_as(c, "search failed", r);
	if (q.vector.data)
		n = above(hits, n, in->min_score > 0 ? in->min_score : min_score_default);
	begin_text(c, &text);
	ocg_words_found(&text, in->query, hits, n);
	return reply(c, &text);
}

/* ---- get ---- */

struct done ocg_get(struct call *c)
{
	const struct ocg_get_in *in = c->in;
	const struct memory_asker by = ocg_asker(c);
	struct memory memory;
	struct buf text;
	int r = need_memory(c);

	if (r == 0 && trimmed(in->path).len == 0)
		r = refuse(&c->why, REFUSE_PARAMS, "path is required");
	if (r == 0)
		r = memory_get(call_services(c), c->lane, &c->arena, &by, trimmed(in->path),
			       &memory, &c->why);
	if (r != 0)
		return call_fail(c, r);
	begin_text(c, &text);
	ocg_words_entry(&text, &memory);
	return reply(c, &text);
}

/* ---- store ---- */

/* What the threads hand on: c->state. */
struct storing {
	struct memory memory;
	bool duplicate;
};

/* On a reader's thread: whether one of those that are most like it says the same. */
static int find_same(struct call *c)
{
	const struct ocg_store_in *in = c->in;
	const struct memory_query q = {.text = in->text, .limit = ALIKE_MAX, .by = ocg_asker(c)};
	struct storing *s = c->state;
	struct memory *hits;
	unsigned n;
	int r = memory_search(call_services(c), c->lane, &c->arena, &q, &hits, &n, &c->why);

	for (unsigned i = 0; r == 0 && i < n && !s->duplicate; i++) {
		s->duplicate = text_equal(trimmed(hits[i].content), trimmed(in->text));
		s->memory = hits[i];
	}
	return r;
}

/* On the writer's. */
static int add(struct call *c)
{
	const struct ocg_store_in *in = c->in;
	const struct memory_new new = {
		.content = in->text,
		.source = TEXT("manual"),
		.category = category_of(in->category),
		.importance = in->importance > 1   ? 1
			      : in->importance > 0 ? in->importance
						   : importance_default,
		.by = ocg_asker(c),
	};
	struct storing *s = c->state;

	return memory_add(call_services(c), &c->arena, &new, &s->memory, &c->why);
}

static struct done stored(struct call *c, int r)
{
	const struct storing *s = c->state;
	struct buf text;

	if (r != 0)
		return fail_as(c, "store failed", r);
	begin_text(c, &text);
	if (s->duplicate)
		ocg_words_duplicate(&text, &s->memory);
	else
		ocg_words_stored(&text, &s->memory);
	return reply(c, &text);
}

static struct done found_same(struct call *c, int r)
{
	const struct storing *s = c->state;

	if (r != 0 || s->duplicate)
		return stored(c, r);
	return call_work(c, WRITER, add, stored);
}

struct done ocg_store(struct call *c)
{
	const struct ocg_store_in *in = c->in;
	int r = need_memory(c);

	if (r == 0 && trimmed(in->text).len == 0)
		r = refuse(&c->why, REFUSE_PARAMS, "text is required");
	if (r != 0)
		return call_fail(c, r);
	c->state = arena_zalloc(&c->arena, sizeof(struct storing));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	return call_work(c, READER, find_same, found_same);
}
