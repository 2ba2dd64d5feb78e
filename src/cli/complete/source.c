#include "cli/complete/offers.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/child/koined.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/talk.h"
#include "cli/kit/tool_gist.h"
#include "cli/kit/value.h"

enum { ROWS = 100, SAID_MEMBERS = 3, SAID_MAX = 4096, DIALECTS_MAX = 1 << 20, DIALECTS_MS = 60000 };

/* A kind: a list that the daemon answers with, or a function of ours. The last seen comes first,
 * as the daemon has them. */
struct source {
	const char *method;
	const char *list;  /* the member that has the rows; NULL: the result is the list */
	const char *value; /* of a row */
	const char *said[SAID_MEMBERS];
	bool limited; /* it takes a limit */
	/* Says more than members do; or NULL. */
	void (*say)(struct buf *said, const struct koine_value *row);
	void (*begin)(struct koine_json *params); /* with parameters of its own; or NULL */
	/* A command about these restricts the list by its own options. */
	enum completes scoped;
	void (*offer)(struct cli *cli, struct offers *offers);
};

/* ---- asking ---- */

static bool ask(struct cli *cli, const struct source *s, struct koine_answer **ret_answer)
{
	struct koine_json *params = params_new();
	char error[TALK_ERROR];

	if (s->limited)
		params_add_int(params, "limit", ROWS);
	if (s->begin)
		s->begin(params);
	if (s->scoped && cli->command->completes == s->scoped && cli->command->scope) {
		if (cli->command->begin && cli->command->begin(cli) != 0) {
			koine_json_free(params);
			return false;
		}
		cli->command->scope(cli, params);
	}
	cli->options.retries = 0;
	cli->options.wait_ms = 0;
	if (!cli->client && talk_try(cli, &cli->client, error) != 0) {
		koine_json_free(params);
		return false;
	}
	return call_ask(cli, s->method, params, ret_answer) == 0;
}

/* "running fix the tests": those that it has. */
static void say(struct buf *said, const struct source *s, const struct koine_value *row)
{
	for (int i = 0; i < SAID_MEMBERS && s->said[i]; i++) {
		struct text t = text_cut(member_text(row, s->said[i]), SAID_MAX / SAID_MEMBERS - 1);

		if (t.len > 0 && said->len > 0)
			buf_add_char(said, ' ');
		buf_add(said, t.data, t.len);
	}
	if (s->say)
		s->say(said, row);
}

static void offer_rows(struct offers *offers, const struct source *s,
		       const struct koine_value *rows)
{
	CLEANUP(buf_donep) struct buf said;

	buf_init(&said, SAID_MAX);
	for (const struct koine_value *row = koine_value_first(rows); row;
	     row = koine_value_next(row)) {
		buf_clear(&said);
		say(&said, s, row);
		offers_add_foreign(offers, member_text(row, s->value), buf_text(&said));
	}
}

static void offer_asked(struct cli *cli, const struct source *s, struct offers *offers)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *rows;

	if (!ask(cli, s, &a))
		return;
	rows = koine_answer_result(a);
	offer_rows(offers, s, s->list ? koine_value_get(rows, s->list) : rows);
}

/* What is to be decided. A long one is more than anybody reads here. */
static void say_input(struct buf *said, const struct koine_value *row)
{
	CLEANUP(buf_donep) struct buf gist;
	struct text t;

	buf_init(&gist, GIST_MAX);
	tool_gist(&gist, member_string(row, "tool"), koine_value_get(row, "input"));
	t = text_cut(buf_text(&gist), SAID_MAX / SAID_MEMBERS - 1);
	buf_add_char(said, ' ');
	buf_add(said, t.data, t.len);
}

/* ---- their parameters ---- */

static void of_any_age(struct koine_json *params)
{
	params_add(params, "archived", "any");
}

static void names_alone(struct koine_json *params)
{
	params_add_bool(params, "names", true);
}

/* ---- ours ---- */

void offer_commands(const struct cli *cli, const struct command *of, struct offers *offers)
{
	const struct command *c;

	for (int i = 0; (c = command_nth(cli->groups, of, i)); i++)
		offers_add(offers, text_of(c->name), text_of(c->help));
}

/* For `koine help`: a command, then one of its own. */
static void offer_command(struct cli *cli, struct offers *offers)
{
	const struct command *c =
		cli->n_args > 1 ? command_find(cli->groups, NULL, cli->args[1]) : NULL;

	if (cli->n_args == 1)
		offer_commands(cli, NULL, offers);
	else if (c && c->subs)
		offer_commands(cli, c, offers);
}

static void offer_files(struct cli *cli, struct offers *offers)
{
	offers_set_how(offers, "files");
}

static void offer_folders(struct cli *cli, struct offers *offers)
{
	offers_set_how(offers, "folders");
}

static void offer_own(struct cli *cli, struct offers *offers)
{
	const char *(*word_of)(int i, const char **ret_said) = cli->command->word;
	const char *said = NULL;
	const char *word;

	for (int i = 0; word_of && (word = word_of(i, &said)); i++)
		offers_add(offers, text_of(word), text_of(said));
}

static void offer_projects(struct cli *cli, struct offers *offers)
{
	static const struct source projects = {"project.list", "projects", "folder", {"state"}};

	offers_set_how(offers, "folders");
	offer_asked(cli, &projects, offers);
}

/* Koined's program knows them, whether or not one runs. */
static void offer_dialects(struct cli *cli, struct offers *offers)
{
	CLEANUP(buf_donep) struct buf said;
	const struct koine_value *d;
	struct koine_doc *doc = NULL;
	char program[PATH_MAX];

	buf_init(&said, DIALECTS_MAX);
	if (!koined_find(program) || !koined_dialects(program, DIALECTS_MS, &said, &doc))
		return;
	d = member_first(koine_doc_root(doc), "dialects");
	for (; d; d = koine_value_next(d)) {
		struct text original = member_string(d, "original");

		if (original.data)
			offers_add_foreign(offers, member_text(d, "name"), original);
	}
	koine_doc_free(doc);
}

/* "limit=", from what the method says of itself. */
static void offer_params(struct cli *cli, struct offers *offers)
{
	static const struct source methods = {"rpc.discover"};
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *m;
	char name[128];

	if (cli->n_args < 2 || !ask(cli, &methods, &a))
		return;
	offers_set_how(offers, "open");
	m = member_first(koine_answer_result(a), "methods");
	while (m && !member_is(m, "name", cli->args[1]))
		m = koine_value_next(m);
	for (const struct koine_value *p = m ? member_first(m, "params") : NULL; p;
	     p = koine_value_next(p)) {
		snprintf(name, sizeof(name), "%.*s=", TEXT_ARGS(member_text(p, "name")));
		offers_add_foreign(offers, text_of(name), member_text(p, "description"));
	}
}

/* ---- the table ---- */

static const struct source sources[N_COMPLETES] = {
	[COMPLETES_COMMAND] = {.offer = offer_command},
	[COMPLETES_FILE] = {.offer = offer_files},
	[COMPLETES_FOLDER] = {.offer = offer_folders},
	[COMPLETES_OWN] = {.offer = offer_own},
	[COMPLETES_PROJECT] = {.offer = offer_projects},
	[COMPLETES_DIALECT] = {.offer = offer_dialects},
	[COMPLETES_PARAM] = {.offer = offer_params},
	[COMPLETES_METHOD] = {"rpc.discover", "methods", "name", {"summary"}},
	[COMPLETES_TASK] =
		{"task.find", "tasks", "id", {"state", "prompt"}, true, .scoped = COMPLETES_TASK},
	[COMPLETES_GROUP] = {"task.groups", "groups", "group", .scoped = COMPLETES_TASK},
	[COMPLETES_SESSION] = {"session.list",
			       "sessions",
			       "id",
			       {"status", "title", "query"},
			       true,
			       .begin = of_any_age},
	[COMPLETES_APPROVAL] =
		{"approval.list", "approvals", "id", {"agent", "tool"}, true, .say = say_input},
	[COMPLETES_GRANT] = {"approval.grants", "grants", "id", {"verdict", "tool", "pattern"}},
	[COMPLETES_MEMORY] =
		{"memory.list", NULL, "id", {"content"}, true, .scoped = COMPLETES_MEMORY},
	[COMPLETES_DRAWN] =
		{"memory.review", NULL, "id", {"content"}, true, .scoped = COMPLETES_MEMORY},
	[COMPLETES_AGENT] =
		{"chat.agents", "agents", "name", {"kind", "model"}, .begin = names_alone},
	[COMPLETES_CONVERSATION] = {"list_agents", "agents", "agent_id", {"model"}},
	[COMPLETES_ENDED] = {"chat.past", "conversations", "number", {"conversation"}, true},
	[COMPLETES_NOTIFIER] = {"notify.list", "notifiers", "name", {"kind", "state"}},
	[COMPLETES_HOST] = {"host.list", "hosts", "name", {"state", "labels"}},
	[COMPLETES_RULE] = {"automation.rules", "rules", "rule"},
};

void source_offer(struct cli *cli, enum completes what, struct offers *offers)
{
	const struct source *s = &sources[what];

	if (s->offer)
		s->offer(cli, offers);
	else if (s->method)
		offer_asked(cli, s, offers);
}
