/* The options, which every command has, and which may stand anywhere. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

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
	       strcmp(value, "http") == 0;
}

static bool set_timeout(struct cli_options *o, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	/* Also false for what is not a number. */
	if (end == value || *end != '\0' || !(seconds >= 0.001 && seconds <= 1000000))
		return false;
	o->timeout_ms = (uint32_t)(seconds * 1000 + 0.5);
	return true;
}

static bool set_retries(struct cli_options *o, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0' || n > 1000)
		return false;
	o->retries = (uint32_t)n;
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

static const struct option {
	const char *name;
	const char *short_name;
	const char *value; /* what it wants, or NULL */
	const char *help;
	bool (*set)(struct cli_options *o, const char *value);
} options[] = {
	{"--socket", "-s", "PATH", "the server's Unix socket", set_socket},
	{"--url", "-u", "URL", "http://HOST[:PORT][/PATH], tcp:HOST:PORT or unix:PATH", set_url},
	{"--framing", NULL, "line|length|http", "how messages are wrapped", set_framing},
	{"--timeout", "-t", "SECONDS", "for the whole call; 30, over http 60", set_timeout},
	{"--retries", NULL, "N", "try again this often to connect; 0", set_retries},
	{"--token-file", NULL, "FILE", "send its first line as bearer token (http)",
	 set_token_file},
	{"--json", "-j", NULL, "the bare result on one line", set_json},
	{"--color", NULL, "auto|always|never", "auto: on a terminal, unless NO_COLOR is set",
	 set_color},
	{"--version", "-V", NULL, "show the version", set_version},
	{"--help", "-h", NULL, "show help; of a command, if one is named", set_help},
};

enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

void options_print_help(FILE *out)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];
		char left[64];

		snprintf(left, sizeof(left), "%s%s%s %s", o->short_name ? o->short_name : "  ",
			 o->short_name ? ", " : "  ", o->name, o->value ? o->value : "");
		fprintf(out, "  %-31s %s\n", left, o->help);
	}
}

static const struct option *find_option(const char *arg, size_t len)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];

		if (strlen(o->name) == len && memcmp(o->name, arg, len) == 0)
			return o;
		if (o->short_name && strlen(o->short_name) == len &&
		    memcmp(o->short_name, arg, len) == 0)
			return o;
	}
	return NULL;
}

static int unknown_option(const char *arg, size_t len)
{
	char name[64];
	struct nearest n;

	snprintf(name, sizeof(name), "%.*s", (int)len, arg);
	nearest_init(&n, name);
	for (int i = 0; i < N_OPTIONS; i++)
		nearest_offer(&n, options[i].name, strlen(options[i].name));
	if (n.name[0])
		complain("there is no option %s; did you mean %s?", name, n.name);
	else
		complain("there is no option %s; see koine --help", name);
	return EX_USAGE;
}

/* Handles argv[*at] and perhaps the one behind it, which is its value. */
static int take_option(struct cli *cli, int argc, char **argv, int *at)
{
	const char *arg = argv[*at];
	size_t len = strcspn(arg, "=");
	const struct option *o = find_option(arg, len);
	const char *value = arg[len] == '=' ? arg + len + 1 : NULL;

	if (!o)
		return unknown_option(arg, len);
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
		complain("%s wants %s, not '%s'", o->name, o->value, value);
		return EX_USAGE;
	}
	return 0;
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
		snprintf(out, size, "%s%s", strncmp(env, "unix:", 5) == 0 ? "" : "unix:", env);
	else if (runtime && runtime[0])
		snprintf(out, size, "unix:%s/koine/koine.sock", runtime);
	else if (getuid() == 0)
		snprintf(out, size, "unix:/run/koine/koine.sock");
	else
		snprintf(out, size, "unix:/tmp/koine-%lu/koine.sock", (unsigned long)getuid());
}

static bool wants_color(const char *when)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) &&
	       !(term && strcmp(term, "dumb") == 0);
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	bool only_args = false;

	cli->options.color = "auto";
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
			/* argv is used again: what was read is never behind what is written. */
			cli->args[cli->n_args++] = argv[i];
		}
	}
	cli->color = wants_color(cli->options.color);
	find_address(cli);
	return 0;
}
