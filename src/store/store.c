#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/db/db_file.h"
#include "store/db/driver.h"
#include "store/db/schema.h"
#include "store/tally.h"

enum {
	READERS_DEFAULT = 4,
	READERS_MAX = 64,
	IDENTITY_LEN = 16,
	OWNER_HOST_LEN = 17, /* "-" and a number of the host */
	HUNG_MS = 5000,      /* a batch that takes longer keeps all other writes waiting */
	/* Free pages that stay: one of 16, but at least these. */
	SLACK_PART = 16,
	SLACK_PAGES = 256,
};

struct store {
	const struct store_ops *ops;
	void *place;
	/* The last user closed it properly, or it was checked since. Only then does this use
	 * count as properly closed, too: a check that is due stays due. */
	atomic_bool sound;
	/* The fault of the last writes, as -errno; 0 again once a write has changed something. */
	atomic_int failing;
	atomic_ullong began_ms; /* of the current batch, by the steady clock; 0 without one */
	int64_t changes_before; /* the current batch */
	bool was_clean;
	bool in_use; /* the mark that says so was set, and must be cleared */
	bool broken; /* the writer's connection must be reopened */
	bool shrinks;
	bool shrinking; /* until only the slack is left */
	char identity[IDENTITY_LEN + 1];
	char owner[IDENTITY_LEN + OWNER_HOST_LEN + 1];
	unsigned n_readers;
	struct connection writer;
	struct connection feed; /* without a db: there is none */
	struct connection readers[];
};

static const struct store_ops *find_kind(const char *url, const char **ret_address)
{
	for (const struct store_ops *const *k = store_kinds; *k; k++) {
		size_t n = strlen((*k)->scheme);

		if (strncmp(url, (*k)->scheme, n) == 0 && url[n] == ':') {
			*ret_address = url + n + 1;
			return *k;
		}
	}
	return NULL;
}

int store_check_url(const char *url, struct error *error)
{
	const char *address = NULL;
	const struct store_ops *ops = find_kind(url, &address);

	if (ops && *address)
		return ops->check ? ops->check(address, error) : 0;
	return refuse(error, REFUSE_PARAMS, "must be sqlite:PATH%s",
		      store_kinds[1] ? " or postgresql://HOST/DATABASE"
				     : "; this koined was built without PostgreSQL");
}

static void disconnect(struct connection *c)
{
	if (!c->db)
		return;
	connection_forget(c);
	c->ops->disconnect(c->db);
	c->db = NULL;
}

/* What an interrupted move has left is not whole; its tables say so. */
static int refuse_half(struct store *s, struct error *error)
{
	char move[4] = "";
	int version = 0;
	int r = s->ops->version(s->writer.db, &version);

	if (r == 0 && version > 0)
		r = query_meta(&s->writer, TEXT("move"), move, sizeof(move));
	if (r == 0 && move[0])
		return refuse(error, REFUSE_CONFLICT,
			      "the move to %s is unfinished; run `koine store move` again",
			      db_file_tail(store_path(s)));
	return r;
}

static int refuse_tables(struct store *s, struct error *error)
{
	return schema_check(&s->writer, store_path(s), error) ?: refuse_half(s, error);
}

/* All checks of a file come before its first byte is changed. */
static int make_tables(struct store *s, struct error *error)
{
	struct connection *c = &s->writer;

	return refuse_tables(s, error)
		       ?: s->ops->claim(c->db)
		       ?: schema_migrate(c)
		       ?: tally_catch_up(c);
}

/* With `use`, others may use the store beside this writer. Without it, nobody can until the connection ends. */
static int connect_writer(struct store *s, bool use, struct error *error)
{
	struct connection *c = &s->writer;
	int r;

	r = s->ops->connect(s->place, CONNECTION_WRITER, &c->db, error);
	if (r != 0)
		return r;
	r = make_tables(s, error);
	if (r == 0 && use && s->ops->share)
		r = s->ops->share(c->db);
	if (r < 0)
		r = s->ops->explain(s->place, c->db, r, error);
	if (r != 0)
		disconnect(c);
	return r;
}

/* Commit this separately, so that it is on disk before anything else is written. */
static int write_meta(struct store *s, struct text key, struct text value)
{
	QUERY sql = {"INSERT INTO meta (key, value) VALUES (:key, :value)"
		     " ON CONFLICT (key) DO UPDATE SET value = excluded.value"};

	return query_do(&s->writer, &sql, BIND(":key", key), BIND(":value", value));
}

static int read_clean(struct store *s)
{
	char clean[4] = "";
	int r = query_meta(&s->writer, TEXT("clean"), clean, sizeof(clean));

	if (r == 0)
		s->was_clean = strcmp(clean, "1") == 0;
	atomic_store(&s->sound, s->was_clean);
	return r;
}

static int write_clean(struct store *s, bool clean)
{
	return write_meta(s, TEXT("clean"), clean ? TEXT("1") : TEXT("0"));
}

/* "ID PLACE": in another place it is a copy, whose original may be in use at the same time. */
static int make_identity(struct store *s, const char *place)
{
	char value[IDENTITY_LEN + 1 + STORE_PLACE_MAX];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	snprintf(s->identity, sizeof(s->identity), "%016llx", (unsigned long long)random);
	snprintf(value, sizeof(value), "%s %s", s->identity, place);
	return write_meta(s, TEXT("identity"), text_of(value));
}

static int take_identity(struct store *s)
{
	char value[IDENTITY_LEN + 1 + STORE_PLACE_MAX] = "";
	char place[STORE_PLACE_MAX];
	int r = s->ops->place_id(s->place, place)
			?: query_meta(&s->writer, TEXT("identity"), value, sizeof(value));

	if (r != 0)
		return r;
	if (strspn(value, "0123456789abcdef") != IDENTITY_LEN || value[IDENTITY_LEN] != ' ' ||
	    strcmp(value + IDENTITY_LEN + 1, place) != 0)
		return make_identity(s, place);
	snprintf(s->identity, sizeof(s->identity), "%.*s", IDENTITY_LEN, value);
	return 0;
}

static int mark_in_use(struct store *s, struct error *error)
{
	int r;

	r = read_clean(s) ?: write_clean(s, false) ?: take_identity(s);
	if (r != 0)
		return s->ops->explain(s->place, s->writer.db, r, error);
	s->in_use = true;
	return 0;
}

static int look_at_space(struct store *s, struct error *error)
{
	struct store_space space;
	int r = s->ops->space(s->writer.db, &space);

	if (r != 0)
		return s->ops->explain(s->place, s->writer.db, r, error);
	s->shrinks = space.shrinks;
	return 0;
}

static int connect_readers(struct store *s, struct error *error)
{
	int r = 0;

	for (unsigned i = 0; i < s->n_readers && r == 0; i++)
		r = s->ops->connect(s->place, CONNECTION_READER, &s->readers[i].db, error);
	return r;
}

static struct store *store_new(const struct store_ops *ops, unsigned n_readers)
{
	struct store *s = calloc(1, sizeof(*s) + n_readers * sizeof(s->readers[0]));

	if (!s)
		return NULL;
	s->ops = ops;
	s->n_readers = n_readers;
	s->writer.ops = s->feed.ops = ops;
	for (unsigned i = 0; i < n_readers; i++)
		s->readers[i].ops = ops;
	return s;
}

CLEANUP_POINTER(store, store_close)

int store_find_kind(const char *url, const struct store_ops **ret_ops, const char **ret_address,
		    struct error *error)
{
	*ret_ops = find_kind(url, ret_address);
	if (!*ret_ops)
		return refuse(error, REFUSE_PARAMS,
			      "invalid store '%.40s': expected sqlite:PATH or postgresql://…", url);
	return 0;
}

int store_look(const char *url, const char *accepted, char ret_note[STORE_NOTE_MAX],
	       struct error *error)
{
	CLEANUP(store_closep) struct store *s = NULL;
	const struct store_ops *ops;
	const char *address = NULL;
	int r = store_find_kind(url, &ops, &address, error);

	ret_note[0] = '\0';
	if (r != 0)
		return r;
	s = store_new(ops, 0);
	r = s ? ops->look(address, accepted, ret_note, STORE_NOTE_MAX, &s->place, &s->writer.db,
			  error)
	      : -ENOMEM;
	if (r == 0 && s->writer.db) {
		r = refuse_tables(s, error);
		if (r < 0)
			r = ops->explain(s->place, s->writer.db, r, error);
	}
	if (r == -ENOMEM)
		refuse(error, REFUSE_INTERNAL, "out of memory for the store");
	return r;
}

/* Several hosts may be on one machine, and must not take each other's processes for their own. */
static void make_owner(struct store *s, const char *host)
{
	uint64_t number = text_hash(TEXT_HASH, text_of(host));

	if (host && store_has_feed(s))
		snprintf(s->owner, sizeof(s->owner), "%s-%016llx", s->identity,
			 (unsigned long long)number);
	else
		snprintf(s->owner, sizeof(s->owner), "%s", s->identity);
}

/* Opens the database with a connection for writing, and brings its tables up to date. The caller closes *ret_store
 * after a failure, too. */
static int open_writer(const char *url, const struct store_opts *opts, unsigned n_readers, bool use,
		       struct store **ret_store, struct error *error)
{
	const struct store_ops *ops;
	const char *address = NULL;
	int r = store_find_kind(url, &ops, &address, error);

	if (r != 0)
		return r;
	/* Words any of the faults below, except lack of memory. */
	refuse(error, REFUSE_INTERNAL, "out of memory for the store");
	*ret_store = store_new(ops, n_readers);
	if (!*ret_store)
		return -ENOMEM;
	fault_set_names(ops->faults);
	r = ops->open(address, &(*ret_store)->place, error);
	if (r == 0 && ops->set_accepted)
		ops->set_accepted((*ret_store)->place, opts->accepted, opts->accepts_all);
	return r ?: connect_writer(*ret_store, use, error);
}

int store_init(const char *url, struct error *error)
{
	CLEANUP(store_closep) struct store *s = NULL;

	return open_writer(url, &(struct store_opts) {0}, 0, false, &s, error);
}

int store_open(const char *url, const struct store_opts *opts, struct store **ret_store,
	       struct error *error)
{
	CLEANUP(store_closep) struct store *s = NULL;
	unsigned n_readers = opts->n_readers ? opts->n_readers : READERS_DEFAULT;
	int r;

	if (n_readers > READERS_MAX)
		return refuse(error, REFUSE_LIMIT, "a store supports at most %d readers",
			      READERS_MAX);
	r = open_writer(url, opts, n_readers, true, &s, error)
			?: look_at_space(s, error)
			?: mark_in_use(s, error)
			?: connect_readers(s, error);
	if (r != 0)
		return r;
	make_owner(s, opts->host);
	*ret_store = TAKE(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n_readers; i++)
		disconnect(&s->readers[i]);
	disconnect(&s->feed);
	store_rollback(s);
	/* If this fails, the next open checks the file needlessly, which is harmless. */
	if (s->in_use && !s->broken && atomic_load(&s->sound))
		(void)write_clean(s, true);
	/* Close this one last: the last connection to close copies the log into the file. */
	disconnect(&s->writer);
	if (s->place)
		s->ops->close(s->place);
	free(s);
}

const char *store_path(const struct store *s)
{
	return s->ops->path(s->place);
}

const char *store_owner(const struct store *s)
{
	return s->owner;
}

bool store_was_clean(const struct store *s)
{
	return s->was_clean;
}

struct connection *store_writer(struct store *s)
{
	return &s->writer;
}

struct connection *store_reader(struct store *s, int lane)
{
	assert(lane >= 0 && (unsigned)lane < s->n_readers);
	return &s->readers[lane];
}

bool store_has_feed(const struct store *s)
{
	return s->ops->hear != NULL;
}

int store_open_feed(struct store *s, unsigned answer_ms, struct error *error)
{
	s->ops->set_feed(s->place, answer_ms);
	return s->ops->connect(s->place, CONNECTION_FEED, &s->feed.db, error);
}

bool store_rewound(const struct store *s)
{
	return s->ops->rewound && s->ops->rewound(s->place);
}

void store_note_event(struct store *s, int64_t seq, int64_t time_ms)
{
	if (s->ops->note_event)
		s->ops->note_event(s->place, seq, time_ms);
}

struct connection *store_feed(struct store *s)
{
	return &s->feed;
}

struct connection *store_lane(struct store *s, int lane)
{
	return lane < 0 ? store_writer(s) : store_reader(s, lane);
}

const char *store_message(const struct connection *c)
{
	return c->db ? c->ops->message(c->db) : "could not reopen the database";
}

/* The connection may be left with locks or in a state that only a new one is free of. */
static int open_again(struct store *s)
{
	struct error error;
	int r;

	disconnect(&s->writer);
	r = connect_writer(s, true, &error);
	/* What would be a refusal at startup is a fault later on. */
	if (r > 0)
		r = -EIO;
	s->broken = r != 0;
	return r;
}

static bool breaks(int fault)
{
	return fault == -EIO || fault == -EBADMSG || fault == -EINPROGRESS;
}

static int say_begin(struct store *s)
{
	int r = query_do(&s->writer, &s->ops->begin);

	s->broken = breaks(r);
	return r;
}

static int begin(struct store *s)
{
	bool known = s->broken;
	int r = known ? open_again(s) : 0;

	if (r == 0)
		r = say_begin(s);
	/* It was lost since the last batch, and nothing with it. */
	if (s->broken && !known)
		r = open_again(s) ?: say_begin(s);
	s->writer.in_batch = r == 0;
	return r;
}

int store_begin(struct store *s)
{
	int r;

	assert(!s->writer.in_batch);
	atomic_store(&s->began_ms, clock_steady_ms());
	r = begin(s);
	if (r != 0) {
		atomic_store(&s->failing, r);
		atomic_store(&s->began_ms, 0);
		return r;
	}
	s->writer.trouble = 0;
	s->changes_before = s->ops->changes(s->writer.db);
	return 0;
}

int store_failing(const struct store *s)
{
	return atomic_load(&s->failing);
}

bool store_hangs(const struct store *s)
{
	uint64_t began_ms = atomic_load(&s->began_ms);

	return began_ms != 0 && clock_steady_ms() > began_ms + HUNG_MS;
}

void store_answers(struct store *s)
{
	int lost = -EIO;

	atomic_compare_exchange_strong(&s->failing, &lost, 0);
}

/* An empty commit shows that a server answers, but not that a disk can be written. */
static void note_outcome(struct store *s, int r)
{
	int fault = r != 0 ? r : s->writer.trouble;

	if (fault != 0)
		atomic_store(&s->failing, fault);
	else if (s->ops->changes(s->writer.db) != s->changes_before)
		atomic_store(&s->failing, 0);
	else if (store_has_feed(s))
		store_answers(s);
}

void store_rollback(struct store *s)
{
	QUERY rollback = {"ROLLBACK"};
	struct connection *c = &s->writer;

	s->broken = s->broken || breaks(c->lost);
	c->in_batch = false;
	c->lost = 0;
	task_numbers_forget(c);
	if (c->db && s->ops->in_transaction(c->db)) {
		query_do(c, &rollback);
		s->broken = s->broken || s->ops->in_transaction(c->db);
	}
	atomic_store(&s->began_ms, 0);
}

void store_fail(struct store *s, int r)
{
	note_outcome(s, r);
	s->writer.lost = r;
	store_rollback(s);
}

int store_commit(struct store *s)
{
	QUERY commit = {"COMMIT"};
	int r;

	assert(s->writer.in_batch);
	/* Acknowledge nothing that the next start would not find. */
	r = s->ops->still_there(s->writer.db)
		    ?: task_numbers_write(&s->writer)
		    ?: query_do(&s->writer, &commit);
	if (r != 0) {
		store_fail(s, r);
		return r;
	}
	note_outcome(s, 0);
	atomic_store(&s->began_ms, 0);
	s->writer.in_batch = false;
	task_numbers_forget(&s->writer);
	return 0;
}

int store_savepoint(struct store *s)
{
	QUERY savepoint = {"SAVEPOINT one_call"};

	task_numbers_call(&s->writer);
	return query_do(&s->writer, &savepoint);
}

int store_release(struct store *s)
{
	QUERY release = {"RELEASE one_call"};

	return query_do(&s->writer, &release);
}

int store_rollback_to(struct store *s)
{
	QUERY rollback_to = {"ROLLBACK TO one_call"};
	int r;

	task_numbers_undo(&s->writer);
	r = query_do(&s->writer, &rollback_to) ?: store_release(s);
	/* What should have been undone is still there, so nothing of this batch may be kept. */
	if (r != 0 && s->writer.in_batch && s->writer.lost == 0)
		s->writer.lost = r;
	return r;
}

bool store_shrinks(const struct store *s)
{
	return s->shrinks;
}

bool store_scrub(struct store *s)
{
	return !s->ops->scrub || !s->writer.db || s->ops->scrub(s->writer.db) == 0;
}

static unsigned shrink_step(struct store *s, const struct store_space *space)
{
	int64_t part = space->pages / SLACK_PART;
	int64_t slack = part > SLACK_PAGES ? part : SLACK_PAGES;
	int64_t beyond = space->free - slack;

	s->shrinking = space->shrinks && beyond > (s->shrinking ? 0 : slack);
	if (!s->shrinking)
		return 0;
	return beyond < STORE_SHRINK_PAGES ? (unsigned)beyond : STORE_SHRINK_PAGES;
}

int store_shrink(struct store *s, bool *ret_more)
{
	struct store_space space;
	unsigned pages;
	int r = s->ops->space(s->writer.db, &space);

	if (r != 0)
		return r;
	pages = shrink_step(s, &space);
	*ret_more = s->shrinking;
	return pages > 0 ? s->ops->give_back(s->writer.db, pages) : 0;
}

int store_backup(struct store *s, const char *path, struct error *error)
{
	return s->ops->backup(s->place, path, error);
}

int store_quick_check(struct store *s, int lane, struct error *error)
{
	int r;

	r = s->ops->quick_check(s->place, store_reader(s, lane)->db, error);
	if (r >= 0)
		atomic_store(&s->sound, r == 0);
	return r;
}

void store_stop(struct store *s)
{
	s->ops->stop(s->place);
}
