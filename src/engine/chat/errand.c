/* An errand: from its conversation's queue to its end, with an agent working in between. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/chat/inner.h"

void errand_init(struct errand *e, struct chat *chat, const struct errand_ops *ops)
{
	e->ops = ops;
	e->chat = chat;
	list_init(&e->link);
	arena_init(&e->arena, CHAT_ARENA_MAX);
	arena_init(&e->context.arena, CHAT_ARENA_MAX);
	buf_init(&e->text, CHAT_TEXT_MAX);
	e->end.usage = AGENT_NO_USAGE;
	chat->n_errands++;
}

void errand_done(struct errand *e)
{
	e->chat->n_errands--;
	e->chat->bytes -= e->bytes;
	arena_done(&e->arena);
	arena_done(&e->context.arena);
	buf_done(&e->text);
}

void errand_weigh(struct errand *e, size_t bytes)
{
	e->bytes += bytes;
	e->chat->bytes += bytes;
}

int errand_submit(struct errand *e, int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result), bool writes)
{
	struct workers *workers = e->chat->opts.workers;

	memory_wait_init(&e->wait, e->chat->opts.memories);
	e->work = (struct work) {.run = run,
				 .finished = finished,
				 .wait = writes ? NULL : &e->wait.as,
				 /* An agent at work calls tools, which are noted there. */
				 .arena = e->under_way ? NULL : &e->arena};
	return workers_submit(workers, &e->work, writes);
}

/* ---- in the queue ---- */

void errand_queue(struct errand *e, struct live_conversation *c)
{
	e->conversation = c;
	list_append(&c->waiting, &e->link);
	c->n_waiting++;
	conversation_start_next(c);
}

void errand_cancel(struct errand *e)
{
	switch (e->stage) {
	case ERRAND_WAITS:
		list_remove(&e->link);
		e->conversation->n_waiting--;
		e->ops->on_cancelled(e);
		return;
	case ERRAND_RUNS:
		e->cancelled = true;
		if (e->under_way)
			e->agent->ops->cancel(e->under_way);
		else
			work_cancel(&e->work);
		return;
	case ERRAND_OVER:
		return;
	}
}

void errand_finish(struct errand *e, int result, const struct error *error)
{
	struct live_conversation *c = e->conversation;

	e->stage = ERRAND_OVER;
	if (c->running == e)
		c->running = NULL;
	e->result = result;
	if (error)
		e->error = *error;
	list_append(&e->chat->over, &e->link);
	timer_start(e->chat->teller, 0);
	conversation_start_next(c);
}

void errand_report(struct errand *e)
{
	list_remove(&e->link);
	e->ops->finish(e, e->result, &e->error);
}

/* ---- the agent ---- */

int errand_choose_agent(struct errand *e, struct error *error)
{
	const struct live_conversation *c = e->conversation;

	if (!e->agent)
		e->agent = conversation_agent(c);
	if (e->agent)
		return 0;
	if (c->agent_name)
		return refuse(error, REFUSE_UNAVAILABLE, "agent '%.60s' is not configured",
			      c->agent_name);
	return refuse(error, REFUSE_UNAVAILABLE, "no agent is configured");
}

static void on_text(void *arg, struct text piece)
{
	struct errand *e = arg;
	size_t from = e->text.len;

	if (e->too_long)
		return;
	buf_add(&e->text, piece.data, piece.len);
	errand_weigh(e, piece.len);
	if (e->text.err != 0 || e->chat->bytes > CHAT_BYTES_MAX) {
		e->too_long = true;
		e->agent->ops->cancel(e->under_way);
		return;
	}
	if (e->ops->on_text)
		e->ops->on_text(e, from);
}

static void on_call(void *arg, const struct tool_call *call)
{
	struct errand *e = arg;

	if (!e->calls)
		e->calls = arena_zalloc(&e->arena, AGENT_CALLS_MAX * sizeof(e->calls[0]));
	if (!e->calls || e->n_calls == AGENT_CALLS_MAX)
		return;
	e->calls[e->n_calls] = *call;
	if (tool_call_copy(&e->arena, &e->calls[e->n_calls]) == 0)
		e->n_calls++;
}

void errand_fail(struct errand *e, const char *type, const char *text)
{
	e->end.outcome = AGENT_FAILED;
	snprintf(e->error_type, sizeof(e->error_type), "%s", type);
	snprintf(e->error_text, sizeof(e->error_text), "%s", text);
	e->error_text[utf8_whole(e->error_text, strlen(e->error_text))] = '\0';
}

void chat_note_spent(struct spend *spend, const char *agent, const struct agent_end *end)
{
	static const enum spend_outcome outcomes[] = {
		[AGENT_DONE] = SPEND_DONE,     [AGENT_CALLS] = SPEND_DONE,
		[AGENT_LENGTH] = SPEND_DONE,   [AGENT_CANCELLED] = SPEND_CANCELLED,
		[AGENT_FAILED] = SPEND_FAILED,
	};
	const struct spent spent = {
		.input = end->usage.input,
		.output = end->usage.output,
		.cache_read = end->usage.cache_read,
		.cache_written = end->usage.cache_written,
		.micro_usd = -1,
		.outcome = outcomes[end->outcome],
	};

	spend_add(spend, text_of(agent), &spent);
}

static void chat_errand_on_end(void *arg, const struct agent_end *end)
{
	struct errand *e = arg;

	e->under_way = NULL;
	e->end = *end;
	if (e->too_long)
		e->end.outcome = AGENT_LENGTH;
	chat_note_spent(&e->chat->spend, e->agent->name, end);
	if (e->end.outcome == AGENT_FAILED)
		errand_fail(e, end->type ? end->type : "AgentError", end->text ? end->text : "");
	e->ops->on_end(e);
}

void errand_start_agent(struct errand *e)
{
	const struct agent_sink sink = {
		.on_text = on_text, .on_call = on_call, .on_end = chat_errand_on_end, .arg = e};
	const struct live_conversation *c = e->conversation;
	struct agent_ask *ask = &e->context.ask;
	struct error error = {0};
	int r;

	ask->bounds = bounds_for_agent(text_of(c->cwd), text_of(c->write_paths),
				       text_of(c->disabled_tools));
	r = e->agent->ops->start(e->agent, ask, &sink, &e->under_way, &error);
	arena_done(&e->context.arena);
	if (r == 0)
		return;
	chat_note_spent(&e->chat->spend, e->agent->name,
			&(struct agent_end) {.outcome = AGENT_FAILED, .usage = AGENT_NO_USAGE});
	errand_fail(e, "AgentError", error_words(r, &error));
	e->ops->on_end(e);
}
