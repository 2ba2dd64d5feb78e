/* Searching memories: by their words, and also by their vectors if there is a model. */
#include <errno.h>

#include "base/clock.h"
#include "engine/memory/duplicates.h"
#include "engine/index/embedding.h"
#include "engine/index/indexes.h"
#include "engine/memory/inner.h"
#include "engine/index/wait.h"
#include "search/vector/word_table.h"
#include "search/vector/near.h"
#include "search/query.h"
#include "store/index/memory_vector.h"
#include "store/store.h"

enum { SEARCH_DEFAULT = 10, SPARE_MIN = 9, SPARE_MAX = 20 };

struct held_set {
	struct held_index *held[MEMORY_SCOPES_MAX];
	const struct search_index *indexes[MEMORY_SCOPES_MAX + 1]; /* and that of former texts */
	unsigned n;
};

/* Whose memories are seen. */
static unsigned scopes_of(const struct memory_asker *by,
			  struct scope_name scopes[MEMORY_SCOPES_MAX])
{
	unsigned n = 0;

	if (!by->common && !memory_names_somebody(by)) {
		scopes[0] = (struct scope_name) {SCOPE_ALL, TEXT("")};
		return 1;
	}
	if (!by->common && by->user.len > 0)
		scopes[n++] = (struct scope_name) {SCOPE_USER, by->user};
	if (!by->common && by->chat.len > 0)
		scopes[n++] = (struct scope_name) {SCOPE_CHAT, by->chat};
	if (!by->common && by->project.len > 0)
		scopes[n++] = (struct scope_name) {SCOPE_PROJECT, by->project};
	scopes[n++] = (struct scope_name) {SCOPE_COMMON, TEXT("")};
	return n;
}

static void release_all(struct memories *m, struct held_set *set)
{
	while (set->n > 0)
		memory_indexes_release(m->indexes, set->held[--set->n]);
}

/* All or none of them. */
static int hold_all(struct memories *m, const struct memory_query *q,
		    const struct store_model *model, struct held_set *set)
{
	struct scope_name scopes[MEMORY_SCOPES_MAX];
	unsigned n = scopes_of(&q->by, scopes);

	set->n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct held_index *h = memory_indexes_hold(m->indexes, &scopes[i], model->dim);

		if (!h) {
			release_all(m, set);
			return index_wait_for(q->wait, scopes, n, model);
		}
		set->held[i] = h;
		set->indexes[i] = held_index(h);
		set->n++;
	}
	return 0;
}

/* Those that were found lately are at hand where a server has them. */
static int take_at_hand(struct memories *m, struct arena *a, const struct store_scope *scope,
			const int64_t *seqs, unsigned n, struct memory *ret_rows, bool *ret_all)
{
	bool found = m->found != NULL;
	size_t bytes = 0;
	int r = 0;

	for (unsigned i = 0; i < n && r == 0 && found; i++) {
		r = found_memories_get(m->found, scope, seqs[i], a, &ret_rows[i], &found);
		bytes += found ? ret_rows[i].content.len + ret_rows[i].metadata.len : 0;
	}
	*ret_all = r == 0 && found && bytes <= MEMORY_ROWS_BYTES;
	return r;
}

static int memory_search_read_rows(struct memories *m, int lane, struct arena *a,
				   const struct store_scope *scope, const int64_t *seqs, unsigned n,
				   struct memory *ret_rows, unsigned *ret_n)
{
	struct arena_mark start = arena_mark(a);
	uint64_t mark;
	bool all = false;
	int r = take_at_hand(m, a, scope, seqs, n, ret_rows, &all);

	*ret_n = n;
	if (r != 0 || all)
		return r;
	arena_rewind(a, &start);
	mark = m->found ? found_memories_mark(m->found) : 0;
	r = store_memory_find_seqs(store_lane(m->store, lane), scope, seqs, n, MEMORY_ROWS_BYTES, a,
				   ret_rows, ret_n);
	for (unsigned i = 0; r == 0 && m->found && i < *ret_n; i++)
		found_memories_put(m->found, scope, &ret_rows[i], mark);
	return r;
}

/* The index returns keys; the store has the text. A memory that was deleted meanwhile is left
 * out, and so are the last ones if the text is too long for an answer. */
static int fetch_hits(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		      const struct search_hit *hits, size_t n_hits, struct memory **ret,
		      unsigned *ret_n)
{
	const struct store_scope scope = memory_seen_by(&q->by);
	int64_t *seqs = arena_alloc(a, n_hits * sizeof(*seqs));
	struct memory *found = arena_alloc(a, n_hits * sizeof(*found));
	size_t hit = 0;
	int r;

	if (!seqs || !found)
		return -ENOMEM;
	for (size_t i = 0; i < n_hits; i++)
		seqs[i] = (int64_t)hits[i].key;
	r = memory_search_read_rows(m, lane, a, &scope, seqs, (unsigned)n_hits, found, ret_n);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < *ret_n; i++) {
		while (seqs[hit] != found[i].seq)
			hit++;
		found[i].similarity = hits[hit].similarity;
	}
	*ret = found;
	return 0;
}

/* Rows of memories, and the hits that they were read for. */
struct memory_search_rows {
	struct memory *rows;
	struct search_hit *hits;
	unsigned n;
};

/* The same of a search of the past, whose hits may be former texts. */
static int fetch_then(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		      const struct memory_former *former, const struct search_hit *hits,
		      size_t n_hits, struct memory_search_rows *ret)
{
	struct memory *all = arena_alloc(a, n_hits * sizeof(*all));
	struct search_hit *of = arena_alloc(a, n_hits * sizeof(*of));
	struct memory *now;
	unsigned n_now, n = 0, at = 0;
	int r = all && of ? fetch_hits(m, lane, a, q, hits, n_hits, &now, &n_now) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n_hits; i++) {
		const struct memory *row = former_row(former, &hits[i]);

		of[n] = hits[i];
		if (row) {
			all[n] = *row;
			all[n++].similarity = hits[i].similarity;
		} else if (at < n_now && now[at].seq == (int64_t)hits[i].key) {
			all[n] = now[at++];
			n += former_is_same(former, &all[n]);
		}
	}
	if (r != 0)
		return r;
	*ret = (struct memory_search_rows) {all, of, n};
	return 0;
}

/* The order that depends on the texts: ret_from[i] is where the row in place i was. A similarity that
 * is a cosine belongs to its memory, any other one to the place. */
static int memory_search_settle(struct memories *m, int lane, struct arena *a,
				const struct memory_query *q, const struct memory_search_rows *rows,
				bool newer_first, struct memory *ret, size_t **ret_from)
{
	const struct search_query query = {.text = q->text, .newer_first = newer_first};
	struct search_said *said = arena_alloc(a, rows->n * sizeof(*said));
	size_t *from = arena_alloc(a, rows->n * sizeof(*from));

	if (!said || !from)
		return -ENOMEM;
	for (unsigned i = 0; i < rows->n; i++)
		said[i] = (struct search_said) {rows->rows[i].content, rows->rows[i].created_ms};
	search_settle(memory_indexes_scratch(m->indexes, lane), &query, rows->hits, said, rows->n,
		      from);
	for (unsigned i = 0; i < rows->n; i++) {
		ret[i] = rows->rows[from[i]];
		if (q->least <= 0)
			ret[i].similarity = rows->rows[i].similarity;
	}
	*ret_from = from;
	return 0;
}

/* ---- the memories whose vectors are nearest to the question's ---- */

struct memory_search_nearest {
	struct embedding_vector question; /* dim 0: words alone */
	struct near_hit *hits;            /* first those by words, in their order */
	struct near_found found;
};

/* How much the model's vectors count, after this search; from 0 to 1. */
static float nearest_trust(struct memories *m, const struct memory_search_nearest *near)
{
	float trust;

	pthread_mutex_lock(&m->fit_lock);
	fuse_learn(&m->fit, &near->found);
	trust = fuse_trust(&fuse_default_weights, &m->fit);
	pthread_mutex_unlock(&m->fit_lock);
	return trust;
}

/* The cosine of a memory's vector at full precision. `numbers` has room for the vector. */
static int cosine_of(struct memories *m, int lane, const struct embedding_vector *question,
		     uint64_t key, float *numbers, float *ret_cosine, bool *ret_found)
{
	const struct store_model model = {.name = embedding_model(m->embedding),
					  .dim = question->dim};
	int r = store_memory_find_vector(store_lane(m->store, lane), &model, (int64_t)key, numbers,
					 ret_found);

	if (r == 0 && *ret_found)
		*ret_cosine = vector_dot(numbers, question->numbers, question->dim);
	return r;
}

struct nearest_choice {
	const struct search_hit *by_words; /* that went into the hits */
	size_t n_by_words;
	double least;
	bool counts_for_words; /* the minimum also applies to those without a vector */
	size_t max;            /* hits */
};

/* A score is shown with four decimals: one that is shown as the minimum is not below it. */
static bool nearest_enough(float score, double least)
{
	return score + 0.00005F >= (float)least;
}

/* A memory that no longer has a vector, and shares no word, is not a hit. */
static bool choose(const struct nearest_choice *choice, bool has_vector, float cosine,
		   struct search_hit *hit)
{
	if (has_vector) {
		hit->similarity = cosine < 1 ? cosine : 1;
		return nearest_enough(cosine, choice->least);
	}
	if (hit->index >= choice->n_by_words)
		return false;
	hit->similarity = choice->by_words[hit->index].similarity;
	return !choice->counts_for_words || nearest_enough(hit->similarity, choice->least);
}

/* Sets the similarity of search_fuse's hits to the cosine, and drops those below the minimum.
 * Those without a vector keep the similarity of their words. */
static int nearest_choose(struct memories *m, int lane, struct arena *a,
			  const struct memory_search_nearest *near,
			  const struct nearest_choice *choice, struct search_hit *hits, size_t *n)
{
	float *numbers = arena_alloc(a, near->question.dim * sizeof(float));
	size_t n_chosen = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < *n && n_chosen < choice->max; i++) {
		struct search_hit hit = hits[i];
		float score = 0;
		bool found;
		int r = cosine_of(m, lane, &near->question, hit.key, numbers, &score, &found);

		if (r != 0)
			return r;
		if (choose(choice, found, score, &hit))
			hits[n_chosen++] = hit;
	}
	*n = n_chosen;
	return 0;
}

/* ---- both ---- */

/* What both ways of searching find. */
struct memory_search_found {
	struct search_hit *hits;
	size_t n;
	struct search_same same;
	struct memory_search_nearest near;
	struct memory_former former;
	struct search_why *whys; /* NULL: not asked for */
	size_t n_whys;
};

/* How near all hits are, and which others are near. Former texts have no vectors. */
static void find_near(const struct held_set *set, struct memory_search_found *found,
		      const struct search_query *query)
{
	const struct near_question question = {.dim = found->near.question.dim,
					       .bytes = found->near.question.bytes,
					       .scale = found->near.question.scale};
	struct near_scope scopes[MEMORY_SCOPES_MAX + 1];

	for (unsigned i = 0; i < set->n; i++)
		scopes[i] = (struct near_scope) {set->indexes[i], held_vectors(set->held[i])};
	scopes[set->n] = (struct near_scope) {found->former.index, NULL};
	found->near.found = near_find(scopes, set->n + (found->former.index != NULL), query,
				      &question, found->hits, found->n, found->near.hits);
}

static int find_both(struct memories *m, int lane, const struct memory_query *q, unsigned limit,
		     struct memory_search_found *found)
{
	struct search_query query = {
		.text = q->text, .now_ms = clock_utc_ms(), .words = word_file_table(m->words)};
	struct store_model model = {.dim = found->near.question.dim};
	struct held_set set;
	int r;

	if (model.dim > 0)
		model.name = embedding_model(m->embedding);
	query.newer_first = model.dim > 0;
	if (q->category.data)
		query.categories = 1U << memory_category(q->category);
	if (memory_learnt(&q->by) != LEARNT_ANYWHERE)
		query.chat = search_hash(q->by.chat);
	query.open = memory_learnt(&q->by) == LEARNT_OPENLY;
	query.ret_error = found->whys;
	query.ret_same = &found->same;
	former_filter(&found->former, &query);
	r = hold_all(m, q, &model, &set);
	if (r != 0)
		return r;
	if (found->former.index)
		set.indexes[set.n] = found->former.index;
	r = search_run(memory_indexes_scratch(m->indexes, lane), set.indexes,
		       set.n + (found->former.index != NULL), &query, found->hits, limit,
		       &found->n);
	found->n_whys = r == 0 && found->whys ? found->n + found->same.n : 0;
	/* Former texts have numbers of their own. */
	for (size_t i = 0; i < found->n_whys; i++)
		found->whys[i].key = found->whys[i].index < set.n ? found->whys[i].key : 0;
	if (r == 0 && model.dim > 0)
		find_near(&set, found, &query);
	release_all(m, &set);
	return r;
}

static int fuse(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		unsigned limit, struct memory_search_found *found)
{
	const struct memory_search_nearest *near = &found->near;
	const struct nearest_choice choice = {
		.by_words = found->hits,
		.n_by_words = found->n,
		.least = q->least,
		.counts_for_words = q->least_of_words,
		.max = limit,
	};
	struct search_hit *fused = arena_alloc(a, near->found.n * sizeof(*fused));
	int r = 0;

	if (!fused)
		return -ENOMEM;
	found->n = search_fuse(&fuse_default_weights, nearest_trust(m, near), found->hits, found->n,
			       near->hits, near->found.n, fused);
	found->hits = fused;
	if (q->least > 0)
		r = nearest_choose(m, lane, a, near, &choice, fused, &found->n);
	if (found->n > limit)
		found->n = limit;
	return r;
}

static int find_hits(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		     unsigned limit, struct memory_search_found *found)
{
	unsigned wanted = limit;
	int r = embedding_read(m->embedding, a, q->vector, &found->near.question);

	if (r != 0)
		return r;
	/* A memory that is near may have few of the words. */
	if (found->near.question.dim > 0 && wanted < SEARCH_RERANK)
		wanted = SEARCH_RERANK;
	found->hits = arena_alloc(a, wanted * sizeof(*found->hits));
	found->near.hits = arena_alloc(a, (wanted + NEAR_HITS_MAX) * sizeof(*found->near.hits));
	if (q->explain)
		found->whys = arena_alloc(a, (wanted + SEARCH_SAME_MAX) * sizeof(*found->whys));
	if (!found->hits || !found->near.hits || (q->explain && !found->whys))
		return -ENOMEM;
	r = find_both(m, lane, q, wanted, found);
	if (r == 0 && found->near.question.dim > 0)
		return fuse(m, lane, a, q, limit, found);
	/* Best first: once one is not near enough, the rest are not either. */
	while (r == 0 && q->least_of_words && found->n > 0 &&
	       !nearest_enough(found->hits[found->n - 1].similarity, q->least))
		found->n--;
	return r;
}

/* How many hits are looked at beyond the limit for spellings of those within it. */
static unsigned spare_of(unsigned limit)
{
	return limit < SPARE_MIN ? SPARE_MIN : limit > SPARE_MAX ? SPARE_MAX : limit;
}

static bool has_hit(const struct search_hit *hits, size_t n, const struct search_hit *hit)
{
	for (size_t i = 0; i < n; i++) {
		if (hits[i].key == hit->key)
			return true;
	}
	return false;
}

/* It is in the answer already. */
static void remove_hit(struct memory_search_found *found, size_t from, const struct search_hit *hit)
{
	size_t n = from;

	for (size_t i = from; i < found->n; i++) {
		if (found->hits[i].key != hit->key)
			found->hits[n++] = found->hits[i];
	}
	found->n = n;
}

/* The rows of the first hits, in their final order. Those that may be verbatim matches are read, too,
 * and stay only if they have come before the others. */
static int fill_first(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		      struct memory_search_found *found, size_t n, struct memory *rows,
		      unsigned *ret_n)
{
	struct search_hit *hits = arena_alloc(a, (n + found->same.n) * sizeof(*hits));
	size_t n_hits = n, n_rows, *from;
	struct memory_search_rows read;
	int r;

	if (!hits)
		return -ENOMEM;
	memcpy(hits, found->hits, n * sizeof(*hits));
	for (size_t i = 0; i < found->same.n && q->least <= 0; i++) {
		if (!has_hit(hits, n, &found->same.hits[i]))
			hits[n_hits++] = found->same.hits[i];
	}
	r = fetch_then(m, lane, a, q, &found->former, hits, n_hits, &read);
	n_rows = r == 0 ? read.n : 0;
	while (n_rows > 0 && !has_hit(hits, n, &read.hits[n_rows - 1]))
		n_rows--;
	r = r
		    ?: memory_search_settle(m, lane, a, q, &read, found->near.question.dim > 0,
					    rows, &from);
	if (r != 0)
		return r;
	for (*ret_n = read.n; *ret_n > n_rows && from[*ret_n - 1] >= n_rows;)
		--*ret_n;
	for (unsigned i = 0; i < *ret_n; i++) {
		if (from[i] >= n_rows)
			remove_hit(found, n, &read.hits[i]);
	}
	return 0;
}

/* The rows of the hits from *at on, until there are `limit` of them and a few to spare. The first
 * of them are in their final order; few of those behind are ever read. */
static int memory_search_fill(struct memories *m, int lane, struct arena *a,
			      const struct memory_query *q, struct memory_search_found *found,
			      unsigned limit, size_t *at, struct memory *rows, unsigned *n)
{
	size_t wanted = limit - *n + spare_of(limit);
	size_t n_hits = found->n - *at < wanted ? found->n - *at : wanted;
	unsigned n_more = 0;
	struct memory_search_rows more;
	int r;

	if (*at == 0) {
		r = fill_first(m, lane, a, q, found, n_hits, rows, &n_more);
	} else {
		r = fetch_then(m, lane, a, q, &found->former, found->hits + *at, n_hits, &more);
		n_more = r == 0 ? more.n : 0;
		if (r == 0)
			memcpy(rows + *n, more.rows, more.n * sizeof(*rows));
	}
	if (r != 0)
		return r;
	*n += n_more;
	*at += n_hits;
	return q->include_replaced ? 0 : duplicates_collapse(a, rows, n);
}

static int why_of(struct arena *a, const struct search_why *why, const struct memory_why **ret)
{
	struct memory_why *copy = arena_alloc(a, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = (struct memory_why) {
		.words = why->words,
		.alike = why->alike,
		.context = why->context,
		.names = why->names,
		.dates = why->dates,
		.kind = why->kind,
	};
	for (size_t i = 0; i < why->n_matched && i < MEMORY_WHY_WORDS; i++)
		copy->matched[copy->n_matched++] =
			(struct text) {why->matched[i].word, why->matched[i].len};
	*ret = copy;
	return 0;
}

/* Says why each was found; a memory that only its vector found has nothing to say. */
static int explain(struct arena *a, const struct memory_search_found *found, struct memory *rows,
		   unsigned n)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		rows[i].why = NULL;
		for (size_t k = 0; r == 0 && k < found->n_whys; k++) {
			if (found->whys[k].key == (uint64_t)rows[i].seq && !rows[i].why)
				r = why_of(a, &found->whys[k], &rows[i].why);
		}
	}
	return r;
}

/* Duplicates leave room for those behind them. */
static int fetch_all(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		     struct memory_search_found *found, unsigned limit, struct memory **ret,
		     unsigned *ret_n)
{
	struct memory *rows = arena_alloc(a, (found->n + found->same.n) * sizeof(*rows));
	unsigned n = 0;
	size_t at = 0;
	int r = rows ? 0 : -ENOMEM;

	while (r == 0 && at < found->n && n < limit)
		r = memory_search_fill(m, lane, a, q, found, limit, &at, rows, &n);
	if (r != 0)
		return r;
	*ret = rows;
	*ret_n = n < limit ? n : limit;
	return explain(a, found, rows, *ret_n);
}

static int search(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		  struct memory **ret_hits, unsigned *ret_n, struct error *error)
{
	unsigned limit = memory_limit(q->limit, SEARCH_DEFAULT);
	struct memory_search_found found = {.n = 0};
	int r = memory_check_on(m, error) ?:
		memory_need(q->text, "query", error) ?:
		memory_check_asker(&q->by, error) ?:
		memory_check_category(q->category, error) ?:
		index_wait_check(q->wait, error);

	if (r != 0)
		return r;
	r = former_read(m, lane, a, q, &found.former) ?:
		find_hits(m, lane, a, q, limit * 2 + SPARE_MIN, &found) ?:
		fetch_all(m, lane, a, q, &found, limit, ret_hits, ret_n);
	former_done(&found.former);
	return r;
}

/* One that waits for its index begins again, and only then counts. */
int memory_search(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		  struct memory **ret_hits, unsigned *ret_n, struct error *error)
{
	uint64_t start = clock_steady_ns();
	int r = search(m, lane, a, q, ret_hits, ret_n, error);

	if (r == 0)
		shared_histogram_add(&m->searches, &histogram_times, clock_steady_ns() - start);
	return r;
}
