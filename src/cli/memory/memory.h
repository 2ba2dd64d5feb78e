/*
 * koine memory: what its commands share.
 *
 * They use koine's own socket, or ash's, where only ash's four methods exist. So the command
 * line can replace ash's client.
 */
#pragma once

#include "cli/kit/options.h"
#include "cli/kit/print.h"

struct memory_options {
	const char *query;
	int64_t limit; /* 0: the command's own */
	const char *user;
	const char *chat;
	const char *chat_type;
	const char *project; /* a name, or a folder that stands for one */
	const char *source;
	bool shared;
	bool all;
	bool this_chat;
	bool common;
	const char *at; /* what was valid then */
	bool replaced;  /* also what was ever valid */
	const char *replaces;
	bool purge;
	bool yes;
	bool list;
	struct option_list accept; /* ids */
	struct option_list reject;
};

/* ---- commands.c ---- */

/* Whether the output is that of ash's own client: it is asked in its place, or its variables are set. */
bool memory_is_ash(void);

/* Whose memories: "user_id" and "chat_id", null where nobody is named, the project, along with
 * the token that ash gives its agents. They are in every call. */
void memory_scope(const struct cli *cli, struct koine_json *params);

/* The params of another call about the memory with that id. */
struct koine_json *memory_id_params(const struct cli *cli, struct text id);

/* Before a memory is changed or deleted: 0, or EX_USAGE after saying that the id is too short. */
int memory_check_id(const struct cli *cli, struct text id);

/* ---- print.c ---- */

/* At most `most` characters of text, on one line; fewer are padded to `pad`. Returns whether
 * some were left out. */
bool memory_print_cut(FILE *out, struct text text, unsigned most, unsigned pad);

/* Prints "WHAT: ID", with the beginning of the id. */
void memory_say(FILE *out, const char *what, struct text id);

/* 0, or EX_PROTOCOL when it is not a list of memories. */
int memory_print_hits(const struct cli *cli, const struct koine_value *hits);
enum { MEMORY_LIST_MAX = 1000 }; /* memories that koined lists at once */

/* Says on stderr how many of how many a list has shown, if that is not all; all < 0: it is not known. */
void memory_say_hidden(int64_t shown, int64_t all);
int memory_print_list(const struct cli *cli, const struct koine_value *rows);
int memory_print_history(const struct cli *cli, const struct koine_value *rows);
int memory_print_one(const struct cli *cli, const struct koine_value *memory);
int memory_print_stats(const struct cli *cli, const struct koine_value *stats);
int memory_refuse_answer(void);

/* ---- the commands that have a file of their own ---- */

int cmd_memory_edit(struct cli *cli);
int cmd_memory_review(struct cli *cli);
int cmd_memory_export(struct cli *cli);
int cmd_memory_import(struct cli *cli);
