#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kit/command.h"
#include "cli/kit/duration.h"
#include "cli/kit/options.h"
#include "cli/kit/value.h"
#include "cli/kit/print.h"

/* ---- those of all ---- */

/* A duration that fits the member: up to 49 days. */
static bool set_wait(const struct option *o, void *member, const char *value)
{
	int64_t ms = 0;
	bool good = duration_parse(value, &ms) && ms >= 1 && ms < UINT32_MAX;

	*(uint32_t *)member = (uint32_t)ms;
	return good;
}

static bool set_uid(const struct option *o, void *member, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	/* Root is trusted anyway. */
	*(int64_t *)member = n > 0 ? (int64_t)n : KOINE_OURSELVES;
	return value[0] >= '0' && value[0] <= '9' && *end == '\0' && n < UINT32_MAX;
}

#define AT(member) OPTION_AT(struct cli_options, member)

const struct option options_of_all[] = {
	{"--socket", "-s", "PATH", "connect to this Unix socket", option_word, AT(socket)},
	{"--url", "-u", "URL", "connect to http://HOST[:PORT][/PATH], tcp:HOST:PORT or unix:PATH",
	 option_word, AT(url)},
	{"--framing", NULL, "line|length|http|gob",
	 "set how messages are framed; gob is Go's net/rpc", option_choice, AT(framing)},
	{"--timeout", "-t", "TIME",
	 "set the timeout of the call: 90, 10m, 2h (default: 30s; 60s over HTTP; none for chat and "
	 "send)",
	 set_wait, AT(timeout_ms), "such as 90, 10m or 2h"},
	{"--retries", NULL, "N", "retry a failed connection N times (default: 0)", option_number,
	 AT(retries), "from 0 to 1000", 0, 1000},
	{"--wait", NULL, "TIME", "wait up to TIME for the server to start", set_wait, AT(wait_ms),
	 "such as 90, 10m or 2h"},
	{"--token-file", NULL, "FILE", "send the first line of FILE as the bearer token (HTTP)",
	 option_word, AT(token_file)},
	{"--server-uid", NULL, "UID", "also trust a Unix socket whose server runs as user UID",
	 set_uid, AT(server_uid), "a number"},
	{"--json", "-j", NULL, "print the result as JSON on one line", option_flag, AT(json)},
	{"--color", NULL, "auto|always|never",
	 "use colors: always, never, or auto (the default: on a terminal, unless "
	 "NO_COLOR is set)",
	 option_choice, AT(color)},
	{"--version", "-V", NULL, "print the version", option_flag, AT(version)},
	{"--help", "-h", NULL, "show help", option_flag, AT(help)},
	{NULL},
};

#undef AT

/* ---- finding one ---- */

/* The command's own options come first: its -s is not the common one. */
void options_list(const struct cli *cli, const struct option *tables[OPTION_TABLES])
{
	static const struct option none[] = {{NULL}};

	tables[0] = cli->sub && cli->sub->options ? cli->sub->options : none;
	tables[1] = cli->command && cli->command->options ? cli->command->options : none;
	tables[2] = options_of_all;
}

static bool is_named(const char *name, const char *arg, size_t len)
{
	return name && strlen(name) == len && memcmp(name, arg, len) == 0;
}

static const struct option *find_row(const struct option *rows, const char *arg, size_t len)
{
	for (const struct option *o = rows; o->name; o++) {
		if (is_named(o->name, arg, len) || is_named(o->short_name, arg, len))
			return o;
	}
	return NULL;
}

/* What an option is called now; NULL: nothing else. As the command was typed, it may have had an
 * option that another has now. */
static const char *renamed(const struct cli *cli, const char *arg, size_t len)
{
	const char *noun = cli->command ? cli->command->name : "";
	const struct alias *a;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)len, arg);
	a = alias_find(noun, cli->typed_sub, name);
	if (!a && cli->sub)
		a = alias_find(noun, cli->sub->name, name);
	return a ? a->means.option : NULL;
}

/* *ret_into: the struct that the option sets a member of. */
static const struct option *find_option(struct cli *cli, const char *arg, size_t len,
					void **ret_into)
{
	const struct option *tables[OPTION_TABLES];
	const char *now = renamed(cli, arg, len);
	const struct option *o = NULL;

	options_list(cli, tables);
	for (int i = 0; i < OPTION_TABLES && !o; i++) {
		o = now ? find_row(tables[i], now, strlen(now)) : find_row(tables[i], arg, len);
		*ret_into = tables[i] == options_of_all ? &cli->options : cli->own;
	}
	return o;
}

static int unknown_option(const struct cli *cli, const char *arg, size_t len)
{
	const struct option *tables[OPTION_TABLES];
	char name[64];
	struct nearest n;

	snprintf(name, sizeof(name), "%.*s", (int)len, arg);
	nearest_init(&n, name);
	options_list(cli, tables);
	for (int i = 0; i < OPTION_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++)
			nearest_offer(&n, text_of(o->name));
	}
	if (n.name[0])
		complain("unknown option %s; did you mean %s?", name, n.name);
	else
		complain("unknown option %s; see koine help all", name);
	return EX_USAGE;
}

/* ---- taking one ---- */

/* "-nvalue" only where -n takes a value. */
const struct option *options_find(struct cli *cli, const char *arg, const char **ret_value,
				  void **ret_into)
{
	size_t len = strcspn(arg, "=");
	const struct option *o = find_option(cli, arg, len, ret_into);

	*ret_value = arg[len] == '=' ? arg + len + 1 : NULL;
	if (o || arg[1] == '-')
		return o;
	*ret_value = arg + 2;
	o = find_option(cli, arg, 2, ret_into);
	return o && o->value ? o : NULL;
}

/* "a, b or c" of "a|b|c". */
static void format_choices(const char *choices, char out[256])
{
	struct text rest = text_of(choices);
	struct text one;
	size_t n = 0;

	while (n < 256 && text_next(&rest, '|', &one))
		n += (size_t)snprintf(out + n, 256 - n, "%s%.*s",
				      n == 0     ? ""
				      : rest.len ? ", "
						 : " or ",
				      TEXT_ARGS(one));
}

/* Where the option itself does not describe its values; NULL if its kind has no more to say than its name. */
static const char *describe_kind(const struct option *o)
{
	if (o->set == option_span || o->set == option_seconds)
		return "such as 90, 10m, 2h or 7d";
	if (o->set == option_number || o->set == option_limit)
		return o->min > 0 ? "a positive integer" : "an integer";
	return o->set == option_decimal ? "a number" : NULL;
}

static int invalid_value(const struct option *o, const char *value)
{
	const char *accepted = o->must ? o->must : describe_kind(o);
	const char *choices = o->choices || o->set != option_choice ? o->choices : o->value;
	char list[256];

	if (choices) {
		format_choices(choices, list);
		complain("invalid %s '%s': expected %s", o->name, value, list);
	} else {
		complain("invalid %s '%s': expected %s%s%s", o->name, value, o->value,
			 accepted ? ", " : "", accepted ? accepted : "");
	}
	return EX_USAGE;
}

/* Handles argv[*at], and perhaps the following argument, which is its value. */
static int take_option(struct cli *cli, int argc, char **argv, int *at)
{
	const char *arg = argv[*at];
	const char *value;
	void *into;
	const struct option *o = options_find(cli, arg, &value, &into);

	if (!o)
		return unknown_option(cli, arg, strcspn(arg, "="));
	if (!o->value && value)
		return fail_with(EX_USAGE, "option %s takes no value", o->name);
	if (!value)
		value = o->implied;
	if (o->value && !value) {
		if (*at + 1 >= argc)
			return fail_with(EX_USAGE, "option %s requires %s", o->name, o->value);
		value = argv[++*at];
	}
	if (option_take(cli, o, into, value))
		return 0;
	return invalid_value(o, value);
}

/* What members are if their options are not given. */
static void set_usual(const struct cli *cli, const struct option *options)
{
	for (const struct option *o = options; o && o->name; o++) {
		const char *value = o->env ? option_from_environment(o->env) : NULL;

		value = value ? value : o->usual;
		if (value && o->at > 0)
			(void)o->set(o, (char *)cli->own + o->at - 1, value);
	}
}

static int begin_own(struct cli *cli)
{
	const struct command *c = cli->command;

	if (!c || c->own_size == 0)
		return 0;
	cli->own = calloc(1, c->own_size);
	if (!cli->own)
		return out_of_memory();
	set_usual(cli, c->options);
	return 0;
}

static void take_sub(struct cli *cli, const char *word)
{
	const struct alias *a = alias_find(cli->command->name, word, NULL);
	const struct option *o;
	const char *value;
	void *into;

	cli->sub = command_find(cli->groups, cli->command, word);
	cli->typed_sub = word;
	cli->args[cli->n_args++] = cli->sub ? cli->sub->name : word;
	set_usual(cli, cli->sub ? cli->sub->options : NULL);
	o = cli->sub && a && a->means.option ? options_find(cli, a->means.option, &value, &into)
					     : NULL;
	if (o)
		(void)option_take(cli, o, into, "");
}

static int take_command(struct cli *cli, const char *word)
{
	const struct alias *a = alias_find(word, NULL, NULL);
	int r;

	cli->command = command_find(cli->groups, NULL, word);
	cli->args[cli->n_args++] = cli->command ? cli->command->name : word;
	r = begin_own(cli);
	if (r == 0 && cli->command && a && a->means.verb) {
		take_sub(cli, a->means.verb);
		cli->by_shortcut = true;
	}
	return r;
}

/* "koine approvals 3f2a" is another command than "koine approvals". */
const struct command *options_command_by_argument(const struct cli *cli)
{
	const struct alias *a = cli->n_args == 2 && cli->sub
					? alias_find(cli->command->name, cli->sub->name, "ID")
					: NULL;

	if (a)
		return command_find(cli->groups, cli->command, a->means.verb);
	return cli->sub ? cli->sub : cli->command;
}

/* The words that name a command decide which options exist from here on. */
int options_take_word(struct cli *cli, const char *word)
{
	const struct command *c;

	if (cli->n_args == 0)
		return take_command(cli, word);
	if (!cli->command || !cli->command->subs || cli->n_args > 2) {
		cli->args[cli->n_args++] = word;
		return 0;
	}
	/* "koine hosts forget": the shortcut was the noun. */
	if (cli->by_shortcut && cli->n_args == 2 && command_find(cli->groups, cli->command, word) &&
	    strcmp(cli->typed_sub, "list") == 0) {
		cli->n_args = 1;
		cli->by_shortcut = false;
	}
	if (cli->n_args == 1) {
		take_sub(cli, word);
		return 0;
	}
	c = options_command_by_argument(cli);
	if (cli->sub && c != cli->sub) {
		cli->n_args = 1;
		take_sub(cli, c->name);
	}
	cli->args[cli->n_args++] = word;
	return 0;
}

/* ---- what follows from them ---- */

/* koined gives its children a port where it has no Unix socket. */
static bool has_kind(const char *address)
{
	return strncmp(address, "unix:", 5) == 0 || strncmp(address, "tcp:", 4) == 0 ||
	       strncmp(address, "http:", 5) == 0;
}

static void own_address(char *out, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && runtime[0] == '/')
		snprintf(out, size, "unix:%s/koine/koine.sock", runtime);
	else if (getuid() == 0)
		snprintf(out, size, "unix:/run/koine/koine.sock");
	else
		snprintf(out, size, "unix:/tmp/koine-%lu/koine.sock", (unsigned long)getuid());
}

static void find_address(struct cli *cli)
{
	const char *env = option_from_environment("KOINE_SOCKET");
	size_t size = sizeof(cli->address);
	char *out = cli->address;

	if (cli->options.url)
		snprintf(out, size, "%s", cli->options.url);
	else if (cli->options.socket)
		snprintf(out, size, "unix:%s", cli->options.socket);
	else if (env)
		snprintf(out, size, "%s%s", has_kind(env) ? "" : "unix:", env);
	else
		own_address(out, size);
}

bool option_means_own_daemon(const struct cli *cli)
{
	char own[sizeof(cli->address)];

	own_address(own, sizeof(own));
	return strcmp(own, cli->address) == 0;
}

static bool wants_color(const char *when, bool terminal)
{
	const char *term = getenv("TERM");

	if (strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return terminal && !option_from_environment("NO_COLOR") &&
	       !(term && strcmp(term, "dumb") == 0);
}

/* KOINE_SERVER_UID; an option takes precedence. */
static int read_server_uid(struct cli_options *o)
{
	const char *env = option_from_environment("KOINE_SERVER_UID");

	o->server_uid = KOINE_OURSELVES;
	if (!env || set_uid(NULL, &o->server_uid, env))
		return 0;
	return fail_with(EX_USAGE, "invalid KOINE_SERVER_UID '%s': expected a number", env);
}

int options_begin(struct cli *cli, int n_words)
{
	/* A shortcut is two words, and one may imply an option. */
	cli->given = calloc((size_t)n_words + 2, sizeof(*cli->given));
	cli->words = calloc((size_t)n_words + 2, sizeof(*cli->words));
	cli->args = cli->words;
	if (!cli->given || !cli->words)
		return out_of_memory();
	cli->options.color = "auto";
	cli->options.retries = -1;
	return read_server_uid(&cli->options);
}

void options_done(struct cli *cli)
{
	free(cli->own);
	free(cli->given);
	free(cli->words);
}

void options_end(struct cli *cli)
{
	cli->terminal = isatty(STDOUT_FILENO);
	cli->color = wants_color(cli->options.color, cli->terminal);
	find_address(cli);
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	bool only_args = false;
	int r = options_begin(cli, argc);

	for (int i = 1; i < argc && r == 0; i++) {
		bool is_option = !only_args && argv[i][0] == '-' && argv[i][1] != '\0';

		if (is_option && strcmp(argv[i], "--") == 0)
			only_args = true;
		else if (is_option)
			r = take_option(cli, argc, argv, &i);
		else
			r = options_take_word(cli, argv[i]);
	}
	if (r == 0)
		options_end(cli);
	return r;
}

/* ---- the kinds of values ---- */

static bool is_within(const struct option *o, int64_t n)
{
	return n >= o->min && (o->max == 0 || n <= o->max);
}

bool option_flag(const struct option *o, void *member, const char *value)
{
	*(bool *)member = true;
	return true;
}

bool option_text(const struct option *o, void *member, const char *value)
{
	*(const char **)member = value;
	return true;
}

bool option_word(const struct option *o, void *member, const char *value)
{
	return option_text(o, member, value) && value[0] != '\0';
}

bool option_name(const struct option *o, void *member, const char *value)
{
	return option_text(o, member, value[0] ? value : NULL);
}

bool option_choice(const struct option *o, void *member, const char *value)
{
	*(const char **)member = value;
	return text_among(text_of(value), o->choices ? o->choices : o->value);
}

bool option_read_int(const char *text, int64_t *ret_n)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0)
		return false;
	*ret_n = n;
	return true;
}

bool option_number(const struct option *o, void *member, const char *value)
{
	int64_t *n = member;

	return option_read_int(value, n) && is_within(o, *n);
}

bool option_limit(const struct option *o, void *member, const char *value)
{
	return option_number(o, member, value);
}

/* Also false for what is not a number. */
bool option_decimal(const struct option *o, void *member, const char *value)
{
	double *x = member;
	char *end;

	*x = strtod(value, &end);
	if (end == value || *end != '\0' || !isfinite(*x))
		return false;
	return o->max == 0 || (*x >= (double)o->min && *x <= (double)o->max);
}

bool option_span(const struct option *o, void *member, const char *value)
{
	int64_t *ms = member;

	return duration_parse(value, ms) && is_within(o, *ms);
}

bool option_seconds(const struct option *o, void *member, const char *value)
{
	int64_t *seconds = member;
	bool good = option_span(o, seconds, value);

	*seconds = (*seconds + 999) / 1000;
	return good;
}

bool option_days(const struct option *o, void *member, const char *value)
{
	enum { DAY_MS = 86400 * 1000 };
	int64_t *days = member;
	int64_t ms;

	if (option_read_int(value, days))
		return true;
	*days = 0;
	if (!duration_parse(value, &ms) || ms % DAY_MS != 0)
		return false;
	*days = ms / DAY_MS;
	return true;
}

bool option_texts(const struct option *o, void *member, const char *value)
{
	struct option_list *list = member;
	unsigned max = sizeof(list->values) / sizeof(list->values[0]);

	if (list->n == (o->max > 0 ? (unsigned)o->max : max))
		return false;
	list->values[list->n++] = value;
	return true;
}

bool option_list(const struct option *o, void *member, const char *value)
{
	return value[0] != '\0' && option_texts(o, member, value);
}

bool option_value(const struct cli *cli, const struct option *o, union option_value *ret)
{
	bool given = false, good = false;

	*ret = (union option_value) {.list = {.n = 0}};
	for (unsigned i = 0; i < cli->n_given; i++) {
		if (cli->given[i].option != o)
			continue;
		given = true;
		good = o->set(o, ret, cli->given[i].value);
	}
	return given ? good : o->usual && o->set(o, ret, o->usual);
}

bool option_take(struct cli *cli, const struct option *o, void *into, const char *value)
{
	union option_value v;

	cli->given[cli->n_given++] = (struct given) {.option = o, .value = value};
	return o->at > 0 ? o->set(o, (char *)into + o->at - 1, value) : option_value(cli, o, &v);
}

const char *option_from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}
