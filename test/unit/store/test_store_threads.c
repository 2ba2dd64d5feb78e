/* The store as the daemon uses it: a thread that writes, several that read, one that copies. */
#include "store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 2, BATCHES = 150, PER_BATCH = 4 };

struct crew {
	struct store *store;
	const char *dir;
	atomic_int committed; /* rows that are surely there */
	atomic_bool over;
	atomic_int n_faults;
};

struct crew_member {
	struct crew *crew;
	int lane;
	int n_looks;
};

static void check(struct crew *crew, bool ok)
{
	if (!ok)
		atomic_fetch_add(&crew->n_faults, 1);
}

static void *write_batches(void *arg)
{
	struct crew *crew = arg;

	for (int i = 0; i < BATCHES; i++) {
		check(crew, store_begin(crew->store) == 0);
		for (int k = 0; k < PER_BATCH; k++) {
			check(crew, store_savepoint(crew->store) == 0);
			check(crew, add_plain(crew->store, NULL, TEXT("row")) == 0);
			check(crew, store_release(crew->store) == 0);
		}
		/* One more that comes to nothing. */
		check(crew, store_savepoint(crew->store) == 0);
		check(crew, add_plain(crew->store, NULL, TEXT("undone")) == 0);
		check(crew, store_rollback_to(crew->store) == 0);
		check(crew, store_commit(crew->store) == 0);
		atomic_fetch_add(&crew->committed, PER_BATCH);
	}
	atomic_store(&crew->over, true);
	return NULL;
}

static int check_row(void *arg, const struct memory *row)
{
	int *n = arg;

	++*n;
	return text_is(row->content, "row") ? 0 : 1;
}

static void *read_on(void *arg)
{
	struct crew_member *me = arg;
	struct crew *crew = me->crew;
	struct connection *c = store_reader(crew->store, me->lane);
	int last = 0;

	do {
		int before = atomic_load(&crew->committed);
		struct store_walk walk = {.limit = 1 << 30};
		int n = 0;

		check(crew, store_memory_each(c, &EVERYTHING, &walk, check_row, &n) == 0);
		check(crew, n >= before && n >= last && n % PER_BATCH == 0);
		last = n;
		me->n_looks++;
	} while (!atomic_load(&crew->over));
	return NULL;
}

static void *copy_on(void *arg)
{
	struct crew_member *me = arg;
	struct crew *crew = me->crew;
	struct error error;
	char path[PATH_LEN];

	do {
		snprintf(path, sizeof(path), "%s/copy%d.db", crew->dir, me->n_looks++);
		check(crew, store_backup(crew->store, path, &error) == 0);
		check(crew, unlink(path) == 0);
		check(crew, store_quick_check(crew->store, me->lane, &error) == 0);
	} while (!atomic_load(&crew->over));
	return NULL;
}

TEST_WITH(readers_see_whole_batches_while_one_writes, setup_closed, teardown)
{
	struct fixture *f = *state;
	struct crew crew = {.dir = f->dir};
	struct crew_member members[READERS + 1];
	pthread_t writer, threads[READERS + 1];

	assert_int_equal(store_open(f->url, &(struct store_opts) {.n_readers = READERS + 1},
				    &f->store, &f->error),
			 0);
	crew.store = f->store;
	for (int i = 0; i <= READERS; i++) {
		members[i] = (struct crew_member) {.crew = &crew, .lane = i};
		assert_int_equal(pthread_create(&threads[i], NULL, i < READERS ? read_on : copy_on,
						&members[i]),
				 0);
	}
	assert_int_equal(pthread_create(&writer, NULL, write_batches, &crew), 0);
	pthread_join(writer, NULL);
	for (int i = 0; i <= READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(members[i].n_looks > 0);
	}
	assert_int_equal(atomic_load(&crew.n_faults), 0);
	assert_int_equal(count_all(store_reader(f->store, 0)), BATCHES * PER_BATCH);
}
