/* A store in a folder of its own, and memories to put into it. */
#pragma once

#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/uuid.h"
#include "empty_store.h"
#include "store/memory.h"
#include "server.h"
#include "store/store.h"
#include "tempdir.h"

enum { PATH_LEN = 160 };

struct fixture {
	char dir[TEMPDIR_MAX];
	char path[PATH_LEN]; /* DIR/koine.db */
	char url[PATH_LEN + 8];
	struct store *store;
	struct arena arena;
	struct error error;
};

static const struct store_scope EVERYTHING = {.everything = true};

static inline void fixture_open(struct fixture *f)
{
	const struct store_opts opts = {.n_readers = 2};

	f->error = (struct error) {0};
	if (store_open(f->url, &opts, &f->store, &f->error) != 0)
		fail_msg("%s", f->error.text);
}

static inline void fixture_close(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

/* For tests of what only files have: their versions, their plans, their bytes. */
#define only_in_a_file()                                                                           \
	do {                                                                                       \
		if (on_server())                                                                   \
			skip();                                                                    \
	} while (0)

/* For those of what only a server does: others who write, answers that come late. */
#define only_on_a_server()                                                                         \
	do {                                                                                       \
		if (!on_server())                                                                  \
			skip();                                                                    \
	} while (0)

static inline int setup_closed(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	tempdir_make(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/koine.db", f->dir);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
	if (server_use(f->url, sizeof(f->url)) != 0)
		return -1;
	arena_init(&f->arena, 64 << 20);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	fixture_close(f);
	arena_done(&f->arena);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static inline int setup(void **state)
{
	const struct store_opts opts = {.n_readers = 2};
	struct fixture *f;

	if (setup_closed(state) != 0)
		return -1;
	f = *state;
	if (empty_store_copy(f->url) == 0 && store_open(f->url, &opts, &f->store, &f->error) == 0)
		return 0;
	print_error("%s\n", f->error.text);
	teardown(state);
	return -1;
}

/* A row with the content, and everything else as plain as it may be. */
static inline struct memory plain_row(struct text id, struct text content)
{
	return (struct memory) {
		.id = id,
		.content = content,
		.source = TEXT("test"),
		.category = TEXT("fact"),
		.importance = 0.5,
		.subjects = TEXT("[]"),
		.created_ms = 1000,
		.updated_ms = 1000,
		.stored_ms = 1000,
		.expires_ms = MEMORY_NEVER,
		.metadata = TEXT("{}"),
	};
}

/* Inside a batch; id NULL: a new one. */
static inline int add_plain(struct store *s, const char *id, struct text content)
{
	char made[UUID_LEN + 1];
	struct memory row;
	int64_t seq;

	if (!id && uuid4(made) != 0)
		return -1;
	row = plain_row(text_of(id ? id : made), content);
	return store_memory_add(store_writer(s), &row, &seq);
}

static inline int add_and_commit(struct store *s, const char *id, struct text content)
{
	int r;

	r = store_begin(s);
	if (r != 0)
		return r;
	r = add_plain(s, id, content);
	if (r != 0) {
		store_rollback(s);
		return r;
	}
	return store_commit(s);
}

static inline int64_t count_all(struct connection *c)
{
	struct memory_totals stats;

	assert_int_equal(store_memory_count(c, &EVERYTHING, 0, &stats), 0);
	return stats.all;
}

static inline bool has_id(struct fixture *f, struct connection *c, const char *id)
{
	struct memory row;
	bool found = false;

	assert_int_equal(store_memory_find(c, &EVERYTHING, text_of(id), &f->arena, &row, &found),
			 0);
	return found;
}
