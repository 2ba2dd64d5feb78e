/* The options of koine memory. */
#include "cli/memory/memory.h"

#define AT(member) offsetof(struct memory_options, member)

void memory_options_init(void *own)
{
	struct memory_options *o = own;

	o->user = option_from_environment("ASH_USER_ID");
	o->chat = option_from_environment("ASH_CHAT_ID");
	o->chat_type = option_from_environment("ASH_CHAT_TYPE");
	o->source = "agent";
	o->importance = -1;
	o->expires_days = INT64_MIN;
}

/* Any text, including "". */
static bool add_subject(const struct option *o, void *member, const char *value)
{
	struct option_list *list = member;

	if (list->n == (unsigned)o->max)
		return false;
	list->values[list->n++] = value;
	return true;
}

/* clang-format off */
#define THIS_CHAT \
	{"--this-chat", NULL, NULL, "only what was learnt in the chat", option_flag, AT(this_chat)}
#define THEN \
	{"--at", NULL, "TIME", "what was valid then: 2026-05-31, 2026-05-31T12:00Z", option_word, AT(at)}
#define REPLACED \
	{"--replaced", NULL, NULL, "also what was changed or replaced", option_flag, AT(replaced)}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "a whole number", INT64_MIN}
/* clang-format on */

const struct option memory_options[] = {
	{"--user", NULL, "USER", "whose memories; else ASH_USER_ID", option_name, AT(user)},
	{"--chat", NULL, "CHAT", "the chat whose memories count, too; else ASH_CHAT_ID",
	 option_name, AT(chat)},
	{"--chat-type", NULL, "TYPE",
	 "private, group, ...: what a group may hear; else ASH_CHAT_TYPE", option_name,
	 AT(chat_type)},
	{"--project", NULL, "DIR|NAME",
	 "a project's memories, too; without a value, of this folder", option_word, AT(project),
	 .implied = "."},
	{"--common", NULL, NULL, "only what everybody sees", option_flag, AT(common)},
	{NULL},
};

const struct option search_options[] = {
	{"--query", "-q", "QUERY", "what to look for, instead of an argument", option_text,
	 AT(query)},
	LIMIT("how many at most; 10"),
	THIS_CHAT,
	THEN,
	REPLACED,
	{NULL},
};

const struct option add_options[] = {
	{"--expires", "-e", "DAYS", "forget it after so many days", option_number, AT(expires_days),
	 .min = INT64_MIN},
	{"--subject", "-S", "NAME", "whom or what it is about; up to 64 of them", add_subject,
	 AT(subjects), .max = 64},
	{"--shared", NULL, NULL, "belongs to the chat or project, not to the user", option_flag,
	 AT(shared)},
	{"--source", "-s", "SOURCE", "where it comes from; agent", option_text, AT(source)},
	{"--category", NULL, "CATEGORY", "preference, decision, fact, entity or other", option_text,
	 AT(category), .choices = "preference|decision|fact|entity|other"},
	{"--replaces", NULL, "ID", "a memory that is not valid any more", option_word,
	 AT(replaces)},
	{"--importance", NULL, "X", "0 to 1; 0.5", option_decimal, AT(importance), NULL, 0, 1},
	{NULL},
};

const struct option list_options[] = {
	LIMIT("how many at most; 20"),
	{"--all", NULL, NULL, "expired ones, too", option_flag, AT(all)},
	THIS_CHAT,
	THEN,
	REPLACED,
	{NULL},
};

const struct option show_options[] = {
	THEN,
	{NULL},
};

const struct option delete_options[] = {
	{"--purge", NULL, NULL,
	 "remove it for good: store, history, vectors, indexes and their files", option_flag,
	 AT(purge)},
	{"--yes", "-y", NULL, "do not ask", option_flag, AT(yes)},
	{NULL},
};

const struct option restore_options[] = {
	LIMIT("how many to list at most; 20"),
	{NULL},
};

const struct option review_options[] = {
	{"--list", NULL, NULL, "only show them", option_flag, AT(list)},
	{"--accept", NULL, "ID", "keep one; repeatable", option_list, AT(accept), .max = 64,
	 .completes = COMPLETES_DRAWN},
	{"--reject", NULL, "ID", "forget one; repeatable", option_list, AT(reject), .max = 64,
	 .completes = COMPLETES_DRAWN},
	LIMIT("how many at most; 20"),
	{NULL},
};
