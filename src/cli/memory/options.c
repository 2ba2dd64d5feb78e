/* The options of the memory commands. */
#include <errno.h>
#include <stdlib.h>

#include "cli/memory/memory.h"

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

void memory_options_init(struct memory_options *o)
{
	o->user = from_environment("ASH_USER_ID");
	o->chat = from_environment("ASH_CHAT_ID");
	o->chat_type = from_environment("ASH_CHAT_TYPE");
	o->source = "agent";
	o->importance = -1;
}

static bool read_int(const char *value, int64_t *ret)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(value, &end, 10);
	if (end == value || *end != '\0' || errno != 0)
		return false;
	*ret = n;
	return true;
}

bool memory_set_user(struct cli_options *o, const char *value)
{
	o->memory.user = value[0] ? value : NULL;
	return true;
}

bool memory_set_chat(struct cli_options *o, const char *value)
{
	o->memory.chat = value[0] ? value : NULL;
	return true;
}

static bool set_chat_type(struct cli_options *o, const char *value)
{
	o->memory.chat_type = value[0] ? value : NULL;
	return true;
}

static bool set_this_chat(struct cli_options *o, const char *value)
{
	o->memory.this_chat = true;
	return true;
}

static bool set_query(struct cli_options *o, const char *value)
{
	o->memory.query = value;
	return true;
}

static bool set_limit(struct cli_options *o, const char *value)
{
	return read_int(value, &o->memory.limit);
}

static bool set_expires(struct cli_options *o, const char *value)
{
	o->memory.expires = true;
	return read_int(value, &o->memory.expires_days);
}

static bool set_subject(struct cli_options *o, const char *value)
{
	if (o->memory.n_subjects == SUBJECTS_MAX)
		return false;
	o->memory.subjects[o->memory.n_subjects++] = value;
	return true;
}

static bool set_shared(struct cli_options *o, const char *value)
{
	o->memory.shared = true;
	return true;
}

static bool set_source(struct cli_options *o, const char *value)
{
	o->memory.source = value;
	return true;
}

static bool set_category(struct cli_options *o, const char *value)
{
	o->memory.category = value;
	return true;
}

static bool set_importance(struct cli_options *o, const char *value)
{
	char *end;
	double x = strtod(value, &end);

	o->memory.importance = x;
	/* Also false for what is not a number. */
	return end != value && *end == '\0' && x >= 0 && x <= 1;
}

static bool set_all(struct cli_options *o, const char *value)
{
	o->memory.all = true;
	return true;
}

const struct option memory_options[] = {
	{"--user", NULL, "USER", "whose memories; else ASH_USER_ID", memory_set_user},
	{"--chat", NULL, "CHAT", "the chat whose memories count, too; else ASH_CHAT_ID",
	 memory_set_chat},
	{"--chat-type", NULL, "TYPE",
	 "private, group, ...: what a group may hear; else ASH_CHAT_TYPE", set_chat_type},
	{NULL},
};

#define THIS_CHAT                                                                                  \
	{                                                                                          \
		"--this-chat", NULL, NULL, "only what was learnt in the chat", set_this_chat       \
	}

const struct option search_options[] = {
	{"--query", "-q", "QUERY", "what to look for, instead of an argument", set_query},
	{"--limit", "-n", "N", "how many at most; 10", set_limit, "a whole number"},
	THIS_CHAT,
	{NULL},
};

const struct option add_options[] = {
	{"--expires", "-e", "DAYS", "forget it after so many days", set_expires},
	{"--subject", "-S", "NAME", "whom or what it is about; up to 64 of them", set_subject},
	{"--shared", NULL, NULL, "belongs to the chat, not to the user", set_shared},
	{"--source", "-s", "SOURCE", "where it comes from; agent", set_source},
	{"--category", NULL, "CATEGORY", "preference, decision, fact, entity or other",
	 set_category},
	{"--importance", NULL, "X", "0 to 1; 0.5", set_importance},
	{NULL},
};

const struct option list_options[] = {
	{"--limit", "-n", "N", "how many at most; 20", set_limit, "a whole number"},
	{"--all", NULL, NULL, "expired ones, too", set_all},
	THIS_CHAT,
	{NULL},
};
