/* The options, which every command has, and which may stand anywhere. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kit/cli.h"

static bool set_socket(struct cli_options *o, const char *value)
{
	o->socket = value;
	return value[0] != '\0';
}

static bool set_url(struct cli_options *o, const char *value)
{
	o->url = value;
	return value[0] != '\0';
}

static bool set_framing(struct cli_options *o, const char *value)
{
	o->framing = value;
	return strcmp(value, "line") == 0 || strcmp(value, "length") == 0 ||
	       strcmp(value, "http") == 0 || strcmp(value, "gob") == 0;
}

static bool set_seconds(uint32_t *ms, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	/* Also false for what is not a number. */
	if (end == value || *end != '\0' || !(seconds >= 0.001 && seconds <= 1000000))
		return false;
	*ms = (uint32_t)(seconds * 1000 + 0.5);
	return true;
}

static bool set_timeout(struct cli_options *o, const char *value)
{
	return set_seconds(&o->timeout_ms, value);
}

static bool set_wait(struct cli_options *o, const char *value)
{
	return set_seconds(&o->wait_ms, value);
}

static bool set_retries(struct cli_options *o, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0' || n > 1000)
		return false;
	o->retries = (uint32_t)n;
	o->retries_given = true;
	return true;
}

static bool set_color(struct cli_options *o, const char *value)
{
	o->color = value;
	return strcmp(value, "auto") == 0 || strcmp(value, "always") == 0 ||
	       strcmp(value, "never") == 0;
}

static bool set_token_file(struct cli_options *o, const char *value)
{
	o->token_file = value;
	return value[0] != '\0';
}

static bool set_server_uid(struct cli_options *o, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	/* Root is trusted anyway. */
	o->server_uid = n > 0 ? (int64_t)n : KOINE_OURSELVES;
	return value[0] >= '0' && value[0] <= '9' && *end == '\0' && n < UINT32_MAX;
}

static bool set_json(struct cli_options *o, const char *value)
{
	o->json = true;
	return true;
}

static bool set_help(struct cli_options *o, const char *value)
{
	o->help = true;
	return true;
}

static bool set_version(struct cli_options *o, const char *value)
{
	o->version = true;
	return true;
}

const struct option options_of_all[] = {
	{"--socket", "-s", "PATH", "the server's Unix socket", set_socket},
	{"--url", "-u", "URL", "http://HOST[:PORT][/PATH], tcp:HOST:PORT or unix:PATH", set_url},
	{"--framing", NULL, "line|length|http|gob", "how messages are wrapped; gob: Go's net/rpc",
	 set_framing},
	{"--timeout", "-t", "SECONDS", "for the whole call; 30, over http 60; chat and send: none",
	 set_timeout, "from 0.001 to 1000000"},
	{"--retries", NULL, "N", "try again this often to connect; 0", set_retries,
	 "from 0 to 1000"},
	{"--wait", NULL, "SECONDS", "wait this long for the server to be there", set_wait,
	 "from 0.001 to 1000000"},
	{"--token-file", NULL, "FILE", "send its first line as bearer token (http)",
	 set_token_file},
	{"--server-uid", NULL, "UID", "a Unix socket may be this user's, too", set_server_uid,
	 "a number"},
	{"--json", "-j", NULL, "the bare result on one line", set_json},
	{"--color", NULL, "auto|always|never", "auto: on a terminal, unless NO_COLOR is set",
	 set_color},
	{"--version", "-V", NULL, "show the version", set_version},
	{"--help", "-h", NULL, "show help; of a command, if one is named", set_help},
	{NULL},
};

static bool is_named(const char *name, const char *arg, size_t len)
{
	return name && strlen(name) == len && memcmp(name, arg, len) == 0;
}

enum { N_TABLES = 3 };

/* Those of the command at hand come first: what it calls -s is not what all do. */
static void list_tables(const struct cli *cli, const struct option *tables[N_TABLES])
{
	static const struct option none[] = {{NULL}};

	tables[0] = cli->sub && cli->sub->options ? cli->sub->options : none;
	tables[1] = cli->command && cli->command->options ? cli->command->options : none;
	tables[2] = options_of_all;
}

static const struct option *find_option(const struct cli *cli, const char *arg, size_t len)
{
	const struct option *tables[N_TABLES];

	list_tables(cli, tables);
	for (int i = 0; i < N_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++) {
			if (is_named(o->name, arg, len) || is_named(o->short_name, arg, len))
				return o;
		}
	}
	return NULL;
}

static int unknown_option(const struct cli *cli, const char *arg, size_t len)
{
	const struct option *tables[N_TABLES];
	char name[64];
	struct nearest n;

	snprintf(name, sizeof(name), "%.*s", (int)len, arg);
	nearest_init(&n, name);
	list_tables(cli, tables);
	for (int i = 0; i < N_TABLES; i++) {
		for (const struct option *o = tables[i]; o->name; o++)
			nearest_offer(&n, o->name, strlen(o->name));
	}
	if (n.name[0])
		complain("there is no option %s; did you mean %s?", name, n.name);
	else
		complain("there is no option %s; see koine --help", name);
	return EX_USAGE;
}

/* "--name=value", "--name", or "-nvalue" when -n wants one. */
static const struct option *split_option(const struct cli *cli, const char *arg,
					 const char **ret_value)
{
	size_t len = strcspn(arg, "=");
	const struct option *o = find_option(cli, arg, len);

	*ret_value = arg[len] == '=' ? arg + len + 1 : NULL;
	if (!o && arg[1] != '-') {
		o = find_option(cli, arg, 2);
		*ret_value = arg + 2;
		if (o && !o->value)
			o = NULL;
	}
	return o;
}

/* Handles argv[*at] and perhaps the one behind it, which is its value. */
static int take_option(struct cli *cli, int argc, char **argv, int *at)
{
	const char *arg = argv[*at];
	const char *value;
	const struct option *o = split_option(cli, arg, &value);

	if (!o)
		return unknown_option(cli, arg, strcspn(arg, "="));
	if (!o->value && value) {
		complain("%s takes no value", o->name);
		return EX_USAGE;
	}
	if (o->value && !value) {
		if (*at + 1 >= argc) {
			complain("%s wants %s", o->name, o->value);
			return EX_USAGE;
		}
		value = argv[++*at];
	}
	if (!o->set(&cli->options, value)) {
		complain("%s wants %s%s%s, not '%s'", o->name, o->value, o->must ? ", " : "",
			 o->must ? o->must : "", value);
		return EX_USAGE;
	}
	return 0;
}

/* The words that name a command decide which options there are from here on. */
static void take_word(struct cli *cli, char *word)
{
	/* argv is used again: what was read is never behind what is written. */
	cli->args[cli->n_args++] = word;
	if (cli->n_args == 1)
		cli->command = command_find(commands, word);
	else if (cli->n_args == 2 && cli->command && cli->command->subs)
		cli->sub = command_find(cli->command->subs, word);
}

/* koined tells its children a port where it has no Unix socket. */
static bool has_kind(const char *address)
{
	return strncmp(address, "unix:", 5) == 0 || strncmp(address, "tcp:", 4) == 0 ||
	       strncmp(address, "http:", 5) == 0;
}

static void find_address(struct cli *cli)
{
	const char *env = getenv("KOINE_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	size_t size = sizeof(cli->address);
	char *out = cli->address;

	if (cli->options.url)
		snprintf(out, size, "%s", cli->options.url);
	else if (cli->options.socket)
		snprintf(out, size, "unix:%s", cli->options.socket);
	else if (env && env[0])
		snprintf(out, size, "%s%s", has_kind(env) ? "" : "unix:", env);
	else if (runtime && runtime[0] == '/')
		snprintf(out, size, "unix:%s/koine/koine.sock", runtime);
	else if (getuid() == 0)
		snprintf(out, size, "unix:/run/koine/koine.sock");
	else
		snprintf(out, size, "unix:/tmp/koine-%lu/koine.sock", (unsigned long)getuid());
}

static bool wants_color(const char *when, bool terminal)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return terminal && !(no_color && no_color[0]) && !(term && strcmp(term, "dumb") == 0);
}

/* A flag wins over it. */
static int read_server_uid(struct cli_options *o)
{
	const char *env = getenv("KOINE_SERVER_UID");

	o->server_uid = KOINE_OURSELVES;
	if (!env || !env[0] || set_server_uid(o, env))
		return 0;
	complain("KOINE_SERVER_UID must be a number, not '%s'", env);
	return EX_USAGE;
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	bool only_args = false;
	int bad = read_server_uid(&cli->options);

	if (bad != 0)
		return bad;
	cli->options.color = "auto";
	memory_options_init(&cli->options.memory);
	cli->args = argv;
	for (int i = 1; i < argc; i++) {
		bool is_option = !only_args && argv[i][0] == '-' && argv[i][1] != '\0';
		int r;

		if (is_option && strcmp(argv[i], "--") == 0) {
			only_args = true;
		} else if (is_option) {
			r = take_option(cli, argc, argv, &i);
			if (r != 0)
				return r;
		} else {
			take_word(cli, argv[i]);
		}
	}
	cli->terminal = isatty(STDOUT_FILENO);
	cli->color = wants_color(cli->options.color, cli->terminal);
	find_address(cli);
	return 0;
}
