#include "daemon/daemon.h"

#include <stdbool.h>
#include <string.h>
#include <sysexits.h>

/* Offers the values of a flag: those that begin with `typed`, each behind `before`. */
struct flags_offer {
	bool zsh;
	const char *typed;
	const char *before;
	int before_len;
};

struct flag_row {
	const char *name;
	const char *value; /* or NULL */
	int flag;
	const char *help; /* a line break where --help has one */
	/* What completion offers behind it: how ("words", "open", "files", "folders"), and who
	 * lists them, or NULL. */
	const char *how;
	void (*offer)(const struct flags_offer *o);
};

enum { SAID_MAX = 60 };

/* ---- values that completion offers: all of them are texts of ours ---- */

static void offer_one(const struct flags_offer *o, const char *value, const char *said)
{
	if (strncmp(value, o->typed, strlen(o->typed)) != 0)
		return;
	printf("%.*s%s", o->before_len, o->before, value);
	if (said)
		putchar(o->zsh ? ':' : '\t');
	for (int i = 0; said && said[i] && i < SAID_MAX; i++)
		putchar(said[i] == '\n' ? ' ' : said[i]);
	putchar('\n');
}

static void offer_dialects(const struct flags_offer *o)
{
	char word[64];

	for (unsigned i = 0; i < n_dialects; i++) {
		snprintf(word, sizeof(word), "%s=", dialects[i]->name);
		offer_one(o, word, NULL);
	}
}

static void offer_settings(const struct flags_offer *o)
{
	static const struct settings none;
	const struct setting *row;
	char word[128];
	void *base;

	for (unsigned i = 0; (row = settings_row(&none, i, &base)); i++) {
		snprintf(word, sizeof(word), "%s.%s=", row->section, row->key);
		offer_one(o, word, row->doc);
	}
}

static void offer_agents(const struct flags_offer *o)
{
	offer_one(o, "recall", "built-in agent that quotes the conversation and the memory");
	offer_one(o, "none", "start without a default agent");
}

static void offer_levels(const struct flags_offer *o)
{
	for (unsigned i = 0; log_levels[i]; i++)
		offer_one(o, log_levels[i], NULL);
}

/* ---- the table ---- */

static const struct flag_row rows[] = {
	{"config", "FILE", FLAG_CONFIG, "read settings from FILE; see koine.conf(5)", "files"},
	{"service", NULL, FLAG_SERVICE,
	 "run as a service: dialects without a configured\naddress listen in the runtime "
	 "directory"},
	{"root", "DIR", FLAG_ROOT, "put all default paths under DIR", "folders"},
	{"project", "DIR", FLAG_PROJECT,
	 "serve the tasks of project DIR at\nDIR/.aiwg/daemon/daemon.sock (repeatable)", "folders"},
	{"listen", "DIALECT=ADDRESS", FLAG_LISTEN,
	 "listen only on ADDRESS (repeatable): unix:PATH,\n"
	 "http:HOST:PORT, tcp:HOST:PORT (loopback only; port 0\n"
	 "selects a free port), or 'on' for the default\n"
	 "address",
	 "open", offer_dialects},
	{"store", "URL", FLAG_STORE, "use this store: sqlite:PATH or postgresql://…", "words"},
	{"agent", "NAME", FLAG_AGENT,
	 "set the default agent: recall, an agent in the\nsettings, or none", "words",
	 offer_agents},
	{"set", "SECTION.KEY=VALUE", FLAG_SET,
	 "override a setting in the settings file\n(repeatable); see koine.conf(5)", "open",
	 offer_settings},
	{"log-level", "LEVEL", FLAG_LEVEL, "set the log level: err, warn, info or debug", "words",
	 offer_levels},
	{"debug-methods", NULL, FLAG_DEBUG, "enable the methods debug.echo and debug.sleep"},
	{"check", NULL, FLAG_CHECK, "check settings, addresses and store, then exit"},
	{"settings", NULL, FLAG_SETTINGS,
	 "print every setting with its type, default,\nenvironment variable and meaning, then "
	 "exit"},
	{"dialects", NULL, FLAG_DIALECTS,
	 "print the address of each dialect as JSON, with the\nprogram that uses the "
	 "default address"},
	{"adopt", NULL, FLAG_ADOPT,
	 "take over a store that another user created, hold\nits queued tasks, then exit"},
	{"init-store", NULL, FLAG_INIT_STORE,
	 "create the store's tables or update them to this\nversion, then exit"},
	{"move", "FROM TO", FLAG_MOVE,
	 "copy the store FROM into the empty database TO,\ncheck the copy, then exit", "words"},
	{"version", NULL, FLAG_VERSION, "print the version"},
	{"help", NULL, FLAG_HELP, "print this help"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), LEFT_WIDTH = 24 };

const char flags_short[] = "hV";

const struct option *flags_long(void)
{
	static struct option options[N_ROWS + 1];

	for (int i = 0; i < N_ROWS; i++)
		options[i] = (struct option) {
			.name = rows[i].name,
			.has_arg = rows[i].value ? required_argument : no_argument,
			.val = rows[i].flag,
		};
	return options;
}

/* ---- help ---- */

static void print_row(FILE *out, const struct flag_row *row)
{
	const char *line = row->help;
	char left[64];
	int n = snprintf(left, sizeof(left), "--%s%s%s", row->name, row->value ? " " : "",
			 row->value ? row->value : "");

	if (row->flag < FLAG_CONFIG && n > 0 && (size_t)n < sizeof(left))
		snprintf(left + n, sizeof(left) - (size_t)n, ", -%c", row->flag);
	while (line) {
		const char *end = strchrnul(line, '\n');

		fprintf(out, "  %-*s  %.*s\n", LEFT_WIDTH, left, (int)(end - line), line);
		left[0] = '\0';
		line = *end ? end + 1 : NULL;
	}
}

void flags_help(FILE *out)
{
	fputs("usage: koined [OPTION]...\n"
	      "\n"
	      "Run the daemon that AI agents and their clients share.\n"
	      "\n",
	      out);
	for (int i = 0; i < N_ROWS; i++)
		print_row(out, &rows[i]);
	fputs("\n"
	      "Prints 'listening DIALECT ADDRESS' for each address, then 'koined: ready'.\n"
	      "SIGTERM and SIGINT stop koined gracefully; a second signal stops koined at once.\n"
	      "SIGHUP reloads the settings. The dialects koine, ash, hld, ocg, nexus and aiwg\n"
	      "are on by default; gateway, embedding, mcp, metrics and page are off by default.\n"
	      "\n"
	      "Exit status: 0 after a stop, 64 usage error, 69 cannot listen or cannot use the\n"
	      "store, 71 system error, 78 invalid settings.\n",
	      out);
}

/* ---- completion ---- */

static void offer_flags(const struct flags_offer *o)
{
	char word[64];

	puts("words");
	for (int i = 0; i < N_ROWS; i++) {
		snprintf(word, sizeof(word), "--%s", rows[i].name);
		offer_one(o, word, rows[i].help);
	}
}

/* "--name" or "--name=..."; only one that takes a value. */
static const struct flag_row *flags_find_row(const char *word)
{
	size_t len = strcspn(word, "=");

	for (int i = 0; i < N_ROWS; i++) {
		if (rows[i].value && len == strlen(rows[i].name) + 2 &&
		    strncmp(word, "--", 2) == 0 && memcmp(word + 2, rows[i].name, len - 2) == 0)
			return &rows[i];
	}
	return NULL;
}

static void offer_values(const struct flag_row *row, const struct flags_offer *o)
{
	puts(row->how);
	if (row->offer)
		row->offer(o);
}

int flags_complete(int n_args, char **args)
{
	const char *last = n_args > 1 ? args[n_args - 1] : "";
	const char *before = n_args > 2 ? args[n_args - 2] : "";
	struct flags_offer o = {.typed = last, .before = ""};
	const struct flag_row *row = strchr(before, '=') ? NULL : flags_find_row(before);

	o.zsh = n_args > 0 && strcmp(args[0], "zsh") == 0;
	if (!row && strchr(last, '=') && (row = flags_find_row(last))) {
		o.before = last;
		o.before_len = (int)strcspn(last, "=") + 1;
		o.typed = last + o.before_len;
	}
	if (row)
		offer_values(row, &o);
	else
		offer_flags(&o);
	return EX_OK;
}
