/*
 * What a former run of koined has left pending. If the server still asks it, the same approval goes
 * on; if not, it is withdrawn.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/bridge/inner.h"

static bool is_ours(const struct bridge *m, struct text id)
{
	size_t n = strlen(m->name);

	return id.len > BRIDGE_ID_START + n + 1 && id.len <= APPROVAL_ID_MAX &&
	       memcmp(id.data + BRIDGE_ID_START, m->name, n) == 0 &&
	       id.data[BRIDGE_ID_START - 1] == '-' && id.data[BRIDGE_ID_START + n] == '-';
}

static void bridge_left_keep(void *bridge, const struct approval *row)
{
	struct bridge *m = bridge;
	struct text folder = text_cut(row->origin, BRIDGE_FOLDER_MAX);
	struct bridge_left *left =
		is_ours(m, row->id) ? calloc(1, sizeof(*left) + folder.len) : NULL;

	if (!left)
		return;
	memcpy(left->id, row->id.data, row->id.len);
	left->folder_len = folder.len;
	if (folder.len > 0)
		memcpy(left->folder, folder.data, folder.len);
	list_append(&m->left, &left->link);
}

void bridge_load(struct bridge *m)
{
	approvals_each(m->all->opts.approvals, text_of(m->name), bridge_left_keep, m);
}

static void left_free(struct bridge_left *left)
{
	list_remove(&left->link);
	free(left);
}

void bridge_left_take(struct bridge *m, const char *id)
{
	list_for_each (at, following, &m->left) {
		struct bridge_left *left = list_entry(at, struct bridge_left, link);

		if (strcmp(left->id, id) == 0)
			left_free(left);
	}
}

void bridge_left_withdraw(struct bridge *m, const char *reason)
{
	struct list *first;

	while ((first = list_first(&m->left))) {
		struct bridge_left *left = list_entry(first, struct bridge_left, link);

		approval_withdraw(m->all->opts.approvals, text_of(left->id), text_of(m->name),
				  reason);
		left_free(left);
	}
}

void bridge_left_free(struct bridge *m)
{
	struct list *first;

	while ((first = list_first(&m->left)))
		left_free(list_entry(first, struct bridge_left, link));
}
