/*
 * Sessions begin: anew, or where another ended. A session is in the store before its program
 * starts, so that a daemon that dies meanwhile knows of it.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/session_program.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/chat/chat.h"
#include "engine/session/inner.h"
#include "io/supervisor.h"
#include "store/store.h"

enum { SUMMARY_MAX = 50, SUMMARY_KEPT = 47 }; /* characters */

/* ---- what may not be ---- */

static int check_text(struct text t, const char *field, size_t max, struct why *why)
{
	if (t.len > max)
		return refuse_field(why, field, "%s is longer than %zu bytes", field, max);
	if (t.data && memchr(t.data, '\0', t.len))
		return refuse_field(why, field, "%s must not contain NUL", field);
	return 0;
}

static int check_list(const struct text *list, unsigned n, const char *field, struct why *why)
{
	int r = 0;

	if (n > SESSION_TOOLS_MAX)
		return refuse_field(why, field, "%s has more than %d entries", field,
				    SESSION_TOOLS_MAX);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = check_text(list[i], field, SESSION_TITLE_MAX, why);
	return r;
}

enum { PROMPT_MAX = 100 << 10 }; /* the kernel takes 128 KiB of an argument */

static int check(const struct session_new *in, struct why *why)
{
	const struct {
		struct text text;
		const char *name;
		size_t max;
	} texts[] = {
		{in->query, "query", SESSION_QUERY_MAX},
		{in->title, "title", SESSION_TITLE_MAX},
		{in->model, "model", SESSION_TITLE_MAX},
		{in->permission_prompt_tool, "permission_prompt_tool", SESSION_TITLE_MAX},
		{in->working_dir, "working_dir", PATH_MAX - 1},
		{in->system_prompt, "system_prompt", PROMPT_MAX},
		{in->append_system_prompt, "append_system_prompt", PROMPT_MAX},
		{in->custom_instructions, "custom_instructions", PROMPT_MAX},
		{in->agent, "agent", AGENT_NAME_MAX - 1},
	};
	int r = 0;

	if (in->query.len == 0)
		return refuse_field(why, "query", "query is required");
	for (unsigned i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = check_text(texts[i].text, texts[i].name, texts[i].max, why);
	if (r == 0)
		r = check_list(in->allowed_tools, in->n_allowed_tools, "allowed_tools", why);
	if (r == 0)
		r = check_list(in->disallowed_tools, in->n_disallowed_tools, "disallowed_tools",
			       why);
	/* They become one argument. */
	if (r == 0 && in->append_system_prompt.len + in->custom_instructions.len > PROMPT_MAX)
		r = refuse_field(why, "custom_instructions",
				 "custom_instructions and append_system_prompt have more than %d "
				 "bytes together",
				 PROMPT_MAX);
	if (r == 0 && (in->max_turns < 0 || in->max_turns > INT32_MAX))
		r = refuse_field(why, "max_turns", "max_turns must be between 0 and %d", INT32_MAX);
	if (r == 0 && in->mcp_config && in->mcp_config->kind != VALUE_OBJECT)
		r = refuse_field(why, "mcp_config", "mcp_config must be an object");
	return r;
}

/* One that has ended runs no more, even if the store has not heard of that. */
unsigned sessions_open(const struct sessions *s)
{
	unsigned n = 0;

	if (!s)
		return 0;
	list_for_each (at, following, &s->live)
		n += !list_entry(at, struct live_session, link)->exited;
	return n;
}

static int check_room(const struct sessions *s, struct why *why)
{
	if (s->stopping)
		return refuse(why, REFUSE_STOPPING, "the daemon is stopping");
	if (sessions_open(s) >= s->opts.parallel)
		return refuse(why, REFUSE_LIMIT, "%u sessions are running, which is the limit",
			      s->opts.parallel);
	return 0;
}

/* Who answers: who is named, by the client or by the settings; the program; the default agent, if it
 * can do anything. */
static int choose_runner(struct sessions *s, struct live_session *l, struct text wanted,
			 struct why *why)
{
	struct agent *agent;

	if (wanted.len == 0)
		wanted = text_of(s->runner);
	if (wanted.len > 0 && !text_is(wanted, "claude")) {
		agent = chat_agent(s->opts.chat, wanted);
		if (!agent)
			return refuse_field(why, "agent", "agent '%.*s' is not configured",
					    TEXT_ARGS(wanted));
		l->row.runner = text_of(agent->name);
		return 0;
	}
	l->row.runner = TEXT("claude");
	if (wanted.len > 0 || session_program_is_there(s->program))
		return 0;
	agent = chat_worker(s->opts.chat);
	if (agent)
		l->row.runner = text_of(agent->name);
	else
		l->nobody = true;
	return 0;
}

/* ---- a new one ---- */

/* White space in a row becomes one blank, at the ends none. */
static size_t collapse(struct text from, char *out)
{
	bool blank = false;
	size_t n = 0;

	for (size_t i = 0; i < from.len; i++) {
		if (isspace((unsigned char)from.data[i])) {
			blank = n > 0;
			continue;
		}
		if (blank)
			out[n++] = ' ';
		blank = false;
		out[n++] = from.data[i];
	}
	return n;
}

/* How many bytes the first characters have. */
static size_t bytes_of(const char *text, size_t len, unsigned chars)
{
	size_t at = 0;

	while (at < len && chars-- > 0) {
		at++;
		while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
			at++;
	}
	return at;
}

static int summarize(struct arena *a, struct text query, struct text *ret_summary)
{
	char *out = arena_alloc(a, query.len + 4);
	size_t n;

	if (!out)
		return -ENOMEM;
	n = collapse(query, out);
	if (bytes_of(out, n, SUMMARY_MAX) < n) {
		n = bytes_of(out, n, SUMMARY_KEPT);
		memcpy(out + n, "...", 3);
		n += 3;
	}
	*ret_summary = (struct text) {.data = out, .len = n};
	return 0;
}

static int expand_folder(struct arena *a, struct text dir, struct text *ret_dir)
{
	char buffer[PATH_MAX];
	const char *home = getenv("HOME");
	int n;

	if (!dir.data || dir.len == 0) {
		if (!getcwd(buffer, sizeof(buffer)))
			return -errno;
		n = (int)strlen(buffer);
	} else if (home && (text_is(dir, "~") || (dir.len > 1 && !memcmp(dir.data, "~/", 2)))) {
		n = snprintf(buffer, sizeof(buffer), "%s%.*s", home, (int)dir.len - 1,
			     dir.data + 1);
	} else {
		n = snprintf(buffer, sizeof(buffer), "%.*s", TEXT_ARGS(dir));
	}
	if (n >= (int)sizeof(buffer))
		return -ENAMETOOLONG;
	ret_dir->data = arena_copy(a, buffer, (size_t)n);
	ret_dir->len = (size_t)n;
	return ret_dir->data ? 0 : -ENOMEM;
}

static int keep_text(struct arena *a, struct text from, struct text *at)
{
	*at = (struct text) {0};
	if (!from.data)
		return 0;
	at->data = arena_copy(a, from.data, from.len);
	at->len = from.len;
	return at->data ? 0 : -ENOMEM;
}

static int fill_row(struct live_session *l, const struct session_new *in, struct text parent)
{
	struct session *row = &l->row;
	struct arena *a = &l->arena;
	int r = keep_text(a, in->query, &row->query);

	row->id = text_of(l->id);
	row->run = text_of(l->run);
	row->mark = text_of(l->mark);
	row->created_ms = clock_utc_ms();
	row->active_ms = row->created_ms;
	row->cost_usd = -1;
	row->input_tokens = -1;
	row->output_tokens = -1;
	row->duration_ms = -1;
	row->turns = -1;
	if (r == 0)
		r = summarize(a, in->query, &row->summary);
	if (r == 0)
		r = keep_text(a, parent, &row->parent);
	if (r == 0)
		r = keep_text(a, in->title, &row->title);
	if (r == 0)
		r = keep_text(a, in->model, &row->model);
	if (r == 0)
		r = expand_folder(a, in->working_dir, &row->working_dir);
	return r == 0 ? session_config_make(a, in, &l->config, &row->config.bytes) : r;
}

static int set_ids(struct live_session *l)
{
	int r = uuid4(l->id);

	if (r == 0)
		r = uuid4(l->run);
	return r == 0 ? supervisor_mark(store_identity(l->sessions->opts.store), l->mark) : r;
}

static struct live_session *live_new(struct sessions *s)
{
	struct live_session *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->sessions = s;
	list_init(&l->link);
	list_init(&l->enders);
	changes_init(&l->changes, &s->keeper);
	arena_init(&l->arena, SESSION_ARENA_MAX);
	buf_init(&l->result, SESSION_RESULT_MAX);
	buf_init(&l->error, SESSION_RESULT_MAX + 64);
	session_run_init(l);
	transcript_init(&l->transcript, session_said, l);
	return l;
}

static int make(struct sessions *s, const struct session_new *in, struct text parent,
		struct text resume, struct live_session **ret_live, struct why *why)
{
	struct live_session *l;
	int r = check(in, why);

	if (r == 0)
		r = check_room(s, why);
	if (r != 0)
		return r;
	l = live_new(s);
	if (!l)
		return -ENOMEM;
	r = set_ids(l);
	if (r == 0)
		r = fill_row(l, in, parent);
	if (r == 0)
		r = keep_text(&l->arena, resume, &l->resume);
	if (r == 0)
		r = choose_runner(s, l, in->agent, why);
	list_append(&s->live, &l->link);
	s->n_live++;
	if (r != 0)
		session_drop(l);
	else
		*ret_live = l;
	return r;
}

/* ---- into the store ---- */

struct adding {
	struct work work;
	struct live_session *live;
	int result;
};

static int adding_run(struct work *w, int lane)
{
	struct adding *a = list_entry(w, struct adding, work);

	(void)lane;
	return store_session_add(store_writer(a->live->sessions->opts.store), &a->live->row,
				 &a->live->row.seq);
}

static void give_up(struct live_session *l, int result, const struct why *why)
{
	session_launched_fn fn = l->launched;
	void *arg = l->launched_arg;

	session_drop(l);
	fn(arg, result, NULL, why);
}

static void adding_finished(struct work *w, int result)
{
	struct adding *a = list_entry(w, struct adding, work);
	struct live_session *l = a->live;

	free(a);
	l->sessions->n_coming--;
	if (result == 0)
		session_begin(l);
	else
		give_up(l, result, NULL);
}

static void keep(struct live_session *l)
{
	struct sessions *s = l->sessions;
	struct adding *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a) {
		a->live = l;
		a->work = (struct work) {.run = adding_run, .finished = adding_finished};
		s->n_coming++;
		r = s->opts.background.submit(s->opts.background.arg, &a->work, true);
	}
	if (r == 0)
		return;
	if (a)
		s->n_coming--;
	free(a);
	give_up(l, r, NULL);
}

static void launch(struct sessions *s, const struct session_new *in, struct text parent,
		   struct text resume, session_launched_fn fn, void *arg)
{
	struct live_session *l = NULL;
	struct why why = {0};
	int r = make(s, in, parent, resume, &l, &why);

	if (r != 0) {
		fn(arg, r, NULL, &why);
		return;
	}
	l->launched = fn;
	l->launched_arg = arg;
	keep(l);
}

void session_launch(struct sessions *s, const struct session_new *in, session_launched_fn fn,
		    void *arg)
{
	launch(s, in, (struct text) {0}, (struct text) {0}, fn, arg);
}

/* ---- going on where another ended ---- */

struct continuation {
	struct work work;
	struct session_ender ender;
	struct sessions *sessions;
	struct arena arena;
	struct session_new in; /* its texts are in the arena */
	struct text parent;
	struct session row;
	bool found;
	bool again; /* it is looked for once more */
	int result;
	session_launched_fn fn;
	void *arg;
};

static void continuation_free(struct continuation *c)
{
	arena_done(&c->arena);
	free(c);
}

static void refuse_continuation(struct continuation *c, int result, const struct why *why)
{
	session_launched_fn fn = c->fn;
	void *arg = c->arg;

	continuation_free(c);
	fn(arg, result, NULL, why);
}

static int check_parent(const struct session_wording *wording, const struct session *row,
			bool is_open, struct why *why)
{
	bool good = row->status == SESSION_COMPLETED || row->status == SESSION_INTERRUPTED ||
		    (is_open && row->status != SESSION_STARTING);

	if (!good)
		return refuse(
			why, REFUSE_CONFLICT,
			"cannot continue session with status %s (must be completed or running)",
			session_status_name(row->status));
	if (!row->agent_session.data)
		return wording->no_agent_session(why);
	if (!row->working_dir.data)
		return refuse(why, REFUSE_CONFLICT,
			      "parent session missing working_dir (cannot resume session without "
			      "working directory)");
	return 0;
}

/* The parent is at its end. */
static void go_on(struct continuation *c)
{
	struct session *row = &c->row;
	int r = session_config_inherit(&c->arena, row, &c->in);
	struct sessions *s = c->sessions;
	session_launched_fn fn = c->fn;
	void *arg = c->arg;

	if (r != 0) {
		refuse_continuation(c, r, NULL);
		return;
	}
	/* Everything is copied before it returns; whoever is told may do anything. */
	launch(s, &c->in, row->id, row->agent_session, fn, arg);
	continuation_free(c);
}

static void on_parent_ended(struct session_ender *e, const struct session *row)
{
	struct continuation *c = list_entry(e, struct continuation, ender);

	if (row)
		go_on(c);
	else
		continuation_free(c);
}

static bool has_ended(enum session_status status)
{
	return status >= SESSION_COMPLETED;
}

static void look_for_parent(struct continuation *c)
{
	const struct background *b = &c->sessions->opts.background;
	int r = b->submit(b->arg, &c->work, false);

	if (r != 0)
		refuse_continuation(c, r, NULL);
}

static void parent_found(struct continuation *c)
{
	struct live_session *l = session_live(c->sessions, c->row.id);
	bool is_open = l && !l->exited;
	struct why why = {0};
	int r;

	/* It ended between the look and now: the store knows better. */
	if (!l && !has_ended(c->row.status) && !c->again) {
		c->again = true;
		look_for_parent(c);
		return;
	}
	/* What is at hand is newer. */
	if (l) {
		c->row.status = l->row.status;
		r = keep_text(&c->arena, l->row.agent_session, &c->row.agent_session);
		if (r != 0) {
			refuse_continuation(c, r, NULL);
			return;
		}
	}
	r = check_parent(c->sessions->opts.wording, &c->row, is_open, &why);
	if (r != 0) {
		refuse_continuation(c, r, &why);
		return;
	}
	if (!is_open) {
		go_on(c);
		return;
	}
	c->ender.fn = on_parent_ended;
	list_append(&l->enders, &c->ender.link);
	if (l->attempt.intent == INTENT_NONE) {
		session_set_status(l, SESSION_COMPLETING);
		session_end_with(l, INTENT_CANCEL);
	}
}

static int continuation_run(struct work *w, int lane)
{
	struct continuation *c = list_entry(w, struct continuation, work);

	return store_session_find(store_lane(c->sessions->opts.store, lane), c->parent, &c->arena,
				  &c->row, &c->found);
}

static void continuation_finished(struct work *w, int result)
{
	struct continuation *c = list_entry(w, struct continuation, work);
	struct why why = {0};

	if (result == 0 && !c->found)
		result = refuse(&why, REFUSE_NOT_FOUND, "session not found: %.*s",
				TEXT_ARGS(c->parent));
	if (result == 0 && c->sessions->stopping)
		result = refuse(&why, REFUSE_STOPPING, "the daemon is stopping");
	if (result != 0)
		refuse_continuation(c, result, &why);
	else
		parent_found(c);
}

static int copy_list(struct arena *a, const struct text **list, unsigned n)
{
	struct text *copy;
	int r = 0;

	if (!*list)
		return 0;
	copy = arena_alloc(a, (n + 1) * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = keep_text(a, (*list)[i], &copy[i]);
	*list = copy;
	return r;
}

/* A copy that lives as long as the continuation. */
static int copy_new(struct continuation *c, const struct session_new *from)
{
	struct session_new *in = &c->in;
	struct text *const texts[] = {&in->query,
				      &in->title,
				      &in->model,
				      &in->permission_prompt_tool,
				      &in->working_dir,
				      &in->system_prompt,
				      &in->append_system_prompt,
				      &in->custom_instructions,
				      &in->agent};
	const struct value *config = NULL;
	struct text packed = {0};
	int r = 0;

	*in = *from;
	for (unsigned i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = keep_text(&c->arena, *texts[i], texts[i]);
	if (r == 0)
		r = copy_list(&c->arena, &in->allowed_tools, in->n_allowed_tools);
	if (r == 0)
		r = copy_list(&c->arena, &in->disallowed_tools, in->n_disallowed_tools);
	if (r == 0 && in->mcp_config) {
		const struct session_new only = {.mcp_config = in->mcp_config};

		r = session_config_make(&c->arena, &only, &config, &packed);
		in->mcp_config = value_find(config, "mcp_config");
	}
	return r;
}

void session_continue(struct sessions *s, struct text parent, const struct session_new *in,
		      session_launched_fn fn, void *arg)
{
	struct continuation *c;
	struct why why = {0};
	int r = check(in, &why);

	if (r != 0) {
		fn(arg, r, NULL, &why);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		fn(arg, -ENOMEM, NULL, NULL);
		return;
	}
	arena_init(&c->arena, SESSION_ARENA_MAX);
	list_init(&c->ender.link);
	c->sessions = s;
	c->fn = fn;
	c->arg = arg;
	c->work = (struct work) {.run = continuation_run, .finished = continuation_finished};
	r = keep_text(&c->arena, parent, &c->parent);
	if (r == 0)
		r = copy_new(c, in);
	if (r != 0)
		refuse_continuation(c, r, NULL);
	else
		look_for_parent(c);
}
