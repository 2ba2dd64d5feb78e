/* Where the memory commands find a server, and the parameters that all their calls have. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/project.h"
#include "cli/kit/call.h"
#include "cli/memory/memory.h"

enum { RETRIES = 3 };

static bool serves_ash; /* it is ash that answers, or koined at its socket */
static const char ash_socket[] = "/run/ash/rpc.sock";

bool memory_is_ash(void)
{
	static const char *const names[] = {"ASH_RPC_SOCKET", "ASH_USER_ID", "ASH_CHAT_ID",
					    "ASH_CHAT_TYPE", "ASH_CONTEXT_TOKEN"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (option_from_environment(names[i]))
			return true;
	}
	return serves_ash;
}

static bool is_missing(const char *path)
{
	struct stat st;

	return stat(path, &st) != 0 && errno == ENOENT;
}

/* ash's socket, if nobody said where koine is, and it is named or is the only one that exists;
 * otherwise NULL. */
static const char *find_ash(const struct cli *cli)
{
	const char *ash = option_from_environment("ASH_RPC_SOCKET");

	if (cli->options.url || cli->options.socket || option_from_environment("KOINE_SOCKET"))
		return NULL;
	if (ash)
		return ash;
	/* A socket that we may not use does not count. */
	return is_missing(cli->address + strlen("unix:")) && access(ash_socket, W_OK) == 0
		       ? ash_socket
		       : NULL;
}

/* A daemon that is starting already has its socket file. So there is no point in waiting for a
 * file that is missing, or that we may not use. */
static uint32_t default_retries(const struct cli *cli)
{
	bool is_unix = strncmp(cli->address, "unix:", 5) == 0;

	return is_unix && access(cli->address + 5, W_OK) != 0 ? 0 : RETRIES;
}

/* A folder is named here, where it is. */
static int name_project(struct memory_options *o)
{
	static char name[PROJECT_NAME_MAX + 1];
	int r = o->project ? project_of_word(o->project, name) : 0;

	if (r != 0) {
		complain("--project %s: %s", o->project, strerror(-r));
		return EX_NOINPUT;
	}
	if (o->project)
		o->project = name;
	return 0;
}

/* An option that only koine's own methods understand; NULL: there is none. */
static const char *own_option(const struct memory_options *o)
{
	return o->project    ? "--project"
	       : o->common   ? "--common"
	       : o->at       ? "--at"
	       : o->replaced ? "--replaced"
	       : o->replaces ? "--replaces"
			     : NULL;
}

/* Whether the command has methods that ash lacks. */
static bool needs_koine(const struct cli *cli)
{
	static const char *const of_ash[] = {"search", "add", "list", "delete"};
	const struct memory_options *o = cli->own;

	for (size_t i = 0; cli->sub && i < sizeof(of_ash) / sizeof(of_ash[0]); i++) {
		if (strcmp(cli->sub->name, of_ash[i]) == 0)
			return o->purge;
	}
	return cli->sub != NULL;
}

int memory_find_server(struct cli *cli)
{
	struct memory_options *o = cli->own;
	const char *ash = find_ash(cli);
	int r = name_project(o);

	if (r != 0)
		return r;
	/* ash would ignore them, and tell more than was asked for. */
	if (ash && own_option(o)) {
		complain("%s requires koine's own socket, but %s is the socket of ash; set "
			 "--socket or KOINE_SOCKET",
			 own_option(o), ash);
		return EX_USAGE;
	}
	if (ash && needs_koine(cli)) {
		complain("memory %s requires koine's own socket, but %s is the socket of ash; set "
			 "--socket or KOINE_SOCKET",
			 cli->sub->name, ash);
		return EX_USAGE;
	}
	if (ash) {
		serves_ash = true;
		snprintf(cli->address, sizeof(cli->address), "unix:%s", ash);
		if (!cli->options.framing)
			cli->options.framing = "length";
	}
	if (cli->options.retries < 0)
		cli->options.retries = default_retries(cli);
	return 0;
}

static void add_or_null(struct koine_json *j, const char *key, const char *text)
{
	params_add(j, key, text);
	if (text || !j)
		return;
	koine_json_key(j, key);
	koine_json_null(j);
}

void memory_scope(const struct cli *cli, struct koine_json *params)
{
	const struct memory_options *o = cli->own;

	add_or_null(params, "user_id", o->user);
	add_or_null(params, "chat_id", o->chat);
	params_add(params, "chat_type", o->chat_type);
	params_add(params, "project", o->project);
	if (o->common)
		params_add_bool(params, "common", true);
	params_add(params, "context_token", option_from_environment("ASH_CONTEXT_TOKEN"));
}

struct koine_json *memory_id_params(const struct cli *cli, struct text id)
{
	struct koine_json *j = params_new();

	params_add_text(j, "memory_id", id);
	memory_scope(cli, j);
	return j;
}
