/* The programs that clients have started: their table, and each one from its start to its end. */
#include "engine/program/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/process/console.h"
#include "engine/approval/approval.h"
#include "engine/program/process_inner.h"
#include "io/process/supervisor.h"

enum {
	GRACE_MS = 250, /* wait for pending output after the program has ended */
	KILL_AFTER_MS = 2000,
	STOP_KILL_MS = 500,
};

struct process_wait {
	struct list link;
	process_fn fn;
	void *arg;
};

/* ---- the table ---- */

struct process *process_find(const struct processes *p, struct text id)
{
	list_for_each (at, following, &p->all) {
		struct process *process = list_entry(at, struct process, link);

		if (text_is(id, process->id))
			return process;
	}
	return NULL;
}

int process_forbidden(struct error *error)
{
	return refuse(error, REFUSE_FORBIDDEN,
		      "processes are disabled (to enable them, set [gateway] process = yes)");
}

int process_unknown(struct text id, struct error *error)
{
	return refuse(error, REFUSE_NOT_FOUND, "process not found: %.*s",
		      TEXT_ARGS(text_cut(id, PROCESS_ID_MAX)));
}

static int get(struct processes *all, struct text id, struct process **ret_process,
	       struct error *error)
{
	struct process *p;

	if (!all)
		return process_forbidden(error);
	p = process_find(all, id);
	if (!p)
		return process_unknown(id, error);
	*ret_process = p;
	return 0;
}

/* The time in nanoseconds, as clients expect ids; each is unique. */
static void make_id(struct processes *p, char out[PROCESS_ID_MAX])
{
	struct timespec now;
	uint64_t id;

	clock_gettime(CLOCK_REALTIME, &now);
	id = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (id <= p->last_id)
		id = p->last_id + 1;
	p->last_id = id;
	snprintf(out, PROCESS_ID_MAX, "proc_%llu", (unsigned long long)id);
}

/* ---- the end ---- */

static void process_free(struct process *p)
{
	list_remove(&p->link);
	p->all->n_all--;
	supervised_free(p->program);
	console_free(p->console);
	timer_free(p->grace);
	buf_done(&p->output);
	free(p->command);
	free(p->workdir);
	free(p);
}

static void forget_oldest(struct processes *p)
{
	list_for_each (at, following, &p->all) {
		struct process *process = list_entry(at, struct process, link);

		if (p->n_all < PROCESS_KEPT_MAX)
			return;
		if (!process->info.running && list_empty(&process->waits))
			process_free(process);
	}
}

static void check_stopped(struct processes *p)
{
	void (*fn)(void *arg) = p->on_stopped;

	if (!p->stopping || p->n_running > 0 || !fn)
		return;
	p->on_stopped = NULL;
	fn(p->stopped_arg);
}

/* Make copies first: the callback may start another process, and this one may be dropped to make
 * room. */
static void tell_waits(struct process *p)
{
	struct process_info info = p->info;
	struct list waits;
	struct list *first;
	char id[PROCESS_ID_MAX];

	memcpy(id, p->id, sizeof(id));
	info.id = id;
	list_init(&waits);
	list_splice(&waits, &p->waits);
	while ((first = list_first(&waits))) {
		struct process_wait w = *list_entry(first, struct process_wait, link);

		list_remove(first);
		free(list_entry(first, struct process_wait, link));
		w.fn(w.arg, 0, &info, NULL);
	}
}

static void program_process_end(struct process *p)
{
	struct processes *all = p->all;

	if (!p->info.running)
		return;
	timer_stop(p->grace);
	p->info.running = false;
	p->info.ended_ms = clock_utc_ms();
	all->n_running--;
	supervised_free(p->program);
	p->program = NULL;
	console_free(p->console);
	p->console = NULL;
	log_info("process ended", "process=%s status=%d signal=%d", p->id, p->info.status,
		 p->info.signal);
	tell_waits(p);
	check_stopped(all);
}

static void on_grace(void *arg)
{
	struct process *p = arg;

	console_drain(p->console);
	program_process_end(p);
}

/* Use a timer, since the console cannot be freed from its own callback. */
static void on_output_end(void *arg)
{
	struct process *p = arg;

	if (p->exited)
		timer_start(p->grace, 0);
}

/* What its command leaves behind ends with it: nobody could refer to it any more. */
static bool sweeps(void *arg, int status, int signal)
{
	return true;
}

static void on_program_exit(void *arg, int status, int signal)
{
	struct process *p = arg;

	p->exited = true;
	p->info.status = status;
	p->info.signal = signal;
	timer_start(p->grace, console_drain(p->console) ? 0 : GRACE_MS);
}

/* ---- output ---- */

/* When it is full, half of it is dropped, so that not every byte moves all others. */
static void program_process_on_output(void *arg, const char *data, size_t len)
{
	struct process *p = arg;
	struct buf *b = &p->output;

	p->info.output += len;
	if (len > b->max / 2) {
		data += len - b->max / 2;
		len = b->max / 2;
	}
	if (b->len + len > b->max)
		buf_consume(b, b->len - b->max / 2);
	if (b->len + len > b->max)
		buf_consume(b, b->len);
	buf_add(b, data, len);
	if (b->err != 0)
		buf_clear(b);
	p->begin = p->info.output - b->len;
}

int process_log(struct processes *all, struct text id, int64_t offset, size_t limit,
		struct process_log *ret_log, struct error *error)
{
	struct process *p = NULL;
	uint64_t at;
	size_t n;
	int r = get(all, id, &p, error);

	if (r != 0)
		return r;
	at = (uint64_t)offset;
	if (offset < 0)
		at = (uint64_t) - (offset + 1) < p->info.output ? p->info.output - (uint64_t)-offset
								: 0;
	if (at < p->begin)
		at = p->begin;
	if (at > p->info.output)
		at = p->info.output;
	n = (size_t)(p->info.output - at);
	*ret_log = (struct process_log) {
		.bytes = {.data = n > 0 ? p->output.data + (at - p->begin) : "",
			  .len = n < limit ? n : limit},
		.offset = at,
		.end = p->info.output,
	};
	return 0;
}

/* ---- the start ---- */

static int resolve(const struct processes *p, struct text workdir, char **ret_path,
		   struct error *error)
{
	CLEANUP(freep) char *joined = NULL;
	size_t n = p->folder ? strlen(p->folder) : 0;

	if (!workdir.data || workdir.len == 0)
		joined = strdup(p->folder ? p->folder : ".");
	else if (workdir.data[0] == '/' || !p->folder)
		joined = strndup(workdir.data, workdir.len);
	else if (asprintf(&joined, "%s/%.*s", p->folder, TEXT_ARGS(workdir)) < 0)
		joined = NULL;
	if (!joined)
		return -ENOMEM;
	*ret_path = realpath(joined, NULL);
	if (!*ret_path)
		return errno == ENOMEM
			       ? -ENOMEM
			       : refuse_field(error, "workdir", "no such directory: %s", joined);
	if (n > 1 && (strncmp(*ret_path, p->folder, n) != 0 ||
		      ((*ret_path)[n] != '/' && (*ret_path)[n] != '\0'))) {
		free(*ret_path);
		*ret_path = NULL;
		return refuse(error, REFUSE_FORBIDDEN, "workdir must be in %s", p->folder);
	}
	return 0;
}

static int process_new(struct processes *all, const struct process_new *in,
		       struct process **ret_process, struct error *error)
{
	struct process *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->all = all;
	list_append(&all->all, &p->link);
	all->n_all++;
	list_init(&p->waits);
	buf_init(&p->output, PROCESS_OUTPUT_MAX);
	make_id(all, p->id);
	p->command = strndup(in->command.data, in->command.len);
	r = p->command ? resolve(all, in->workdir, &p->workdir, error) : -ENOMEM;
	if (r == 0)
		r = timer_new(all->opts.loop, on_grace, p, &p->grace)
			    ?: tree_mark(all->opts.owner, p->mark);
	if (r != 0) {
		process_free(p);
		return r;
	}
	*ret_process = p;
	return 0;
}

/* Programs on a terminal ask for its type. The client's variables come last, and win. */
static int make_env(const struct process_new *in, const char ***ret_env)
{
	const char **env = calloc(in->n_env + 2, sizeof(*env));
	unsigned n = 0;

	if (!env)
		return -ENOMEM;
	if (in->terminal)
		env[n++] = "TERM=xterm";
	for (unsigned i = 0; i < in->n_env; i++)
		env[n++] = in->env[i].data;
	*ret_env = env;
	return 0;
}

static int launch(struct process *p, const struct process_new *in, const char **env,
		  struct error *error)
{
	const char *const argv[] = {"/bin/sh", "-c", "--", p->command, NULL};
	const struct supervised_opts opts = {
		.argv = argv,
		.base = p->all->opts.env,
		.env = env,
		.cwd = p->workdir,
		.streams = console_streams(p->console),
		.terminal = in->terminal,
		.mark = p->mark,
		.what = p->id,
		.sweeps = sweeps,
		.on_exit = on_program_exit,
		.arg = p,
	};

	return supervised_start(p->all->opts.loop, &opts, &p->program, error);
}

static int open_and_launch(struct process *p, const struct process_new *in, struct error *error)
{
	const struct console_opts opts = {
		.terminal = in->terminal,
		.on_output = program_process_on_output,
		.on_end = on_output_end,
		.arg = p,
	};
	CLEANUP(freep) const char **env = NULL;
	int r = make_env(in, &env) ?: console_new(p->all->opts.loop, &opts, &p->console)
			?: launch(p, in, env, error);

	if (r == 0)
		console_started(p->console);
	return r;
}

int process_run(struct processes *all, const struct process_new *in, struct process **ret_process,
		struct error *error)
{
	struct process *p;
	int r;

	if (all->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (all->n_running >= PROCESS_RUNNING_MAX)
		return refuse(error, REFUSE_LIMIT, "too many processes (limit %d)",
			      PROCESS_RUNNING_MAX);
	forget_oldest(all);
	r = process_new(all, in, &p, error);
	if (r != 0)
		return r;
	r = open_and_launch(p, in, error);
	if (r != 0) {
		process_free(p);
		return r;
	}
	p->info = (struct process_info) {
		.id = p->id,
		.command = text_of(p->command),
		.workdir = text_of(p->workdir),
		.pid = supervised_pid(p->program),
		.terminal = in->terminal,
		.running = true,
		.started_ms = clock_utc_ms(),
	};
	all->n_running++;
	log_info("process started", "process=%s pid=%d", p->id, (int)p->info.pid);
	*ret_process = p;
	return 0;
}

int process_feed(struct process *p, struct text data, bool eof, struct error *error)
{
	int r = p->console ? 0 : -EPIPE;

	if (r == 0 && data.len > 0)
		r = console_write(p->console, data.data, data.len);
	if (r == 0 && eof)
		r = console_end_input(p->console);
	if (r == -EPIPE)
		return refuse(error, REFUSE_CONFLICT, "process %s has closed its input", p->id);
	if (r == -ENOBUFS)
		return refuse(error, REFUSE_LIMIT,
			      "process %s has not read its previous input; try again later", p->id);
	return r;
}

/* ---- reading ---- */

int process_list(struct processes *all, struct process_info out[PROCESS_KEPT_MAX], unsigned *ret_n,
		 struct error *error)
{
	unsigned n = 0;

	if (!all)
		return process_forbidden(error);
	for (const struct list *at = all->all.prev; at != &all->all && n < PROCESS_KEPT_MAX;
	     at = at->prev)
		out[n++] = list_entry(at, const struct process, link)->info;
	*ret_n = n;
	return 0;
}

int process_get(struct processes *all, struct text id, struct process_info *ret_info,
		struct error *error)
{
	struct process *p = NULL;
	int r = get(all, id, &p, error);

	if (r == 0)
		*ret_info = p->info;
	return r;
}

int process_kill(struct processes *all, struct text id, process_fn fn, void *arg,
		 struct process_wait **ret_wait, struct process_info *ret_info, struct error *error)
{
	struct process_wait *w;
	struct process *p = NULL;
	int r = get(all, id, &p, error);

	if (r != 0)
		return r;
	*ret_wait = NULL;
	*ret_info = p->info;
	if (!p->info.running)
		return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct process_wait) {.fn = fn, .arg = arg};
	list_append(&p->waits, &w->link);
	*ret_wait = w;
	p->info.killed = true;
	supervised_end(p->program, KILL_AFTER_MS);
	return 0;
}

void process_wait_leave(struct process_wait *w)
{
	if (!w)
		return;
	list_remove(&w->link);
	free(w);
}

/* ---- all processes ---- */

static bool is_own(const struct approval *row)
{
	return text_is(row->tool, PROCESS_TOOL);
}

int processes_new(const struct processes_opts *opts, struct processes **ret_processes,
		  struct error *error)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	list_init(&p->all);
	list_init(&p->asks);
	if (opts->folder && opts->folder[0]) {
		p->folder = realpath(opts->folder, NULL);
		if (!p->folder) {
			free(p);
			return refuse(error, REFUSE_PARAMS, "%s: %s", opts->folder,
				      strerror(errno));
		}
	}
	approvals_withdraw_left(p->opts.approvals, TEXT(PROCESS_AGENT), is_own);
	*ret_processes = p;
	return 0;
}

void processes_stop(struct processes *p, unsigned grace_ms, void (*fn)(void *arg), void *arg)
{
	struct error error;

	if (!p) {
		if (fn)
			fn(arg);
		return;
	}
	p->on_stopped = fn;
	p->stopped_arg = arg;
	if (p->stopping)
		grace_ms = 0;
	p->stopping = true;
	process_asks_end(p, refuse(&error, REFUSE_STOPPING, "koined is stopping"), &error);
	list_for_each (at, following, &p->all) {
		struct process *process = list_entry(at, struct process, link);

		if (process->program) {
			process->info.killed = true;
			supervised_end(process->program, grace_ms ? grace_ms : STOP_KILL_MS);
		}
	}
	check_stopped(p);
}

void processes_free(struct processes *p)
{
	struct list *first;

	if (!p)
		return;
	process_asks_end(p, 0, NULL);
	while ((first = list_first(&p->all))) {
		struct process *process = list_entry(first, struct process, link);

		while (!list_empty(&process->waits))
			process_wait_leave(
				list_entry(list_first(&process->waits), struct process_wait, link));
		process_free(process);
	}
	free(p->folder);
	free(p);
}
