/*
 * A running session: a program that prints stream-json, supervised like that of a task, or a
 * turn of a conversation if there is no such program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/session_program.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/node/node.h"
#include "engine/session/inner.h"
#include "io/process/supervisor.h"

enum { OWN_VARIABLES = 4, VARIABLE_MAX = 128, STOP_MS = 2000, COST_MAX_USD = 1000000 };

static const char stopped_text[] = "the daemon stopped while the session was active";

void session_run_free(struct live_session *l)
{
	attempt_done(&l->attempt);
	transcript_done(&l->transcript);
	if (l->mcp_file)
		unlink(l->mcp_file);
	free(l->mcp_file);
	l->mcp_file = NULL;
}

/* ---- the end ---- */

static void set_error(struct live_session *l, const char *text)
{
	buf_clear(&l->error);
	buf_add(&l->error, text, strlen(text));
	l->row.error =
		(struct text) {.data = l->error.data ? l->error.data : "", .len = l->error.len};
}

static void tell_enders(struct live_session *l)
{
	struct list *first;

	while ((first = list_first(&l->enders))) {
		struct session_ender *e = list_entry(first, struct session_ender, link);

		list_remove(first);
		e->fn(e, &l->row);
	}
}

static void on_end_kept(struct record_waiter *w, int result)
{
	struct live_session *l = list_entry(w, struct live_session, end_waiter);

	/* It may not be stored yet, but it has ended: those who continue it need not wait for
	 * the disk. */
	if (result != -ECANCELED)
		tell_enders(l);
}

static void note_spent(struct live_session *l, enum session_status status)
{
	bool program = text_is(l->row.runner, CODING_AGENT);
	const struct spent spent = {
		.input = program ? l->row.input_tokens : -1,
		.output = program ? l->row.output_tokens : -1,
		.cache_read = -1,
		.cache_written = -1,
		.micro_usd = l->row.cost_usd > 0 && l->row.cost_usd < COST_MAX_USD
				     ? (int64_t)(l->row.cost_usd * 1e6 + 0.5)
				     : -1,
		.outcome = status == SESSION_COMPLETED     ? SPEND_DONE
			   : status == SESSION_INTERRUPTED ? SPEND_CANCELLED
							   : SPEND_FAILED,
	};

	spend_add(&l->sessions->spend, l->row.runner, &spent);
}

/* The last thing that happens to a session. */
static void session_run_finish(struct live_session *l, enum session_status status)
{
	int64_t now = clock_utc_ms();

	session_say_query(l);
	l->row.ended_ms = now;
	if (l->row.duration_ms < 0)
		l->row.duration_ms = now - l->row.created_ms;
	if (l->mcp_file)
		unlink(l->mcp_file);
	l->exited = true;
	note_spent(l, status);
	session_set_status(l, status);
	l->end_waiter.fn = on_end_kept;
	if (session_when_kept(l, &l->end_waiter) != 0)
		tell_enders(l);
	approval_session_ended(l->sessions->opts.approvals, l->row.id);
}

/* Its stderr explains how it ended, unless it has reported that itself. */
static void word_failure(struct live_session *l)
{
	struct text said = {0};

	if (!l->has_result)
		said = attempt_said(&l->attempt);
	while (said.len > 0 && (said.data[said.len - 1] == '\n' || said.data[said.len - 1] == ' '))
		said.len--;
	buf_clear(&l->error);
	l->sessions->opts.wording->failed(&l->error, l->attempt.status, l->attempt.signal, said);
	l->row.error = (struct text) {.data = l->error.data, .len = l->error.len};
}

static void set_failure(struct live_session *l)
{
	if (l->attempt.intent == INTENT_STOP)
		set_error(l, stopped_text);
	else if (l->attempt.failed)
		set_error(l, l->attempt.error.text);
	else if (!l->row.error.data)
		word_failure(l);
}

static void session_run_on_end(void *arg)
{
	static const enum session_status statuses[N_OUTCOMES] = {
		[OUTCOME_DONE] = SESSION_COMPLETED,        [OUTCOME_FAILED] = SESSION_FAILED,
		[OUTCOME_CANCELLED] = SESSION_INTERRUPTED, [OUTCOME_KILLED] = SESSION_FAILED,
		[OUTCOME_DROPPED] = SESSION_INTERRUPTED,
	};
	struct live_session *l = arg;
	enum session_status status;

	if (l->attempt.program)
		transcript_finish(&l->transcript);
	status = statuses[attempt_outcome(&l->attempt)];
	if (status == SESSION_FAILED)
		set_failure(l);
	else if (status == SESSION_INTERRUPTED)
		l->row.error = (struct text) {0};
	/* The agent itself may have said that it failed. */
	session_run_finish(l, status == SESSION_COMPLETED && l->is_error ? SESSION_FAILED : status);
}

static void session_run_on_output(void *arg, bool is_stderr, const char *data, size_t n)
{
	struct live_session *l = arg;

	if (!is_stderr)
		transcript_feed(&l->transcript, data, n);
}

void session_end_with(struct live_session *l, enum intent intent)
{
	const struct sessions_opts *o = &l->sessions->opts;
	bool stops = intent == INTENT_STOP;
	unsigned terminate_ms = stops && o->terminate_ms > STOP_MS ? STOP_MS : o->terminate_ms;

	if (l->exited ||
	    !attempt_end(&l->attempt, intent, stops ? 0 : o->interrupt_ms, terminate_ms))
		return;
	/* It must not block in a write that nobody reads. */
	l->paused = false;
	if (l->attempt.program)
		supervised_read(l->attempt.program, true);
}

void session_kill(struct live_session *l)
{
	session_end_with(l, INTENT_STOP);
	if (l->attempt.program)
		supervised_end(l->attempt.program, 0);
}

/* ---- as a conversation ---- */

static void session_run_on_answer(void *arg, const struct chat_answer *answer)
{
	struct live_session *l = arg;
	const struct session_event row = {
		.type = SESSION_MESSAGE, .role = TEXT("assistant"), .content = answer->content};

	session_say_query(l);
	if (answer->content.len > 0)
		session_say(l, &row, NULL);
	buf_clear(&l->result);
	buf_add(&l->result, answer->content.data,
		text_cut(answer->content, SESSION_RESULT_MAX).len);
	l->row.result =
		(struct text) {.data = l->result.data ? l->result.data : "", .len = l->result.len};
	l->row.turns = 1;
	l->row.input_tokens = answer->usage.input;
	l->row.output_tokens = answer->usage.output;
}

/* Joins the non-empty parts as paragraphs; {NULL, 0} if there are none. */
static int join(struct arena *a, const struct text *parts, unsigned n, struct text *ret_text)
{
	size_t len = 0;
	char *out;

	for (unsigned i = 0; i < n; i++)
		len += parts[i].len + 2;
	out = arena_alloc(a, len + 1);
	if (!out)
		return -ENOMEM;
	len = 0;
	for (unsigned i = 0; i < n; i++) {
		if (parts[i].len == 0)
			continue;
		if (len > 0)
			out[len++] = '\n', out[len++] = '\n';
		memcpy(out + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	*ret_text = (struct text) {.data = len > 0 ? out : NULL, .len = len};
	return 0;
}

/* The prompts: ours, unless it is replaced, then the additions. */
static int turn_system(struct live_session *l, struct text *ret_system)
{
	const struct session_new *p = &l->plan;
	const struct text ours = chat_system(l->sessions->opts.chat);
	const struct text parts[] = {p->system_prompt.data ? p->system_prompt : ours,
				     p->append_system_prompt, p->custom_instructions};

	/* Without prompts of its own it uses that of conversations. */
	if (p->system_prompt.len + p->append_system_prompt.len + p->custom_instructions.len == 0)
		return 0;
	return join(&l->arena, parts, sizeof(parts) / sizeof(parts[0]), ret_system);
}

/* An agent that is not a program has its own model, no MCP servers and no folders. Its
 * transcript says what was ignored. */
static void say_unused(struct live_session *l)
{
	const struct value *servers = value_find(l->plan.mcp_config.value, "mcpServers");
	const char *const unused[] = {
		l->row.model.data ? "model" : NULL,
		servers && servers->len > 0 ? "mcp_config" : NULL,
		l->plan.additional_directories.n > 0 ? "additional_directories" : NULL,
	};
	struct session_event row = {.type = SESSION_SYSTEM, .role = TEXT("system")};
	char text[AGENT_NAME_MAX + 128];
	char names[64] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
		if (unused[i])
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len > 0 ? " and " : "", unused[i]);
	}
	if (len == 0)
		return;
	snprintf(text, sizeof(text), "koine: agent '%.*s' is not a program and ignores %s",
		 TEXT_ARGS(l->row.runner), names);
	row.content = text_of(text);
	session_say_query(l);
	session_say(l, &row, NULL);
}

static int start_turn(struct live_session *l, struct error *error)
{
	struct chat_ask ask = {.agent = l->row.runner, .content = l->row.query};
	int e = turn_system(l, &ask.system);

	if (e != 0)
		return e;
	if (l->resume.data)
		snprintf(l->agent_session, sizeof(l->agent_session), "%.*s", TEXT_ARGS(l->resume));
	else
		snprintf(l->agent_session, sizeof(l->agent_session), "session:%s", l->id);
	l->row.agent_session = text_of(l->agent_session);
	ask.conversation = l->row.agent_session;
	say_unused(l);
	return attempt_ask(&l->attempt, l->sessions->opts.chat, &ask, error);
}

/* ---- as a program ---- */

static void set_variables(const struct live_session *l, char (*own)[VARIABLE_MAX], const char **env)
{
	const struct session_wording *names = l->sessions->opts.wording;
	const struct {
		const char *name;
		const char *value;
	} variables[OWN_VARIABLES] = {
		{"KOINE_SESSION_ID", l->id},
		{"KOINE_RUN_ID", l->run},
		{names->session_variable, l->id},
		{names->run_variable, l->run},
	};

	for (unsigned i = 0; i < OWN_VARIABLES; i++) {
		snprintf(own[i], VARIABLE_MAX, "%s=%s", variables[i].name, variables[i].value);
		env[i] = own[i];
	}
	env[OWN_VARIABLES] = NULL;
}

static int start_supervised(struct live_session *l, const struct session_program *p,
			    struct error *error)
{
	char own[OWN_VARIABLES][VARIABLE_MAX];
	const char *env[OWN_VARIABLES + 1];
	char what[UUID_LEN + 16];
	struct supervised_opts opts = {
		.argv = (const char *const *)p->argv,
		.base = l->sessions->opts.env,
		.env = env,
		.cwd = l->row.working_dir.data,
		.input = p->input,
		.mark = l->mark,
		.what = what,
	};

	set_variables(l, own, env);
	snprintf(what, sizeof(what), "session=%s", l->id);
	l->named = arena_copy(&l->arena, p->argv[0], strlen(p->argv[0]));
	if (!l->named)
		return -ENOMEM;
	return attempt_run(&l->attempt, l->sessions->opts.loop, &opts, error);
}

static int make_program(struct live_session *l, struct session_program *ret, struct error *error)
{
	const struct session_new *p = &l->plan;
	const struct text appended[] = {p->append_system_prompt, p->custom_instructions};
	struct session_program_opts o = {
		.program = l->sessions->program,
		.resume = l->resume,
		.model = l->row.model,
		.mcp_file = text_of(l->mcp_file),
		.permission_prompt_tool = p->permission_prompt_tool,
		.max_turns = p->max_turns,
		.system_prompt = p->system_prompt,
		.allowed = p->allowed_tools.items,
		.n_allowed = p->allowed_tools.n,
		.disallowed = p->disallowed_tools.items,
		.n_disallowed = p->disallowed_tools.n,
		.folders = p->additional_directories.items,
		.n_folders = p->additional_directories.n,
		.query = l->row.query,
	};
	int r = join(&l->arena, appended, 2, &o.append_system_prompt);

	return r == 0 ? session_program_make(&o, ret, error) : r;
}

static int start_program(struct live_session *l, struct error *error)
{
	struct session_program p;
	int r = session_config_write_mcp(l, error) ?: make_program(l, &p, error);

	if (r != 0)
		return r;
	r = start_supervised(l, &p, error);
	free(p.argv);
	return r;
}

/* ---- the start ---- */

static int check_folder(const struct live_session *l, struct error *error)
{
	const char *dir = l->row.working_dir.data;
	struct stat st;
	int e = 0;

	if (!dir)
		return 0;
	if (stat(dir, &st) != 0)
		e = errno;
	else if (!S_ISDIR(st.st_mode))
		e = ENOTDIR;
	else if (access(dir, X_OK) != 0)
		e = errno;
	return e == 0 ? 0 : l->sessions->opts.wording->no_folder(error, l->row.working_dir, e);
}

static int start(struct live_session *l, struct error *error)
{
	int r = check_folder(l, error);

	/* It was stopped while its row was being stored. */
	if (r == 0 && l->sessions->records.stopping)
		r = refuse(error, REFUSE_UNAVAILABLE, "%s", stopped_text);
	if (r == 0 && (node_epoch(l->sessions->opts.node) != l->row.epoch ||
		       !node_allows(l->sessions->opts.node)))
		r = refuse(error, REFUSE_UNAVAILABLE,
			   "lost connection to the database; this host starts no work until it "
			   "reconnects");
	if (r == 0 && l->nobody)
		r = chat_refuse_work(error, "session");
	if (r != 0)
		return r;
	return text_is(l->row.runner, CODING_AGENT) ? start_program(l, error)
						    : start_turn(l, error);
}

static void tell_launched(struct live_session *l, int result, const struct error *error)
{
	const struct session_launched launched = {
		.id = l->row.id, .run = l->row.run, .parent = l->row.parent};
	session_launched_fn fn = l->launched;
	void *arg = l->launched_arg;

	l->launched = NULL;
	if (fn)
		fn(arg, result, &launched, error);
}

struct failure {
	struct record_waiter waiter;
	struct live_session *live;
	struct error error;
};

static void on_failure_kept(struct record_waiter *w, int result)
{
	struct failure *f = list_entry(w, struct failure, waiter);

	if (result != -ECANCELED)
		tell_launched(f->live, REFUSE_UNAVAILABLE, &f->error);
	free(f);
}

static void fail(struct live_session *l, int result, struct error *error)
{
	struct failure *f = calloc(1, sizeof(*f));

	if (result < 0)
		refuse(error, REFUSE_UNAVAILABLE, "%s", fault_words(result));
	error->code = REFUSE_UNAVAILABLE;
	l->begun = true;
	set_error(l, error->text);
	log_warn("could not start session", "session=%s reason=\"%s\"", l->id, error->text);
	session_run_finish(l, SESSION_FAILED);
	if (f)
		*f = (struct failure) {.waiter.fn = on_failure_kept, .live = l, .error = *error};
	if (!f || session_when_kept(l, &f->waiter) != 0) {
		free(f);
		tell_launched(l, REFUSE_UNAVAILABLE, error);
	}
}

static void begun(struct live_session *l)
{
	session_set_status(l, SESSION_RUNNING);
	/* A program runs before we hear of its start, and may have asked. */
	if (l->n_waiting > 0)
		session_set_status(l, SESSION_WAITING);
	tell_launched(l, 0, NULL);
}

static void on_started(void *arg, int result, const struct error *error)
{
	struct live_session *l = arg;
	struct error own = *error;

	if (result > 0)
		result = l->sessions->opts.wording->no_program(&own, l->named);
	if (result != 0)
		fail(l, result, &own);
	else
		begun(l);
}

void session_begin(struct live_session *l)
{
	struct error error = {0};
	int r = start(l, &error);

	if (r != 0)
		fail(l, r, &error);
	else if (!l->attempt.program)
		begun(l);
}

void session_run_init(struct live_session *l)
{
	static const struct attempt_ops ops = {.on_started = on_started,
					       .on_output = session_run_on_output,
					       .on_answer = session_run_on_answer,
					       .on_end = session_run_on_end};

	attempt_init(&l->attempt, &ops, l, SESSION_STDERR_MAX);
}
