/* Internal to process*.c: the table, one process, one request. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "io/process/tree.h"
#include "engine/program/process.h"

#define PROCESS_AGENT "gateway" /* for the approver */
#define PROCESS_TOOL  "process"

struct console;
struct supervised;

struct processes {
	struct processes_opts opts;
	char *folder;    /* NULL: ours, and anywhere */
	struct list all; /* struct process, oldest first */
	unsigned n_all;
	unsigned n_running;
	uint64_t last_id;
	struct list asks; /* struct process_ask */
	unsigned n_asks;
	bool stopping;
	void (*on_stopped)(void *arg);
	void *stopped_arg;
};

struct process {
	struct list link;
	struct processes *all;
	char id[PROCESS_ID_MAX];
	char *command;
	char *workdir;
	char mark[TREE_MARK_MAX];
	struct process_info info;
	struct supervised *program;
	struct console *console;
	struct timer *grace; /* the program has ended, but its terminal has not */
	bool exited;
	struct buf output;
	uint64_t begin;    /* offset of the first byte that is kept */
	struct list waits; /* struct process_wait */
};

struct process *process_find(const struct processes *p, struct text id);

/* The command, the workdir and the variables end in NUL. */
int process_run(struct processes *p, const struct process_new *in, struct process **ret_process,
		struct error *error);
int process_feed(struct process *p, struct text data, bool eof, struct error *error);

/* Calls back everybody who waits for the approver with this; error NULL: calls nobody. */
void process_asks_end(struct processes *p, int result, const struct error *error);

/* Refusals. */
int process_forbidden(struct error *error);
int process_unknown(struct text id, struct error *error);
