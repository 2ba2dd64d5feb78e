/*
 * A round: finds what was said (reader), has the agent write facts (loop), looks which of them
 * are new (reader), and stores these (writer), together with how far it has read. Where there are other
 * hosts, what was found is claimed first (writer), so that nobody else reads it meanwhile.
 */
#include "engine/extract/extract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metric.h"
#include "model/project.h"
#include "engine/chat/chat.h"
#include "engine/extract/facts.h"
#include "engine/memory/duplicates.h"
#include "engine/memory/memory.h"
#include "engine/index/wait.h"
#include "engine/node/node.h"
#include "store/store.h"

enum {
	TICK_MIN_MS = 200,
	TICK_MAX_MS = 30000,
	PIECE_BYTES = 24 << 10, /* of what was said, for one question */
	SAID_CHARS = 4000,      /* of what was said at once */
	ANSWER_BYTES = 64 << 10,
	ROUND_BYTES = 4 << 20,
	ROUND_PAUSE_MS = 1000, /* between two questions to the agent */
	ROUNDS_MAX = 120,      /* questions in an hour */
	HOUR_MS = 3600 * 1000,
	BACK_OFF_MS = 10000, /* after a failure; each time twice as long */
	BACK_OFF_MAX_MS = 3600 * 1000,
	TRIES_MAX = 3, /* then the piece is passed over */
	ALIKE_MAX = 5,
};

struct extracts {
	struct extracts_opts opts;
	struct ticker *ticker;
	char agent[AGENT_NAME_MAX];
	bool stopping;
	bool busy;
	uint64_t not_before_ms;
	uint64_t hour_ms; /* when the hour began that is counted */
	unsigned n_rounds;
	struct spend spend;
	unsigned n_failures;

	/* The round under way. */
	struct work work;
	struct memory_wait wait;
	struct arena arena;
	struct store_extract_source source;
	bool found;
	int64_t epoch; /* of the life that has claimed it */
	bool claimed;
	uint64_t rest_ms; /* after it */
	struct store_said *said;
	unsigned n_said;
	int64_t mark; /* how far it reads */
	bool all;     /* there is no more of it */
	char project[PROJECT_NAME_MAX + 1];
	struct buf question;
	struct buf answer;
	struct agent *at_work;
	struct agent_turn *turn;
	struct fact facts[FACTS_MAX];
	unsigned n_facts;
	unsigned n_stored;
	struct error error;
};

static void extract_submit(struct extracts *x, int (*run)(struct work *w, int lane),
			   void (*finished)(struct work *w, int result), bool writes)
{
	memory_wait_init(&x->wait, x->opts.memories);
	x->work = (struct work) {.run = run,
				 .finished = finished,
				 .wait = writes ? NULL : &x->wait.as,
				 .arena = &x->arena};
	workers_start(x->opts.workers, &x->work, writes);
}

static struct extracts *of(struct work *w)
{
	return list_entry(w, struct extracts, work);
}

/* ---- the end of a round ---- */

static void rested(struct work *w, int result)
{
	struct extracts *x = of(w);

	(void)result; /* What could not be released is ours when we find it again. */
	x->busy = false;
	x->claimed = false;
	x->not_before_ms = loop_now_ms(x->opts.loop) + x->rest_ms;
	arena_reset(&x->arena);
	buf_clear(&x->question);
	buf_clear(&x->answer);
}

static int release_run(struct work *w, int lane)
{
	const struct extracts *x = of(w);
	bool had;

	return store_extract_release(store_lane(x->opts.store, lane), &x->source, x->epoch, &had);
}

static void rest(struct extracts *x, uint64_t ms)
{
	x->rest_ms = ms;
	if (x->claimed)
		extract_submit(x, release_run, rested, true);
	else
		rested(&x->work, 0);
}

static void extract_failed(struct extracts *x, const char *what)
{
	uint64_t ms = BACK_OFF_MS;

	for (unsigned i = 0; i < x->n_failures && ms < BACK_OFF_MAX_MS; i++)
		ms *= 2;
	x->n_failures++;
	if (!x->stopping)
		log_warn("fact extraction failed, retrying",
			 "agent=%s from=%.*s reason=\"%s\" retry_ms=%llu", x->agent,
			 TEXT_ARGS(x->source.id), what, (unsigned long long)ms);
	rest(x, ms);
}

/* ---- fourth: storing them ---- */

static struct memory_asker asker_of(const struct extracts *x)
{
	const struct store_said *first = &x->said[0];

	if (x->source.kind == EXTRACT_SESSION)
		return (struct memory_asker) {.project = text_of(x->project)};
	return (struct memory_asker) {
		.user = first->user, .chat = first->chat, .chat_type = first->chat_type};
}

static int store_fact(struct extracts *x, const struct fact *f, struct text origin)
{
	const struct memory_new new = {
		.content = f->text,
		.source = TEXT("extracted"),
		.category = TEXT("fact"),
		.importance = -1,
		.subjects = f->subjects,
		.n_subjects = f->n_subjects,
		.by = asker_of(x),
		.created_ms = f->time_ms ? f->time_ms : x->said[x->n_said - 1].time_ms,
		.origin = origin,
		.review = x->opts.held ? REVIEW_HELD : REVIEW_OPEN,
		.once = true,
	};
	struct memory memory;
	int r = memory_add(x->opts.memories, &x->arena, &new, &memory, &x->error);

	if (r == 0)
		x->n_stored += !memory.repeated;
	return r;
}

static int keep_run(struct work *w, int lane)
{
	struct extracts *x = of(w);
	char origin[CHAT_ID_MAX + 32];
	bool had = true;
	int r = 0;

	x->n_stored = 0;
	snprintf(origin, sizeof(origin), "%s:%.*s",
		 x->source.kind == EXTRACT_SESSION ? "session" : "conversation",
		 (int)(x->source.id.len < CHAT_ID_MAX ? x->source.id.len : CHAT_ID_MAX),
		 x->source.id.data);
	for (unsigned i = 0; r == 0 && i < x->n_facts; i++) {
		if (!x->facts[i].known)
			r = store_fact(x, &x->facts[i], text_of(origin));
	}
	if (r == 0 && x->claimed)
		r = store_extract_release(store_writer(x->opts.store), &x->source, x->epoch, &had);
	if (r == 0 && !had)
		return -ESTALE;
	return r ?: store_extract_mark(store_writer(x->opts.store), &x->source, x->mark, x->all);
}

static void keep_finished(struct work *w, int result)
{
	struct extracts *x = of(w);

	if (result == 0 || result == -ESTALE)
		x->claimed = false;
	/* Another host has it: ours was taken for lost. */
	if (result == -ESTALE) {
		rest(x, 0);
		return;
	}
	if (result != 0) {
		extract_failed(x, error_words(result, &x->error));
		return;
	}
	x->n_failures = 0;
	if (x->n_facts > 0)
		log_info("facts extracted", "agent=%s from=%.*s facts=%u new=%u", x->agent,
			 TEXT_ARGS(x->source.id), x->n_facts, x->n_stored);
	rest(x, ROUND_PAUSE_MS);
}

static void extract_keep(struct extracts *x)
{
	extract_submit(x, keep_run, keep_finished, true);
}

/* ---- third: which are new ---- */

static bool is_repeated(const struct extracts *x, unsigned i)
{
	for (unsigned k = 0; k < i; k++) {
		if (duplicates_same(x->facts[k].text, x->facts[i].text))
			return true;
	}
	return false;
}

static int look_up(struct extracts *x, int lane, struct fact *f)
{
	const struct memory_query q = {
		.text = f->text, .limit = ALIKE_MAX, .by = asker_of(x), .wait = &x->wait};
	struct memory *hits;
	unsigned n;
	int r = memory_search(x->opts.memories, lane, &x->arena, &q, &hits, &n, &x->error);

	f->known = false;
	for (unsigned i = 0; r == 0 && i < n && !f->known; i++)
		f->known = duplicates_same(hits[i].content, f->text);
	return r;
}

static int look_run(struct work *w, int lane)
{
	struct extracts *x = of(w);
	const struct text answer = {.data = x->answer.data, .len = x->answer.len};
	int r = 0;

	x->n_facts = facts_read(answer, clock_utc_ms(), x->facts);
	for (unsigned i = 0; r == 0 && i < x->n_facts; i++) {
		r = look_up(x, lane, &x->facts[i]);
		if (r == 0 && is_repeated(x, i))
			x->facts[i].known = true;
	}
	return r;
}

static void look_finished(struct work *w, int result)
{
	struct extracts *x = of(w);

	if (result != 0)
		extract_failed(x, error_words(result, &x->error));
	else
		extract_keep(x);
}

/* ---- second: asking the agent ---- */

static void on_text(void *arg, struct text piece)
{
	struct extracts *x = arg;

	if (x->answer.err == 0)
		buf_add(&x->answer, piece.data, piece.len);
	if (x->answer.err != 0 && x->turn)
		x->at_work->ops->cancel(x->turn);
}

/* A piece that cannot be read again and again is passed over. */
static void no_answer(struct extracts *x, const char *reason)
{
	if (x->n_failures + 1 >= TRIES_MAX && !x->stopping) {
		log_warn("fact extraction skipped", "agent=%s from=%.*s reason=\"%s\"", x->agent,
			 TEXT_ARGS(x->source.id), reason);
		x->n_facts = 0;
		extract_keep(x);
		return;
	}
	extract_failed(x, reason);
}

static void extract_on_end(void *arg, const struct agent_end *end)
{
	struct extracts *x = arg;

	x->turn = NULL;
	chat_note_spent(&x->spend, x->agent, end);
	if (x->answer.err != 0)
		no_answer(x, "the agent's response exceeds its size limit");
	else if (end->outcome == AGENT_DONE || end->outcome == AGENT_LENGTH)
		extract_submit(x, look_run, look_finished, false);
	else
		no_answer(x, end->outcome == AGENT_FAILED && end->text
				     ? end->text
				     : "the agent sent no response");
}

/* What was said must not make an agent's program write anything. */
static const struct agent_bounds nothing = {.confined = true,
					    .write_paths = {.data = "", .len = 0}};

/* Counts a question; false: enough for this hour, and *ret_ms is the rest of it. */
static bool may_ask(struct extracts *x, uint64_t *ret_ms)
{
	uint64_t now = loop_now_ms(x->opts.loop);

	if (x->hour_ms == 0 || now - x->hour_ms >= HOUR_MS) {
		x->hour_ms = now;
		x->n_rounds = 0;
	}
	*ret_ms = x->hour_ms + HOUR_MS - now;
	return x->n_rounds++ < ROUNDS_MAX;
}

static void ask_agent(struct extracts *x)
{
	const struct agent_sink sink = {.on_text = on_text, .on_end = extract_on_end, .arg = x};
	const struct message wanted = {.role = MESSAGE_USER,
				       .text = {.data = x->question.data, .len = x->question.len}};
	const struct agent_ask ask = {
		.conversation = TEXT("extract"),
		.bounds = nothing,
		.messages = &wanted,
		.n_messages = 1,
		.first = true,
	};
	uint64_t ms;
	int r;

	if (!may_ask(x, &ms)) {
		rest(x, ms);
		return;
	}
	x->at_work = chat_agent(x->opts.chat, text_of(x->agent));
	if (!x->at_work) {
		extract_failed(x, "agent not found");
		return;
	}
	r = x->at_work->ops->start(x->at_work, &ask, &sink, &x->turn, &x->error);
	if (r != 0)
		no_answer(x, error_words(r, &x->error));
}

/* ---- first: what was said ---- */

static bool same_asker(const struct store_said *a, const struct store_said *b)
{
	return text_equal(a->user, b->user) && text_equal(a->chat, b->chat) &&
	       text_equal(a->chat_type, b->chat_type);
}

/* As much as belongs to one asker, in whole turns; a turn that still runs waits. */
static void choose_piece(struct extracts *x, unsigned n_read, bool full)
{
	unsigned n = 0;

	x->all = !full;
	while (n < n_read && !x->said[n].open && same_asker(&x->said[0], &x->said[n]))
		n++;
	if (n < n_read)
		x->all = false;
	/* The last turn may go on behind what was read. */
	while (full && n == n_read && n > 1 && x->said[n - 1].mark != x->said[0].mark) {
		int64_t last = x->said[n - 1].mark;

		while (x->said[n - 1].mark == last)
			n--;
		break;
	}
	x->n_said = n;
	x->mark = n > 0 ? x->said[n - 1].mark : x->source.mark;
}

static size_t bytes_said(const struct extracts *x, unsigned n)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += x->said[i].text.len;
	return bytes;
}

static int read_piece(struct extracts *x, struct connection *c)
{
	unsigned n;
	int r = store_extract_read(c, &x->source, SAID_CHARS, PIECE_BYTES, &x->arena, &x->said, &n);

	if (r != 0)
		return r;
	choose_piece(x, n, bytes_said(x, n) + SAID_CHARS * 4 > PIECE_BYTES);
	if (x->source.kind == EXTRACT_SESSION)
		r = project_of_folder(x->source.working_dir.data, x->project);
	/* A folder that is gone still names what was done in it. */
	if (r != 0)
		snprintf(x->project, sizeof(x->project), "%s", x->source.working_dir.data);
	facts_ask(&x->question, x->said, x->n_said);
	return x->question.err;
}

static int find_run(struct work *w, int lane)
{
	struct extracts *x = of(w);
	struct connection *c = store_lane(x->opts.store, lane);
	int64_t idle_ms = clock_utc_ms() - x->opts.idle_ms;
	int r = 0;

	x->found = false;
	for (unsigned kind = 0; r == 0 && !x->found && kind < N_EXTRACT_KINDS; kind++)
		r = store_extract_next(c, kind, idle_ms, &x->arena, &x->source, &x->found);
	return r == 0 && x->found ? read_piece(x, c) : r;
}

static void extract_go_on(struct extracts *x)
{
	if (x->n_said > 0)
		ask_agent(x);
	else
		extract_keep(x); /* nothing new was said in it */
}

static int claim_run(struct work *w, int lane)
{
	struct extracts *x = of(w);

	return store_extract_claim(store_lane(x->opts.store, lane), &x->source, x->epoch,
				   &x->claimed);
}

static void claim_finished(struct work *w, int result)
{
	struct extracts *x = of(w);

	if (result != 0)
		extract_failed(x, fault_words(result));
	else if (x->claimed && !x->stopping)
		extract_go_on(x);
	else
		rest(x, 0);
}

static void find_finished(struct work *w, int result)
{
	struct extracts *x = of(w);

	x->epoch = node_epoch(x->opts.node);
	if (result != 0)
		extract_failed(x, fault_words(result));
	else if (!x->found || x->stopping || (x->n_said == 0 && !x->all) ||
		 (x->opts.node && x->epoch == 0))
		rest(x, 0);
	else if (x->opts.node)
		extract_submit(x, claim_run, claim_finished, true);
	else
		extract_go_on(x);
}

static void on_tick(void *arg)
{
	struct extracts *x = arg;

	if (x->busy || x->stopping || loop_now_ms(x->opts.loop) < x->not_before_ms)
		return;
	x->busy = true;
	x->n_facts = 0;
	extract_submit(x, find_run, find_finished, false);
}

/* ---- start and end ---- */

static int check_agent(const struct extracts_opts *opts, struct error *error)
{
	struct agent *a = chat_agent(opts->chat, text_of(opts->agent));

	if (!a)
		return refuse(error, REFUSE_PARAMS, "memory.extract: agent not found: '%.60s'",
			      opts->agent);
	if (a->ops->quotes_only)
		return refuse(error, REFUSE_PARAMS,
			      "memory.extract: agent '%.60s' only quotes stored text and cannot "
			      "extract facts",
			      opts->agent);
	return a->ops->check_bounds ? a->ops->check_bounds(a, &nothing, error) : 0;
}

int extracts_start(const struct extracts_opts *opts, struct extracts **ret_extracts,
		   struct error *error)
{
	uint64_t tick = (uint64_t)opts->idle_ms / 4;
	struct extracts *x;
	int r = check_agent(opts, error)
			?: store_extract_begin(store_writer(opts->store), clock_utc_ms());

	if (r != 0)
		return r;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->opts = *opts;
	x->opts.agent = x->agent;
	snprintf(x->agent, sizeof(x->agent), "%s", opts->agent);
	arena_init(&x->arena, ROUND_BYTES);
	buf_init(&x->question, ROUND_BYTES);
	buf_init(&x->answer, ANSWER_BYTES);
	*ret_extracts = x;
	tick = tick < TICK_MIN_MS ? TICK_MIN_MS : tick > TICK_MAX_MS ? TICK_MAX_MS : tick;
	return ticker_new(opts->loop, tick, on_tick, x, &x->ticker);
}

void extracts_stop(struct extracts *x)
{
	if (!x || x->stopping)
		return;
	x->stopping = true;
	if (x->turn)
		x->at_work->ops->cancel(x->turn);
}

void extracts_free(struct extracts *x)
{
	if (!x)
		return;
	ticker_free(x->ticker);
	arena_done(&x->arena);
	buf_done(&x->question);
	buf_done(&x->answer);
	spend_done(&x->spend);
	free(x);
}

const struct spend *extracts_spend(const struct extracts *x)
{
	return x ? &x->spend : NULL;
}
