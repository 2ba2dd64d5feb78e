#include "engine/memory/inner.h"

#include <string.h>

#include "store/store.h"

/* An empty name counts as none. */
static struct text memory_name(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

bool memory_names_somebody(const struct memory_asker *by)
{
	return by->user.len > 0 || by->chat.len > 0 || by->project.len > 0;
}

int memory_check_asker(const struct memory_asker *by, struct error *error)
{
	if (by->this_chat && by->chat.len == 0)
		return refuse_field(error, "this_chat", "this_chat requires chat_id");
	return 0;
}

int memory_check_names(const struct memory_asker *by, struct error *error)
{
	const struct {
		const char *field;
		struct text text;
		size_t max;
	} names[] = {
		{"user_id", by->user, STORE_NAME_MAX},
		{"chat_id", by->chat, STORE_NAME_MAX},
		{"project", by->project, STORE_FOLDER_MAX},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].text.len > names[i].max)
			return refuse_field(error, names[i].field, "%s is longer than %zu bytes",
					    names[i].field, names[i].max);
	}
	if (text_find(by->project, '\0'))
		return refuse_field(error, "project", "project has a NUL byte");
	return 0;
}

enum store_learnt memory_learnt(const struct memory_asker *by)
{
	if (by->this_chat)
		return LEARNT_HERE;
	/* Who names nobody sees everything, wherever that is. */
	if (!memory_names_somebody(by))
		return LEARNT_ANYWHERE;
	if (text_is(by->chat_type, "group") || text_is(by->chat_type, "supergroup"))
		return LEARNT_OPENLY;
	return LEARNT_ANYWHERE;
}

struct store_scope memory_seen_by(const struct memory_asker *by)
{
	if (by->common)
		return (struct store_scope) {.without_common = by->this_chat};
	return (struct store_scope) {
		.user = memory_name(by->user),
		.chat = memory_name(by->chat),
		/* What a project knows was not learnt in the chat, or it would be the chat's. */
		.project = !by->this_chat ? memory_name(by->project) : (struct text) {0},
		.learnt = memory_learnt(by),
		.without_common = by->this_chat,
		.everything = !memory_names_somebody(by),
	};
}

struct store_scope memory_changed_by(const struct memory_asker *by)
{
	struct store_scope scope = memory_seen_by(by);

	scope.without_common =
		scope.without_common || (memory_names_somebody(by) && !by->changes_common);
	return scope;
}

/* Shared with a chat, or with a chat but no owner: it belongs to the group. Shared with a project,
 * or with a project alone: it belongs to the project. With an owner: it belongs to the owner, and
 * chat and project only say where it was learnt. With none of them: it is common. */
void memory_give(const struct memory_new *in, struct memory *m)
{
	if (in->by.common)
		return;
	m->chat = memory_name(in->by.chat);
	m->project = memory_name(in->by.project);
	if (m->chat.data)
		m->chat_type = memory_name(in->by.chat_type);
	m->shared = (m->chat.data || m->project.data) && (in->shared || in->by.user.len == 0);
	if (!m->shared)
		m->owner = memory_name(in->by.user);
}

enum memory_scope memory_scope_of(const struct memory *m)
{
	if (m->owner.data)
		return MEMORY_PERSONAL;
	if (m->chat.data)
		return MEMORY_GROUP;
	return m->project.data ? MEMORY_PROJECT : MEMORY_COMMON;
}
