/* koine memory: its table, and the commands that are one call each. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/memory/memory.h"

enum { TEXT_MAX = 8 << 20 };

static int wrong_args(const struct cli *cli, bool wants_some)
{
	complain("memory %s %s%s", cli->sub->name, wants_some ? "wants " : "takes nothing more",
		 wants_some ? cli->sub->args : "");
	return EX_USAGE;
}

/* Exactly n of them. */
static int need_args(const struct cli *cli, int n)
{
	return cli->n_args == n ? 0 : wrong_args(cli, n > 0);
}

/* The words as one text, ended by NUL: whoever types need not quote them. */
static int need_words(const struct cli *cli, struct buf *all)
{
	int r = cli->n_args > 0 ? params_words(cli, all) : wrong_args(cli, true);

	buf_add_char(all, '\0');
	if (r != 0 || all->err == 0)
		return r;
	complain("the text is too large: %s", strerror(-all->err));
	return EX_DATAERR;
}

static void add_limit(struct memory_call *c, int64_t usual)
{
	int64_t limit = c->cli->options.memory.limit;

	koine_json_key(c->params, "limit");
	koine_json_int(c->params, limit != 0 ? limit : usual);
}

static void add_this_chat(struct memory_call *c)
{
	if (!c->cli->options.memory.this_chat)
		return;
	koine_json_key(c->params, "this_chat");
	koine_json_bool(c->params, true);
}

/* Sends, and prints the result: bare, or as `print` does. */
static int send_and_print(struct memory_call *c,
			  int (*print)(const struct cli *cli, const struct koine_value *v))
{
	struct koine_answer *a = NULL;
	int r = memory_send(c, &a);

	if (r == 0 && c->cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		r = print(c->cli, koine_answer_result(a));
	koine_answer_free(a);
	return r;
}

static int print_hits(const struct cli *cli, const struct koine_value *hits)
{
	return memory_print_hits(cli, hits, cli->options.memory.query);
}

static int cmd_search(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf query;
	struct memory_call c;
	int r;

	buf_init(&query, TEXT_MAX);
	r = cli->options.memory.query ? need_args(cli, 0) : need_words(cli, &query);
	if (r == 0 && !cli->options.memory.query)
		cli->options.memory.query = query.data;
	if (r == 0)
		r = memory_target(cli, NEEDS_ASH);
	if (r == 0)
		r = memory_begin(&c, cli, "memory.search");
	if (r != 0)
		return r;
	memory_add_text(&c, "query", cli->options.memory.query);
	add_limit(&c, 10);
	add_this_chat(&c);
	memory_add_who(&c);
	r = send_and_print(&c, print_hits);
	memory_done(&c);
	return r;
}

/* As ash's own client words it. A server that does not say takes what was sent: a token names
 * a user. */
static const char *scope_of(const struct cli *cli, const struct koine_value *memory)
{
	const struct memory_options *o = &cli->options.memory;
	const char *token = getenv("ASH_CONTEXT_TOKEN");
	bool user = o->user || (token && token[0]);
	bool group = o->chat && (o->shared || !user);
	struct text told;

	told.data = koine_value_text(koine_value_get(memory, "scope"), &told.len);
	if (told.data) {
		group = text_is(told, "group");
		user = text_is(told, "personal");
	}
	return group ? "shared" : user ? "personal" : "common";
}

static int print_added(const struct cli *cli, const struct koine_value *memory)
{
	size_t len;
	const char *id = koine_value_text(koine_value_get(memory, "id"), &len);

	if (!id) {
		complain("the answer is no memory");
		return EX_PROTOCOL;
	}
	printf("Memory added (%s): ", scope_of(cli, memory));
	print_cut(stdout, id, len, 8, 0);
	fputc('\n', stdout);
	return 0;
}

/* What ash's client leaves out unless it is given is left out here, too. */
static void add_details(struct memory_call *c, const struct memory_options *o)
{
	if (o->expires) {
		koine_json_key(c->params, "expires_days");
		koine_json_int(c->params, o->expires_days);
	}
	if (o->n_subjects > 0) {
		koine_json_key(c->params, "subjects");
		koine_json_begin_array(c->params);
		for (unsigned i = 0; i < o->n_subjects; i++)
			koine_json_string(c->params, o->subjects[i]);
		koine_json_end_array(c->params);
	}
	memory_add_text(c, "category", o->category);
	if (o->importance >= 0) {
		koine_json_key(c->params, "importance");
		koine_json_double(c->params, o->importance);
	}
}

static int cmd_add(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf content;
	struct memory_call c;
	int r;

	buf_init(&content, TEXT_MAX);
	r = need_words(cli, &content);
	if (r == 0)
		r = memory_target(cli, NEEDS_ASH);
	if (r == 0)
		r = memory_begin(&c, cli, "memory.add");
	if (r != 0)
		return r;
	memory_add_text(&c, "content", content.data);
	memory_add_text(&c, "source", cli->options.memory.source);
	koine_json_key(c.params, "shared");
	koine_json_bool(c.params, cli->options.memory.shared);
	memory_add_who(&c);
	add_details(&c, &cli->options.memory);
	r = send_and_print(&c, print_added);
	memory_done(&c);
	return r;
}

static int cmd_list(struct cli *cli)
{
	struct memory_call c;
	int r = need_args(cli, 0);

	if (r == 0)
		r = memory_target(cli, NEEDS_ASH);
	if (r == 0)
		r = memory_begin(&c, cli, "memory.list");
	if (r != 0)
		return r;
	add_limit(&c, 20);
	add_this_chat(&c);
	memory_add_who(&c);
	if (cli->options.memory.all) {
		koine_json_key(c.params, "include_expired");
		koine_json_bool(c.params, true);
	}
	r = send_and_print(&c, memory_print_list);
	memory_done(&c);
	return r;
}

static int print_deleted(const struct cli *cli, const struct koine_value *result)
{
	const char *id = cli->args[0];
	bool deleted = false;

	koine_value_bool(koine_value_get(result, "deleted"), &deleted);
	if (cli->options.json)
		print_json_compact(stdout, result);
	else if (deleted)
		fputs("Memory deleted: ", stdout);
	if (!deleted)
		fputs("Memory not found or not owned by you: ", stderr);
	if (!deleted || !cli->options.json) {
		print_cut(deleted ? stdout : stderr, id, strlen(id), 8, 0);
		fputc('\n', deleted ? stdout : stderr);
	}
	return deleted ? EX_OK : EXIT_ERROR_ANSWER;
}

static int begin_with_id(struct memory_call *c, struct cli *cli, const char *method,
			 enum memory_needs needs)
{
	int r = need_args(cli, 1);

	if (r == 0)
		r = memory_target(cli, needs);
	if (r == 0)
		r = memory_begin(c, cli, method);
	if (r != 0)
		return r;
	memory_add_text(c, "memory_id", cli->args[0]);
	memory_add_who(c);
	return 0;
}

static int cmd_delete(struct cli *cli)
{
	struct koine_answer *a = NULL;
	struct memory_call c;
	int r = begin_with_id(&c, cli, "memory.delete", NEEDS_ASH);

	if (r != 0)
		return r;
	r = memory_send(&c, &a);
	if (r == 0)
		r = print_deleted(cli, koine_answer_result(a));
	koine_answer_free(a);
	memory_done(&c);
	return r;
}

static int cmd_show(struct cli *cli)
{
	struct memory_call c;
	int r = begin_with_id(&c, cli, "memory.get", NEEDS_KOINE);

	if (r != 0)
		return r;
	r = send_and_print(&c, memory_print_one);
	memory_done(&c);
	return r;
}

static int cmd_stats(struct cli *cli)
{
	struct memory_call c;
	int r = need_args(cli, 0);

	if (r == 0)
		r = memory_target(cli, NEEDS_KOINE);
	if (r == 0)
		r = memory_begin(&c, cli, "memory.stats");
	if (r != 0)
		return r;
	memory_add_who(&c);
	r = send_and_print(&c, memory_print_stats);
	memory_done(&c);
	return r;
}

#define BY_ID "ID may be the beginning of it, as list shows it, if it fits only one.\n"

const struct command memory_commands[] = {
	{"search", "QUERY... | - | --query QUERY", "find memories, best first",
	 "Plain words, quoted or not, or - for stdin; the best match first, with how like the\n"
	 "question it is, from 0 to 1. Into a pipe each hit is \"[0.83] content\"; on a\n"
	 "terminal the words that match are bold, and long ones are cut: see memory show.\n",
	 cmd_search, NULL, search_options},
	{"add", "CONTENT... | -", "remember something",
	 "- reads it from stdin. Behind `memory add` -s is --source; the socket is --socket "
	 "there.\n",
	 cmd_add, NULL, add_options},
	{"list", "", "list memories, newest first", NULL, cmd_list, NULL, list_options},
	{"delete", "ID", "forget a memory", BY_ID, cmd_delete},
	{"show", "ID", "show all of one memory", BY_ID, cmd_show},
	{"edit", "ID", "change the content of a memory in your editor",
	 BY_ID "The editor is that of VISUAL, else of EDITOR, else vi. Content that comes back as\n"
	       "it was is not sent.\n",
	 cmd_memory_edit},
	{"export", "[FILE]", "write memories as JSON, one in a line",
	 "To stdout, or to FILE, which appears whole or not at all and which only you can read.\n",
	 cmd_memory_export},
	{"import", "FILE | -", "take in what was exported",
	 "One JSON object in a line: memories as `memory export` writes them, or entities and\n"
	 "relations as the memory server of MCP keeps them. A bad line ends it: those before it\n"
	 "are kept, those after it are not sent.\n",
	 cmd_memory_import},
	{"stats", "", "count memories", NULL, cmd_stats},
	{NULL},
};
