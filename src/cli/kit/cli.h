/*
 * koine, the command line: what its commands share.
 *
 * Data goes to stdout, everything else to stderr. A command returns the exit
 * code; whoever finds out that something is wrong prints it, once.
 */
#pragma once

#include <koine/koine.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sysexits.h>

#include "cli/approval/options.h"
#include "cli/chat/options.h"
#include "cli/event/options.h"
#include "cli/memory/options.h"
#include "cli/session/options.h"
#include "cli/task/options.h"

/* Beside those of sysexits.h: the server was reached and said no. */
enum { EXIT_ERROR_ANSWER = 1 };

/* What JSON-RPC says of a method that the server does not have. */
enum { METHOD_NOT_FOUND = -32601 };

struct cli_options {
	const char *socket;
	const char *url;
	const char *framing;
	const char *token_file;
	int64_t server_uid; /* who may serve, beside our own user and root; or KOINE_OURSELVES */
	uint32_t timeout_ms;
	uint32_t retries;
	bool retries_given;
	uint32_t wait_ms;
	bool json;
	const char *color; /* "auto", "always" or "never" */
	bool help;
	bool version;
	struct memory_options memory;
	struct chat_options chat;
	struct event_options events;
	struct task_options task;
	struct session_options session;
	struct approval_options approval;
};

struct buf;
struct command;

struct cli {
	struct cli_options options;
	bool color;                    /* on stdout */
	bool terminal;                 /* stdout is one */
	char address[512];             /* where the server is, as koine_dial takes it */
	const struct command *command; /* the one that was typed; NULL: none of ours */
	const struct command *sub;     /* and which of its own */
	char **args;                   /* what follows the command */
	int n_args;
};

struct option {
	const char *name;
	const char *short_name; /* or NULL */
	const char *value;      /* what it wants, or NULL */
	const char *help;
	bool (*set)(struct cli_options *o, const char *value);
	const char *must; /* what its value has to be, where the word does not say; or NULL */
};

struct command {
	const char *name;
	const char *args; /* "METHOD [key=value]..." */
	const char *help; /* one line */
	const char *more; /* the rest of `koine help NAME`, or NULL */
	int (*run)(struct cli *cli);
	const struct command *subs;   /* what must follow it, or NULL */
	const struct option *options; /* its own and its subs'; they win over those of all */
};

/* Sorted as they are shown; the last has no name. The same goes for options. */
extern const struct command commands[];

/* ---- main.c ---- */

/* NULL when there is none. */
const struct command *command_find(const struct command *list, const char *name);

/* ---- options.c ---- */

/* Takes the options out of argv, wherever they stand; what is left is in
 * cli->args. 0 or EX_USAGE. */
int options_parse(struct cli *cli, int argc, char **argv);
/* Those that every command has. */
extern const struct option options_of_all[];

/* ---- help.c ---- */

void help_print(FILE *out);

/* `of` is the command that it belongs to, or NULL. */
void help_print_command(const struct command *of, const struct command *c);

/* ---- params.c ---- */

/* Makes JSON of what the user typed; NULL for nothing. The caller frees it. It is an object or
 * an array, or with is_any any JSON. */
int params_parse(char **args, int n_args, bool is_any, char **ret_params);

/* The words of the command line with a space between them, or for "-" all of stdin. What is too
 * much shows in all->err. */
int params_words(const struct cli *cli, struct buf *all);

/*
 * Where something is to run: the folder that was given, else the one we stand in, since the daemon
 * stands somewhere else. "" where a URL names the server: on another machine our folder means
 * nothing. Complains by the option's name, and returns a status.
 */
int params_folder(const struct cli *cli, const char *option, const char *given,
		  char path[PATH_MAX]);

/* ---- talk.c ---- */

typedef void (*bytes_cb)(void *arg, bool out, const char *data, size_t len);

/* Dials the server of the options. on_bytes may be NULL. */
int talk_dial(struct cli *cli, bytes_cb on_bytes, void *arg, struct koine_client **ret_client);

/* Calls, and words what goes wrong. On 0 the caller owns *ret_answer. */
int talk_call(struct koine_client *c, const char *method, const char *params,
	      struct koine_answer **ret_answer);

/* Why something failed, to stderr, without the words before it that only programs want. */
void talk_print_why(const char *text, size_t len);

/* The second half of it, for those who called themselves: words for any result but
 * 0, and its exit code. Takes the answer. */
int talk_failed(const struct koine_client *c, const char *method, int result,
		struct koine_answer *answer);

/* Whether requests and answers go one by one, with nothing in between. */
bool talk_is_http(const struct cli *cli);

/* Whether the server is one of Go's net/rpc, which takes any value as parameters. */
bool talk_is_gob(const struct cli *cli);

/* For commands whose user names the method: errors are shown whole, with method, code and data. */
void talk_be_exact(void);

/* "koine: SENTENCE" on stderr; or all of it, see talk_be_exact. */
void talk_print_error(const char *method, const struct koine_answer *answer);

/* Dials, calls and leaves: what most commands need. */
int talk_once(struct cli *cli, const char *method, const char *params,
	      struct koine_answer **ret_answer);

/* ---- print.c ---- */

/* "koine: ..." on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text from elsewhere: what could steer a terminal is shown as \xNN. */
void print_text(FILE *out, const char *text, size_t len);

enum { TIME_SHOWN = 32 };

/* A time of the server in the user's own; "-" for what is none. */
void format_time(const struct koine_value *v, char shown[TIME_SHOWN]);

/* On one line, without a space. */
void print_json_compact(FILE *out, const struct koine_value *v);

/* The same of an object, without that member. */
void print_json_without(FILE *out, const struct koine_value *v, const char *without);

/* Indented; in colour if asked for. */
void print_json_pretty(FILE *out, const struct koine_value *v, bool color);

/* The result as the options want it: pretty, or compact with --json. */
void print_result(const struct cli *cli, const struct koine_value *v);

/* ---- table.c ---- */

struct table;

enum cell_color { CELL_PLAIN, CELL_RED, CELL_GREEN, CELL_YELLOW, CELL_BLUE, CELL_GREY };

/* Columns whose letter in `align` is 'r' stand at the right, and 'n' marks those that may be
 * narrowed. Errors stick and show in table_print. */
struct table *table_new(const char *align);
void table_free(struct table *t);
void table_freep(struct table **t);
void table_cell(struct table *t, const char *text, size_t len);
void table_cell_str(struct table *t, const char *text);
/* Coloured, if the table is printed so. */
void table_cell_color(struct table *t, const char *text, size_t len, enum cell_color color);
/* Makes the last column as narrow as it must be for so many columns in all, and where that is
 * not enough, the ones marked so. */
void table_fit(struct table *t, size_t columns);
/* The same, but what does not fit into the last column goes on below it. */
void table_wrap(struct table *t, size_t columns);
/* A string's text, a number's digits, "-" for nothing, JSON for anything else. */
void table_cell_value(struct table *t, const struct koine_value *v);
/* As format_time has it. */
void table_cell_time(struct table *t, const struct koine_value *v);
/* Rows fill from left to right; in colour the first is bold. 0, or EX_SOFTWARE when memory ran
 * out. */
int table_print(struct table *t, FILE *out, bool color);
/* What begins that colour on a terminal. */
const char *color_begin(enum cell_color color);

/* ---- nearest.c ---- */

/* Offers names one by one and keeps the one most like `wanted`. */
struct nearest {
	const char *wanted;
	char name[64];   /* "": nothing comes near */
	unsigned within; /* only what is nearer than this counts */
};

void nearest_init(struct nearest *n, const char *wanted);
void nearest_offer(struct nearest *n, const char *name, size_t len);

/* ---- cmd_*.c ---- */

int cmd_call(struct cli *cli);
int cmd_ping(struct cli *cli);
int cmd_status(struct cli *cli);
int cmd_discover(struct cli *cli);
int cmd_wire(struct cli *cli);
