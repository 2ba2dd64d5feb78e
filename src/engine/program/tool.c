/* The tools: which ones exist, and how one is requested, approved, run and abandoned. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pack.h"
#include "engine/index/embedding.h"
#include "io/process/supervisor.h"
#include "engine/program/tool_inner.h"

struct tool {
	const char *name;
	/* Runs on a reader's thread, then on the writer's if that gave no result. Both NULL: a
	 * program. */
	tool_work_fn work;
	tool_work_fn write;
	bool asks; /* the approver is asked first */
};

static const struct tool all[N_TOOLS] = {
	[TOOL_MEMORY_SEARCH] = {"memory_search", .work = tool_memory_search},
	[TOOL_MEMORY_GET] = {"memory_get", .work = tool_memory_get},
	[TOOL_MEMORY_STORE] = {"memory_store", tool_memory_known, tool_memory_store},
	[TOOL_EXEC] = {"exec", .asks = true},
	[TOOL_READ] = {"read", .work = tool_file_read, .asks = true},
	[TOOL_WRITE] = {"write", .work = tool_file_write, .asks = true},
	[TOOL_EDIT] = {"edit", .work = tool_file_edit, .asks = true},
};

const char *tool_name(enum tool_id id)
{
	return all[id].name;
}

static bool is_allowed(const struct tools *t, enum tool_id id)
{
	return t && (t->opts.allowed & 1U << id);
}

bool tool_find(const struct tools *t, struct text name, enum tool_id *ret_id)
{
	for (unsigned i = 0; i < N_TOOLS; i++) {
		if (text_is(name, all[i].name) && is_allowed(t, (enum tool_id)i)) {
			*ret_id = (enum tool_id)i;
			return true;
		}
	}
	return false;
}

/* ---- input ---- */

int tool_text(const struct tool_run *r, const char *key, bool required, struct text *ret,
	      struct error *error)
{
	const struct value *v = value_find(r->input, key);

	*ret = value_text(v);
	if (v && v->kind != VALUE_STRING && v->kind != VALUE_NULL)
		return refuse_field(error, key, "%s must be a string, not %s", key,
				    value_kind_name(v));
	if (required && ret->len == 0)
		return refuse_field(error, key, "%s is required", key);
	return 0;
}

int tool_number(const struct tool_run *r, const char *key, double fallback, double *ret,
		struct error *error)
{
	const struct value *v = value_find(r->input, key);

	*ret = fallback;
	if (!v || v->kind == VALUE_NULL || value_double(v, ret))
		return 0;
	return refuse_field(error, key, "%s must be a number, not %s", key, value_kind_name(v));
}

/* ---- the end ---- */

static void run_free(struct tool_run *r)
{
	list_remove(&r->link);
	r->tools->n_runs--;
	supervised_free(r->program);
	timer_free(r->timer);
	buf_done(&r->out);
	buf_done(&r->err);
	arena_done(&r->arena);
	free(r);
}

void tool_done(struct tool_run *r, int result, const struct error *error)
{
	struct error stopping = {0};

	if (r->ending) {
		result = refuse(&stopping, REFUSE_STOPPING, "koined is stopping");
		error = &stopping;
	}
	if (r->fn)
		r->fn(r->arg, result, &r->got, error);
	run_free(r);
}

/* ---- work on a thread ---- */

static void start_work(struct tool_run *r, bool writes);

static int work_run(struct work *w, int lane)
{
	struct tool_run *r = list_entry(w, struct tool_run, work);
	tool_work_fn work = r->writes ? all[r->id].write : all[r->id].work;

	return work(r, lane, &r->got, &r->error);
}

static void work_finished(struct work *w, int result)
{
	struct tool_run *r = list_entry(w, struct tool_run, work);

	r->under_way = false;
	if (result == 0 && !r->got.value && !r->got.text.data && !r->ending)
		start_work(r, true);
	else
		tool_done(r, result, &r->error);
}

static void start_work(struct tool_run *r, bool writes)
{
	memory_wait_init(&r->wait, r->tools->opts.memories);
	r->work = (struct work) {.run = work_run,
				 .finished = work_finished,
				 .wait = writes ? NULL : &r->wait.as,
				 .arena = &r->arena};
	r->writes = writes;
	r->under_way = true;
	workers_start(r->tools->opts.workers, &r->work, writes);
}

static void on_vector(void *arg, struct text answer)
{
	struct tool_run *r = arg;

	r->question = NULL;
	/* If memory runs out, search by words alone. */
	(void)arena_copy_text(&r->arena, answer, &r->vector);
	start_work(r, false);
}

static int program_tool_begin(struct tool_run *r, struct error *error)
{
	struct embedding *model = memories_embedding(r->tools->opts.memories);
	struct text query = {NULL, 0};

	if (r->id == TOOL_EXEC)
		return tool_exec_start(r, error);
	if (r->id == TOOL_MEMORY_SEARCH)
		query = value_text(value_find(r->input, "query"));
	if (query.len > 0)
		r->question = embedding_ask(model, query, on_vector, r);
	if (!r->question)
		start_work(r, false);
	return 0;
}

/* ---- approval ---- */

static void on_consent(void *arg, int result, const struct error *error)
{
	struct tool_run *r = arg;
	struct error own = {0};

	if (result == 0) {
		error = &own;
		result = program_tool_begin(r, &own);
	}
	if (result != 0)
		tool_done(r, result, error);
}

static int ask_first(struct tool_run *r, struct error *error)
{
	const struct approval_new in = {
		.kind = APPROVAL_FUNCTION,
		.session = r->session,
		.agent = r->agent,
		.origin = text_of(r->tools->folder),
		.tool = text_of(all[r->id].name),
		.tool_use_id = r->call_id,
		.input = r->input,
		.from = {.is = r->peer.known, .peer = r->peer},
	};

	r->consent = (struct consent) {.approvals = r->tools->opts.approvals,
				       .stopping = &r->tools->stopping,
				       .by = r->agent,
				       .fn = on_consent,
				       .arg = r};
	return consent_ask(&r->consent, &in, error);
}

/* ---- one run ---- */

static int copy_ask(struct tool_run *r, const struct tool_ask *ask)
{
	struct arena *a = &r->arena;

	if (arena_copy_text(a, ask->agent, &r->agent) != 0 ||
	    arena_copy_text(a, ask->session, &r->session) != 0 ||
	    arena_copy_text(a, ask->call_id, &r->call_id) != 0 ||
	    arena_copy_text(a, ask->by.user, &r->by.user) != 0 ||
	    arena_copy_text(a, ask->by.chat, &r->by.chat) != 0)
		return -ENOMEM;
	return value_copy(a, ask->input, &r->input);
}

/* If a key occurs twice, the approver might see something else than what runs. */
static int check_keys(const struct value *input, struct error *error)
{
	struct text key = {0};
	struct arena scratch;
	int e;

	arena_init(&scratch, TOOL_ARENA_MAX);
	e = value_find_twice(&scratch, input, &key);
	arena_done(&scratch);
	if (e == 0 && key.data)
		e = refuse(error, REFUSE_PARAMS, "duplicate key '%.*s' in the tool's input",
			   TEXT_ARGS(text_cut(key, 64)));
	return e;
}

static int program_tool_check(const struct tools *t, const struct tool_ask *ask,
			      struct error *error)
{
	if (!is_allowed(t, ask->id))
		return refuse(error, REFUSE_FORBIDDEN, "tool not allowed: %s", all[ask->id].name);
	if (t->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (t->n_runs >= TOOL_RUNS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many tools are running (limit %d)",
			      TOOL_RUNS_MAX);
	if (!ask->input || ask->input->kind != VALUE_OBJECT)
		return refuse(error, REFUSE_PARAMS, "the tool's input must be an object");
	return check_keys(ask->input, error);
}

/* Called by a timer: what starts at once may end at once, and its callback must wait for the
 * next pass of the loop. */
static void on_begin(void *arg)
{
	struct tool_run *r = arg;
	struct error error = {0};
	int e;

	timer_free(r->timer);
	r->timer = NULL;
	e = all[r->id].asks ? ask_first(r, &error) : program_tool_begin(r, &error);
	if (e != 0)
		tool_done(r, e, &error);
}

int tool_run(struct tools *t, const struct tool_ask *ask, tool_fn fn, void *arg,
	     struct tool_run **ret_run, struct error *error)
{
	struct tool_run *r;
	int e = program_tool_check(t, ask, error);

	if (e != 0)
		return e;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->tools = t;
	r->id = ask->id;
	r->peer = ask->peer;
	r->fn = fn;
	r->arg = arg;
	arena_init(&r->arena, TOOL_ARENA_MAX);
	buf_init(&r->out, TOOL_STDOUT_MAX);
	buf_init(&r->err, TOOL_STDERR_MAX);
	list_append(&t->runs, &r->link);
	t->n_runs++;
	e = copy_ask(r, ask) ?: timer_new(t->opts.loop, on_begin, r, &r->timer);
	if (e != 0) {
		run_free(r);
		return e;
	}
	timer_start(r->timer, 0);
	*ret_run = r;
	return 0;
}

static void run_end(struct tool_run *r)
{
	r->ending = true;
	if (r->under_way) {
		work_cancel(&r->work);
		return;
	}
	if (r->program) {
		supervised_end(r->program, 500);
		return;
	}
	if (r->question)
		embedding_cancel(r->question);
	r->question = NULL;
	if (r->consent.waiter)
		consent_leave(&r->consent);
	else
		tool_done(r, 0, NULL);
}

void tool_leave(struct tool_run *r)
{
	if (!r)
		return;
	r->fn = NULL;
	if (!r->ending)
		run_end(r);
}

/* ---- all tools ---- */

static int open_folder(struct tools *t, const char *folder, struct error *error)
{
	if (!folder || !folder[0])
		return 0;
	t->folder = realpath(folder, NULL);
	if (t->folder)
		t->folder_fd = open(t->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->folder_fd < 0)
		return refuse(error, REFUSE_PARAMS, "%s: %s", folder, strerror(errno));
	return 0;
}

static bool is_own(const struct approval *row)
{
	for (unsigned i = 0; i < N_TOOLS; i++) {
		if (all[i].asks && text_is(row->tool, all[i].name))
			return true;
	}
	return false;
}

int tools_new(const struct tools_opts *opts, struct tools **ret_tools, struct error *error)
{
	const unsigned in_folder =
		1U << TOOL_EXEC | 1U << TOOL_READ | 1U << TOOL_WRITE | 1U << TOOL_EDIT;
	struct tools *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->opts = *opts;
	t->folder_fd = -1;
	list_init(&t->runs);
	r = open_folder(t, opts->folder, error);
	if (r == 0 && (opts->allowed & in_folder) && t->folder_fd < 0)
		r = refuse(error, REFUSE_PARAMS,
			   "the tools exec, read, write and edit require a folder");
	if (r != 0) {
		tools_free(t);
		return r;
	}
	if (opts->agent)
		approvals_withdraw_left(opts->approvals, text_of(opts->agent), is_own);
	*ret_tools = t;
	return 0;
}

static struct tool_run *find_busy(const struct tools *t)
{
	list_for_each (at, following, &t->runs) {
		struct tool_run *r = list_entry(at, struct tool_run, link);

		if (!r->ending || r->consent.waiter)
			return r;
	}
	return NULL;
}

void tools_stop(struct tools *t)
{
	struct tool_run *r;

	if (!t)
		return;
	t->stopping = true;
	/* A callback may abandon others, so search the list anew each time. */
	while ((r = find_busy(t)))
		run_end(r);
}

void tools_free(struct tools *t)
{
	if (!t)
		return;
	list_for_each (at, following, &t->runs)
		run_free(list_entry(at, struct tool_run, link));
	if (t->folder_fd >= 0)
		close(t->folder_fd);
	free(t->folder);
	free(t);
}
