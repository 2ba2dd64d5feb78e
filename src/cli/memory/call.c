/* Where the memory commands find a server, and what every call of theirs says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/memory/memory.h"

enum { RETRIES = 3 };

static const char ash_socket[] = "/run/ash/rpc.sock";

static bool is_missing(const char *path)
{
	struct stat st;

	return stat(path, &st) != 0 && errno == ENOENT;
}

/* Nobody said where koine is: ash's socket, if one is named, or is all there is. */
static const char *find_ash(const struct cli *cli)
{
	const char *koine = getenv("KOINE_SOCKET");
	const char *ash = getenv("ASH_RPC_SOCKET");

	if (cli->options.url || cli->options.socket || (koine && koine[0]))
		return NULL;
	if (ash && ash[0])
		return ash;
	/* One that belongs to somebody else is none. */
	return is_missing(cli->address + strlen("unix:")) && access(ash_socket, W_OK) == 0
		       ? ash_socket
		       : NULL;
}

/* A daemon that is starting has a socket file, so one that is missing is no
 * reason to wait, nor is one that we may not use. */
static uint32_t default_retries(const struct cli *cli)
{
	bool is_unix = strncmp(cli->address, "unix:", 5) == 0;

	return is_unix && access(cli->address + 5, W_OK) != 0 ? 0 : RETRIES;
}

int memory_target(struct cli *cli, enum memory_needs needs)
{
	const char *ash = find_ash(cli);

	if (ash && needs == NEEDS_KOINE) {
		complain("memory %s needs koine's own socket, and %s is ash's; name it with "
			 "--socket or KOINE_SOCKET",
			 cli->sub->name, ash);
		return EX_USAGE;
	}
	if (ash) {
		snprintf(cli->address, sizeof(cli->address), "unix:%s", ash);
		if (!cli->options.framing)
			cli->options.framing = "length";
	}
	if (!cli->options.retries_given)
		cli->options.retries = default_retries(cli);
	return 0;
}

int memory_begin(struct memory_call *c, struct cli *cli, const char *method)
{
	*c = (struct memory_call) {.cli = cli, .method = method};
	if (koine_json_new(&c->params) != 0) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	koine_json_begin_object(c->params);
	return 0;
}

void memory_done(struct memory_call *c)
{
	koine_json_free(c->params);
}

static void add_text_or_null(struct koine_json *j, const char *key, const char *text)
{
	koine_json_key(j, key);
	if (text)
		koine_json_string(j, text);
	else
		koine_json_null(j);
}

void memory_add_who(struct memory_call *c)
{
	add_text_or_null(c->params, "user_id", c->cli->options.memory.user);
	add_text_or_null(c->params, "chat_id", c->cli->options.memory.chat);
	memory_add_text(c, "chat_type", c->cli->options.memory.chat_type);
}

void memory_add_text(struct memory_call *c, const char *key, const char *text)
{
	if (text)
		add_text_or_null(c->params, key, text);
}

const char *memory_params(struct memory_call *c)
{
	const char *token = getenv("ASH_CONTEXT_TOKEN");
	const char *text;

	if (token && token[0])
		memory_add_text(c, "context_token", token);
	koine_json_end_object(c->params);
	text = koine_json_text(c->params, NULL);
	if (!text)
		complain("out of memory");
	return text;
}

int memory_send(struct memory_call *c, struct koine_answer **ret_answer)
{
	const char *params = memory_params(c);

	return params ? talk_once(c->cli, c->method, params, ret_answer) : EX_SOFTWARE;
}
