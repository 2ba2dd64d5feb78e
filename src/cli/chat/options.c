/* The options of the chat commands. */
#include <string.h>

#include "cli/chat/chat.h"

#define AT(member) OPTION_AT(struct chat_options, member)

void chat_options_init(void *own)
{
	struct chat_options *o = own;

	o->user = option_from_environment("ASH_USER_ID");
	o->chat = option_from_environment("ASH_CHAT_ID");
}

bool chat_read_count(const char *text, int64_t *ret_n)
{
	return option_read_int(text, ret_n) && *ret_n >= 1;
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
	complain("invalid conversation name '%s': use 1 to %d letters, digits and . _ - : @", name,
		 CHAT_NAME_BYTES);
	return false;
}

/* clang-format off */
#define CONVERSATION(help) \
	{"--conversation", "-c", "NAME", help, option_word, AT(conversation), \
		.completes = COMPLETES_CONVERSATION}
#define AGENT \
	{"--agent", "-a", "NAME", "use this agent; default: the agent of the conversation", option_word, AT(agent), \
		.completes = COMPLETES_AGENT}
#define WHO \
	{"--user", NULL, "USER", "let the agent quote memories of USER; default: ASH_USER_ID", option_name, \
		AT(user)}, \
	{"--chat", NULL, "CHAT", "also let the agent quote memories of CHAT; default: ASH_CHAT_ID", \
		option_name, AT(chat)}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "a whole number above 0", 1}
/* clang-format on */

const struct option chat_options[] = {
	CONVERSATION("select a conversation; default: \"default\""), AGENT, WHO, {NULL}};

const struct option send_options[] = {
	CONVERSATION("select a conversation; default: \"default\""),
	AGENT,
	{"--request-id", "-r", "ID",
	 "set the request id for `koine cancel`; default: a generated id", option_word,
	 AT(request_id)},
	{"--no-stream", NULL, NULL, "wait for the complete response, then print it", option_flag,
	 AT(no_stream)},
	WHO,
	{NULL},
};

const struct option tokens_options[] = {CONVERSATION("select a conversation; default: \"default\""),
					{NULL}};

const struct option cancel_options[] = {
	CONVERSATION("cancel the request only in this conversation; default: any conversation"),
	{NULL}};

const struct option messages_options[] = {
	CONVERSATION("select a conversation; default: \"default\""),
	LIMIT("show the last N messages; default 20"),
	{"--ended", NULL, "NUMBER", "show the ended conversation with this number", option_number,
	 AT(number), "a whole number above 0", 1, .completes = COMPLETES_ENDED},
	{NULL},
};

const struct option conversations_options[] = {
	LIMIT("show at most N conversations; default 20"),
	{"--ended", NULL, NULL, "list ended conversations, last ended first", option_flag,
	 AT(ended)},
	{"--all", NULL, NULL, "purge all ended conversations", option_flag, AT(all)},
	{NULL},
};
