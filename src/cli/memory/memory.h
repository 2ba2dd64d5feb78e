/*
 * koine memory: what its commands share.
 *
 * They speak to koine's own socket, or to ash's, where only the four of ash's
 * methods exist; so the command line can take the place of ash's client.
 */
#pragma once

#include "cli/kit/cli.h"

extern const struct command memory_commands[];
extern const struct option memory_options[];

int cmd_backup(struct cli *cli);

/* ---- memory_options.c ---- */

extern const struct option search_options[];
extern const struct option add_options[];
extern const struct option list_options[];

bool memory_set_user(struct cli_options *o, const char *value);
bool memory_set_chat(struct cli_options *o, const char *value);

/* ---- memory_call.c ---- */

/* One call to be made. */
struct memory_call {
	struct cli *cli;
	const char *method;
	struct koine_json *params;
};

/* Whose methods a command needs. */
enum memory_needs { NEEDS_ASH, NEEDS_KOINE };

/* Finds the server: 0, or an exit code after words of why not. */
int memory_target(struct cli *cli, enum memory_needs needs);

/* Begins the parameters; members are added to c->params. */
int memory_begin(struct memory_call *c, struct cli *cli, const char *method);
void memory_done(struct memory_call *c);

/* "user_id" and "chat_id": null where nobody is named. */
void memory_add_who(struct memory_call *c);

/* A member that is left out when text is NULL. */
void memory_add_text(struct memory_call *c, const char *key, const char *text);

/* Ends the parameters; NULL when memory ran out, and that was said. Valid until
 * memory_done. */
const char *memory_params(struct memory_call *c);

/* Ends the parameters, dials, calls and leaves. On 0 the caller owns *ret_answer. */
int memory_send(struct memory_call *c, struct koine_answer **ret_answer);

/* ---- memory_print.c ---- */

/* As many characters of text as `most`, on one line; fewer are padded to `pad`. Returns
 * whether some were left out. */
bool print_cut(FILE *out, const char *text, size_t len, unsigned most, unsigned pad);

/* 0, or EX_PROTOCOL when it is no list of memories. */
int memory_print_hits(const struct cli *cli, const struct koine_value *hits, const char *query);
int memory_print_list(const struct cli *cli, const struct koine_value *rows);
int memory_print_one(const struct cli *cli, const struct koine_value *memory);
int memory_print_stats(const struct cli *cli, const struct koine_value *stats);

/* ---- cmd_memory_*.c ---- */

int cmd_memory_edit(struct cli *cli);
int cmd_memory_export(struct cli *cli);
int cmd_memory_import(struct cli *cli);
