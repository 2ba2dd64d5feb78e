#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/complete/usage.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/glyph.h"
#include "cli/kit/talk.h"
#include "cli/kit/tool_gist.h"

/*
 * The candidates for a word, and printing them for a shell.
 *
 * Text of models and of other people is among them. A description is shown: what could steer a
 * terminal becomes an escape, and it is cut. A candidate may end on a command line: one with
 * anything in it that cannot be seen is left out, and so is one that would pass for an option.
 * The rest is quoted, here or by the shell.
 */
struct shell {
	const char *name;
	bool filters; /* candidates that do not fit what was typed are left to the shell */
	void (*add_value)(struct buf *out, struct text value);
	char mark; /* between a candidate and its description */
};

enum { OFFERS_MAX = 500 };

struct offers {
	const struct shell *shell;
	struct text typed;  /* what a candidate begins with; {NULL, 0}: the shell looks */
	struct text before; /* put before each: "--format=" */
	const char *how;    /* "words", "open", "files" or "folders" */
	struct buf out;
	struct buf values; /* those there are, each with a NUL behind it */
	unsigned n;
};

enum { VALUE_MAX = 512, SAID_COLUMNS = 60, OUT_MAX = 1 << 20 };

/* ---- as a shell wants them ---- */

/*
 * bash puts a candidate on the line as it is. A backslash before whatever may mean something
 * works outside of quotes; and inside, where it is one too many, it starts nothing. No other
 * form of quoting does both.
 */
static void add_for_bash(struct buf *out, struct text value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:=@%+,";

	for (size_t i = 0; i < value.len; i++) {
		if (!((unsigned char)value.data[i] & 0x80) && !strchr(plain, value.data[i]))
			buf_add_char(out, '\\');
		buf_add_char(out, value.data[i]);
	}
}

/* The form of _describe, which then quotes by itself. */
static void add_for_zsh(struct buf *out, struct text value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] == ':' || value.data[i] == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, value.data[i]);
	}
}

/* It quotes by itself. */
static void add_for_fish(struct buf *out, struct text value)
{
	buf_add(out, value.data, value.len);
}

static const struct shell shells[] = {
	{"bash", false, add_for_bash, '\t'},
	{"zsh", true, add_for_zsh, ':'},
	{"fish", true, add_for_fish, '\t'},
};

/* ---- collecting ---- */

/* False: there is no such shell. Both words stay in use. */
static bool offers_init(struct offers *o, const char *shell, const char *typed)
{
	*o = (struct offers) {.how = "words"};
	buf_init(&o->out, OUT_MAX);
	buf_init(&o->values, OUT_MAX);
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, shell) == 0)
			o->shell = &shells[i];
	}
	if (o->shell && !o->shell->filters)
		o->typed = text_of(typed);
	return o->shell != NULL;
}

static void offers_done(struct offers *o)
{
	buf_done(&o->out);
	buf_done(&o->values);
}

static bool is_there(const struct offers *o, struct text value)
{
	struct text rest = buf_text(&o->values);
	struct text one;

	while (text_next(&rest, '\0', &one)) {
		if (text_equal(one, value))
			return true;
	}
	return false;
}

/* In one line, its first words; nothing in it moves a cursor. */
static void add_said(struct buf *out, struct text said)
{
	const char *at = said.data;
	const char *end = said.data + said.len;
	size_t columns = 0;
	bool space = true; /* so that none comes first */
	struct glyph g;

	for (; at && at < end && columns < SAID_COLUMNS; at += g.used) {
		bool was_space = space;

		glyph_read(&g, at, end);
		space = g.len == 1 && g.shown[0] == ' ';
		if (space && was_space)
			continue;
		buf_add(out, g.shown, g.len);
		columns += g.width;
	}
	if (at && at < end)
		buf_add_str(out, "…");
}

/* One of our own. The first of the same value counts. `said` may be {NULL, 0}. */
static void offers_add(struct offers *o, struct text value, struct text said)
{
	if (o->n == OFFERS_MAX || value.len == 0 || is_there(o, value) ||
	    (o->typed.data && !text_begins(value, o->typed)))
		return;
	buf_add(&o->values, value.data, value.len);
	buf_add_char(&o->values, '\0');
	o->n++;
	o->shell->add_value(&o->out, o->before);
	o->shell->add_value(&o->out, value);
	if (said.len > 0) {
		buf_add_char(&o->out, o->shell->mark);
		add_said(&o->out, said);
	}
	buf_add_char(&o->out, '\n');
}

/* Whether a person sees all that there is of it. */
static bool is_visible(struct text value)
{
	const char *end = value.data + value.len;
	struct glyph g;

	for (const char *at = value.data; at < end; at += g.used) {
		glyph_read_exact(&g, at, end);
		if (g.len != g.used || memcmp(g.shown, at, g.len) != 0)
			return false;
	}
	return true;
}

/* One whose value somebody else has chosen. */
static void offers_add_foreign(struct offers *o, struct text value, struct text said)
{
	if (value.len == 0 || value.len > VALUE_MAX || value.data[0] == '-' || !is_visible(value))
		return;
	offers_add(o, value, said);
}

/* All or nothing: half of a candidate is another one. */
static void offers_print(const struct offers *o)
{
	puts(o->how);
	if (o->out.err == 0 && o->values.err == 0 && o->out.len > 0)
		fwrite(o->out.data, 1, o->out.len, stdout);
}

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
	const char *with[2]; /* a parameter, and its JSON */
	const char *how;     /* the shell offers files, or folders, too */
	/* A command about these restricts the list by its own options. */
	enum completes scoped;
	void (*offer)(struct cli *cli, struct offers *offers);
};

/* ---- asking ---- */

static bool complete_ask(struct cli *cli, const struct source *s, struct koine_answer **ret_answer)
{
	CLEANUP(json_freep) struct koine_json *params = params_new();
	char error[TALK_ERROR];

	if (s->limited)
		params_add_int(params, "limit", ROWS);
	params_add_raw(params, s->with[0], text_of(s->with[1]));
	if (s->scoped && cli->command->completes == s->scoped && cli->command->scope) {
		if (cli->command->begin && cli->command->begin(cli) != 0)
			return false;
		cli->command->scope(cli, params);
	}
	cli->options.retries = 0;
	cli->options.wait_ms = 0;
	if (!cli->client && talk_try(cli, &cli->client, error) != 0)
		return false;
	return call_ask(cli, s->method, TAKE(params), ret_answer) == 0;
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
	for (EACH(row, koine_value_first(rows))) {
		buf_clear(&said);
		say(&said, s, row);
		offers_add_foreign(offers, member_text(row, s->value), buf_text(&said));
	}
}

static void offer_asked(struct cli *cli, const struct source *s, struct offers *offers)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *rows;

	if (!complete_ask(cli, s, &a))
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

/* ---- ours ---- */

static void offer_commands(const struct cli *cli, const struct command *of, struct offers *offers)
{
	const struct command *c;

	for (int i = 0; (c = command_nth(cli->groups, of, i)); i++)
		offers_add(offers, text_of(c->name), text_of(c->help));
	for (const struct alias *a = aliases; !of && a->typed.noun; a++) {
		if (a->is_shown)
			offers_add(offers, text_of(a->typed.noun),
				   text_of(command_named(cli->groups, a->typed.noun)->help));
	}
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

static void offer_own(struct cli *cli, struct offers *offers)
{
	const char *(*word_of)(int i, const char **ret_said) = cli->command->word;
	const char *said = NULL;
	const char *word;

	for (int i = 0; word_of && (word = word_of(i, &said)); i++)
		offers_add(offers, text_of(word), text_of(said));
}

/* Koined's program knows them, whether or not one runs. */
static void offer_dialects(struct cli *cli, struct offers *offers)
{
	CLEANUP(buf_donep) struct buf said;
	struct koine_doc *doc = NULL;
	char program[PATH_MAX];

	buf_init(&said, DIALECTS_MAX);
	if (!koined_find(program) || !koined_dialects(program, DIALECTS_MS, &said, &doc))
		return;
	for (EACH(d, member_first(koine_doc_root(doc), "dialects"))) {
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

	if (cli->n_args < 2 || !complete_ask(cli, &methods, &a))
		return;
	offers->how = "open";
	m = member_find(member_first(koine_answer_result(a), "methods"), "name", cli->args[1]);
	for (EACH(p, m ? member_first(m, "params") : NULL)) {
		snprintf(name, sizeof(name), "%.*s=", TEXT_ARGS(member_text(p, "name")));
		offers_add_foreign(offers, text_of(name), member_text(p, "description"));
	}
}

/* ---- the table ---- */

static const struct source sources[N_COMPLETES] = {
	[COMPLETES_COMMAND] = {.offer = offer_command},
	[COMPLETES_FILE] = {.how = "files"},
	[COMPLETES_FOLDER] = {.how = "folders"},
	[COMPLETES_OWN] = {.offer = offer_own},
	[COMPLETES_PROJECT] = {"project.list", "projects", "folder", {"state"}, .how = "folders"},
	[COMPLETES_DIALECT] = {.offer = offer_dialects},
	[COMPLETES_PARAM] = {.offer = offer_params},
	[COMPLETES_METHOD] = {"rpc.discover", "methods", "name", {"summary"}},
	[COMPLETES_TASK] = {"task.find",
			    "tasks",
			    "id",
			    {"state", "label", "prompt"},
			    true,
			    .scoped = COMPLETES_TASK},
	[COMPLETES_GROUP] = {"task.groups", "groups", "group", .scoped = COMPLETES_TASK},
	[COMPLETES_SESSION] = {"session.list",
			       "sessions",
			       "id",
			       {"status", "title", "query"},
			       true,
			       .with = {"archived", "\"any\""}},
	[COMPLETES_APPROVAL] =
		{"approval.list", "approvals", "id", {"agent", "tool"}, true, .say = say_input},
	[COMPLETES_GRANT] = {"approval.grants", "grants", "id", {"verdict", "tool", "pattern"}},
	[COMPLETES_MEMORY] =
		{"memory.list", NULL, "id", {"content"}, true, .scoped = COMPLETES_MEMORY},
	[COMPLETES_DRAWN] =
		{"memory.review", NULL, "id", {"content"}, true, .scoped = COMPLETES_MEMORY},
	[COMPLETES_AGENT] =
		{"chat.agents", "agents", "name", {"kind", "model"}, .with = {"names", "true"}},
	[COMPLETES_CONVERSATION] = {"list_agents", "agents", "agent_id", {"model"}},
	[COMPLETES_ENDED] = {"chat.past", "conversations", "number", {"conversation"}, true},
	[COMPLETES_NOTIFIER] = {"notify.list", "notifiers", "name", {"kind", "state"}},
	[COMPLETES_HOST] = {"host.list", "hosts", "name", {"state", "labels"}},
	[COMPLETES_RULE] = {"automation.rules", "rules", "rule"},
};

static void source_offer(struct cli *cli, enum completes what, struct offers *offers)
{
	const struct source *s = &sources[what];

	if (s->how)
		offers->how = s->how;
	if (s->offer)
		s->offer(cli, offers);
	else if (s->method)
		offer_asked(cli, s, offers);
}

enum { TIME_MS = 200, TIME_MAX_MS = 60000 };

const char complete_command[] = "__complete";

/* What is known of the line once the words before the last were read. */
struct complete_line {
	struct cli cli;
	struct offers *offers;
	const char *last;
	const struct option *wanting; /* the option whose value the last word is; or NULL */
	bool only_args;               /* "--" came before it */
};

/* ---- reading it ---- */

/* A value that is wrong is the command's to refuse. */
static void take_option(struct complete_line *l, const char *word, char *next)
{
	const char *value;
	void *into;
	const struct option *o = options_find(&l->cli, word, &value, &into);

	if (!o || (!o->value && value))
		return;
	if (!value)
		value = o->implied ? o->implied : next;
	if (o->value && !value)
		l->wanting = o;
	else
		(void)option_take(&l->cli, o, into, value);
}

static bool takes_next(struct complete_line *l, const char *word)
{
	const char *value;
	void *into;
	const struct option *o = options_find(&l->cli, word, &value, &into);

	return o && o->value && !value && !o->implied;
}

/* The last of the words is not read: it is what is asked about. */
static int read_words(struct complete_line *l, int n, char **words)
{
	int r = options_begin(&l->cli, n);

	for (int i = 0; i < n - 1 && r == 0; i++) {
		bool is_option = !l->only_args && words[i][0] == '-' && words[i][1] != '\0';
		bool has_next = is_option && takes_next(l, words[i]) && i + 1 < n - 1;

		if (is_option && strcmp(words[i], "--") == 0)
			l->only_args = true;
		else if (is_option)
			take_option(l, words[i], has_next ? words[i + 1] : NULL);
		else
			r = options_take_word(&l->cli, words[i]);
		i += has_next;
	}
	options_end(&l->cli);
	return r;
}

/* ---- what the last word is ---- */

/* Its own, else its noun's. */
static enum completes of_row(const struct cli *cli)
{
	if (cli->sub && cli->sub->completes)
		return cli->sub->completes;
	return cli->command ? cli->command->completes : COMPLETES_NOTHING;
}

static void offer_choices(struct complete_line *l, const char *choices)
{
	struct text rest = text_of(choices);
	struct text one;

	while (text_next(&rest, '|', &one))
		offers_add(l->offers, one, (struct text) {0});
}

static void offer_values(struct complete_line *l, const struct option *o)
{
	bool is_id = strcmp(o->value, "ID") == 0;
	enum completes row = is_id ? of_row(&l->cli) : COMPLETES_NOTHING;

	if (o->choices || o->set == option_choice)
		offer_choices(l, o->choices ? o->choices : o->value);
	else
		source_offer(&l->cli,
			     o->completes ? o->completes : usage_meaning(text_of(o->value), row),
			     l->offers);
}

static void offer_options(struct complete_line *l)
{
	const struct option *tables[OPTION_TABLES];

	options_list(&l->cli, tables);
	for (int i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++)
			if (o->help)
				offers_add(l->offers, text_of(o->name), text_of(o->help));
	}
}

/* "--name=value" */
static void offer_option_or_value(struct complete_line *l)
{
	size_t len = strcspn(l->last, "=");
	const char *value;
	void *into;
	const struct option *o = options_find(&l->cli, l->last, &value, &into);

	if (l->last[len] == '\0') {
		offer_options(l);
	} else if (o && o->value) {
		l->offers->before = (struct text) {.data = l->last, .len = len + 1};
		if (l->offers->typed.data)
			l->offers->typed = text_skip(l->offers->typed, len + 1);
		offer_values(l, o);
	}
}

/* What the usage says of the argument at this place. Where it has alternatives, there may be
 * several. */
static void offer_argument(struct complete_line *l)
{
	const struct command *c = options_command_by_argument(&l->cli);
	int before = l->cli.sub ? 2 : 1;
	struct usage u = {.left = c->args, .typed = l->cli.args + before};
	struct text word;

	u.n_typed = l->cli.n_args - before;
	if (c->wants && u.n_typed >= c->most)
		return;
	while (usage_next(&u, &word)) {
		if (usage_is_literal(word))
			offers_add(l->offers, word, (struct text) {0});
		else
			source_offer(&l->cli, usage_meaning(word, of_row(&l->cli)), l->offers);
	}
}

static void offer(struct complete_line *l)
{
	const struct cli *cli = &l->cli;

	if (l->wanting)
		offer_values(l, l->wanting);
	else if (!l->only_args && l->last[0] == '-')
		offer_option_or_value(l);
	else if (cli->n_args == 0)
		offer_commands(cli, NULL, l->offers);
	else if (cli->command && cli->command->subs && cli->n_args == 1)
		offer_commands(cli, cli->command, l->offers);
	else if (cli->command && (cli->sub || !cli->command->subs))
		offer_argument(l);
}

/* ---- in time ---- */

static void give_up(int number)
{
	_exit(EX_OK);
}

/* For a server that is far away, people allow more. */
static int64_t time_allowed(void)
{
	const char *env = option_from_environment("KOINE_COMPLETE_MS");
	int64_t ms;

	if (!env || !option_read_int(env, &ms) || ms < 1)
		return TIME_MS;
	return ms < TIME_MAX_MS ? ms : TIME_MAX_MS;
}

/* Connecting to a socket whose server does not accept blocks, so a signal ends it. */
static void begin_time(void)
{
	int64_t ms = time_allowed();
	const struct itimerval timer = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};

	signal(SIGALRM, give_up);
	setitimer(ITIMER_REAL, &timer, NULL);
}

int complete_run(const struct command_group *groups, int n_args, char **args)
{
	struct offers offers;
	struct complete_line l = {.cli = {.groups = groups}, .offers = &offers};

	if (n_args < 2 || !offers_init(&offers, args[0], args[n_args - 1]))
		return EX_USAGE;
	begin_time();
	l.last = args[n_args - 1];
	if (read_words(&l, n_args - 1, args + 1) == 0)
		offer(&l);
	offers_print(&offers);
	talk_hang_up(&l.cli);
	options_done(&l.cli);
	offers_done(&offers);
	return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}
