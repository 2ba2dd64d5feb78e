/*
 * The event log as the daemon runs it: a loop, the workers' threads with the trailer behind each
 * batch, a real store, and subscribers that take what they are told to take.
 */
#include "stage.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "io/workers.h"
#include "io/loop.h"
#include "engine/event/condition.h"
#include "engine/event/event.h"
#include "engine/event/inner.h"
#include "store/db/driver.h"
#include "store/event.h"
#include "store/store.h"

enum { HEARD_MAX = 20000, WAIT_S = 60 };

/* ---- the world ---- */

struct world {
	struct fixture *f;
	struct loop *loop;
	struct timer *tick;
	struct workers *workers;
	struct fake_workers fake;
	atomic_bool holds; /* the writer waits for `go` between a commit and what follows */
	sem_t go;
	bool holds_reads;  /* the next is done at once, and told by the test */
	struct work *held; /* that one */
};

static int submit(void *arg, struct work *work, bool writes)
{
	struct world *w = arg;

	if (!writes && w->holds_reads) {
		w->holds_reads = false;
		w->held = work;
		work->run(work, N_READERS - 1);
	} else if (writes)
		workers_write(w->workers, work);
	else
		workers_read(w->workers, work);
	return 0;
}

static struct work *trailer(void *arg)
{
	struct world *w = arg;

	if (atomic_load(&w->holds))
		sem_wait(&w->go);
	if (!engine_trails(w->f->engine))
		return NULL;
	return engine_trailer(w->f->engine);
}

static void on_tick(void *arg)
{
}

static void world_start(struct world *w)
{
	struct workers_opts workers = fixture_workers(w->f, N_READERS);
	const struct events_opts events = {
		.store = w->f->engine->store,
		.loop = w->loop,
		.workers = fake_workers(&w->fake),
	};

	w->fake = (struct fake_workers) {.submit = submit, .arg = w};
	assert_int_equal(events_start(&events, &w->f->engine->events), 0);
	fixture_memories(w->f, 64 << 20);
	workers.trailer = trailer;
	workers.trailer_arg = w;
	assert_int_equal(workers_new(w->loop, &workers, &w->workers), 0);
}

static void make(struct world *w, void **state)
{
	*w = (struct world) {.f = *state};
	assert_int_equal(sem_init(&w->go, 0, 0), 0);
	assert_int_equal(loop_new(&w->loop), 0);
	assert_int_equal(timer_new(w->loop, on_tick, NULL, &w->tick), 0);
	timer_repeat(w->tick, 20);
	world_start(w);
}

static void world_stop(struct world *w)
{
	workers_free(w->workers);
	engine_close(w->f->engine);
	w->f->engine = NULL;
}

static void world_restart(struct world *w)
{
	world_stop(w);
	fixture_open(w->f, 64 << 20);
	world_start(w);
}

static void unmake(struct world *w)
{
	world_stop(w);
	timer_free(w->tick);
	loop_free(w->loop);
	sem_destroy(&w->go);
}

static struct value *tree_of(struct arena *a, const struct event *e)
{
	struct value *v = NULL;

	assert_int_equal(value_unpack(a, e->data, &v), 0);
	return v;
}

static int64_t number_in(const struct event *e)
{
	struct arena a;
	int64_t n = 0;

	arena_init(&a, 1 << 20);
	value_int(value_find(tree_of(&a, e), "n"), &n);
	arena_done(&a);
	return n;
}

static struct text unpacked(const struct event *e, const char *key)
{
	return packed_text(packed_find(e->data, key));
}

static void turn_once(struct world *w)
{
	struct pollfd p = {.fd = loop_fd(w->loop), .events = POLLIN};

	poll(&p, 1, loop_timeout_ms(w->loop));
	loop_step(w->loop);
}

/* The loop's thread waits on its own clock: what never comes fails the test. */
#define turn_until(w, condition)                                                                   \
	do {                                                                                       \
		uint64_t until_ = clock_steady_ms() + WAIT_S * 1000;                               \
		while (!(condition)) {                                                             \
			if (clock_steady_ms() > until_)                                            \
				fail_msg("never: %s", #condition);                                 \
			turn_once(w);                                                              \
		}                                                                                  \
	} while (0)

/* ---- publishing ---- */

struct publish {
	struct work work;
	struct engine *engine;
	const char *type;
	const char *session;
	int first; /* data: {"n": first}, and so on */
	unsigned n;
	unsigned bytes; /* data has a text as long as this, too */
	int64_t *seq;   /* if not NULL: gets the number of the last */
	bool undo;
	bool done;
	int result;
};

static char long_text[200 << 10];

static int publish_n(struct engine *s, const struct publish *p, struct arena *a, int n)
{
	struct object_builder data;
	struct event_new new = {.type = p->type, .session = text_of(p->session)};

	object_begin(&data, a);
	object_int(&data, "n", n);
	if (p->bytes > 0)
		object_text(&data, "long", (struct text) {.data = long_text, .len = p->bytes});
	new.data = data.root;
	return p->seq ? event_add_numbered(s->events, &new, p->seq) : event_add(s->events, &new);
}

static int publish_run(struct work *work, int lane)
{
	struct publish *p = list_entry(work, struct publish, work);
	struct arena a;

	arena_init(&a, 1 << 20);
	for (unsigned i = 0; p->result == 0 && i < p->n; i++) {
		p->result = publish_n(p->engine, p, &a, p->first + (int)i);
		arena_reset(&a);
	}
	arena_done(&a);
	return p->undo ? -ECANCELED : 0;
}

static void publish_finished(struct work *work, int result)
{
	struct publish *p = list_entry(work, struct publish, work);

	assert_int_equal(result, p->undo ? -ECANCELED : 0);
	assert_int_equal(p->result, 0);
	p->done = true;
}

static void publish_begin(struct world *w, struct publish *p)
{
	p->work = (struct work) {.run = publish_run, .finished = publish_finished};
	p->engine = w->f->engine;
	submit(w, &p->work, true);
}

static void publish(struct world *w, const char *type, int first, unsigned n)
{
	struct publish p = {.type = type, .first = first, .n = n};

	publish_begin(w, &p);
	turn_until(w, p.done);
}

/* ---- listening ---- */

struct listener {
	struct event_subscriber *subscriber;
	struct world *world;
	struct event_filter filter;
	int64_t seqs[HEARD_MAX];
	int ns[HEARD_MAX]; /* data.n */
	unsigned n;
	unsigned n_flushes;
	int64_t gone;
	unsigned n_gone;
	unsigned room; /* how many it takes before it wants no more for now */
	bool limited;
	bool loses;           /* while it has no room */
	unsigned keeps;       /* ... but for so many */
	bool leaves;          /* at the next event */
	bool leaves_at_flush; /* at the next flush */
	bool leaves_at_gone;  /* when it is told of a loss */
	bool left;
	const struct publish *callers; /* by data.n, if not NULL: they know already */
};

static void leave(struct listener *l)
{
	event_unsubscribe(l->subscriber);
	l->subscriber = NULL;
	l->left = true;
}

static int on_event(void *arg, const struct event *e)
{
	struct listener *l = arg;
	int64_t n = -1;

	assert_false(l->left);
	if (l->limited && l->room == 0)
		return -ENOBUFS;
	l->room--;
	assert_true(l->n < HEARD_MAX);
	if (l->n > 0)
		assert_true(e->seq > l->seqs[l->n - 1]);
	n = number_in(e);
	if (l->callers)
		assert_true(l->callers[n].done);
	l->ns[l->n] = (int)n;
	l->seqs[l->n++] = e->seq;
	if (l->leaves)
		leave(l);
	return 0;
}

static int on_gone(void *arg, int64_t n)
{
	struct listener *l = arg;

	assert_false(l->left);
	if (l->limited && l->room == 0 && !l->loses)
		return -ENOBUFS;
	l->gone += n;
	l->n_gone++;
	if (l->leaves_at_gone)
		leave(l);
	return 0;
}

static enum event_look look(void *arg)
{
	const struct listener *l = arg;

	assert_false(l->left);
	if (!l->limited || l->room > 0)
		return EVENT_TAKES;
	return l->loses ? EVENT_LOSES : EVENT_WAITS;
}

static bool wants(void *arg, const struct event *e)
{
	const struct listener *l = arg;

	assert_false(l->left);
	return number_in(e) % 10 != 0;
}

static bool keeps(void *arg, unsigned n)
{
	const struct listener *l = arg;

	assert_false(l->left);
	return n < l->keeps;
}

static void flush(void *arg)
{
	struct listener *l = arg;

	assert_false(l->left);
	l->n_flushes++;
	if (l->leaves_at_flush)
		leave(l);
}

static void listen_from(struct world *w, struct listener *l, int64_t since)
{
	const struct event_sink sink = {
		.on_event = on_event,
		.on_gone = on_gone,
		.look = look,
		.wants = wants,
		.keeps = keeps,
		.flush = flush,
		.arg = l,
	};

	l->world = w;
	l->left = false;
	assert_int_equal(
		event_subscribe(w->f->engine->events, &l->filter, since, &sink, &l->subscriber), 0);
}

static struct listener *new_listener(void)
{
	struct listener *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	return l;
}

static void free_listener(struct listener *l)
{
	event_unsubscribe(l->subscriber);
	free(l);
}

/* 0, 1, 2 ... without gap or double. */
static void assert_counts_up(const struct listener *l, int from, unsigned n)
{
	assert_int_equal(l->n, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(l->ns[i], from + (int)i);
}

FIXTURE(setup, teardown);

/* ---- tests ---- */

TEST(a_subscriber_hears_what_is_committed)
{
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	publish(&w, "test.before", 100, 3);
	listen_from(&w, l, -1);
	publish(&w, "test.one", 0, 10);
	turn_until(&w, l->n == 10);
	publish(&w, "test.two", 10, 1);
	turn_until(&w, l->n == 11);
	assert_counts_up(l, 0, 11);
	assert_int_equal(l->n_flushes, 2);
	assert_int_equal(l->seqs[10], event_last(w.f->engine->events));
	free_listener(l);
	unmake(&w);
}

TEST(events_come_after_the_answers_of_their_batch)
{
	enum { N = 500 };
	static struct publish p[N];
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	l->callers = p;
	listen_from(&w, l, -1);
	for (int i = 0; i < N; i++) {
		p[i] = (struct publish) {.type = "t", .first = i, .n = 1};
		publish_begin(&w, &p[i]);
		if (i % 7 == 0)
			turn_once(&w);
	}
	turn_until(&w, l->n == N);
	assert_counts_up(l, 0, N);
	free_listener(l);
	unmake(&w);
}

/* A page that is read between a commit and its answers must not run ahead of them. */
TEST(pages_do_not_overtake_answers)
{
	struct listener *l = new_listener();
	struct publish callers[3] = {{.type = "t", .n = 1}, {.type = "t", .first = 1, .n = 1}};
	struct world w;

	make(&w, state);
	l->callers = callers;
	publish_begin(&w, &callers[0]);
	turn_until(&w, callers[0].done);
	atomic_store(&w.holds, true);
	publish_begin(&w, &callers[1]);
	turn_until(&w, event_last(w.f->engine->events) == 2);
	listen_from(&w, l, 0);
	turn_until(&w, l->n == 1);
	assert_false(callers[1].done);
	atomic_store(&w.holds, false);
	sem_post(&w.go);
	turn_until(&w, l->n == 2);
	assert_counts_up(l, 0, 2);
	free_listener(l);
	unmake(&w);
}

/* All in one batch: while the one before it is answered, they gather. */
static void publish_together(struct world *w, struct publish *list, unsigned n)
{
	int64_t last = event_last(w->f->engine->events);
	struct publish before = {.type = "before", .first = -1, .n = 1};

	atomic_store(&w->holds, true);
	publish_begin(w, &before);
	turn_until(w, event_last(w->f->engine->events) == last + 1);
	for (unsigned i = 0; i < n; i++)
		publish_begin(w, &list[i]);
	atomic_store(&w->holds, false);
	sem_post(&w->go);
	for (unsigned i = 0; i < n; i++)
		turn_until(w, list[i].done);
}

TEST(an_undone_call_takes_no_number)
{
	struct listener *l = new_listener();
	int64_t seq = 0;
	struct publish calls[] = {{.type = "t", .n = 2},
				  {.type = "t", .first = 100, .n = 3, .undo = true},
				  {.type = "t", .first = 2, .n = 2, .seq = &seq},
				  {.type = "t", .first = 200, .n = 1, .seq = &seq, .undo = true},
				  {.type = "t", .first = 4, .n = 1}};
	struct world w;

	make(&w, state);
	l->filter = (struct event_filter) {.types = &TEXT("t"), .n_types = 1};
	listen_from(&w, l, -1);
	publish_together(&w, calls, 5);
	turn_until(&w, l->n == 5);
	assert_counts_up(l, 0, 5);
	/* 1 is the one before them. */
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(l->seqs[i], 2 + i);
	assert_int_equal(seq, 6);
	assert_int_equal(event_last(w.f->engine->events), 6);
	free_listener(l);
	unmake(&w);
}

/* The number that it was given before it was undone is the next one's. */
TEST(the_last_call_of_a_batch_may_be_undone)
{
	struct listener *l = new_listener();
	int64_t seq = 0, none = 0;
	struct publish calls[] = {{.type = "t", .n = 1, .seq = &seq},
				  {.type = "t", .first = 100, .n = 3, .seq = &none, .undo = true}};
	struct event_figures figures;
	struct world w;

	make(&w, state);
	l->filter = (struct event_filter) {.types = &TEXT("t"), .n_types = 1};
	listen_from(&w, l, -1);
	publish_together(&w, calls, 2);
	assert_int_equal(seq, 2);
	assert_int_equal(event_last(w.f->engine->events), 2);
	publish(&w, "t", 1, 1);
	turn_until(&w, l->n == 2);
	assert_counts_up(l, 0, 2);
	assert_int_equal(l->seqs[0], 2);
	assert_int_equal(l->seqs[1], 3);
	event_figures(w.f->engine->events, &figures);
	assert_int_equal(figures.published, 3);
	free_listener(l);
	unmake(&w);
}

/* The notes of a batch are bounded: what does not fit is stored before its end, and undone with
 * its call, but not what was there before. */
TEST(more_than_can_be_noted_is_kept_in_order)
{
	enum { LONG = sizeof(long_text), N = 2 * EVENT_NOTES_BYTES / LONG };
	struct listener *l = new_listener();
	struct publish calls[] = {{.type = "t", .n = 3},
				  {.type = "t", .first = 1000, .n = N, .bytes = LONG, .undo = true},
				  {.type = "t", .first = 3, .n = 2},
				  {.type = "t", .first = 5, .n = N, .bytes = LONG},
				  {.type = "t", .first = 2000, .n = N, .bytes = LONG, .undo = true},
				  {.type = "t", .first = 5 + N, .n = 1}};
	struct world w;

	make(&w, state);
	l->filter = (struct event_filter) {.types = &TEXT("t"), .n_types = 1};
	listen_from(&w, l, -1);
	publish_together(&w, calls, 6);
	turn_until(&w, l->n == 6 + N);
	assert_counts_up(l, 0, 6 + N);
	for (unsigned i = 0; i < 6 + N; i++)
		assert_int_equal(l->seqs[i], 2 + i);
	free_listener(l);
	unmake(&w);
}

/* Who comes between a commit and its answers hears what follows, not what was. */
TEST(from_now_on_begins_behind_what_is_committed)
{
	struct listener *l = new_listener();
	struct publish p = {.type = "t", .first = -1, .n = 1};
	struct world w;

	make(&w, state);
	atomic_store(&w.holds, true);
	publish_begin(&w, &p);
	turn_until(&w, event_last(w.f->engine->events) == 1);
	listen_from(&w, l, -1);
	atomic_store(&w.holds, false);
	sem_post(&w.go);
	publish(&w, "t", 0, 1);
	turn_until(&w, l->n == 1);
	assert_counts_up(l, 0, 1);
	free_listener(l);
	unmake(&w);
}

TEST(what_is_undone_is_never_told)
{
	struct listener *l = new_listener();
	struct publish p[6];
	struct event_page page;
	struct world w;

	make(&w, state);
	listen_from(&w, l, -1);
	for (int i = 0; i < 6; i++) {
		p[i] = (struct publish) {
			.type = "t", .first = i < 3 ? i : 100, .n = 1, .undo = i >= 3};
		publish_begin(&w, &p[i]);
	}
	turn_until(&w, p[5].done);
	publish(&w, "t", 3, 1);
	turn_until(&w, l->n == 4);
	assert_counts_up(l, 0, 4);
	assert_int_equal(event_list(w.f->engine->events, 0, &w.f->arena, &(struct event_filter) {0},
				    0, 0, 100, &page),
			 0);
	assert_int_equal(page.n, 4);
	free_listener(l);
	unmake(&w);
}

TEST_WITH(filters_are_by_type_and_ids, NULL, NULL)
{
	static const struct {
		const char *glob;
		const char *type;
		bool passes;
	} rows[] = {
		{"task.started", "task.started", true},
		{"task.started", "task.start", false},
		{"task.*", "task.started", true},
		{"task.*", "task", false},
		{"*", "anything", true},
		{"*", "", true},
		{"*.ended", "chat.turn.ended", true},
		{"*.ended", "chat.turn.ended.x", false},
		{"a*b*c", "aXbXbc", true},
		{"a*b*c", "aXcXb", false},
		{"", "", true},
		{"", "x", false},
		{"**", "x", true},
		{"x*", "x", true},
	};
	struct event e = {.session = TEXT("s1")};
	struct event_filter f = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text glob = text_of(rows[i].glob);

		e.type = text_of(rows[i].type);
		f = (struct event_filter) {.types = &glob, .n_types = 1};
		if (event_passes(&e, &f) != rows[i].passes)
			fail_msg("%s against %s", rows[i].type, rows[i].glob);
	}
	f = (struct event_filter) {.session = TEXT("s1")};
	assert_true(event_passes(&e, &f));
	f.session = TEXT("s2");
	assert_false(event_passes(&e, &f));
	f = (struct event_filter) {.run = TEXT("r")};
	assert_false(event_passes(&e, &f));
}

TEST(catching_up_has_neither_gap_nor_double_while_others_publish)
{
	enum { BEFORE = 3000, DURING = 3000, N_LISTENERS = 8 };
	struct listener *l[N_LISTENERS];
	static struct publish p[DURING];
	struct world w;

	make(&w, state);
	publish(&w, "t", 0, BEFORE);
	for (unsigned i = 0; i < N_LISTENERS; i++)
		l[i] = new_listener();
	for (int i = 0; i < DURING; i++) {
		p[i] = (struct publish) {.type = "t", .first = BEFORE + i, .n = 1};
		publish_begin(&w, &p[i]);
		if (i % 300 == 0 && i / 300 < N_LISTENERS)
			listen_from(&w, l[i / 300], 0);
		if (i % 10 == 0)
			turn_once(&w);
	}
	turn_until(&w, p[DURING - 1].done);
	for (unsigned i = 0; i < N_LISTENERS; i++) {
		turn_until(&w, l[i]->n == BEFORE + DURING);
		assert_counts_up(l[i], 0, BEFORE + DURING);
		assert_int_equal(l[i]->gone, 0);
		free_listener(l[i]);
	}
	unmake(&w);
}

TEST(a_slow_subscriber_falls_behind_and_recovers)
{
	struct listener *slow = new_listener();
	struct listener *quick = new_listener();
	struct world w;

	make(&w, state);
	slow->limited = true;
	slow->room = 5;
	listen_from(&w, slow, -1);
	listen_from(&w, quick, -1);
	publish(&w, "t", 0, 1000);
	publish(&w, "t", 1000, 1000);
	turn_until(&w, quick->n == 2000);
	assert_int_equal(slow->n, 5);
	slow->room = 700;
	turn_until(&w, slow->n == 705);
	slow->limited = false;
	turn_until(&w, slow->n == 2000);
	publish(&w, "t", 2000, 3);
	turn_until(&w, slow->n == 2003);
	assert_counts_up(slow, 0, 2003);
	assert_counts_up(quick, 0, 2003);
	free_listener(slow);
	free_listener(quick);
	unmake(&w);
}

struct sweeping {
	struct work work;
	struct engine *engine;
	bool more;
	bool done;
};

static int sweep_run(struct work *work, int lane)
{
	struct sweeping *s = list_entry(work, struct sweeping, work);

	assert_int_equal(event_sweep(s->engine->events, &s->more), 0);
	return 0;
}

static void sweep_finished(struct work *work, int result)
{
	struct sweeping *s = list_entry(work, struct sweeping, work);

	assert_int_equal(result, 0);
	s->done = true;
}

static void sweep_all_but(struct world *w, int64_t keep)
{
	struct sweeping s = {.engine = w->f->engine, .more = true};

	events_set_keep(w->f->engine->events, 0, keep);
	while (s.more) {
		s.work = (struct work) {.run = sweep_run, .finished = sweep_finished};
		s.done = false;
		s.more = false;
		submit(w, &s.work, true);
		turn_until(w, s.done);
	}
}

TEST(what_was_deleted_is_counted_and_told)
{
	struct listener *late = new_listener();
	struct listener *slow = new_listener();
	struct event_page page;
	struct world w;

	make(&w, state);
	slow->limited = true;
	listen_from(&w, slow, -1);
	publish(&w, "t", 0, 2500);
	sweep_all_but(&w, 100);
	listen_from(&w, late, 10);
	turn_until(&w, late->n == 100);
	assert_int_equal(late->gone, 2390);
	assert_int_equal(late->n_gone, 1);
	assert_int_equal(late->ns[0], 2400);
	slow->limited = false;
	turn_until(&w, slow->n == 100);
	assert_int_equal(slow->gone, 2400);
	assert_int_equal(slow->n_gone, 1);
	assert_int_equal(event_list(w.f->engine->events, 0, &w.f->arena, &(struct event_filter) {0},
				    2350, 0, 10, &page),
			 0);
	assert_int_equal(page.gone, 50);
	assert_int_equal(page.n, 10);
	assert_true(page.more);
	free_listener(late);
	free_listener(slow);
	unmake(&w);
}

TEST(numbers_go_on_after_a_restart)
{
	struct listener *l = new_listener();
	struct event_page page;
	struct world w;
	int64_t last;

	make(&w, state);
	publish(&w, "t", 0, 50);
	last = event_last(w.f->engine->events);
	sweep_all_but(&w, 1);
	world_restart(&w);
	assert_int_equal(event_last(w.f->engine->events), last);
	listen_from(&w, l, last);
	publish(&w, "t", 50, 1);
	turn_until(&w, l->n == 1);
	assert_int_equal(l->seqs[0], last + 1);
	assert_int_equal(event_list(w.f->engine->events, 0, &w.f->arena, &(struct event_filter) {0},
				    last, 0, 10, &page),
			 0);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.last, last + 1);
	assert_int_equal(page.gone, 0);
	free_listener(l);
	unmake(&w);
}

/* Otherwise it would hear nothing until this log has grown as long as the other. It is told that it has missed
 * something: a fail-over or a restore may have come while it was away. */
TEST(a_number_of_another_log_means_now)
{
	struct listener *l = new_listener();
	struct event_page page;
	struct world w;

	make(&w, state);
	publish(&w, "t", 0, 5);
	listen_from(&w, l, 1000000);
	publish(&w, "t", 5, 1);
	turn_until(&w, l->n == 1);
	assert_counts_up(l, 5, 1);
	assert_int_equal(l->gone, 1);
	assert_int_equal(event_list(w.f->engine->events, 0, &w.f->arena, &(struct event_filter) {0},
				    1000000, 0, 10, &page),
			 0);
	assert_int_equal(page.n, 0);
	assert_int_equal(page.last, 6);
	free_listener(l);
	unmake(&w);
}

TEST(a_subscriber_may_leave_while_it_is_told)
{
	struct listener *l[3];
	struct listener *pages = new_listener();
	struct world w;

	make(&w, state);
	for (unsigned i = 0; i < 3; i++) {
		l[i] = new_listener();
		l[i]->leaves = i == 1;
		listen_from(&w, l[i], -1);
	}
	publish(&w, "t", 0, 5);
	turn_until(&w, l[2]->n == 5);
	assert_counts_up(l[0], 0, 5);
	assert_counts_up(l[1], 0, 1);
	pages->leaves = true;
	listen_from(&w, pages, 0);
	turn_until(&w, pages->n == 1);
	publish(&w, "t", 5, 1);
	turn_until(&w, l[2]->n == 6);
	assert_int_equal(pages->n, 1);
	/* One that leaves while its page is read. */
	listen_from(&w, l[1], 0);
	event_unsubscribe(l[1]->subscriber);
	l[1]->subscriber = NULL;
	publish(&w, "t", 6, 1);
	turn_until(&w, l[2]->n == 7);
	assert_int_equal(l[1]->n, 1);
	for (unsigned i = 0; i < 3; i++)
		free_listener(l[i]);
	free_listener(pages);
	unmake(&w);
}

/* It has no room for an event, is asked to write out what it has, and leaves: it is neither asked
 * for room nor offered the event again. */
TEST(one_that_leaves_at_a_flush_is_not_asked_again)
{
	struct listener *leaves = new_listener();
	struct listener *stays = new_listener();
	struct world w;

	make(&w, state);
	leaves->limited = true;
	leaves->room = 2;
	leaves->leaves_at_flush = true;
	listen_from(&w, leaves, -1);
	listen_from(&w, stays, -1);
	publish(&w, "t", 0, 5);
	turn_until(&w, stays->n == 5);
	turn_until(&w, leaves->left);
	publish(&w, "t", 5, 1);
	turn_until(&w, stays->n == 6);
	assert_counts_up(leaves, 0, 2);
	assert_counts_up(stays, 0, 6);
	assert_int_equal(leaves->n_flushes, 1);
	free_listener(leaves);
	free_listener(stays);
	unmake(&w);
}

/* Nine of the events that it kept are deleted: it is told of the first one only. */
TEST(one_that_leaves_at_a_loss_is_not_asked_again)
{
	struct listener *leaves = new_listener();
	struct listener *stays = new_listener();
	struct world w;

	make(&w, state);
	leaves->limited = true;
	leaves->loses = true;
	leaves->keeps = 20;
	listen_from(&w, leaves, -1);
	listen_from(&w, stays, -1);
	publish(&w, "t", 1, 100);
	turn_until(&w, leaves->gone == 90 - 20);
	sweep_all_but(&w, 90);
	leaves->limited = false;
	leaves->leaves_at_gone = true;
	event_resume(leaves->subscriber);
	turn_until(&w, leaves->left);
	publish(&w, "t", 101, 1);
	turn_until(&w, stays->n == 101);
	assert_int_equal(leaves->gone, 90 - 20 + 1);
	assert_int_equal(leaves->n, 0);
	assert_counts_up(stays, 1, 101);
	free_listener(leaves);
	free_listener(stays);
	unmake(&w);
}

static unsigned n_subscribers(const struct world *w)
{
	unsigned n = 0;

	list_for_each (at, following, &w->f->engine->events->subscribers)
		n++;
	return n;
}

TEST(one_that_leaves_while_it_is_read_for_goes_with_its_page)
{
	struct listener *stays = new_listener();
	struct listener *leaves = new_listener();
	struct world w;

	make(&w, state);
	listen_from(&w, stays, -1);
	publish(&w, "t", 0, 1);
	turn_until(&w, stays->n == 1);
	w.holds_reads = true;
	listen_from(&w, leaves, 0);
	assert_non_null(w.held);
	event_unsubscribe(leaves->subscriber);
	leaves->subscriber = NULL;
	/* Others are told meanwhile, and the dead are looked for. */
	publish(&w, "t", 1, 1);
	turn_until(&w, stays->n == 2);
	assert_int_equal(n_subscribers(&w), 2);
	w.held->finished(w.held, w.held->result);
	assert_int_equal(n_subscribers(&w), 1);
	assert_int_equal(leaves->n, 0);
	free_listener(leaves);
	free_listener(stays);
	unmake(&w);
}

TEST(hundreds_hear_everything)
{
	enum { N = 300 };
	struct listener *l[N];
	struct world w;

	make(&w, state);
	for (unsigned i = 0; i < N; i++) {
		l[i] = new_listener();
		listen_from(&w, l[i], -1);
	}
	for (int i = 0; i < 50; i++)
		publish(&w, "t", i * 10, 10);
	for (unsigned i = 0; i < N; i++) {
		turn_until(&w, l[i]->n == 500);
		assert_counts_up(l[i], 0, 500);
		free_listener(l[i]);
	}
	unmake(&w);
}

/* More than the notes of one commit hold. */
TEST(a_commit_too_large_to_be_noted_is_read)
{
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	listen_from(&w, l, -1);
	publish(&w, "t", 0, HEARD_MAX - 1);
	turn_until(&w, l->n == HEARD_MAX - 1);
	publish(&w, "t", HEARD_MAX - 1, 1);
	turn_until(&w, l->n == HEARD_MAX);
	assert_counts_up(l, 0, HEARD_MAX);
	free_listener(l);
	unmake(&w);
}

static void list(struct world *w, const struct event_filter *f, int64_t since_seq, int64_t since_ms,
		 int64_t limit, struct event_page *page)
{
	assert_int_equal(event_list(w->f->engine->events, 0, &w->f->arena, f, since_seq, since_ms,
				    limit, page),
			 0);
}

/* Hosts read on like that whenever one of them has done something. */
TEST(a_page_to_the_end_is_two_queries)
{
	struct event_page page;
	struct world w;
	uint64_t before;

	make(&w, state);
	for (int n = 0; n < 3; n++) {
		before = store_reader(w.f->engine->store, 0)->uses;
		list(&w, &(struct event_filter) {0}, n > 1 ? 1 : 0, 0, 100, &page);
		assert_int_equal(store_reader(w.f->engine->store, 0)->uses - before, 2);
		assert_int_equal(page.n, n > 1 ? 2 * n - 1 : n * 2);
		assert_int_equal(page.last, 2 * n);
		assert_false(page.more);
		publish(&w, "t", 2 * n, 2);
	}
	unmake(&w);
}

TEST(lists_are_by_number_by_time_or_the_newest)
{
	const struct text rare = TEXT("ra*");
	const struct event_filter all = {0};
	const struct event_filter rares = {.types = &rare, .n_types = 1};
	const struct event_filter ours = {.session = TEXT("s1")};
	struct publish p = {.type = "common", .session = "s1", .first = 2001, .n = 2};
	struct event_page page;
	struct world w;
	int64_t ms;

	make(&w, state);
	list(&w, &all, 0, 0, 0, &page);
	assert_int_equal(page.n, 0);
	assert_int_equal(page.last, 0);
	publish(&w, "common", 0, 1000);
	publish(&w, "rare", 1000, 1);
	publish(&w, "common", 1001, 1000);
	publish_begin(&w, &p);
	turn_until(&w, p.done);

	list(&w, &all, -1, 0, 3, &page);
	assert_int_equal(page.n, 3);
	assert_int_equal(page.events[0].seq, 2001);
	assert_int_equal(page.events[2].seq, 2003);
	assert_int_equal(page.last, 2003);
	assert_false(page.more);

	list(&w, &rares, -1, 0, 3, &page);
	assert_int_equal(page.n, 1);
	assert_true(text_is(page.events[0].type, "rare"));
	assert_int_equal(page.last, 2003);

	list(&w, &rares, 0, 0, 3, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.last, 2003);
	assert_false(page.more);

	list(&w, &all, 1990, 0, 5, &page);
	assert_int_equal(page.n, 5);
	assert_int_equal(page.events[0].seq, 1991);
	assert_int_equal(page.last, 1995);
	assert_true(page.more);

	list(&w, &ours, 0, 0, 1, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.events[0].seq, 2002);
	list(&w, &ours, page.last, 0, 5, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.last, 2003);

	list(&w, &all, -1, 0, 1, &page);
	ms = page.events[0].time_ms;
	list(&w, &all, -1, ms + 1, 0, &page);
	assert_int_equal(page.n, 0);
	assert_int_equal(page.last, 2003);
	list(&w, &ours, -1, ms, 0, &page);
	assert_true(page.n >= 1);
	assert_int_equal(page.events[page.n - 1].seq, 2003);

	list(&w, &all, 0, 0, INT64_MAX, &page);
	assert_int_equal(page.n, EVENT_PAGE_MAX);
	list(&w, &all, 0, 0, 0, &page);
	assert_int_equal(page.n, EVENT_PAGE_DEFAULT);
	unmake(&w);
}

/* However long ago it was. */
TEST(a_type_is_found_behind_many_others)
{
	static const struct text wanted[] = {TEXT("rare.one"), TEXT("ra*.one"), TEXT("r*")};
	const struct event_filter two = {.types = wanted, .n_types = 3};
	struct publish about = {.type = "rare.two", .session = "s1", .first = 1, .n = 1};
	struct event_page page;
	struct world w;

	make(&w, state);
	publish(&w, "rare.one", 0, 1);
	publish_begin(&w, &about);
	turn_until(&w, about.done);
	publish(&w, "common", 2, 21000);
	for (unsigned i = 0; i < 2; i++) {
		const struct event_filter one = {.types = &wanted[i], .n_types = 1};

		list(&w, &one, -1, 0, 3, &page);
		assert_int_equal(page.n, 1);
		assert_int_equal(page.events[0].seq, 1);
		assert_int_equal(page.last, 21002);
		list(&w, &one, 1, 0, 3, &page);
		assert_int_equal(page.n, 0);
		assert_int_equal(page.last, 21002);
		assert_false(page.more);
	}
	list(&w, &two, -1, 0, 1, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.events[0].seq, 2);
	list(&w, &two, 0, 0, 5, &page);
	assert_int_equal(page.n, 2);
	assert_int_equal(page.events[1].seq, 2);
	assert_false(page.more);
	list(&w, &(struct event_filter) {.types = wanted, .n_types = 1, .session = TEXT("s1")}, -1,
	     0, 5, &page);
	assert_int_equal(page.n, 0);
	assert_false(page.cut);
	unmake(&w);
}

/* No index has both: a page looks at many, and never says that there are none. */
TEST(a_page_that_looks_at_too_many_says_so)
{
	const struct event_filter both = {.session = TEXT("s1"), .project = TEXT("p")};
	struct publish many = {.type = "common", .session = "s1", .first = 0, .n = 21000};
	struct event_page page;
	struct world w;

	make(&w, state);
	publish_begin(&w, &many);
	turn_until(&w, many.done);
	list(&w, &both, -1, 0, 1, &page);
	assert_int_equal(page.n, 0);
	assert_true(page.cut);
	list(&w, &both, 0, 0, 1, &page);
	assert_int_equal(page.n, 0);
	assert_true(page.more);
	list(&w, &both, page.last, 0, 1, &page);
	assert_int_equal(page.n, 0);
	assert_false(page.more);
	assert_int_equal(page.last, 21000);
	unmake(&w);
}

/* An event of the hour before, when the clock was ahead. */
TEST(a_clock_that_was_set_back_hides_nothing)
{
	enum { HOUR_MS = 3600 * 1000 };
	const struct event_filter all = {0};
	int64_t now = clock_utc_ms();
	const struct event early = {.type = TEXT("t"), .time_ms = now + HOUR_MS};
	struct fixture *f = *state;
	struct event_page page;
	struct store_event_given given;
	struct world w;

	begin(f);
	assert_int_equal(store_event_add(store_writer(f->engine->store), &early, 1, 0, &given), 0);
	end(f);
	make(&w, state);
	publish(&w, "t", 1, 3);
	list(&w, &all, -1, now + HOUR_MS / 2, 0, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(page.events[0].seq, given.last_seq);
	list(&w, &all, -1, now - 1, 0, &page);
	assert_int_equal(page.n, 4);
	unmake(&w);
}

static unsigned n_worded[2];

static void word(struct buf *out, const struct event *e)
{
	n_worded[0]++;
	buf_add_int(out, number_in(e));
}

static void word_nothing(struct buf *out, const struct event *e)
{
	n_worded[1]++;
}

static int on_worded(void *arg, const struct event *e)
{
	struct listener *l = arg;
	struct events *events = l->world->f->engine->events;
	char number[24];
	const struct buf *words = event_words(events, e, word);

	snprintf(number, sizeof(number), "%d", (int)number_in(e));
	assert_true(text_is((struct text) {.data = words->data, .len = words->len}, number));
	assert_int_equal(event_words(events, e, word_nothing)->len, 0);
	assert_ptr_equal(event_words(events, e, word), words);
	return on_event(arg, e);
}

TEST(one_wording_serves_all_who_hear_it)
{
	enum { N = 600 };
	const struct event_filter all = {0};
	struct event_sink sink = {.on_event = on_worded, .on_gone = on_gone, .look = look};
	struct listener *l[3];
	struct world w;

	make(&w, state);
	memset(n_worded, 0, sizeof(n_worded));
	for (unsigned i = 0; i < 3; i++) {
		sink.arg = l[i] = new_listener();
		l[i]->world = &w;
		l[i]->limited = i == 2;
		l[i]->room = N / 2;
		assert_int_equal(
			event_subscribe(w.f->engine->events, &all, -1, &sink, &l[i]->subscriber),
			0);
	}
	publish(&w, "t", 0, N);
	turn_until(&w, l[0]->n == N && l[1]->n == N && l[2]->n == N / 2);
	/* Also for the one who takes the rest later. */
	l[2]->limited = false;
	turn_until(&w, l[2]->n == N);
	assert_int_equal(n_worded[0], N);
	assert_int_equal(n_worded[1], N);
	/* From the store it is worded for one. */
	for (unsigned i = 0; i < 3; i++)
		free_listener(l[i]);
	sink.arg = l[0] = new_listener();
	l[0]->world = &w;
	assert_int_equal(event_subscribe(w.f->engine->events, &all, 0, &sink, &l[0]->subscriber),
			 0);
	turn_until(&w, l[0]->n == N);
	assert_int_equal(n_worded[0], 2 * N);
	free_listener(l[0]);
	unmake(&w);
}

/* Every tenth is nothing that it wants. */
TEST(one_that_has_stalled_keeps_some_and_loses_the_rest)
{
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	l->limited = true;
	l->loses = true;
	l->keeps = 20;
	l->room = 5;
	listen_from(&w, l, -1);
	publish(&w, "t", 0, 100);
	/* 0 to 4 were told, 5 to 26 kept but for 10 and 20. */
	turn_until(&w, l->gone == 100 - 27 - 7);
	assert_counts_up(l, 0, 5);
	/* Nothing waits for the timer now: what comes is lost at once. */
	publish(&w, "t", 100, 10);
	assert_int_equal(l->gone, 100 - 27 - 7 + 9);
	/* It takes some of what it kept, and stalls again: it keeps as many as it has room for. */
	l->room = 12;
	event_resume(l->subscriber);
	turn_until(&w, l->n == 17);
	turn_until(&w, l->room == 0);
	publish(&w, "t", 110, 20);
	turn_until(&w, l->gone == 100 - 27 - 7 + 9 + 18 - 12);
	l->limited = false;
	event_resume(l->subscriber);
	turn_until(&w, l->n == 25 + 12);
	publish(&w, "t", 130, 1);
	turn_until(&w, l->n == 25 + 12 + 1);
	assert_int_equal(l->ns[16], 17);
	assert_int_equal(l->ns[24], 26);
	assert_int_equal(l->ns[25], 111);
	assert_int_equal(l->ns[36], 123);
	assert_int_equal(l->ns[37], 130);
	free_listener(l);
	unmake(&w);
}

TEST(stalled_subscriber_keeps_a_limited_number)
{
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	l->limited = true;
	l->loses = true;
	l->keeps = EVENT_KEPT_MAX + 1;
	listen_from(&w, l, -1);
	/* Of these, it wants nine of ten. */
	publish(&w, "t", 1, 120);
	turn_until(&w, l->gone == 108 - EVENT_KEPT_MAX);
	l->limited = false;
	event_resume(l->subscriber);
	turn_until(&w, l->n == EVENT_KEPT_MAX);
	publish(&w, "t", 121, 1);
	turn_until(&w, l->n == EVENT_KEPT_MAX + 1);
	assert_int_equal(l->gone, 108 - EVENT_KEPT_MAX);
	free_listener(l);
	unmake(&w);
}

/* Then it counts as lost, too. */
TEST(what_a_stalled_one_kept_may_be_deleted)
{
	struct listener *l = new_listener();
	struct world w;

	make(&w, state);
	l->limited = true;
	l->loses = true;
	l->keeps = 20;
	listen_from(&w, l, -1);
	publish(&w, "t", 1, 100);
	turn_until(&w, l->gone == 90 - 20);
	sweep_all_but(&w, 90);
	l->limited = false;
	event_resume(l->subscriber);
	turn_until(&w, l->n == 11);
	assert_int_equal(l->gone, 90 - 20 + 9);
	assert_int_equal(l->ns[0], 11);
	assert_int_equal(l->ns[10], 22);
	free_listener(l);
	unmake(&w);
}

TEST(payload_has_what_the_data_does_not_say)
{
	static const char *const keys[] = {"seq", "project", "session", "run"};
	struct fixture *f = *state;

	for (unsigned said = 0; said < 16; said++) {
		struct event e = {.seq = 7,
				  .project = TEXT("theirs"),
				  .session = TEXT("theirs"),
				  .run = TEXT("theirs")};
		struct object_builder data;
		struct value *payload;
		struct buf packed;

		object_begin(&data, &f->arena);
		for (unsigned i = 0; i < 4; i++)
			if (said & 1U << i)
				object_text(&data, keys[i], TEXT("own"));
		buf_init(&packed, 1000);
		value_pack(&packed, data.root);
		e.data = (struct text) {packed.data, packed.len};
		assert_int_equal(event_payload(&f->arena, &e, &payload), 0);
		assert_int_equal(payload->len, 4);
		for (unsigned i = 1; i < 4; i++)
			assert_true(text_is(value_text(value_find(payload, keys[i])),
					    said & 1U << i ? "own" : "theirs"));
		assert_int_equal(value_find(payload, "seq")->kind,
				 said & 1 ? VALUE_STRING : VALUE_NUMBER);
		e = (struct event) {.data = e.data};
		assert_int_equal(event_payload(&f->arena, &e, &payload), 0);
		assert_int_equal(payload->len, __builtin_popcount(said | 1));
		buf_done(&packed);
	}
}

TEST(data_that_is_too_large_is_refused)
{
	struct fixture *f = *state;
	struct event_new new = {.type = "t"};
	struct event_page page;
	struct object_builder data;
	struct world w;
	char *big;

	make(&w, state);
	big = calloc(1, EVENT_DATA_MAX + 1);
	memset(big, 'x', EVENT_DATA_MAX + 1);
	object_begin(&data, &f->arena);
	object_text(&data, "big", (struct text) {.data = big, .len = EVENT_DATA_MAX});
	new.data = data.root;
	begin(f);
	assert_int_equal(event_add(f->engine->events, &new), -EMSGSIZE);
	new.packed = (struct text) {big, EVENT_DATA_MAX + 1};
	assert_int_equal(event_add(f->engine->events, &new), -EMSGSIZE);
	memcpy(big, PACKED_NO_OBJECT, sizeof(PACKED_NO_OBJECT) - 1);
	new.type = "packed";
	new.packed.len--;
	assert_int_equal(event_add(f->engine->events, &new), 0);
	new = (struct event_new) {.type = "t"};
	assert_int_equal(event_add(f->engine->events, &new), 0);
	end(f);
	list(&w, &(struct event_filter) {.types = &TEXT("t"), .n_types = 1}, 0, 0, 0, &page);
	assert_int_equal(page.n, 1);
	assert_int_equal(tree_of(&f->arena, &page.events[0])->kind, VALUE_OBJECT);
	assert_int_equal(tree_of(&f->arena, &page.events[0])->len, 0);
	free(big);
	unmake(&w);
}

TEST(memories_say_that_they_change_but_not_what)
{
	static const char *const types[] = {"memory.added", "memory.updated", "memory.deleted"};
	struct fixture *f = *state;
	struct memory_change_in change = {.content = TEXT("other secret"), .importance = -1};
	struct event_page page;
	struct memory m;
	bool deleted;
	struct world w;

	make(&w, state);
	m = add(f, "a secret", "ann");
	/* Said again within seconds, it is the same memory and no news. */
	(void)add(f, "a secret", "ann");
	begin(f);
	assert_int_equal(memory_update(f->engine->memories, &f->arena, &(struct memory_asker) {0},
				       m.id, &change, &m, &f->error),
			 0);
	assert_int_equal(memory_delete(f->engine->memories, &f->arena, &(struct memory_asker) {0},
				       m.id, false, &(struct memory) {0}, &deleted, &f->error),
			 0);
	end(f);
	list(&w, &(struct event_filter) {0}, 0, 0, 0, &page);
	assert_int_equal(page.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(text_is(page.events[i].type, types[i]));
		assert_true(text_equal(unpacked(&page.events[i], "id"), m.id));
		assert_true(text_is(unpacked(&page.events[i], "user"), "ann"));
		assert_true(text_is(unpacked(&page.events[i], "category"), "other"));
		assert_int_equal(tree_of(&f->arena, &page.events[i])->len, 3);
	}
	unmake(&w);
}

TEST(memories_that_expire_say_so)
{
	struct fixture *f = *state;
	struct memory_new in = plain("gone soon", "ann");
	struct event_page page;
	struct memory m;
	bool more = true;
	struct world w;

	make(&w, state);
	in.expires_ms = 1;
	assert_int_equal(add_new(f, &in, &m), 0);
	begin(f);
	assert_int_equal(memory_sweep(f->engine->memories, &more), 0);
	end(f);
	assert_false(more);
	list(&w, &(struct event_filter) {0}, 0, 0, 0, &page);
	assert_int_equal(page.n, 2);
	assert_true(text_is(page.events[1].type, "memory.expired"));
	assert_true(text_equal(unpacked(&page.events[1], "id"), m.id));
	unmake(&w);
}

/* ---- changes that are left for later ---- */

static int note(struct fixture *f, int n, const int64_t *change, bool unless)
{
	struct event_new new = {.type = "noted", .change = change, .unless = unless};
	struct event_data d;

	event_data_begin(&d);
	packer_int(&d.members, "n", n);
	return event_add_data(f->engine->events, &new, &d);
}

static void expect_noted(struct world *w, const int *ns, unsigned n)
{
	struct event_page page;

	list(w, &(struct event_filter) {0}, 0, 0, 0, &page);
	assert_int_equal(page.n, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(number_in(&page.events[i]), ns[i]);
		assert_int_equal(page.events[i].seq, page.events[0].seq + i);
	}
}

TEST(an_event_of_a_change_that_was_not_made_is_none)
{
	const int64_t made = 7, not_made = -1;
	struct fixture *f = *state;
	struct world w;

	make(&w, state);
	begin(f);
	assert_int_equal(note(f, 0, &made, false), 0);
	assert_int_equal(note(f, 1, &not_made, false), 0);
	assert_int_equal(note(f, 2, &not_made, true), 0);
	assert_int_equal(note(f, 3, &made, true), 0);
	assert_int_equal(note(f, 4, NULL, false), 0);
	end(f);
	expect_noted(&w, (const int[]) {0, 2, 4}, 3);
	unmake(&w);
}

/* What is stored early is looked at early; an undone call changes nothing of what was before it. */
TEST(what_is_known_early_stays_known)
{
	const int64_t made = 7, not_made = -1;
	struct event_new numbered = {.type = "noted"};
	struct fixture *f = *state;
	int64_t seq;
	struct world w;

	make(&w, state);
	begin(f);
	assert_int_equal(note(f, 0, &not_made, false), 0);
	assert_int_equal(note(f, 1, &made, false), 0);
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(note(f, 2, &not_made, false), 0);
	assert_int_equal(event_add_numbered(f->engine->events, &numbered, &seq), 0);
	assert_int_equal(engine_leave(f->engine, false), 0);
	assert_int_equal(engine_enter(f->engine), 0);
	assert_int_equal(note(f, 3, &made, false), 0);
	assert_int_equal(note(f, 4, &made, true), 0);
	end(f);
	expect_noted(&w, (const int[]) {1, 3}, 2);
	unmake(&w);
}
