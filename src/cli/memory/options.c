/* The options of koine memory. */
#include "cli/memory/memory.h"

#define AT(member) OPTION_AT(struct memory_options, member)

void memory_options_init(void *own)
{
	struct memory_options *o = own;

	o->user = option_from_environment("ASH_USER_ID");
	o->chat = option_from_environment("ASH_CHAT_ID");
	o->chat_type = option_from_environment("ASH_CHAT_TYPE");
	o->source = "agent";
}

/* clang-format off */
#define THIS_CHAT \
	{"--this-chat", NULL, NULL, "show only memories from this chat", option_flag, AT(this_chat)}
#define THEN \
	{"--at", NULL, "TIME", "show memories that were valid at TIME: 2026-05-31, 2026-05-31T12:00Z", option_word, AT(at), .param = "at"}
#define REPLACED \
	{"--replaced", NULL, NULL, "include changed and replaced memories", option_flag, AT(replaced), \
		.param = "include_replaced"}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "a whole number", INT64_MIN}
/* clang-format on */

const struct option memory_options[] = {
	{"--user", NULL, "USER", "select the owner of the memories; default: ASH_USER_ID",
	 option_name, AT(user)},
	{"--chat", NULL, "CHAT", "include memories of this chat; default: ASH_CHAT_ID", option_name,
	 AT(chat)},
	{"--chat-type", NULL, "TYPE",
	 "set the type of the chat (private, group, ...); default: ASH_CHAT_TYPE", option_name,
	 AT(chat_type)},
	{"--project", NULL, "DIR|NAME",
	 "include the memories of a project; default: the project of this folder", option_word,
	 AT(project), .implied = "."},
	{"--common", NULL, NULL, "include only common memories", option_flag, AT(common)},
	{NULL},
};

const struct option search_options[] = {
	{"--query", "-q", "QUERY", "search for this text instead of the QUERY argument",
	 option_text, AT(query)},
	LIMIT("show at most N memories; default 10"),
	THIS_CHAT,
	THEN,
	REPLACED,
	{NULL},
};

const struct option add_options[] = {
	{"--expires", "-e", "DAYS", "set the memory to expire after DAYS days", option_number,
	 .min = INT64_MIN, .param = "expires_days"},
	{"--subject", "-S", "NAME",
	 "add a person or thing that the memory is about (repeatable, up to 64)", option_texts,
	 .max = 64, .param = "subjects"},
	{"--shared", NULL, NULL, "store the memory for the chat or project, not for the user",
	 option_flag, AT(shared)},
	{"--source", "-s", "SOURCE", "set the source of the memory; default: agent", option_text,
	 AT(source)},
	{"--category", NULL, "CATEGORY",
	 "set the category: preference, decision, fact, entity or other", option_text,
	 .param = "category", .choices = "preference|decision|fact|entity|other"},
	{"--replaces", NULL, "ID", "mark memory ID as replaced by the new memory", option_word,
	 AT(replaces), .param = "replaces"},
	{"--importance", NULL, "X", "set the importance, 0 to 1; default 0.5", option_decimal,
	 .max = 1, .param = "importance"},
	{NULL},
};

const struct option list_options[] = {
	LIMIT("show at most N memories; default 20"),
	{"--all", NULL, NULL, "include expired memories", option_flag, AT(all),
	 .param = "include_expired"},
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
	 "delete the memory permanently from the store, history, vectors and index files",
	 option_flag, AT(purge), .param = "purge"},
	{"--yes", "-y", NULL, "do not ask for confirmation", option_flag, AT(yes)},
	{NULL},
};

const struct option restore_options[] = {
	LIMIT("list at most N memories; default 20"),
	{NULL},
};

const struct option review_options[] = {
	{"--list", NULL, NULL, "list the facts without asking", option_flag, AT(list)},
	{"--accept", NULL, "ID", "accept a fact (repeatable)", option_list, AT(accept), .max = 64,
	 .completes = COMPLETES_DRAWN},
	{"--reject", NULL, "ID", "reject a fact (repeatable)", option_list, AT(reject), .max = 64,
	 .completes = COMPLETES_DRAWN},
	LIMIT("show at most N facts; default 20"),
	{NULL},
};
