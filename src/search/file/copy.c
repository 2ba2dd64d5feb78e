#include "search/index.h"

#include <errno.h>
#include <stdlib.h>

#include "search/index_inner.h"
#include "search/postings.h"

struct search_copy {
	struct search_index *fresh;
	uint32_t *map; /* where each memory went; NO_DOC: nowhere */
	uint32_t n_docs;
	uint32_t n_terms;
	unsigned n_compacted;
	uint32_t doc; /* the next one */
	uint32_t term;
};

struct search_copy *search_copy_new(void)
{
	return calloc(1, sizeof(struct search_copy));
}

void search_copy_free(struct search_copy *c)
{
	if (!c)
		return;
	search_index_free(c->fresh);
	free(c->map);
	free(c);
}

static int copy_begin(struct search_copy *c, const struct search_index *ix)
{
	c->fresh = search_index_new(&(struct search_index_opts) {.off = ix->off});
	c->map = malloc(((size_t)ix->n_docs + 1) * sizeof(*c->map));
	if (!c->fresh || !c->map)
		return -ENOMEM;
	c->n_docs = ix->n_docs;
	c->n_terms = ix->n_terms;
	c->n_compacted = ix->n_compacted;
	return docs_reserve(c->fresh, (size_t)ix->n_docs - ix->n_dead);
}

static int copy_doc(struct search_copy *c, const struct search_index *ix)
{
	uint32_t doc = c->doc++;

	c->map[doc] = NO_DOC;
	return ix->doc_marks[doc] & MARK_DEAD ? 0 : doc_copy(c->fresh, ix, doc, &c->map[doc]);
}

static int copy_term(struct search_copy *c, const struct search_index *ix, size_t *ret_cost)
{
	const struct term *term = &ix->terms[c->term++];
	uint32_t id = NO_DOC;
	struct postings p;
	int r = 0;

	postings_start(&p, ix, term);
	while (r == 0 && postings_next(&p) && p.doc < c->n_docs) {
		*ret_cost += 1;
		if (c->map[p.doc] == NO_DOC)
			continue;
		if (id == NO_DOC)
			r = term_get(c->fresh, ix->names + term->name, term->name_len, &id);
		if (r == 0)
			r = postings_add(c->fresh, id, c->map[p.doc], p.count);
	}
	return r;
}

int search_copy_step(struct search_copy *c, const struct search_index *ix, size_t budget,
		     bool *ret_done)
{
	size_t cost = 0;
	int r = c->fresh ? 0 : copy_begin(c, ix);

	if (r == 0 && c->n_compacted != ix->n_compacted)
		r = -ESTALE;
	for (; r == 0 && cost < budget && c->doc < c->n_docs; cost++)
		r = copy_doc(c, ix);
	for (; r == 0 && cost < budget && c->term < c->n_terms; cost++)
		r = copy_term(c, ix, &cost);
	*ret_done = c->doc == c->n_docs && c->term == c->n_terms;
	return r;
}

struct search_index *search_copy_take(struct search_copy *c)
{
	struct search_index *fresh = c->fresh;

	c->fresh = NULL;
	fresh->compact_at = index_next_compaction(fresh);
	search_copy_free(c);
	return fresh;
}
