/* koine memory: its table, and the commands that are one call each. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/talk.h"
#include "cli/memory/memory.h"
#include "model/project.h"

/* ---- where the server is, and the parameters that all calls have ---- */

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

	if (r != 0)
		return fail_with(EX_NOINPUT, "--project %s: %s", o->project, strerror(-r));
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
	const struct memory_options *o = cli->own;

	return cli->sub &&
	       (o->purge || !text_among(text_of(cli->sub->name), "search|add|list|delete"));
}

/* Finds the server, and what the project is called. 0, or an exit code after saying why not. */
static int memory_find_server(struct cli *cli)
{
	struct memory_options *o = cli->own;
	const char *ash = find_ash(cli);
	int r = name_project(o);

	if (r != 0)
		return r;
	/* ash would ignore them, and tell more than was asked for. */
	if (ash && own_option(o))
		return fail_with(EX_USAGE,
				 "%s requires koine's own socket, but %s is ash's socket; use "
				 "--socket or set "
				 "KOINE_SOCKET",
				 own_option(o), ash);
	if (ash && needs_koine(cli))
		return fail_with(
			EX_USAGE,
			"memory %s requires koine's own socket, but %s is the socket of ash; set "
			"--socket or KOINE_SOCKET",
			cli->sub->name, ash);
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
	if (text)
		params_add(j, key, text);
	else
		params_add_raw(j, key, TEXT("null"));
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

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct memory_options, member)

/* clang-format off */
#define THIS_CHAT \
	{"--this-chat", NULL, NULL, "show only memories from this chat", option_flag, AT(this_chat)}
#define THEN \
	{"--at", NULL, "TIME", "show memories that were valid at TIME (2026-05-31 or 2026-05-31T12:00Z)", option_word, AT(at), .param = "at"}
#define REPLACED \
	{"--replaced", NULL, NULL, "include replaced memories and earlier versions", option_flag, AT(replaced), \
		.param = "include_replaced"}
#define LIMIT(help) \
	{"--limit", "-n", "N", help, option_number, AT(limit), "an integer", INT64_MIN}
/* clang-format on */

static const struct option memory_options[] = {
	{"--user", NULL, "USER", "use the memories of USER (default: $ASH_USER_ID)", option_name,
	 AT(user), .env = "ASH_USER_ID"},
	{"--chat", NULL, "CHAT", "include the memories of CHAT (default: $ASH_CHAT_ID)",
	 option_name, AT(chat), .env = "ASH_CHAT_ID"},
	{"--chat-type", NULL, "TYPE",
	 "set the type of the chat: private, group, ... (default: $ASH_CHAT_TYPE)", option_name,
	 AT(chat_type), .env = "ASH_CHAT_TYPE"},
	{"--project", NULL, "DIR|NAME",
	 "include the memories of a project (default: the project of the current "
	 "directory)",
	 option_word, AT(project), .implied = "."},
	{"--common", NULL, NULL, "use only memories that belong to no user, chat or project",
	 option_flag, AT(common)},
	{NULL},
};

static const struct option search_options[] = {
	{"--query", "-q", "QUERY", "search for this text instead of the QUERY argument",
	 option_text, AT(query)},
	LIMIT("show at most N memories (default: 10)"),
	THIS_CHAT,
	THEN,
	REPLACED,
	{NULL},
};

static const struct option add_options[] = {
	{"--expires", "-e", "TIME",
	 "let the memory expire after TIME (7d, 2w); a bare number means days", option_days, 0,
	 "such as 30, 30d or 2w", .param = "expires_days"},
	{"--subject", "-S", "NAME",
	 "add a person or thing that the memory is about (repeatable, up to 64)", option_texts,
	 .max = 64, .param = "subjects"},
	{"--shared", NULL, NULL, "store the memory for the chat or project, not for the user",
	 option_flag, AT(shared)},
	{"--source", "-s", "SOURCE", "set the source of the memory (default: agent)", option_text,
	 AT(source), .usual = "agent"},
	{"--category", NULL, "CATEGORY",
	 "set the category: preference, decision, fact, entity or other", option_text,
	 .param = "category", .choices = "preference|decision|fact|entity|other"},
	{"--replaces", NULL, "ID", "mark memory ID as replaced by the new memory", option_word,
	 AT(replaces), .param = "replaces"},
	{"--importance", NULL, "X", "set the importance, 0 to 1 (default: 0.5)", option_decimal,
	 .max = 1, .param = "importance"},
	{NULL},
};

static const struct option list_options[] = {
	LIMIT("show at most N memories (default: 20)"),
	{"--all", NULL, NULL, "include expired memories", option_flag, AT(all),
	 .param = "include_expired"},
	THIS_CHAT,
	THEN,
	REPLACED,
	{NULL},
};

static const struct option show_options[] = {
	THEN,
	{NULL},
};

static const struct option delete_options[] = {
	{"--purge", NULL, NULL, "delete the memory permanently, with its history", option_flag,
	 AT(purge), .param = "purge"},
	{"--yes", "-y", NULL, "do not ask for confirmation", option_flag, AT(yes)},
	{NULL},
};

static const struct option restore_options[] = {
	LIMIT("list at most N memories (default: 20)"),
	{NULL},
};

static const struct option review_options[] = {
	{"--list", NULL, NULL, "list the facts without asking for decisions", option_flag,
	 AT(list)},
	{"--accept", NULL, "ID", "accept a fact (repeatable)", option_list, AT(accept), .max = 64,
	 .completes = COMPLETES_DRAWN},
	{"--reject", NULL, "ID", "reject a fact (repeatable)", option_list, AT(reject), .max = 64,
	 .completes = COMPLETES_DRAWN},
	LIMIT("show at most N facts (default: 20)"),
	{NULL},
};

enum {
	TEXT_MAX = 8 << 20,
	LISTED = 20, /* unless --limit is given */
	ID_CHARS_MIN = 4,
};

/* The arguments as one NUL-terminated text, so that nobody has to quote them. */
static int need_text(const struct cli *cli, struct buf *all)
{
	int r = cli->n_args > 0 ? args_text(cli, all) : args_refuse(cli);

	buf_add_char(all, '\0');
	if (r != 0 || all->err == 0)
		return r;
	return fail_with(EX_DATAERR, "invalid text: %s", strerror(-all->err));
}

/* The order of ash's own client. */
static void add_limits(struct koine_json *j, const struct memory_options *o, int64_t usual)
{
	params_add_int(j, "limit", o->limit != 0 ? o->limit : usual);
	if (o->this_chat)
		params_add_bool(j, "this_chat", true);
}

static int cmd_search(struct cli *cli)
{
	struct memory_options *o = cli->own;
	CLEANUP(buf_donep) struct buf query;
	struct koine_json *j;
	int r = 0;

	buf_init(&query, TEXT_MAX);
	if (!o->query) {
		r = need_text(cli, &query);
		o->query = query.data;
	} else if (cli->n_args > 0) {
		complain("memory search takes QUERY or --query, not both");
		r = EX_USAGE;
	}
	if (r != 0)
		return r;
	j = params_new();
	params_add(j, "query", o->query);
	add_limits(j, o, 10);
	return request_finish(cli, j, NULL);
}

/* ---- adding ---- */

/* The scope in the words of ash's own client. If the server does not report it, it follows from
 * what was sent; a token names a user. */
static const char *scope_of(const struct cli *cli, const struct koine_value *memory)
{
	const struct memory_options *o = cli->own;
	bool user = o->user || option_from_environment("ASH_CONTEXT_TOKEN");
	bool group = o->chat && (o->shared || !user);
	struct text told = member_text(memory, "scope");

	if (text_is(told, "project"))
		return "project";
	if (told.data) {
		group = text_is(told, "group");
		user = text_is(told, "personal");
	}
	return group ? "shared" : user ? "personal" : "common";
}

static int print_added(const struct cli *cli, const struct koine_value *memory)
{
	struct text id = member_text(memory, "id");
	char what[64];

	if (!id.data)
		return memory_refuse_answer();
	snprintf(what, sizeof(what), "Memory added (%s)", scope_of(cli, memory));
	memory_say(stdout, what, id);
	return 0;
}

/* Where the server is ash's there is nothing to show, and its scripts expect no question. */
static bool is_ashs(const struct cli *cli)
{
	return cli->options.framing && strcmp(cli->options.framing, "length") == 0;
}

/* A short beginning is more often a mistake than meant. */
int memory_check_id(const struct cli *cli, struct text id)
{
	if (id.len >= ID_CHARS_MIN || is_ashs(cli))
		return 0;
	return fail_with(EX_USAGE, "memory id '%.*s' is too short: enter at least %d characters",
			 TEXT_ARGS(id), ID_CHARS_MIN);
}

static int cmd_add(struct cli *cli)
{
	const struct memory_options *o = cli->own;
	CLEANUP(buf_donep) struct buf content;
	struct koine_json *j;
	int r;

	buf_init(&content, TEXT_MAX);
	r = need_text(cli, &content);
	if (r == 0 && o->replaces)
		r = memory_check_id(cli, text_of(o->replaces));
	if (r != 0)
		return r;
	j = params_new();
	params_add(j, "content", content.data);
	params_add(j, "source", o->source);
	params_add_bool(j, "shared", o->shared);
	return request_finish(cli, j, NULL);
}

/* ---- the others ---- */

/* Beside the list: what its limit has hidden. Only the list itself knows how many were learnt in this chat,
 * or were valid at some time. */
static int say_hidden(struct cli *cli, int64_t shown)
{
	const struct memory_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j;
	int64_t all = -1;
	int r;

	if (shown < (o->limit > 0 ? o->limit : LISTED) && shown < MEMORY_LIST_MAX)
		return 0;
	if (!o->this_chat && !o->at && !o->replaced) {
		j = params_new();
		memory_scope(cli, j);
		r = call_send(cli, "memory.stats", j, &a);
		if (r != 0)
			return r;
		all = member_number(koine_answer_result(a), "total") -
		      (o->all ? 0 : member_number(koine_answer_result(a), "expired"));
	}
	memory_say_hidden(shown, all);
	return 0;
}

static int cmd_list(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	add_limits(j, cli->own, LISTED);
	r = request_send(cli, j, &a) ?: request_print(cli, a, NULL);
	if (r == 0 && !cli->options.json && !memory_is_ash())
		r = say_hidden(cli, (int64_t)koine_value_count(koine_answer_result(a)));
	return r;
}

/* The deleted memory whose id begins so; NULL if there is none, or are several. */
static const struct koine_value *find_deleted(const struct koine_answer *a, struct text id)
{
	const struct koine_value *found = NULL;

	for (EACH(m, koine_value_first(koine_answer_result(a)))) {
		if (!text_begins(member_text(m, "id"), id))
			continue;
		if (found)
			return NULL;
		found = m;
	}
	return found;
}

/* One that is already deleted can still be purged. */
static int find_purged(struct cli *cli, struct text id, struct koine_answer **ret_answer,
		       const struct koine_value **ret_memory)
{
	enum { DELETED_MAX = 1000 };
	CLEANUP(answer_freep) struct koine_answer *live = NULL;
	struct koine_json *j;
	int r = talk_connect(cli);

	*ret_memory = NULL;
	if (r != 0)
		return r;
	if (call_ask(cli, "memory.get", memory_id_params(cli, id), &live) != KOINE_ERROR_ANSWER ||
	    koine_answer_error_code(live) != CODE_NOT_FOUND)
		return 0;
	j = params_new();
	params_add_int(j, "limit", DELETED_MAX);
	memory_scope(cli, j);
	r = call_send(cli, "memory.deleted", j, ret_answer);
	if (r == 0)
		*ret_memory = find_deleted(*ret_answer, id);
	return r;
}

static bool asks(const struct cli *cli)
{
	const struct memory_options *o = cli->own;

	return !o->yes && isatty(STDIN_FILENO);
}

/* The memory that is meant, to be shown; NULL without a terminal, where the output is that of ash's
 * client. */
static int find_meant(struct cli *cli, struct text id, struct koine_answer **ret_answer,
		      const struct koine_value **ret_memory)
{
	const struct memory_options *o = cli->own;
	int r = 0;

	*ret_memory = NULL;
	if (cli->options.json || !cli->terminal || is_ashs(cli))
		return 0;
	if (o->purge)
		r = find_purged(cli, id, ret_answer, ret_memory);
	if (r != 0 || *ret_memory)
		return r;
	koine_answer_free(*ret_answer);
	*ret_answer = NULL;
	r = call_send(cli, "memory.get", memory_id_params(cli, id), ret_answer);
	if (r == 0)
		*ret_memory = koine_answer_result(*ret_answer);
	return r;
}

static void memory_commands_show(const struct koine_value *memory)
{
	print_wrapped(stdout, member_text(memory, "content"), NULL, terminal_columns(), 0, 0);
}

/* A person at a terminal sees what will be deleted, and is asked. */
static int ask_whether(const struct cli *cli, const struct koine_value *memory)
{
	const struct memory_options *o = cli->own;

	memory_commands_show(memory);
	if (args_confirm(o->purge ? "Delete this memory permanently?" : "Delete this memory?"))
		return 0;
	puts("Nothing was deleted.");
	return EXIT_ERROR_ANSWER;
}

static int print_deleted(const struct cli *cli, const struct koine_value *result,
			 const struct koine_value *memory)
{
	struct text id = memory ? member_text(memory, "id") : text_of(cli->args[0]);

	if (!member_flag(result, "deleted")) {
		memory_say(stderr, "Memory not found or not owned by you", id);
		return EXIT_ERROR_ANSWER;
	}
	if (cli->options.json)
		return EX_OK;
	memory_say(stdout, "Memory deleted", id);
	if (memory && !asks(cli))
		memory_commands_show(memory);
	return EX_OK;
}

static int cmd_delete(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *shown = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *memory = NULL;
	struct text id = text_of(cli->args[0]);
	struct koine_json *j;
	int r = memory_check_id(cli, id) ?: find_meant(cli, id, &shown, &memory);

	if (r == 0 && memory && asks(cli))
		r = ask_whether(cli, memory);
	if (r != 0)
		return r;
	j = params_new();
	params_add_text(j, "memory_id", memory ? member_text(memory, "id") : id);
	r = request_send(cli, j, &a);
	if (r == 0)
		(void)print_if_json(cli, koine_answer_result(a));
	return r != 0 ? r : print_deleted(cli, koine_answer_result(a), memory);
}

static int print_restored(const struct cli *cli, const struct koine_value *memory)
{
	struct text id = member_text(memory, "id");

	if (!id.data)
		return memory_refuse_answer();
	memory_say(stdout, "Memory restored", id);
	return 0;
}

/* Without an id it lists what can be restored. */
static int cmd_restore(struct cli *cli)
{
	const struct memory_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = o->limit > 0 ? o->limit : LISTED;
	int64_t shown;
	struct koine_json *j;
	int r;

	if (cli->n_args > 0)
		return memory_check_id(cli, text_of(cli->args[0])) ?: request_run(cli);
	j = params_new();
	params_add_int(j, "limit", limit);
	memory_scope(cli, j);
	r = call_send(cli, "memory.deleted", j, &a)
		    ?: call_print_result(cli, a, NULL, memory_print_list);
	shown = (int64_t)koine_value_count(koine_answer_result(a));
	if (r == 0 && !cli->options.json && shown >= limit)
		memory_say_hidden(shown, -1);
	return r;
}

/* ---- the table ---- */

#define ONE_ID     ARGS(1, 1, "requires one ID")
#define BY_ID      "ID may be a unique prefix, as `koine memory list` shows it.\n"
#define BY_LONG_ID "ID may be a unique prefix of at least 4 characters.\n"

static const struct command subs[] = {
	{"search", "QUERY... | - | --query QUERY", "Search memories, best match first",
	 "QUERY is plain text. Use - to read QUERY from stdin. SCORE is the "
	 "similarity, from 0 to 1. On a terminal, koine prints matching words in bold "
	 "and truncates long memories.\n",
	 cmd_search, NULL, search_options,
	 ARGS(0, INT_MAX, "requires QUERY, --query QUERY, or - for stdin"),
	 .request = {"memory.search", .print = memory_print_hits},
	 .examples = {"koine memory search where does anna live",
		      "koine memory search -n 3 deploy"}},
	{"add", "CONTENT... | -", "Add a memory",
	 "Use - to read the content from stdin. In this command, -s is short for "
	 "--source, not for --socket.\n",
	 cmd_add, NULL, add_options, ARGS(1, INT_MAX, "requires CONTENT, or - for stdin"),
	 .request = {"memory.add", .print = print_added},
	 .examples = {"koine memory add \"Anna moved to Oslo in May\"",
		      "koine memory add --project . --category decision \"Prices are integers\""}},
	{"list", "", "List memories, newest first", NULL, cmd_list, NULL, list_options, NO_ARGS,
	 .request = {"memory.list", .print = memory_print_list},
	 .examples = {"koine memory list -n 50", "koine memory list --all --project ."}},
	{"delete", "ID", "Delete a memory",
	 "ID may be a unique prefix of at least 4 characters. On a terminal, the command shows the "
	 "memory and asks for confirmation. `koine memory restore` can restore the memory for 30 "
	 "days ([memory] keep_deleted), except after --purge.\n",
	 cmd_delete, NULL, delete_options, ONE_ID, .request = {"memory.delete"},
	 .examples = {"koine memory delete 14a446bf", "koine memory delete --purge -y 14a446bf"}},
	{"restore", "[ID]", "Restore a deleted memory, or list deleted memories",
	 "ID may be a unique prefix of at least 4 characters. Without ID, the command lists "
	 "deleted memories, most recently deleted first.\n",
	 cmd_restore, NULL, restore_options, ARGS(0, 1, "takes at most one ID"),
	 .request = {"memory.restore", .arg = "memory_id", .print = print_restored},
	 .examples = {"koine memory restore", "koine memory restore 14a446bf"}},
	{"show", "ID", "Show one memory in full", BY_ID, NULL, NULL, show_options, ONE_ID,
	 .request = {"memory.get", .arg = "memory_id", .print = memory_print_one},
	 .examples = {"koine memory show 14a446bf", "koine memory show 14a4 --at 2026-05-31"}},
	{"history", "ID", "Show earlier versions of a memory",
	 BY_ID "The command lists all versions, newest first, including the versions of memories "
	       "that this memory replaced.\n",
	 ONE_ID, .request = {"memory.history", .arg = "memory_id", .print = memory_print_history},
	 .examples = {"koine memory history 14a446bf", "koine memory history 14a4 --json"}},
	{"edit", "ID", "Edit a memory in your editor",
	 BY_LONG_ID "The editor is $VISUAL, $EDITOR or vi. If you do not change the content, "
		    "koine sends nothing.\n",
	 cmd_memory_edit, ONE_ID,
	 .examples = {"koine memory edit 14a446bf", "EDITOR=nano koine memory edit 14a4"}},
	{"review", "[--list | --accept ID | --reject ID]...",
	 "Review facts that an agent extracted",
	 "On a terminal, the command shows one fact at a time: y accepts, n rejects, e edits, s "
	 "skips, q quits. If stdout is not a terminal, or with --list, the command lists "
	 "the facts.\n",
	 cmd_memory_review, NULL, review_options, ARGS(0, 0, "takes no arguments, only options"),
	 .request = {"memory.review"},
	 .examples = {"koine memory review", "koine memory review --accept 14a4 --reject 2b1c"}},
	{"export", "[FILE]", "Export memories as JSON lines",
	 "The command writes to stdout, or to FILE with mode 0600. koine replaces "
	 "FILE atomically.\n",
	 cmd_memory_export, ARGS(0, 1, "takes at most one FILE"),
	 .examples = {"koine memory export memories.jsonl",
		      "koine memory export | gzip >memories.jsonl.gz"}},
	{"import", "FILE | -", "Import exported memories",
	 "The command reads one JSON object per line: memories from `koine memory "
	 "export`, or entities and relations of the MCP memory server. An invalid "
	 "line stops the import; earlier lines stay imported.\n",
	 cmd_memory_import, ARGS(1, 1, "requires one FILE, or - for stdin"),
	 .examples = {"koine memory import memories.jsonl",
		      "zcat memories.jsonl.gz | koine memory import -"}},
	{"stats", "", "Show memory statistics", NULL, NO_ARGS,
	 .request = {"memory.stats", .print = memory_print_stats},
	 .examples = {"koine memory stats", "koine memory stats --json"}},
	{NULL},
};

const struct command memory_commands[] = {
	{"memory", "COMMAND [ARGUMENT]...", "Search, add and manage memories",
	 "The command connects to the first of these addresses that exists: --url or "
	 "--socket, KOINE_SOCKET, ASH_RPC_SOCKET (ash's socket, which supports "
	 "search, add, list and delete), koine's default socket, /run/ash/rpc.sock. "
	 "koine retries a refused connection after 0.5, 1 and 2 seconds.\n\n--user "
	 "and --chat, or ASH_USER_ID and ASH_CHAT_ID, select the owner. Without them "
	 "you see all memories. If ASH_CONTEXT_TOKEN is set, koine sends its value as "
	 "the context token.\n\n--project adds the memories of a project. A value "
	 "that starts with '.' or '/' is a directory. The name of its project comes "
	 "from the git remote or, without a remote, from the path of the working tree "
	 "or directory. Any other value is a NAME.\n",
	 NULL, subs, memory_options, sizeof(struct memory_options), memory_find_server,
	 .completes = COMPLETES_MEMORY, .scope = memory_scope,
	 .examples = {"koine memory add \"Anna moved to Oslo in May\"",
		      "koine memory search where does anna live"}},
	{NULL},
};
