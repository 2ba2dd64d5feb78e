#include "engine/memory/access.h"

struct text memory_name(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

bool memory_names_somebody(const struct memory_asker *by)
{
	return by->user.len > 0 || by->chat.len > 0;
}

int memory_check_asker(const struct memory_asker *by, struct why *why)
{
	if (by->this_chat && by->chat.len == 0)
		return refuse_field(why, "this_chat", "this_chat needs a chat_id");
	return 0;
}

enum store_learnt memory_learnt(const struct memory_asker *by)
{
	if (by->this_chat)
		return LEARNT_HERE;
	if (text_is(by->chat_type, "group") || text_is(by->chat_type, "supergroup"))
		return LEARNT_OPENLY;
	return LEARNT_ANYWHERE;
}

struct store_scope memory_seen_by(const struct memory_asker *by)
{
	return (struct store_scope) {
		.user = memory_name(by->user),
		.chat = memory_name(by->chat),
		.learnt = memory_learnt(by),
		.without_common = by->this_chat,
		.everything = !memory_names_somebody(by),
	};
}

struct store_scope memory_changed_by(const struct memory_asker *by)
{
	struct store_scope scope = memory_seen_by(by);

	scope.without_common = true;
	return scope;
}

bool memory_is_open(const struct memory *m)
{
	return !m->owner.data || (m->chat_type.data && !text_is(m->chat_type, "private"));
}

/* Shared with a chat, or with a chat but no owner: it belongs to the group. With an owner: it
 * belongs to the owner, and the chat only says where it was learnt. With neither: it is common. */
void memory_give(const struct memory_new *in, struct memory *m)
{
	m->chat = memory_name(in->by.chat);
	if (m->chat.data)
		m->chat_type = memory_name(in->by.chat_type);
	m->shared = m->chat.data && (in->shared || in->by.user.len == 0);
	if (!m->shared)
		m->owner = memory_name(in->by.user);
}

enum memory_scope memory_scope_of(const struct memory *m)
{
	return m->owner.data ? MEMORY_PERSONAL : m->chat.data ? MEMORY_GROUP : MEMORY_COMMON;
}
