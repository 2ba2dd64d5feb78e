/*
 * What a former run of koined has left pending. If the server still asks it, the same approval goes
 * on; if not, it is withdrawn.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/mirror/inner.h"

static bool is_ours(const struct mirror *m, struct text id)
{
	size_t n = strlen(m->name);

	return id.len > MIRROR_ID_START + n + 1 && id.len <= APPROVAL_ID_MAX &&
	       memcmp(id.data + MIRROR_ID_START, m->name, n) == 0 &&
	       id.data[MIRROR_ID_START - 1] == '-' && id.data[MIRROR_ID_START + n] == '-';
}

static void keep(void *mirror, const struct approval *row)
{
	struct mirror *m = mirror;
	struct text folder = text_cut(row->origin, MIRROR_FOLDER_MAX);
	struct mirror_left *left =
		is_ours(m, row->id) ? calloc(1, sizeof(*left) + folder.len) : NULL;

	if (!left)
		return;
	memcpy(left->id, row->id.data, row->id.len);
	left->folder_len = folder.len;
	if (folder.len > 0)
		memcpy(left->folder, folder.data, folder.len);
	list_append(&m->left, &left->link);
}

void mirror_load(struct mirror *m)
{
	approvals_each(m->all->opts.approvals, text_of(m->name), keep, m);
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

void mirror_left_withdraw(struct mirror *m, const char *why)
{
	struct list *first;

	while ((first = list_first(&m->left))) {
		struct mirror_left *left = list_entry(first, struct mirror_left, link);

		approval_withdraw(m->all->opts.approvals, text_of(left->id), text_of(m->name), why);
		left_free(left);
	}
}

void mirror_left_free(struct mirror *m)
{
	struct list *first;

	while ((first = list_first(&m->left)))
		left_free(list_entry(first, struct mirror_left, link));
}
