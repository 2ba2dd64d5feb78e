/*
 * A program with everything that it starts.
 *
 * The child reports its own end. What it has started is found by the mark, and in the cgroup
 * where there is one; both are searched again and again until nobody is left, since processes
 * are born while we look. None of that blocks: the searches are made beside the loop.
 */
#include "io/process/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/process/child.h"
#include "io/process/inner.h"

enum {
	GRACE_MS = 250,    /* for output that others hold open when the child has ended */
	SWEEP_MS = 100,    /* between two searches for processes that are left */
	SWEEP_SOON_MS = 5, /* between the first few: mostly they are gone at once */
	SWEEPS_SOON = 5,
	SWEEPS_MAX = 50,
};

/* How far its end has got. */
enum step { STEP_NONE, STEP_INTERRUPTED, STEP_TERMINATED, STEP_KILLED };

struct supervised {
	struct loop *loop;
	struct child *child;
	struct cgroup *cgroup; /* NULL: there can be none */
	struct timer *timer;   /* until the next step; later between two sweeps */
	enum step step;
	unsigned interrupt_ms; /* of an interrupt: from SIGINT to SIGTERM */
	unsigned terminate_ms; /* and to SIGKILL */
	uint64_t kill_at_ms;   /* once terminated */
	bool starting;
	bool early_end;       /* it was told to end before it had started: */
	bool early_interrupt; /* which way, and what it was given */
	unsigned early_ms;
	struct reap reap;
	bool reaping;
	int next_reap; /* the signal, once this one is over; 0: none */
	unsigned n_sweeps;
	bool exited; /* the child has ended; only sweeps are left */
	bool told;
	bool freed;
	int status;
	int signal;
	void (*on_started)(void *arg, int result, const struct error *error);
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t len);
	bool (*sweeps)(void *arg, int status, int signal);
	void (*on_exit)(void *arg, int status, int signal);
	void *arg;
	char mark[TREE_MARK_MAX];
	char what[]; /* for the log */
};

/* ---- signals ---- */

/* One reap at a time; what is asked for meanwhile follows. */
static void supervisor_reap(struct supervised *s, int number)
{
	if (s->reaping) {
		s->next_reap = number;
		return;
	}
	s->reaping = true;
	s->reap.mark = s->mark;
	s->reap.cgroup = s->cgroup;
	s->reap.signal = number;
	s->reap.told_group = number == SIGKILL ? 0 : child_pid(s->child);
	helper_give(&reaper, s->loop, &s->reap.aside);
}

/* The group first, and at once: that works even where there is no memory to search. */
static void signal_all(struct supervised *s, int number)
{
	child_signal(s->child, number);
	supervisor_reap(s, number);
}

static void step_kill(struct supervised *s)
{
	s->step = STEP_KILLED;
	timer_stop(s->timer);
	/* Its group is killed after that: a child that carries no mark is found as long as its
	 * parent lives. */
	supervisor_reap(s, SIGKILL);
}

static void step_terminate(struct supervised *s, unsigned kill_after_ms)
{
	s->step = STEP_TERMINATED;
	s->kill_at_ms = loop_now_ms(s->loop) + kill_after_ms;
	signal_all(s, SIGTERM);
	timer_start(s->timer, kill_after_ms);
}

static void end_early(struct supervised *s, unsigned kill_after_ms)
{
	if (!s->early_end || kill_after_ms < s->early_ms)
		s->early_ms = kill_after_ms;
	s->early_end = true;
}

void supervised_end(struct supervised *s, unsigned kill_after_ms)
{
	if (s->starting) {
		end_early(s, kill_after_ms);
		return;
	}
	if (s->exited || s->step == STEP_KILLED)
		return;
	if (kill_after_ms == 0) {
		step_kill(s);
	} else if (s->step != STEP_TERMINATED) {
		step_terminate(s, kill_after_ms);
	} else if (loop_now_ms(s->loop) + kill_after_ms < s->kill_at_ms) {
		s->kill_at_ms = loop_now_ms(s->loop) + kill_after_ms;
		timer_start(s->timer, kill_after_ms);
	}
}

void supervised_interrupt(struct supervised *s, unsigned interrupt_ms, unsigned terminate_ms)
{
	if (s->starting && !s->early_interrupt) {
		s->early_interrupt = true;
		s->interrupt_ms = interrupt_ms;
		s->terminate_ms = terminate_ms;
	}
	if (s->starting || s->exited || s->step != STEP_NONE)
		return;
	s->step = STEP_INTERRUPTED;
	s->terminate_ms = terminate_ms;
	/* Only its group, as a terminal's ^C would: what has left the group does not hear that
	 * either. */
	child_signal(s->child, SIGINT);
	timer_start(s->timer, interrupt_ms);
}

/* ---- the end ---- */

static void tell_exit(struct supervised *s)
{
	s->told = true;
	if (s->on_exit)
		s->on_exit(s->arg, s->status, s->signal);
}

/* Repeated until nobody carries the mark. */
static void on_swept(struct supervised *s)
{
	if (s->reap.n > 0 && ++s->n_sweeps < SWEEPS_MAX) {
		timer_start(s->timer, s->n_sweeps < SWEEPS_SOON ? SWEEP_SOON_MS : SWEEP_MS);
		return;
	}
	if (s->n_sweeps >= SWEEPS_MAX)
		log_warn("processes did not exit", "%s", s->what);
	tell_exit(s);
}

static void drop(struct supervised *s)
{
	child_free(s->child);
	if (!s->cgroup) {
		free(s);
		return;
	}
	s->reap.cgroup = s->cgroup;
	s->reap.removes = true;
	helper_give(&reaper, s->loop, &s->reap.aside);
}

/* Nobody is told any more. */
static void give_up(struct supervised *s, bool kills)
{
	if (kills)
		supervisor_reap(s, SIGKILL);
	else
		drop(s);
}

static void on_hunted(struct aside *a)
{
	struct supervised *s = list_entry(a, struct supervised, reap.aside);
	int next = s->next_reap;

	if (s->reap.removes) {
		free(s);
		return;
	}
	s->reaping = false;
	s->next_reap = 0;
	if (next != 0)
		supervisor_reap(s, next);
	else if (s->freed)
		drop(s);
	else if (s->exited)
		on_swept(s);
	else if (s->step == STEP_KILLED)
		child_signal(s->child, SIGKILL);
}

static void on_time(void *arg)
{
	struct supervised *s = arg;

	if (s->exited)
		supervisor_reap(s, SIGKILL);
	else if (s->step == STEP_INTERRUPTED && s->terminate_ms > 0)
		step_terminate(s, s->terminate_ms);
	else
		step_kill(s);
}

static void on_child_exit(void *arg, int status, int signal)
{
	struct supervised *s = arg;
	bool sweeps;

	if (s->freed)
		return;
	s->exited = true;
	s->status = status;
	s->signal = signal;
	timer_stop(s->timer);
	sweeps = s->sweeps && s->sweeps(s->arg, status, signal);
	if (sweeps || s->step != STEP_NONE)
		supervisor_reap(s, SIGKILL);
	else
		tell_exit(s);
}

static void on_child_output(void *arg, bool is_stderr, const char *data, size_t len)
{
	const struct supervised *s = arg;

	if (s->on_output && !s->freed)
		s->on_output(s->arg, is_stderr, data, len);
}

/* ---- the start ---- */

static void on_child_started(void *arg, int result, const struct error *error)
{
	struct supervised *s = arg;

	s->starting = false;
	if (s->freed) {
		give_up(s, result == 0);
		return;
	}
	if (result == 0 && s->early_interrupt)
		supervised_interrupt(s, s->interrupt_ms, s->terminate_ms);
	if (result == 0 && s->early_end)
		supervised_end(s, s->early_ms);
	s->told = result != 0;
	s->on_started(s->arg, result, error);
}

/* Where there can be one, it holds what would hide from the mark. Perhaps on another thread, while
 * the loop leaves it alone. */
static const struct cgroup *make_cgroup(void *arg)
{
	struct supervised *s = arg;

	return cgroup_new(s->mark, &s->cgroup) == 0 ? s->cgroup : NULL;
}

static int start_child(struct supervised *s, const struct supervised_opts *opts,
		       const char *const *env, struct error *error)
{
	const struct child_opts child = {
		.argv = opts->argv,
		.env = environment_list(opts->base),
		.more_env = env,
		.cwd = opts->cwd,
		.input = opts->input.data,
		.input_len = opts->input.len,
		.streams = opts->streams,
		.terminal = opts->terminal,
		.on_started = opts->on_started ? on_child_started : NULL,
		.on_output = on_child_output,
		.on_exit = on_child_exit,
		.grace_ms = GRACE_MS,
		.die_with_us = true,
		.cgroup = make_cgroup,
		.arg = s,
	};

	s->starting = opts->on_started != NULL;
	return child_start(s->loop, &child, &s->child, error);
}

static int supervisor_start(struct supervised *s, const struct supervised_opts *opts,
			    struct error *error)
{
	char mark[sizeof(TREE_VARIABLE) + TREE_MARK_MAX];
	size_t n = count_strings(opts->env);
	const char **env = calloc(n + 2, sizeof(*env));
	int r;

	if (!env)
		return -ENOMEM;
	if (n > 0)
		memcpy(env, opts->env, n * sizeof(*env));
	/* The last, since of several with one name a program gets the last one. */
	snprintf(mark, sizeof(mark), TREE_VARIABLE "=%s", s->mark);
	env[n] = mark;
	r = start_child(s, opts, env, error);
	free(env);
	return r;
}

static struct supervised *supervised_new(struct loop *l, const struct supervised_opts *opts)
{
	const char *what = opts->what ? opts->what : "";
	struct supervised *s = calloc(1, sizeof(*s) + strlen(what) + 1);

	if (!s)
		return NULL;
	s->loop = l;
	s->on_started = opts->on_started;
	s->on_output = opts->on_output;
	s->sweeps = opts->sweeps;
	s->on_exit = opts->on_exit;
	s->arg = opts->arg;
	s->reap.aside.finished = on_hunted;
	strcpy(s->mark, opts->mark);
	strcpy(s->what, what);
	if (timer_new(l, on_time, s, &s->timer) != 0) {
		free(s);
		return NULL;
	}
	return s;
}

int supervised_start(struct loop *l, const struct supervised_opts *opts,
		     struct supervised **ret_supervised, struct error *error)
{
	struct supervised *s;
	int r;

	/* Without a mark nobody would find what it leaves behind. */
	if (!opts->mark || !*opts->mark || strlen(opts->mark) >= TREE_MARK_MAX)
		return -EINVAL;
	r = helper_start(&reaper, l);
	if (r != 0)
		return r;
	s = supervised_new(l, opts);
	if (!s)
		return -ENOMEM;
	r = supervisor_start(s, opts, error);
	if (r != 0) {
		supervised_free(s);
		return r;
	}
	*ret_supervised = s;
	return 0;
}

pid_t supervised_pid(const struct supervised *s)
{
	return child_pid(s->child);
}

long long supervised_started(const struct supervised *s)
{
	return child_started(s->child);
}

void supervised_read(struct supervised *s, bool on)
{
	child_read(s->child, on);
}

void supervised_free(struct supervised *s)
{
	if (!s)
		return;
	timer_free(s->timer);
	s->freed = true;
	if (!s->child || !s->starting)
		give_up(s, s->child && !s->told);
}
