/* Memory as the daemon uses it: a thread that changes things, several that search, and indexes
 * that are built meanwhile. */
#include "engine_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "io/loop.h"
#include "io/workers.h"

enum { BATCHES = 60, PER_BATCH = 4, USERS = 3, OLD = 800, SEARCHES = 3 * N_READERS };

struct crew {
	struct engine *engine;
	struct workers *workers;
	atomic_int committed[USERS]; /* memories that are surely there */
	atomic_bool over;
	atomic_int n_faults;
	int n_searching;
};

/* Searches again and again. */
struct crew_member {
	struct crew *crew;
	struct work work;
	struct memory_wait wait;
	struct arena arena;
	int number;
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
	struct error error;
	char content[80];

	snprintf(content, sizeof(content), "%s boat number%d", keep ? "kept" : "undone", number);
	in.content = text_of(content);
	in.by = user_of(user);
	check(crew, engine_enter(crew->engine) == 0);
	check(crew, memory_add(crew->engine->memories, a, &in, &m, &error) == 0);
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
static int look(struct work *w, int lane)
{
	struct crew_member *me = list_entry(w, struct crew_member, work);
	struct crew *crew = me->crew;
	bool undone = me->n_looks % 2 == 1;
	int user = (me->n_looks / 2 + me->number) % USERS;
	const struct memory_query q = {.text = undone ? TEXT("undone") : TEXT("boat"),
				       .by = user_of(user),
				       .limit = 1000,
				       .wait = &me->wait};
	int before = atomic_load(&crew->committed[user]);
	struct memory *hits;
	struct error error;
	unsigned n = 0;
	int r;

	arena_reset(&me->arena);
	r = memory_search(crew->engine->memories, lane, &me->arena, &q, &hits, &n, &error);
	if (r == WORK_WAITS)
		return r;
	check(crew, r == 0);
	check(crew, undone ? n == 0 : (int)n >= before);
	for (unsigned i = 0; i < n; i++)
		check(crew, strncmp(hits[i].content.data, "kept", 4) == 0);
	return 0;
}

static void looked(struct work *w, int result)
{
	struct crew_member *me = list_entry(w, struct crew_member, work);

	check(me->crew, result == 0);
	me->n_looks++;
	if (!atomic_load(&me->crew->over) || me->n_looks < 2 * USERS)
		workers_read(me->crew->workers, w);
	else
		me->crew->n_searching--;
}

static void member_start(struct crew *crew, struct crew_member *me, int number)
{
	*me = (struct crew_member) {.crew = crew, .number = number};
	me->work = (struct work) {.run = look, .finished = looked, .wait = &me->wait.as};
	arena_init(&me->arena, 16 << 20);
	memory_wait_init(&me->wait, crew->engine->memories);
	crew->n_searching++;
	workers_read(crew->workers, &me->work);
}

static int submit(void *arg, struct work *w, bool writes)
{
	const struct crew *crew = arg;

	assert_false(writes);
	workers_read(crew->workers, w);
	return 0;
}

/* So much that an index is not read at once. */
static void fill_crew(struct fixture *f)
{
	assert_int_equal(engine_begin(f->engine), 0);
	for (int i = 0; i < OLD * USERS; i++) {
		struct memory_new in = plain(NULL, NULL);
		struct memory m;
		char content[80];

		snprintf(content, sizeof(content), "entry%d about topic%d", i, i * 7);
		in.content = text_of(content);
		in.by = user_of(i % USERS);
		assert_int_equal(engine_enter(f->engine), 0);
		assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
		assert_int_equal(engine_leave(f->engine, true), 0);
	}
	assert_int_equal(engine_commit(f->engine), 0);
}

static size_t bytes_of_one(struct fixture *f)
{
	const struct memory_asker nobody = asker(NULL, NULL);
	struct memory_counts n;

	assert_int_equal(n_found(f, "entry0", "ann"), 1);
	assert_int_equal(memory_stats(f->engine->memories, 0, &nobody, &n), 0);
	return n.index_bytes;
}

/* With room for so many users' indexes. */
static void run_crew(struct fixture *f, unsigned n_users)
{
	const struct workers_opts opts = {.n_readers = N_READERS};
	struct crew crew = {0};
	struct fake_workers fake = {.submit = submit, .arg = &crew};
	struct crew_member members[SEARCHES];
	struct loop *loop;
	pthread_t writer;

	fill_crew(f);
	fixture_reopen(f, n_users * bytes_of_one(f));
	f->workers = fake_workers(&fake);
	crew.engine = f->engine;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(workers_new(loop, &opts, &crew.workers), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_batches, &crew), 0);
	for (int i = 0; i < SEARCHES; i++)
		member_start(&crew, &members[i], i);
	while (crew.n_searching > 0)
		loop_turn(loop, 1000);
	pthread_join(writer, NULL);
	workers_free(crew.workers);
	loop_free(loop);
	for (int i = 0; i < SEARCHES; i++)
		arena_done(&members[i].arena);
	assert_int_equal(atomic_load(&crew.n_faults), 0);
	f->workers = NULL;
	fixture_reopen(f, 64 << 20);
	assert_int_equal(n_found(f, "boat", NULL), BATCHES * PER_BATCH);
}

FIXTURE(setup, teardown);

TEST(searches_see_all_that_is_committed_while_one_writes)
{
	run_crew(*state, 20);
}

/* Dropped and built again all the while. */
TEST(searches_see_it_too_while_indexes_come_and_go)
{
	run_crew(*state, 2);
}
