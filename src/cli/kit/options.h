/*
 * Options, one row each. The function that sets an option determines its kind of value. The
 * value fills a parameter of the command's request, or a member of a struct: of struct
 * cli_options for the common options, otherwise of the command's own. Options may appear
 * anywhere.
 */
#pragma once

#include "cli/kit/cli.h"

struct option {
	const char *name;
	const char *short_name; /* or NULL */
	const char *value;      /* what it wants, or NULL */
	const char *help;       /* NULL: hidden */
	/* False: the value is invalid. */
	bool (*set)(const struct option *o, void *member, const char *value);
	size_t at;           /* where the member is: OPTION_AT; 0: there is none */
	const char *must;    /* what the value must be, where `value` does not say so; or NULL */
	int64_t min;         /* for a number or a duration */
	int64_t max;         /* the same; for a list, how many it takes; 0: any */
	const char *choices; /* "one|another"; NULL: those of `value`. Completion offers them for
			      * any kind of value */
	const char *implied; /* the value if none is given as --name=VALUE; NULL: it is needed */
	enum completes completes; /* what the value is, where `value` does not say so */
	const char *param;        /* the parameter that it fills; or NULL */
	const char *usual;   /* what it is if it is not given, which need not be valid; or NULL */
	const char *env;     /* a variable that says so; or NULL */
	const char *json[2]; /* what a flag sends if it is given, and if not; NULL: true, nothing */
};

#define OPTION_AT(type, member) (1 + offsetof(type, member))

/* An option on the command line. */
struct given {
	const struct option *option;
	const char *value;
};

/* ---- kinds ---- */

bool option_flag(const struct option *o, void *member, const char *value);   /* bool */
bool option_text(const struct option *o, void *member, const char *value);   /* const char * */
bool option_word(const struct option *o, void *member, const char *value);   /* not "" */
bool option_name(const struct option *o, void *member, const char *value);   /* "" is NULL */
bool option_choice(const struct option *o, void *member, const char *value); /* const char * */
bool option_number(const struct option *o, void *member, const char *value); /* int64_t */
/* The rows of a list: one more is asked for where `max` allows, to know whether there are more. */
bool option_limit(const struct option *o, void *member, const char *value);
bool option_decimal(const struct option *o, void *member, const char *value); /* double */
bool option_span(const struct option *o, void *member, const char *value);    /* int64_t, ms */
bool option_seconds(const struct option *o, void *member, const char *value); /* int64_t */
/* int64_t; a bare number means days, as ash's client has it. */
bool option_days(const struct option *o, void *member, const char *value);
bool option_list(const struct option *o, void *member, const char *value);
bool option_texts(const struct option *o, void *member, const char *value);

/* An option that may be repeated; option_list does not accept "", but option_texts does. */
struct option_list {
	const char *values[256];
	unsigned n;
};

/* What an option sets: the member that fits its kind. */
union option_value {
	bool flag;
	const char *text;
	int64_t number;
	double decimal;
	struct option_list list;
};

/* Reads what was given for an option, or else its usual value. False: there is neither. */
bool option_value(const struct cli *cli, const struct option *o, union option_value *ret);

/* Keeps a value that was given, and sets the option's member. False: the value is invalid. */
bool option_take(struct cli *cli, const struct option *o, void *into, const char *value);

/* A whole number, and nothing else. */
bool option_read_int(const char *text, int64_t *ret_n);

/* NULL if it is not set, or empty. */
const char *option_from_environment(const char *name);

/* Whether the server is the koined that koine daemon start starts. */
bool option_means_own_daemon(const struct cli *cli);

/* ---- all of them ---- */

/* Those that every command has; the last has no name. */
extern const struct option options_of_all[];

/* Takes the options out of argv; the rest is in cli->args. 0 or an exit code. */
int options_parse(struct cli *cli, int argc, char **argv);

/* ---- the same piece by piece, for a line that is not complete yet ---- */

enum { OPTION_TABLES = 3 };

/* For a line of so many words. 0 or an exit code. */
int options_begin(struct cli *cli, int n_words);

/* Adds a word that is no option to cli->args, which has room for it. */
int options_take_word(struct cli *cli, const char *word);

/* The command that the next word, as its argument, is for. */
const struct command *options_command_by_argument(const struct cli *cli);

/* The row of "--name=value", "--name" or "-nvalue"; NULL: there is none. *ret_value is NULL if
 * the word has none, and *ret_into the struct that `set` changes a member of. */
const struct option *options_find(struct cli *cli, const char *word, const char **ret_value,
				  void **ret_into);

/* Those that exist behind the words so far. A name in an earlier table hides the later ones. */
void options_list(const struct cli *cli, const struct option *tables[OPTION_TABLES]);

/* What follows from them: the address, colours. */
void options_end(struct cli *cli);

void options_done(struct cli *cli);
