/* Prompts: what do we know about something, and the state of this project for the next agent. */

#include "base/clock.h"
#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "dialect/memory_search.h"
#include "engine/task/task.h"

enum { RECALLED = 20, LEFT_OVER = 40, TASKS = 20, TEXT_MAX = 1 << 20, DAY_LEN = 10 };

struct recall_in {
	struct text about;
};

static void add_memories(struct buf *out, const struct memory *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char created[ISO_LEN + 1];

		clock_format_iso(rows[i].created_ms, created);
		buf_printf(out, "- %.*s ", DAY_LEN, created);
		buf_add(out, rows[i].content.data, rows[i].content.len);
		buf_add_char(out, '\n');
	}
	if (n == 0)
		buf_add_str(out, "(no memories)\n");
}

static struct done mcp_prompt_say(struct call *c, struct buf *out)
{
	int r = out->err;

	if (r == 0)
		mcp_text(c, (struct text) {out->data, out->len});
	buf_done(out);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

/* ---- recall ---- */

static void begin_recall(struct call *c)
{
	const struct recall_in *in = c->in;

	search_begin(c, in->about);
}

static void before_recall(struct call *c)
{
	side_before_with(c, begin_recall);
}

static struct done handle_recall(struct call *c)
{
	const struct recall_in *in = c->in;
	struct memory_query q = {.text = in->about, .limit = RECALLED};
	struct memory *hits;
	struct buf out;
	unsigned n;
	int r = search_continue(c, &q) ?: mcp_asker(c, (struct text) {0}, &q.by) ?:
		memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->error);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, TEXT_MAX);
	buf_add_str(&out, "What do we know about ");
	buf_add(&out, in->about.data, in->about.len);
	buf_add_str(&out, "? These are the stored memories, best match first:\n\n");
	add_memories(&out, hits, n);
	buf_add_str(&out, "\nAnswer from these memories, and name any gaps.");
	return mcp_prompt_say(c, &out);
}

/* ---- handoff ---- */

static int add_tasks(struct call *c, struct buf *out)
{
	const struct task_filter f = {.state = -1, .limit = TASKS, .brief = true};
	struct task *rows = NULL;
	unsigned n = 0;
	int r = call_tasks(c) ? task_list(call_tasks(c), c->lane, &c->arena, &f, &rows, &n, NULL)
			      : 0;

	if (n > 0)
		buf_add_str(out, "\nRecent tasks:\n");
	for (unsigned i = 0; r == 0 && i < n; i++) {
		buf_printf(out, "- %.*s (%s): ", TEXT_ARGS(rows[i].id), task_word(&rows[i]));
		buf_add(out, rows[i].prompt.data, rows[i].prompt.len);
		buf_add_char(out, '\n');
	}
	return r;
}

static struct done handle_handoff(struct call *c)
{
	struct memory_filter f = {.limit = LEFT_OVER};
	struct memory *rows;
	struct buf out;
	unsigned n;
	int r = mcp_asker(c, (struct text) {0}, &f.by)
			?: memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n,
				       &c->error);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, TEXT_MAX);
	buf_add_str(&out, "You are taking over this project from another agent. The memories of "
			  "the project, newest first:\n\n");
	add_memories(&out, rows, n);
	r = add_tasks(c, &out);
	if (r != 0) {
		buf_done(&out);
		return call_fail(c, r);
	}
	buf_add_str(&out, "\nSummarize the state of the project and the next steps in a few "
			  "sentences, then continue the work.");
	return mcp_prompt_say(c, &out);
}

/* ---- the prompts ---- */

static const struct field recall_fields[] = {
	FIELD(STRING, recall_in, about, "Person or thing to recall", .required = true),
};

const struct mcp_prompt mcp_prompts[MCP_N_PROMPTS] = {
	{.row = {"recall", "Recall what is known about a person or thing",
		 FIELDS(recall_fields, recall_in), .handle = handle_recall, .before = before_recall,
		 .where = READER},
	 .title = "Recall"},
	{.row = {"handoff", "Summarize the state of this project for the next agent",
		 .handle = handle_handoff, .before = side_before, .where = READER},
	 .title = "Hand over"},
};
