/* The approver is asked before a command is started, and before something is written to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/object_builder.h"
#include "engine/program/consent.h"
#include "engine/program/process_inner.h"

enum { ARENA_MAX = 2 << 20 };

struct process_ask {
	struct list link;
	struct processes *processes;
	struct arena arena;
	bool writes;
	struct process_new start; /* unless it writes */
	struct text id;
	struct text data;
	struct peer peer;
	bool eof;
	process_fn fn; /* NULL: nobody is waiting any more */
	void *arg;
	struct consent consent;
};

/* ---- the end ---- */

static void ask_free(struct process_ask *a)
{
	list_remove(&a->link);
	a->processes->n_asks--;
	arena_done(&a->arena);
	free(a);
}

static void program_process_ask_notify(struct process_ask *a, int result,
				       const struct process_info *info, const struct error *error)
{
	process_fn fn = a->fn;
	void *arg = a->arg;

	ask_free(a);
	if (fn)
		fn(arg, result, info, error);
}

/* ---- acting on an approval ---- */

static int act(struct process_ask *a, struct process **ret_process, struct error *error)
{
	if (!a->writes)
		return process_run(a->processes, &a->start, ret_process, error);
	/* It may have ended and been dropped in the meantime. */
	*ret_process = process_find(a->processes, a->id);
	if (!*ret_process)
		return process_unknown(a->id, error);
	return process_feed(*ret_process, a->data, a->eof, error);
}

static void on_consent(void *arg, int result, const struct error *error)
{
	struct process_ask *a = arg;
	struct process *p = NULL;
	struct error own = {.text = ""};

	if (result == 0) {
		error = &own;
		result = act(a, &p, &own);
	}
	program_process_ask_notify(a, result, result == 0 ? &p->info : NULL, error);
}

/* ---- the question ---- */

/* The environment can change what a command does as much as its text can. {NULL, 0}: no memory. */
static struct text join_env(struct process_ask *a)
{
	struct buf lines;
	struct text out;

	buf_init(&lines, PROCESS_ENV_BYTES_MAX);
	for (unsigned i = 0; i < a->start.n_env; i++) {
		buf_add(&lines, a->start.env[i].data, a->start.env[i].len);
		buf_add_char(&lines, '\n');
	}
	out.data = lines.err == 0 ? arena_copy(&a->arena, lines.data, lines.len) : NULL;
	out.len = lines.len;
	buf_done(&lines);
	return out;
}

static void put_write(struct object_builder *w, const struct process_ask *a,
		      const struct process *p)
{
	object_text(w, "action", TEXT("write"));
	object_text(w, "data", a->data);
	object_bool(w, "eof", a->eof);
	object_text(w, "to", p->info.command);
	object_text(w, a->processes->opts.id_name ?: "id", a->id);
}

static int put_start(struct object_builder *w, struct process_ask *a)
{
	struct text env = a->start.n_env > 0 ? join_env(a) : TEXT("");

	if (!env.data)
		return -ENOMEM;
	object_text(w, "action", TEXT("start"));
	if (env.len > 0)
		object_text(w, "env", env);
	object_text(w, env.len > 0 ? "run" : "command", a->start.command);
	object_text(w, "workdir", a->start.workdir);
	object_bool(w, "pty", a->start.terminal);
	return 0;
}

/* If an environment comes with it, the input has no member "command": a rule that allows a
 * command, or a list that shows only the command, would ignore the rest. */
static const struct value *make_input(struct process_ask *a, const struct process *p)
{
	struct object_builder w;
	int r = 0;

	object_begin(&w, &a->arena);
	if (p)
		put_write(&w, a, p);
	else
		r = put_start(&w, a);
	return r == 0 && w.err == 0 ? w.root : NULL;
}

static int program_process_ask_ask(struct process_ask *a, const struct process *p,
				   struct error *error)
{
	const struct approval_new in = {
		.kind = APPROVAL_FUNCTION,
		.agent = TEXT(PROCESS_AGENT),
		.origin = text_of(a->processes->folder ? a->processes->folder : ""),
		.tool = TEXT(PROCESS_TOOL),
		.input = make_input(a, p),
		.from = {.is = a->peer.known, .peer = a->peer},
	};

	return in.input ? consent_ask(&a->consent, &in, error) : -ENOMEM;
}

static int check_common(const struct processes *p, struct error *error)
{
	if (!p)
		return process_forbidden(error);
	if (p->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (p->n_asks >= PROCESS_ASKS_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "too many processes are waiting for approval (limit %d)",
			      PROCESS_ASKS_MAX);
	return 0;
}

static int ask_new(struct processes *p, process_fn fn, void *arg, struct process_ask **ret_ask)
{
	struct process_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->processes = p;
	a->fn = fn;
	a->arg = arg;
	a->consent = (struct consent) {.approvals = p->opts.approvals,
				       .stopping = &p->stopping,
				       .by = TEXT(PROCESS_AGENT),
				       .fn = on_consent,
				       .arg = a};
	arena_init(&a->arena, ARENA_MAX);
	list_append(&p->asks, &a->link);
	p->n_asks++;
	*ret_ask = a;
	return 0;
}

static int ask_or_free(struct process_ask *a, int r, const struct process *p,
		       struct process_ask **ret_ask, struct error *error)
{
	if (r == 0)
		r = program_process_ask_ask(a, p, error);
	if (r != 0)
		ask_free(a);
	else
		*ret_ask = a;
	return r;
}

/* ---- asking to start a process ---- */

static int check_env(const struct process_new *in, struct error *error)
{
	size_t total = 0;

	if (in->n_env > PROCESS_ENV_MAX)
		return refuse_field(error, "env", "env has more than %d variables",
				    PROCESS_ENV_MAX);
	for (unsigned i = 0; i < in->n_env; i++) {
		const char *is = text_find(in->env[i], '=');
		int r = text_check(in->env[i], "env", PROCESS_ENV_BYTES_MAX, error);

		if (r != 0)
			return r;
		if (!is || is == in->env[i].data)
			return refuse_field(error, "env", "env[%u] must be NAME=VALUE", i);
		total += in->env[i].len + 1;
		if (total > PROCESS_ENV_BYTES_MAX)
			return refuse_field(error, "env", "env is longer than %d bytes",
					    PROCESS_ENV_BYTES_MAX);
	}
	return 0;
}

static int check_start(const struct process_new *in, struct error *error)
{
	int r;

	if (in->command.len == 0)
		return refuse_field(error, "command", "command is required");
	r = text_check(in->command, "command", PROCESS_COMMAND_MAX, error)
		    ?: text_check(in->workdir, "workdir", 4096, error);
	return r ?: check_env(in, error);
}

static int copy_start(struct process_ask *a, const struct process_new *in)
{
	struct text *env = arena_alloc(&a->arena, in->n_env * sizeof(*env));
	int r = env ? 0 : -ENOMEM;

	a->start = *in;
	a->peer = in->peer;
	a->start.env = env;
	if (r == 0)
		r = arena_copy_text(&a->arena, in->command, &a->start.command);
	if (r == 0)
		r = arena_copy_text(&a->arena, in->workdir, &a->start.workdir);
	for (unsigned i = 0; r == 0 && i < in->n_env; i++)
		r = arena_copy_text(&a->arena, in->env[i], &env[i]);
	return r;
}

int process_start(struct processes *all, const struct process_new *in, process_fn fn, void *arg,
		  struct process_ask **ret_ask, struct error *error)
{
	struct process_ask *a = NULL;
	int r = check_common(all, error) ?: check_start(in, error) ?: ask_new(all, fn, arg, &a);

	return r ?: ask_or_free(a, copy_start(a, in), NULL, ret_ask, error);
}

/* ---- asking to write to a process ---- */

int process_write(struct processes *all, struct text id, struct text data, bool eof,
		  const struct peer *peer, process_fn fn, void *arg, struct process_ask **ret_ask,
		  struct error *error)
{
	const struct process *p;
	struct process_ask *a = NULL;
	int r = check_common(all, error);

	if (r != 0)
		return r;
	p = process_find(all, id);
	if (!p)
		return process_unknown(id, error);
	if (data.len > PROCESS_WRITE_MAX)
		return refuse_field(error, "data", "data is longer than %d bytes",
				    PROCESS_WRITE_MAX);
	r = ask_new(all, fn, arg, &a);
	if (r != 0)
		return r;
	a->writes = true;
	a->peer = *peer;
	a->eof = eof;
	r = arena_copy_text(&a->arena, id, &a->id) ?: arena_copy_text(&a->arena, data, &a->data);
	return ask_or_free(a, r, p, ret_ask, error);
}

/* ---- abandoning a request ---- */

void process_ask_leave(struct process_ask *a)
{
	if (!a)
		return;
	a->fn = NULL;
	consent_leave(&a->consent);
}

void process_asks_end(struct processes *p, int result, const struct error *error)
{
	struct list *first;

	while ((first = list_first(&p->asks))) {
		struct process_ask *a = list_entry(first, struct process_ask, link);

		consent_drop(&a->consent);
		if (!error)
			a->fn = NULL;
		program_process_ask_notify(a, result, NULL, error);
	}
}
