#include "cli/complete/complete.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/complete/offers.h"
#include "cli/complete/usage.h"
#include "cli/kit/options.h"
#include "cli/kit/talk.h"

enum { TIME_MS = 200, TIME_MAX_MS = 60000 };

const char complete_command[] = "__complete";

/* What is known of the line once the words before the last were read. */
struct line {
	struct cli cli;
	struct offers *offers;
	const char *last;
	const struct option *wanting; /* the option whose value the last word is; or NULL */
	bool only_args;               /* "--" came before it */
};

/* ---- reading it ---- */

/* A value that is wrong is the command's to refuse. */
static void take_option(struct line *l, const char *word, char *next)
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

static bool takes_next(struct line *l, const char *word)
{
	const char *value;
	void *into;
	const struct option *o = options_find(&l->cli, word, &value, &into);

	return o && o->value && !value && !o->implied;
}

/* The last of the words is not read: it is what is asked about. */
static int read_words(struct line *l, int n, char **words)
{
	int r = options_begin(&l->cli, n);

	l->cli.args = words;
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

static void offer_choices(struct line *l, const char *choices)
{
	struct text rest = text_of(choices);
	struct text one;

	while (text_next(&rest, '|', &one))
		offers_add(l->offers, one, (struct text) {0});
}

static void offer_values(struct line *l, const struct option *o)
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

static void offer_options(struct line *l)
{
	const struct option *tables[OPTION_TABLES];

	options_list(&l->cli, tables);
	for (int i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++)
			offers_add(l->offers, text_of(o->name), text_of(o->help));
	}
}

/* "--name=value" */
static void offer_option_or_value(struct line *l)
{
	size_t len = strcspn(l->last, "=");
	const char *value;
	void *into;
	const struct option *o = options_find(&l->cli, l->last, &value, &into);

	if (l->last[len] == '\0') {
		offer_options(l);
	} else if (o && o->value) {
		offers_put_before(l->offers, (struct text) {.data = l->last, .len = len + 1});
		offer_values(l, o);
	}
}

/* What the usage says of the argument at this place. Where it has alternatives, there may be
 * several. */
static void offer_argument(struct line *l)
{
	const struct command *c = l->cli.sub ? l->cli.sub : l->cli.command;
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

static void offer(struct line *l)
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
	(void)number;
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
	struct line l = {.cli = {.groups = groups}, .offers = &offers};

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
