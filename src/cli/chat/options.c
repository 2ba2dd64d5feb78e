/* The options of the chat commands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat/chat.h"
#include "cli/memory/memory.h"

static bool set_conversation(struct cli_options *o, const char *value)
{
	o->chat.conversation = value;
	return value[0] != '\0';
}

static bool set_agent(struct cli_options *o, const char *value)
{
	o->chat.agent = value;
	return value[0] != '\0';
}

static bool set_request_id(struct cli_options *o, const char *value)
{
	o->chat.request_id = value;
	return value[0] != '\0';
}

static bool set_no_stream(struct cli_options *o, const char *value)
{
	o->chat.no_stream = true;
	return true;
}

static bool set_limit(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->chat.limit);
}

static bool set_number(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->chat.number);
}

static bool set_ended(struct cli_options *o, const char *value)
{
	o->chat.ended = true;
	return true;
}

static bool set_all(struct cli_options *o, const char *value)
{
	o->chat.all = true;
	return true;
}

bool chat_read_count(const char *text, int64_t *ret_n)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || n < 1)
		return false;
	*ret_n = n;
	return true;
}

bool chat_is_blank(struct text t)
{
	size_t i = 0;

	while (i < t.len && t.data[i] != '\0' && strchr(" \t\r\n", t.data[i]))
		i++;
	return i == t.len;
}

bool chat_check_name(const char *name)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-:@";
	size_t len = strlen(name);

	if (len > 0 && len <= CHAT_NAME_BYTES && strspn(name, fit) == len &&
	    strspn(name, ".") != len)
		return true;
	complain("'%s' is no name of a conversation: 1 to %d letters, digits and . _ - : @", name,
		 CHAT_NAME_BYTES);
	return false;
}

#define CONVERSATION                                                                               \
	{                                                                                          \
		"--conversation", "-c", "NAME", "which one; default", set_conversation             \
	}
#define AGENT                                                                                      \
	{                                                                                          \
		"--agent", "-a", "NAME", "who answers; else the conversation's own", set_agent     \
	}
#define WHO                                                                                        \
	{"--user", NULL, "USER", "whose memories may be quoted; else ASH_USER_ID",                 \
	 memory_set_user},                                                                         \
	{                                                                                          \
		"--chat", NULL, "CHAT", "the chat whose memories may be, too; else ASH_CHAT_ID",   \
			memory_set_chat                                                            \
	}

const struct option chat_options[] = {CONVERSATION, AGENT, WHO, {NULL}};

const struct option send_options[] = {
	CONVERSATION,
	AGENT,
	{"--request-id", "-r", "ID", "a name to cancel it by; else one is made", set_request_id},
	{"--no-stream", NULL, NULL, "print the answer when it is whole", set_no_stream},
	WHO,
	{NULL},
};

const struct option conversation_options[] = {CONVERSATION, {NULL}};

const struct option cancel_options[] = {
	{"--conversation", "-c", "NAME", "only in this one; else in any", set_conversation},
	{NULL},
};

const struct option messages_options[] = {
	CONVERSATION,
	{"--limit", "-n", "N", "how many of the newest; 20", set_limit, "a number from 1 on"},
	{"--ended", NULL, "NUMBER", "of one that was ended, as conversations --ended numbers it",
	 set_number, "a number from 1 on"},
	{NULL},
};

const struct option conversations_options[] = {
	{"--limit", "-n", "N", "how many at most; 20", set_limit, "a number from 1 on"},
	{"--ended", NULL, NULL, "those that were ended, the last one first", set_ended},
	{"--all", NULL, NULL, "for purge: all that were ended", set_all},
	{NULL},
};
