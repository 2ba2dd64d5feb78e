#include "engine/automation/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/event/event.h"
#include "engine/record/record.h"
#include "store/store.h"
#include "store/rule.h"

enum { KEPT_ARENA_MAX = 16 << 20 };

/* What was trusted before. A folder that is not served now may come back. */
struct kept {
	char *folder;
	char digest[TRUST_DIGEST_LEN + 1]; /* "": withdrawn */
	int64_t trusted_ms;
};

struct trust {
	struct store *store;
	struct events *events;
	struct records records;
	struct kept *kept;
	unsigned n_kept;
	struct trust_offer **offers;
	unsigned n_offers;
};

const char *trust_state_name(enum trust_state state)
{
	static const char *const names[] = {
		[TRUST_NOTHING] = "nothing",
		[TRUST_WANTED] = "untrusted",
		[TRUST_CHANGED] = "changed",
		[TRUST_GIVEN] = "trusted",
	};

	return names[state];
}

/* ---- stored trust ---- */

static struct kept *find_kept(const struct trust *t, struct text folder)
{
	for (unsigned i = 0; i < t->n_kept; i++) {
		if (text_is(folder, t->kept[i].folder))
			return &t->kept[i];
	}
	return NULL;
}

static struct kept *get_kept(struct trust *t, struct text folder)
{
	struct kept *k = find_kept(t, folder);
	struct kept *more;

	if (k)
		return k;
	more = reallocarray(t->kept, t->n_kept + 1, sizeof(*more));
	if (!more)
		return NULL;
	t->kept = more;
	k = &more[t->n_kept];
	*k = (struct kept) {.folder = strndup(folder.data, folder.len)};
	t->n_kept += k->folder != NULL;
	return k->folder ? k : NULL;
}

static int automation_trust_keep(struct trust *t, struct text folder, struct text digest,
				 int64_t ms)
{
	struct kept *k = get_kept(t, folder);

	if (!k)
		return -ENOMEM;
	k->trusted_ms = ms;
	k->digest[0] = '\0';
	if (digest.len == TRUST_DIGEST_LEN) {
		memcpy(k->digest, digest.data, TRUST_DIGEST_LEN);
		k->digest[TRUST_DIGEST_LEN] = '\0';
	}
	return 0;
}

int trust_new(struct store *store, struct events *events, struct trust **ret_trust)
{
	struct trust *t = calloc(1, sizeof(*t));
	struct project_trust *rows;
	struct arena a;
	unsigned n;
	int r;

	if (!t)
		return -ENOMEM;
	t->store = store;
	t->events = events;
	arena_init(&a, KEPT_ARENA_MAX);
	r = store_trust_list(store_writer(store), &a, &rows, &n);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = automation_trust_keep(t, rows[i].folder, rows[i].digest, rows[i].trusted_ms);
	arena_done(&a);
	if (r != 0)
		trust_free(t);
	else
		*ret_trust = t;
	return r;
}

void trust_free(struct trust *t)
{
	if (!t)
		return;
	records_done(&t->records);
	for (unsigned i = 0; i < t->n_kept; i++)
		free(t->kept[i].folder);
	for (unsigned i = 0; i < t->n_offers; i++)
		free(t->offers[i]);
	free(t->kept);
	free(t->offers);
	free(t);
}

/* ---- offers ---- */

static struct trust_offer *find_offer(const struct trust *t, struct text folder)
{
	for (unsigned i = 0; t && i < t->n_offers; i++) {
		if (text_equal(t->offers[i]->folder, folder))
			return t->offers[i];
	}
	return NULL;
}

int trust_offer(struct trust *t, const struct trust_offer *offer)
{
	struct trust_offer *o = find_offer(t, offer->folder);
	struct trust_offer **more;

	if (o) {
		*o = *offer;
		return 0;
	}
	more = reallocarray(t->offers, t->n_offers + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->offers = more;
	o = malloc(sizeof(*o));
	if (!o)
		return -ENOMEM;
	*o = *offer;
	more[t->n_offers++] = o;
	return 0;
}

unsigned trust_offers(const struct trust *t, const struct trust_offer *const **ret_offers)
{
	*ret_offers = t ? (const struct trust_offer *const *)t->offers : NULL;
	return t ? t->n_offers : 0;
}

static int refuse_unserved(struct text folder, struct error *error)
{
	return refuse(error, REFUSE_NOT_FOUND, "koined does not serve the project %.*s",
		      folder.len < 150 ? (int)folder.len : 150, folder.data ? folder.data : "");
}

unsigned trust_left_out(const struct trust *t, struct text folder)
{
	unsigned n = 0;

	for (unsigned i = 0; t && i < t->n_offers; i++) {
		if (!folder.data || text_equal(t->offers[i]->folder, folder))
			n += t->offers[i]->n_left_out;
	}
	return n;
}

int trust_find(const struct trust *t, struct text folder, const struct trust_offer **ret_offer,
	       struct error *error)
{
	*ret_offer = find_offer(t, folder);
	return *ret_offer ? 0 : refuse_unserved(folder, error);
}

int trust_known(const struct trust *t, struct text folder, struct error *error)
{
	bool known = t && (find_offer(t, folder) || find_kept(t, folder));

	return known ? 0 : refuse_unserved(folder, error);
}

enum trust_state trust_of(const struct trust *t, const struct trust_offer *o, int64_t *ret_ms)
{
	const struct kept *k = find_kept(t, o->folder);
	bool given = k && k->digest[0];

	if (ret_ms)
		*ret_ms = given ? k->trusted_ms : 0;
	if (o->n_rules + o->n_watches + o->n_jobs == 0)
		return TRUST_NOTHING;
	if (!given)
		return TRUST_WANTED;
	return text_is(o->digest, k->digest) ? TRUST_GIVEN : TRUST_CHANGED;
}

/* ---- giving trust ---- */

int trust_check(const struct trust_offer *o, struct text digest, struct error *error)
{
	struct text now = o->digest.data ? o->digest : TEXT("");

	if (text_equal(now, digest))
		return 0;
	return refuse(
		error, REFUSE_CONFLICT,
		"the project's automation has changed since you reviewed it; review it again");
}

int trust_write(struct trust *t, struct text folder, struct text digest, int64_t now_ms)
{
	struct connection *c = store_writer(t->store);
	struct event_new e = {.type = digest.data ? "project.trusted" : "project.distrusted",
			      .project = folder};
	struct event_data d;
	int r;

	if (digest.len > 0)
		r = store_trust_put(c, &(struct project_trust) {folder, digest, now_ms});
	else
		r = store_trust_delete(c, folder);
	if (r != 0)
		return r;
	event_data_begin(&d);
	packer_given(&d.members, "digest", digest);
	return event_add_data(t->events, &e, &d);
}

static int set(struct trust *t, struct text folder, struct text digest, int64_t now_ms)
{
	const struct trust_offer *o = find_offer(t, folder);
	int r = automation_trust_keep(t, folder, digest, now_ms);

	if (r != 0)
		return r;
	log_info(digest.data ? "project trusted" : "project trust revoked",
		 "project=%.*s digest=%.*s", TEXT_ARGS(folder), TEXT_ARGS(digest));
	if (o && o->changed)
		o->changed(o->arg);
	return 0;
}

int trust_set(struct trust *t, struct text folder, struct text digest, int64_t now_ms)
{
	records_touch(&t->records);
	return set(t, folder, digest, now_ms);
}

/* ---- other hosts ---- */

static bool automation_trust_heard(void *arg, const struct event *e, struct text *ret_project,
				   struct text *ret_id)
{
	*ret_id = e->project;
	return true;
}

/* There are few. */
static int automation_trust_read_rows(void *arg, int lane, struct arena *a,
				      struct record_found *found, unsigned n)
{
	const struct trust *t = arg;
	struct project_trust *rows;
	unsigned n_rows = 0;
	int r = store_trust_list(store_lane(t->store, lane), a, &rows, &n_rows);

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < n_rows; k++) {
			if (text_equal(rows[k].folder, found[i].id))
				found[i].row = &rows[k];
		}
	}
	return r;
}

static void take_found(void *arg, const struct record_found *found)
{
	static const struct project_trust none = {0};
	const struct project_trust *row = found->row ? found->row : &none;
	const struct kept *k = find_kept(arg, found->id);

	if (k && k->trusted_ms == row->trusted_ms && text_is(row->digest, k->digest))
		return;

	if (set(arg, found->id, row->digest, row->trusted_ms) != 0)
		log_err("could not load project trust from another host, restart koined to retry",
			"project=%.*s", TEXT_ARGS(found->id));
}

static int automation_trust_reload(void *arg)
{
	struct trust *t = arg;
	int r = 0;

	for (unsigned i = 0; i < t->n_kept && r == 0; i++)
		r = records_want(&t->records, (struct text) {0}, text_of(t->kept[i].folder));
	return r;
}

static int list_folders(void *arg, int lane, struct arena *a, struct record_found **ret,
			unsigned *ret_n)
{
	const struct trust *t = arg;
	struct project_trust *rows;
	int r = store_trust_list(store_lane(t->store, lane), a, &rows, ret_n);

	*ret = r == 0 ? arena_zalloc(a, (*ret_n + 1) * sizeof(**ret)) : NULL;
	for (unsigned i = 0; *ret && i < *ret_n; i++)
		(*ret)[i].id = rows[i].folder;
	return r == 0 && !*ret ? -ENOMEM : r;
}

int trust_follow(struct trust *t, struct loop *loop, struct workers *workers)
{
	static const struct text types[] = {TEXT("project.trusted"), TEXT("project.distrusted")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 2,
		.heard = automation_trust_heard,
		.read = automation_trust_read_rows,
		.sync = take_found,
		.reload = automation_trust_reload,
		.list = list_folders,
	};
	const struct records_opts opts = {
		.events = t->events,
		.loop = loop,
		.workers = workers,
		.name = "project",
		.arg = t,
		.reads = &reads,
	};

	return records_start(&t->records, &opts);
}
