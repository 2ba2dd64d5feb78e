/*
 * koine, the command line: what a command is, and what it gets.
 *
 * Data goes to stdout, everything else to stderr. A command returns the exit code. The
 * function that detects an error reports it, once.
 */
#pragma once

#include <koine/koine.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sysexits.h>

/* In addition to those of sysexits.h: the server was reached and answered with an error;
 * something was cancelled, or Ctrl-C ended the wait for it. */
enum { EXIT_ERROR_ANSWER = 1, EXIT_INTERRUPTED = 130 };

struct column;
struct option;
struct command_group;
struct show_form;

/* What every command takes. */
struct cli_options {
	const char *socket;
	const char *url;
	const char *framing;
	const char *token_file;
	int64_t server_uid; /* who may serve, beside our own user and root; or KOINE_OURSELVES */
	uint32_t timeout_ms;
	int64_t retries; /* negative: not given */
	uint32_t wait_ms;
	bool json;
	const char *color; /* "auto", "always" or "never" */
	bool help;
	bool version;
};

struct cli {
	struct cli_options options;
	void *own;           /* the command's own options, see struct command */
	struct given *given; /* all options that were given, in their order */
	unsigned n_given;
	bool color;                  /* on stdout */
	bool terminal;               /* stdout is one */
	char address[512];           /* where the server is, as koine_dial takes it */
	struct koine_client *client; /* NULL until talk_connect */
	const struct command_group *groups;
	const struct command *command; /* the one that was typed; NULL: not one of ours */
	const struct command *sub;     /* and which of its subcommands */
	const char *typed_sub;         /* how that was spelled */
	bool by_shortcut;              /* a shortcut named it, which was one word */
	const char **words;            /* all words that are no options; options_done frees them */
	const char **args;             /* what of them follows the command */
	int n_args;
};

/*
 * What a word on the command line may be, for the completion of shells (cli/complete). Most
 * words need nothing of this: FILE, DIR, METHOD and others say it themselves, wherever they
 * stand (complete/usage.c).
 */
enum completes {
	COMPLETES_NOTHING,
	COMPLETES_COMMAND,
	COMPLETES_FILE,
	COMPLETES_FOLDER,
	COMPLETES_METHOD,
	COMPLETES_PARAM, /* of the method before it */
	COMPLETES_TASK,
	COMPLETES_GROUP, /* of tasks */
	COMPLETES_SESSION,
	COMPLETES_APPROVAL, /* that waits */
	COMPLETES_GRANT,
	COMPLETES_MEMORY,
	COMPLETES_DRAWN, /* a memory that waits for review */
	COMPLETES_AGENT, /* of the daemon's settings */
	COMPLETES_OWN,   /* what `words` of its command says */
	COMPLETES_CONVERSATION,
	COMPLETES_ENDED, /* the number of a conversation that was ended */
	COMPLETES_RULE,
	COMPLETES_NOTIFIER,
	COMPLETES_HOST,    /* that shares the store */
	COMPLETES_PROJECT, /* that is served; or any folder */
	COMPLETES_DIALECT, /* that has a place where its own clients look */
	N_COMPLETES,
};

enum { EXAMPLES_MAX = 3, ARG_MAX_BYTES = 128 };

/*
 * The call that a command makes. Its parameters are the argument, those of the noun's `scope`, and
 * those of the options. A command with several arguments makes a call for each.
 */
struct cli_request {
	const char *method; /* NULL: the command has no request */
	const char *member; /* the part of the result to print; NULL: all of it */
	const char *arg;    /* the parameter of the argument; NULL: it takes none */
	/* A parameter that never changes, and its JSON. */
	const char *with[2];
	bool patient; /* waits as long as a human or an agent takes */
	/* How the result is printed for people: the first of these that is set. */
	const char *did;     /* "NAME DID" */
	const char *named;   /* the member of the result that is this NAME; NULL: the argument */
	const char *unnamed; /* the NAME if there is no argument */
	const struct column *columns; /* a table */
	const char *none;             /* printed to stderr in place of an empty table */
	const struct show_form *form; /* one thing in full */
	int (*print)(const struct cli *cli, const struct koine_value *result);
};

struct command {
	const char *name;
	const char *args;            /* "METHOD [key=value]..." */
	const char *help;            /* one line that begins with a verb */
	const char *more;            /* the rest of `koine help NAME`, or NULL */
	int (*run)(struct cli *cli); /* NULL: its request is all that it does */
	const struct command *subs;  /* what must follow it, or NULL */
	/* Its own and its subs'; they take precedence over the common ones. */
	const struct option *options;
	/* Its options and those of its subs fill one struct of this size, which is cli->own. */
	size_t own_size;
	int (*begin)(struct cli *cli); /* runs before any of its subs; 0 or an exit code; or NULL */
	/* Prints a hint after an error that the server answered; or NULL. */
	void (*hint)(const struct cli *cli, const struct koine_answer *error);
	/* How many arguments it takes, and what is said otherwise: "requires one ID". NULL: it
	 * checks them itself. */
	const char *wants;
	int least;
	int most;
	/* What ID, NAME, NUMBER, AGENT or DIR in `args` is, and ID behind its options; also for
	 * its subs that do not say otherwise. */
	enum completes completes;
	/* Adds the parameters that all calls of a noun have, by its options, after `begin`; for
	 * completion, too. NULL: there are none. */
	void (*scope)(const struct cli *cli, struct koine_json *params);
	/* Turns the argument of a request into what is sent: "3" into "task-0003". Complains if it
	 * is invalid. NULL: arguments are sent as typed. */
	bool (*read_arg)(const char *typed, char arg[ARG_MAX_BYTES]);
	/* For COMPLETES_OWN: the ith word, and what it is; NULL: there are fewer. */
	const char *(*word)(int i, const char **ret_said);
	struct cli_request request;
	const char *examples[EXAMPLES_MAX]; /* whole lines for a shell; NULL after the last */
};

#define NO_ARGS               .wants = "takes no arguments"
#define ARGS(from, to, words) .least = (from), .most = (to), .wants = (words)
