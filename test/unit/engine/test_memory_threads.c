/* Memory as the daemon uses it: a thread that changes things, several that search. */
#include "engine_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BATCHES = 60, PER_BATCH = 4, USERS = 3 };

struct crew {
	struct engine *engine;
	atomic_int committed[USERS]; /* memories that are surely there */
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

static struct memory_asker user_of(int n)
{
	static const char *const names[USERS] = {"ann", "bob", "eve"};

	return asker(names[n], NULL);
}

/* One call of a batch: adds, and of every other batch is undone. */
static void write_one(struct crew *crew, struct arena *a, int user, int number, bool keep)
{
	struct memory_new in = plain(NULL, NULL);
	struct memory m;
	struct why why;
	char content[80];

	snprintf(content, sizeof(content), "%s boat number%d", keep ? "kept" : "undone", number);
	in.content = text_of(content);
	in.by = user_of(user);
	check(crew, engine_enter(crew->engine) == 0);
	check(crew, memory_add(crew->engine->memories, a, &in, &m, &why) == 0);
	check(crew, engine_leave(crew->engine, keep) == 0);
}

static void *write_batches(void *arg)
{
	struct crew *crew = arg;
	struct arena a;

	arena_init(&a, 1 << 20);
	for (int i = 0; i < BATCHES; i++) {
		int user = i % USERS;

		arena_reset(&a);
		check(crew, engine_begin(crew->engine) == 0);
		for (int k = 0; k < PER_BATCH; k++)
			write_one(crew, &a, user, i * PER_BATCH + k, true);
		write_one(crew, &a, user, i, false);
		check(crew, engine_commit(crew->engine) == 0);
		atomic_fetch_add(&crew->committed[user], PER_BATCH);
	}
	arena_done(&a);
	atomic_store(&crew->over, true);
	return NULL;
}

/* What was committed before is found; nothing that was undone ever is. */
static void look(struct crew_member *me, struct arena *a, int user)
{
	struct crew *crew = me->crew;
	const struct memory_query q = {.text = TEXT("boat"), .by = user_of(user), .limit = 1000};
	const struct memory_query undone = {.text = TEXT("undone"), .by = q.by, .limit = 1000};
	int before = atomic_load(&crew->committed[user]);
	struct memory *hits;
	struct why why;
	unsigned n = 0;

	check(crew, memory_search(crew->engine->memories, me->lane, a, &q, &hits, &n, &why) == 0);
	check(crew, (int)n >= before);
	for (unsigned i = 0; i < n; i++)
		check(crew, strncmp(hits[i].content.data, "kept", 4) == 0);
	check(crew,
	      memory_search(crew->engine->memories, me->lane, a, &undone, &hits, &n, &why) == 0);
	check(crew, n == 0);
	me->n_looks++;
}

static void *search_on(void *arg)
{
	struct crew_member *me = arg;
	struct arena a;

	arena_init(&a, 16 << 20);
	do {
		arena_reset(&a);
		look(me, &a, (me->n_looks + me->lane) % USERS);
	} while (!atomic_load(&me->crew->over));
	arena_done(&a);
	return NULL;
}

static void run_crew(struct fixture *f, size_t index_bytes)
{
	struct crew crew = {0};
	struct crew_member members[N_READERS];
	pthread_t writer, threads[N_READERS];

	fixture_reopen(f, index_bytes);
	crew.engine = f->engine;
	for (int i = 0; i < N_READERS; i++) {
		members[i] = (struct crew_member) {.crew = &crew, .lane = i};
		assert_int_equal(pthread_create(&threads[i], NULL, search_on, &members[i]), 0);
	}
	assert_int_equal(pthread_create(&writer, NULL, write_batches, &crew), 0);
	pthread_join(writer, NULL);
	for (int i = 0; i < N_READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(members[i].n_looks > 0);
	}
	assert_int_equal(atomic_load(&crew.n_faults), 0);
	assert_int_equal(n_found(f, "boat", NULL), BATCHES * PER_BATCH);
}

static void searches_see_all_that_is_committed_while_one_writes(void **state)
{
	run_crew(*state, 64 << 20);
}

/* Room for one user's at a time: dropped and built again all the while. */
static void searches_see_it_too_while_indexes_come_and_go(void **state)
{
	run_crew(*state, 90000);
}

int main(void)
{
#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		MEMORY_TEST(searches_see_all_that_is_committed_while_one_writes),
		MEMORY_TEST(searches_see_it_too_while_indexes_come_and_go),
	};

	return cmocka_run_group_tests_name("memory_threads", tests, NULL, NULL);
}
