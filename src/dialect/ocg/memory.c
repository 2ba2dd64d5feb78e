/* The memory methods: they translate parameters to the engine's terms, and refuse in the
 * original's words. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "call/call.h"
#include "dialect/ocg/ocg.h"
#include "dialect/memory_search.h"
#include "engine/memory/lenient.h"
#include "engine/index/wait.h"
#include "dialect/engine.h"

enum { ENVELOPE_BYTES = 512 }; /* of an answer, around its text */

static int need_memory(struct call *c)
{
	const struct memories *m = call_memories(c);

	if (m && !memories_off(m))
		return 0;
	return refuse(&c->error, REFUSE_UNAVAILABLE, "memory store not initialized");
}

/* Fails with "search failed: …" or the like, followed by what the service says. */
static struct done fail_as(struct call *c, const char *what, int r)
{
	const struct error inner = c->error;

	if (r == WORK_WAITS)
		return call_fail(c, r);
	if (r < 0)
		return call_fail(
			c, refuse(&c->error, REFUSE_INTERNAL, "%s: %s", what, fault_words(r)));
	return call_fail(c, refuse(&c->error, r, "%s: %.150s", what, inner.text));
}

/* Replies with {Result}. A failure begins with `what`, unless that is NULL. Frees the text. */
static struct done reply(struct call *c, struct buf *text, const char *what)
{
	struct json *j = call_result(c);
	int r = text->err;

	if (r == -EMSGSIZE)
		r = refuse(&c->error, REFUSE_TOO_LARGE, "the result is larger than %zu bytes",
			   text->max);
	json_begin_object(j);
	json_member_text(j, "Result", (struct text) {.data = text->data, .len = text->len});
	json_end_object(j);
	buf_done(text);
	if (r == 0)
		return call_reply(c);
	return what ? fail_as(c, what, r) : call_fail(c, r);
}

static void begin_text(struct call *c, struct buf *text)
{
	buf_init(text, c->out.max);
}

/* ---- search ---- */

static int check_search(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	int r = need_memory(c);

	if (r == 0 && text_trim(in->query, TEXT_SPACE).len == 0)
		r = refuse(&c->error, REFUSE_PARAMS, "query is required");
	return r;
}

void ocg_before_search(struct call *c)
{
	const struct ocg_memory_in *in = c->in;

	search_begin(c, check_search(c) == 0 ? in->query : (struct text) {0});
}

/* How much of an answer the hits may take, even if all of it is escaped again or sent as gob. */
static size_t room_for_hits(const struct call *c)
{
	size_t room = c->out.max / 2;

	return (room < GOB_MESSAGE_MAX ? room : GOB_MESSAGE_MAX) - ENVELOPE_BYTES;
}

struct done ocg_search(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	struct memory_query q = {
		.text = in->query,
		.limit = memory_lenient_limit(in->limit),
		.category = memory_lenient_category(in->category),
		.by = ocg_asker(c),
	};
	struct memory *hits;
	struct buf text;
	unsigned n;
	int r = check_search(c) ?: search_continue(c, &q);

	if (r != 0)
		return call_fail(c, r);
	memory_lenient_least(in->min_score, &q);
	r = memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->error);
	if (r != 0)
		return fail_as(c, "search failed", r);
	buf_init(&text, room_for_hits(c));
	ocg_answer_found(&text, in->query, hits, n);
	return reply(c, &text, "search failed");
}

/* ---- get ---- */

struct done ocg_get(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	const struct memory_asker by = ocg_asker(c);
	struct memory memory;
	struct buf text;
	int r = need_memory(c);

	if (r == 0 && text_trim(in->path, TEXT_SPACE).len == 0)
		r = refuse(&c->error, REFUSE_PARAMS, "path is required");
	if (r == 0)
		r = memory_get(call_memories(c), c->lane, &c->arena, &by,
			       text_trim(in->path, TEXT_SPACE), &memory, &c->error);
	if (r != 0)
		return call_fail(c, r);
	begin_text(c, &text);
	ocg_answer_entry(&text, &memory);
	return reply(c, &text, NULL);
}

/* ---- store ---- */

/* In c->state, passed from thread to thread. */
struct storing {
	struct memory memory;
	bool duplicate;
	struct memory_wait wait;
};

/* On a reader's thread: looks for the same text among the most similar memories. */
static int find_same(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	const struct memory_asker by = ocg_asker(c);
	struct storing *s = c->state;

	return memory_lenient_known(call_memories(c), c->lane, &c->arena, in->text, &by, &s->wait,
				    &s->memory, &s->duplicate, &c->error);
}

/* On the writer's thread. */
static int ocg_memory_add(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	const struct memory_new new = {
		.content = in->text,
		.source = TEXT("manual"),
		.category = memory_lenient_category(in->category),
		.importance = memory_lenient_importance(in->importance),
		.by = ocg_asker(c),
	};
	struct storing *s = c->state;
	int r = memory_add(call_memories(c), &c->arena, &new, &s->memory, &c->error);

	s->duplicate = r == 0 && s->memory.repeated;
	return r;
}

static struct done stored(struct call *c, int r)
{
	const struct storing *s = c->state;
	struct buf text;

	if (r != 0)
		return fail_as(c, "store failed", r);
	begin_text(c, &text);
	if (s->duplicate)
		ocg_answer_duplicate(&text, &s->memory);
	else
		ocg_answer_stored(&text, &s->memory);
	return reply(c, &text, "store failed");
}

static struct done found_same(struct call *c, int r)
{
	const struct storing *s = c->state;

	if (r != 0 || s->duplicate)
		return stored(c, r);
	return call_work(c, WRITER, ocg_memory_add, stored);
}

struct done ocg_store(struct call *c)
{
	const struct ocg_memory_in *in = c->in;
	struct storing *s;
	int r = need_memory(c);

	if (r == 0 && text_trim(in->text, TEXT_SPACE).len == 0)
		r = refuse(&c->error, REFUSE_PARAMS, "text is required");
	if (r != 0)
		return call_fail(c, r);
	c->state = s = arena_zalloc(&c->arena, sizeof(*s));
	if (!s)
		return call_fail(c, -ENOMEM);
	memory_wait_init(&s->wait, call_memories(c));
	call_may_wait(c, &s->wait.as);
	return call_work(c, READER, find_same, found_same);
}
