/* The engine over a real store in a folder of its own, and calls as the writer makes them. */
#pragma once

#include "fake_workers.h"
#include "check.h"

#include <time.h>

#include "base/arena.h"
#include "engine/memory/memory.h"
#include "engine/index/wait.h"
#include "engine/engine.h"
#include "io/workers.h"
#include "empty_store.h"
#include "server.h"
#include "store/store.h"
#include "tempdir.h"

enum { URL_LEN = 160, N_READERS = 2 };

struct fixture {
	char dir[TEMPDIR_MAX];
	char url[URL_LEN];
	struct engine *engine;
	struct arena arena;
	struct error error;
	struct fake_workers fake; /* of fixture_submit */
	struct workers *workers;  /* what has threads; without any, the next */
	struct list works;        /* wait for run_next */
	struct list writes;       /* the same, for the writer */
	const char *folder;       /* for indexes in files; NULL: there are none */
	bool undone;              /* the writer's: its batch was run before */
};

/* ---- the writer's batches ---- */

static inline int fixture_begin(void *arg)
{
	const struct fixture *f = arg;

	return engine_begin(f->engine);
}

/* Each batch is undone once, as by a server that has ended it for another host's sake: whatever is
 * written is written twice, and told once. */
static inline int fixture_commit(void *arg)
{
	struct fixture *f = arg;

	f->undone = !f->undone;
	if (!f->undone)
		return engine_commit(f->engine);
	store_rollback(f->engine->store);
	return WORK_UNDONE;
}

static inline int fixture_enter(void *arg)
{
	const struct fixture *f = arg;

	return engine_enter(f->engine);
}

static inline int fixture_leave(void *arg, bool keep)
{
	const struct fixture *f = arg;

	return engine_leave(f->engine, keep);
}

static inline struct workers_opts fixture_workers(struct fixture *f, unsigned n_readers)
{
	return (struct workers_opts) {.n_readers = n_readers,
				      .begin = fixture_begin,
				      .commit = fixture_commit,
				      .enter = fixture_enter,
				      .leave = fixture_leave,
				      .arg = f};
}

/* ---- work ---- */

static inline int fixture_submit(void *arg, struct work *w, bool writes)
{
	struct fixture *f = arg;

	if (f->workers)
		return workers_submit(f->workers, w, writes);
	list_append(writes ? &f->writes : &f->works, &w->link);
	return 0;
}

/* In place of the writer's thread. False: there is nothing to do. */
static inline bool write_next(struct fixture *f)
{
	struct list *first = list_first(&f->writes);
	struct work *w;
	int r;

	if (!first)
		return false;
	list_remove(first);
	w = list_entry(first, struct work, link);
	do {
		assert_int_equal(fixture_begin(f), 0);
		assert_int_equal(fixture_enter(f), 0);
		r = w->run(w, -1);
		assert_int_equal(fixture_leave(f, r == 0), 0);
	} while (fixture_commit(f) == WORK_UNDONE);
	work_back(w, r);
	return true;
}

/* In place of a reader's thread, or the writer's. False: there is nothing to do. */
static inline bool run_next(struct fixture *f)
{
	struct list *first = list_first(&f->works);
	struct work *w;

	if (!first)
		return write_next(f);
	list_remove(first);
	w = list_entry(first, struct work, link);
	work_back(w, w->run(w, 0));
	return true;
}

/* Anew, so that it knows the event log that was started meanwhile. */
static inline void fixture_memories(struct fixture *f, size_t index_bytes)
{
	const struct memories_opts opts = {.store = f->engine->store,
					   .events = f->engine->events,
					   .n_readers = N_READERS,
					   .workers = fake_workers(&f->fake),
					   .index_bytes = index_bytes,
					   .index_folder = f->folder,
					   .index_file_bytes = 1 << 30};

	f->fake = (struct fake_workers) {.submit = fixture_submit, .arg = f};
	memories_free(f->engine->memories);
	assert_int_equal(memories_start(&opts, &f->engine->memories, &f->error), 0);
}

static inline void fixture_open(struct fixture *f, size_t index_bytes)
{
	const struct engine_opts opts = {.store = f->url, .n_readers = N_READERS};
	int r = REFUSE_CONFLICT;

	/* A child that was just being started has our locks until its program runs. */
	for (int i = 0; i < 500 && r == REFUSE_CONFLICT; i++) {
		if (i > 0)
			nanosleep(&(struct timespec) {.tv_nsec = 10 * 1000000L}, NULL);
		r = engine_open(&opts, &f->engine, &f->error);
	}
	if (r != 0)
		fail_msg("%s", f->error.text);
	fixture_memories(f, index_bytes);
}

static inline void fixture_reopen(struct fixture *f, size_t index_bytes)
{
	engine_close(f->engine);
	fixture_open(f, index_bytes);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	tempdir_make(f->dir);
	snprintf(f->url, sizeof(f->url), "sqlite:%s/koine.db", f->dir);
	if (server_use(f->url, sizeof(f->url)) != 0 || empty_store_copy(f->url) != 0)
		return -1;
	arena_init(&f->arena, 64 << 20);
	list_init(&f->works);
	list_init(&f->writes);
	fixture_open(f, 64 << 20);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	engine_close(f->engine);
	arena_done(&f->arena);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static inline struct memory_asker asker(const char *user, const char *chat)
{
	return (struct memory_asker) {.user = text_of(user), .chat = text_of(chat)};
}

static inline void begin(struct fixture *f)
{
	assert_int_equal(engine_begin(f->engine), 0);
	assert_int_equal(engine_enter(f->engine), 0);
}

static inline void end(struct fixture *f)
{
	assert_int_equal(engine_leave(f->engine, true), 0);
	assert_int_equal(engine_commit(f->engine), 0);
}

/* In a batch of its own. */
static inline int add_new(struct fixture *f, const struct memory_new *in, struct memory *ret)
{
	int r;

	f->error = (struct error) {0};
	begin(f);
	r = memory_add(f->engine->memories, &f->arena, in, ret, &f->error);
	end(f);
	return r;
}

static inline struct memory_new plain(const char *content, const char *user)
{
	return (struct memory_new) {
		.content = text_of(content), .importance = -1, .by = asker(user, NULL)};
}

static inline struct memory add(struct fixture *f, const char *content, const char *user)
{
	const struct memory_new in = plain(content, user);
	struct memory m;

	assert_int_equal(add_new(f, &in, &m), 0);
	return m;
}

/* A search, as a reader's work. */
struct search {
	struct work work;
	struct memory_wait wait;
	struct fixture *fixture;
	struct memory_query query;
	unsigned n_runs;
	bool over;
	int result;
	struct memory *hits;
	unsigned n;
	struct error error;
};

static inline int search_run_it(struct work *w, int lane)
{
	struct search *s = list_entry(w, struct search, work);

	s->n_runs++;
	return memory_search(s->fixture->engine->memories, lane, &s->fixture->arena, &s->query,
			     &s->hits, &s->n, &s->error);
}

static inline void search_finished(struct work *w, int result)
{
	struct search *s = list_entry(w, struct search, work);

	s->result = result;
	s->over = true;
}

static inline void search_start(struct fixture *f, struct search *s, const struct memory_query *q)
{
	*s = (struct search) {.fixture = f, .query = *q};
	memory_wait_init(&s->wait, f->engine->memories);
	s->query.wait = &s->wait;
	s->work = (struct work) {
		.run = search_run_it, .finished = search_finished, .wait = &s->wait.as};
	assert_int_equal(fixture_submit(f, &s->work, false), 0);
}

static inline int search_with(struct fixture *f, const struct memory_query *q,
			      struct memory **ret_hits, unsigned *ret_n)
{
	struct search s;

	search_start(f, &s, q);
	while (run_next(f))
		;
	assert_true(s.over);
	f->error = s.error;
	*ret_hits = s.hits;
	*ret_n = s.n;
	return s.result;
}

static inline int search(struct fixture *f, const char *query, const char *user,
			 struct memory **ret_hits, unsigned *ret_n)
{
	const struct memory_query q = {
		.text = text_of(query), .by = asker(user, NULL), .limit = 1000};

	return search_with(f, &q, ret_hits, ret_n);
}

static inline unsigned n_found(struct fixture *f, const char *query, const char *user)
{
	struct memory *hits;
	unsigned n;

	assert_int_equal(search(f, query, user, &hits, &n), 0);
	return n;
}

/* In one batch, the users in turn. */
static inline void fill_users(struct fixture *f, int n_users, int each)
{
	assert_int_equal(engine_begin(f->engine), 0);
	for (int i = 0; i < n_users * each; i++) {
		char content[120], user[16];
		struct memory_new in;
		struct memory m;

		snprintf(user, sizeof(user), "user%d", i % n_users);
		snprintf(content, sizeof(content), "entry%d about topic%d and word%d", i, i * 7,
			 i * 13);
		in = plain(content, user);
		assert_int_equal(engine_enter(f->engine), 0);
		assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
		assert_int_equal(engine_leave(f->engine, true), 0);
	}
	assert_int_equal(engine_commit(f->engine), 0);
}
