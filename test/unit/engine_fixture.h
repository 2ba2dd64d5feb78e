/* The engine over a real store in a folder of its own, and calls as the writer makes them. */
#pragma once

#include "check.h"

#include "base/arena.h"
#include "engine/memory/memory.h"
#include "engine/engine.h"
#include "tempdir.h"

enum { URL_LEN = 160, N_READERS = 2 };

struct fixture {
	char dir[TEMPDIR_MAX];
	char url[URL_LEN];
	struct engine *engine;
	struct arena arena;
	struct why why;
};

/* Anew, so that it knows the event log that was started meanwhile. */
static inline void fixture_memories(struct fixture *f, size_t index_bytes)
{
	const struct memories_opts opts = {.store = f->engine->store,
					   .events = f->engine->events,
					   .n_readers = N_READERS,
					   .index_bytes = index_bytes};

	memories_free(f->engine->memories);
	assert_int_equal(memories_start(&opts, &f->engine->memories, &f->why), 0);
}

static inline void fixture_open(struct fixture *f, size_t index_bytes)
{
	const struct engine_opts opts = {.store = f->url, .n_readers = N_READERS};

	if (engine_open(&opts, &f->engine, &f->why) != 0)
		fail_msg("%s", f->why.text);
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
	arena_init(&f->arena, 64 << 20);
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

	f->why = (struct why) {0};
	begin(f);
	r = memory_add(f->engine->memories, &f->arena, in, ret, &f->why);
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

static inline int search(struct fixture *f, const char *query, const char *user,
			 struct memory **ret_hits, unsigned *ret_n)
{
	const struct memory_query q = {
		.text = text_of(query), .by = asker(user, NULL), .limit = 1000};

	f->why = (struct why) {0};
	return memory_search(f->engine->memories, 0, &f->arena, &q, ret_hits, ret_n, &f->why);
}

static inline unsigned n_found(struct fixture *f, const char *query, const char *user)
{
	struct memory *hits;
	unsigned n;

	assert_int_equal(search(f, query, user, &hits, &n), 0);
	return n;
}
