/*
 * What a former run of koined has left pending. If the server still asks it, the same approval goes
 * on; if not, it is withdrawn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/mirror/inner.h"

enum { LOAD_ARENA_MAX = 32 << 20 };

/* It outlives a mirror that is removed meanwhile. */
struct mirror_load {
	struct work work;
	struct mirror *mirror; /* NULL: nobody wants it any more */
	struct approvals *approvals;
	struct arena arena;
	struct approval *rows;
	unsigned n;
};

static int load_run(struct work *w, int lane)
{
	struct mirror_load *l = list_entry(w, struct mirror_load, work);
	const struct approval_filter f = {.status = APPROVAL_PENDING};

	return approval_list(l->approvals, lane, &l->arena, &f, &l->rows, &l->n);
}

static bool is_ours(const struct mirror *m, const struct approval *row)
{
	size_t n = strlen(m->name);

	return approval_is_of_here(m->all->approvals, row) && text_is(row->agent, m->name) &&
	       row->id.len > MIRROR_ID_START + n + 1 && row->id.len <= APPROVAL_ID_MAX &&
	       memcmp(row->id.data + MIRROR_ID_START, m->name, n) == 0 &&
	       row->id.data[MIRROR_ID_START - 1] == '-' && row->id.data[MIRROR_ID_START + n] == '-';
}

static void keep(struct mirror *m, const struct approval *row)
{
	struct text folder = text_cut(row->origin, MIRROR_FOLDER_MAX);
	struct mirror_left *left = calloc(1, sizeof(*left) + folder.len);

	if (!left)
		return;
	memcpy(left->id, row->id.data, row->id.len);
	left->folder_len = folder.len;
	if (folder.len > 0)
		memcpy(left->folder, folder.data, folder.len);
	list_append(&m->left, &left->link);
}

static void load_finished(struct work *w, int result)
{
	struct mirror_load *l = list_entry(w, struct mirror_load, work);
	struct mirror *m = l->mirror;

	if (m && result != 0 && result != -ECANCELED)
		log_warn("could not read pending approvals", "server=%s error=\"%s\"", m->name,
			 fault_words(result));
	for (unsigned i = 0; m && result == 0 && i < l->n; i++) {
		if (is_ours(m, &l->rows[i]))
			keep(m, &l->rows[i]);
	}
	arena_done(&l->arena);
	free(l);
	if (!m)
		return;
	m->load = NULL;
	if (result != -ECANCELED)
		agent_server_start(m->server);
}

int mirror_load(struct mirror *m)
{
	struct mirror_load *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->work = (struct work) {.run = load_run, .finished = load_finished};
	l->mirror = m;
	l->approvals = m->all->approvals;
	arena_init(&l->arena, LOAD_ARENA_MAX);
	m->load = l;
	workers_start(m->all->workers, &l->work, false);
	return 0;
}

void mirror_load_forget(struct mirror *m)
{
	if (m->load)
		m->load->mirror = NULL;
	m->load = NULL;
}

static void left_free(struct mirror_left *left)
{
	list_remove(&left->link);
	free(left);
}

void mirror_left_take(struct mirror *m, const char *id)
{
	list_for_each (at, following, &m->left) {
		struct mirror_left *left = list_entry(at, struct mirror_left, link);

		if (strcmp(left->id, id) == 0)
			left_free(left);
	}
}

static void ignore(void *arg, int result, const struct approval *approval, const struct why *why)
{
	(void)arg;
	(void)result;
	(void)approval;
	(void)why;
}

void mirror_left_withdraw(struct mirror *m, const char *why)
{
	struct list *first;

	while ((first = list_first(&m->left))) {
		struct mirror_left *left = list_entry(first, struct mirror_left, link);
		const struct approval_decision d = {.id = text_of(left->id),
						    .status = APPROVAL_SUPERSEDED,
						    .comment = text_of(why),
						    .by = text_of(m->name)};

		approval_decide(m->all->approvals, &d, ignore, NULL);
		left_free(left);
	}
}

void mirror_left_free(struct mirror *m)
{
	struct list *first;

	while ((first = list_first(&m->left)))
		left_free(list_entry(first, struct mirror_left, link));
}
