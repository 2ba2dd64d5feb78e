/*
 * A session starts. It is in the store before its program starts, so that the daemon still
 * knows of it if it dies in between.
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
#include "engine/chat/chat.h"
#include "engine/node/node.h"
#include "engine/session/inner.h"
#include "store/store.h"

enum { SUMMARY_MAX = 50, SUMMARY_KEPT = 47 }; /* characters */

/* ---- checking ---- */

static int check_list(struct texts list, const char *field, struct error *error)
{
	int r = 0;

	if (list.n > SESSION_TOOLS_MAX)
		return refuse_field(error, field, "%s has more than %d entries", field,
				    SESSION_TOOLS_MAX);
	for (unsigned i = 0; r == 0 && i < list.n; i++)
		r = text_check(list.items[i], field, SESSION_TITLE_MAX, error);
	return r;
}

enum { PROMPT_MAX = 100 << 10 }; /* the kernel accepts 128 KiB per argument */

static int check_prompts(const struct session_new *in, struct error *error)
{
	/* They become one argument. */
	if (in->append_system_prompt.len + in->custom_instructions.len > PROMPT_MAX)
		return refuse_field(error, "custom_instructions",
				    "custom_instructions and append_system_prompt together are "
				    "larger than %d bytes",
				    PROMPT_MAX);
	if (in->max_turns < 0 || in->max_turns > INT32_MAX)
		return refuse_field(error, "max_turns",
				    "max_turns must be between 0 and %d, not %lld", INT32_MAX,
				    (long long)in->max_turns);
	if (in->mcp_config.value && in->mcp_config.value->kind != VALUE_OBJECT)
		return refuse_field(error, "mcp_config", "mcp_config must be an object, not %s",
				    value_kind_name(in->mcp_config.value));
	return 0;
}

/* The agent would take "--option" for an option of its own. */
static int check_folders(struct texts folders, struct error *error)
{
	static const char field[] = "additional_directories";

	for (unsigned i = 0; i < folders.n; i++) {
		if (folders.items[i].len == 0 || folders.items[i].data[0] != '/')
			return refuse_field(error, field,
					    "%s[%u] must be an absolute path, not '%.*s'", field, i,
					    TEXT_ARGS(text_cut(folders.items[i], 200)));
	}
	return check_list(folders, field, error);
}

int session_check_new(const struct session_new *in, struct error *error)
{
	const struct text_limit texts[] = {
		{in->query, "query", SESSION_QUERY_MAX},
		{in->title, "title", SESSION_TITLE_MAX},
		{in->model, "model", SESSION_TITLE_MAX},
		{in->permission_prompt_tool, "permission_prompt_tool", SESSION_TITLE_MAX},
		{in->working_dir, "working_dir", STORE_FOLDER_MAX},
		{in->system_prompt, "system_prompt", PROMPT_MAX},
		{in->append_system_prompt, "append_system_prompt", PROMPT_MAX},
		{in->custom_instructions, "custom_instructions", PROMPT_MAX},
		{in->agent, "agent", AGENT_NAME_MAX - 1},
	};

	if (in->query.len == 0)
		return refuse_field(error, "query", "query is required");
	return texts_check(texts, sizeof(texts) / sizeof(texts[0]), error) ?:
		check_list(in->allowed_tools, "allowed_tools", error) ?:
		check_list(in->disallowed_tools, "disallowed_tools", error) ?:
		check_folders(in->additional_directories, error) ?:
		check_prompts(in, error);
}

struct text sessions_program(const struct sessions *s, bool *ret_found)
{
	*ret_found = s && session_program_is_there(s->program);
	if (!s)
		return (struct text) {0};
	return (struct text) {.data = s->program, .len = strcspn(s->program, " \t")};
}

/* A session that has ended does not count, even if its end is not stored yet. */
const struct spend *sessions_spend(const struct sessions *s)
{
	return s ? &s->spend : NULL;
}

unsigned sessions_open(const struct sessions *s)
{
	unsigned n = 0;

	if (!s)
		return 0;
	list_for_each (at, following, &s->live)
		n += !list_entry(at, struct live_session, link)->exited;
	return n;
}

void sessions_drain(struct sessions *s, bool drain)
{
	if (s)
		s->n_drains += drain ? 1 : -1U;
}

static int check_room(const struct sessions *s, struct error *error)
{
	if (s->records.stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (s->n_drains > 0)
		return refuse(error, REFUSE_UNAVAILABLE,
			      "koined is draining and accepts no new sessions");
	if (!node_allows(s->opts.node))
		return refuse(error, REFUSE_UNAVAILABLE,
			      "lost connection to the database; this host starts no work until it "
			      "reconnects");
	if (sessions_open(s) >= s->opts.parallel)
		return refuse(error, REFUSE_LIMIT, "too many sessions are running (limit %u)",
			      s->opts.parallel);
	return 0;
}

/* Who answers: the agent that the client or the settings name; else the program; else the
 * default agent, if it can do work. */
static int choose_runner(struct sessions *s, struct live_session *l, struct text wanted,
			 struct error *error)
{
	struct agent *agent;

	if (wanted.len == 0)
		wanted = text_of(s->runner);
	if (wanted.len > 0 && !text_is(wanted, CODING_AGENT)) {
		agent = chat_agent(s->opts.chat, wanted);
		if (!agent)
			return refuse_field(error, "agent", "agent '%.*s' is not configured",
					    TEXT_ARGS(wanted));
		l->row.runner = text_of(agent->name);
		return 0;
	}
	l->row.runner = TEXT(CODING_AGENT);
	if (wanted.len > 0 || session_program_is_there(s->program))
		return 0;
	agent = chat_worker(s->opts.chat);
	if (agent)
		l->row.runner = text_of(agent->name);
	else
		l->nobody = true;
	return 0;
}

/* ---- a new session ---- */

/* Replaces each run of white space by one blank, and trims both ends. */
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

/* The number of bytes in the first characters. */
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

static int expand_folder(struct arena *a, struct text dir, struct text *ret_dir,
			 struct error *error)
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
	if (n > STORE_FOLDER_MAX)
		return refuse_field(error, "working_dir", "working_dir is longer than %d bytes",
				    STORE_FOLDER_MAX);
	ret_dir->data = arena_copy(a, buffer, (size_t)n);
	ret_dir->len = (size_t)n;
	return ret_dir->data ? 0 : -ENOMEM;
}

static int fill_row(struct live_session *l, const struct session_new *in, struct text parent,
		    struct error *error)
{
	struct session *row = &l->row;
	struct arena *a = &l->arena;
	int64_t now = clock_utc_ms();
	int r;

	*row = (struct session) {
		.id = text_of(l->id),
		.run = text_of(l->run),
		.mark = text_of(l->mark),
		.host = node_name(l->sessions->opts.node),
		.epoch = node_epoch(l->sessions->opts.node),
		.parent = parent,
		.query = in->query,
		.title = in->title,
		.model = in->model,
		.created_ms = now,
		.active_ms = now,
		.cost_usd = -1,
		.input_tokens = -1,
		.output_tokens = -1,
		.duration_ms = -1,
		.turns = -1,
	};
	r = schema_copy(&session_schema, a, row) ?:
		summarize(a, in->query, &row->summary) ?:
		expand_folder(a, in->working_dir, &row->working_dir, error);
	return r == 0 ? session_config_make(a, in, &l->plan, &row->config.bytes) : r;
}

static int set_ids(struct live_session *l)
{
	int r = uuid4(l->id) ?: uuid4(l->run);

	return r == 0 ? tree_mark(store_owner(l->sessions->opts.store), l->mark) : r;
}

static struct live_session *live_new(struct sessions *s)
{
	struct live_session *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->sessions = s;
	list_init(&l->link);
	list_init(&l->enders);
	record_init(&l->record, &s->records);
	arena_init(&l->arena, SESSION_ARENA_MAX);
	buf_init(&l->result, SESSION_RESULT_MAX);
	buf_init(&l->error, SESSION_RESULT_MAX + 64);
	session_run_init(l);
	transcript_init(&l->transcript, session_said, l);
	return l;
}

static int make(struct sessions *s, const struct session_new *in, struct text parent,
		struct text resume, struct live_session **ret_live, struct error *error)
{
	struct live_session *l;
	int r = session_check_new(in, error) ?: check_room(s, error);

	if (r != 0)
		return r;
	l = live_new(s);
	if (!l)
		return -ENOMEM;
	r = set_ids(l) ?: fill_row(l, in, parent, error) ?:
	    arena_copy_text(&l->arena, resume, &l->resume) ?: choose_runner(s, l, in->agent, error);
	list_append(&s->live, &l->link);
	s->n_live++;
	if (r != 0)
		session_drop(l);
	else
		*ret_live = l;
	return r;
}

/* ---- storing it ---- */

static int adding_run(struct work *w, int lane)
{
	struct live_session *l = list_entry(w, struct live_session, adding);

	return store_session_add(store_writer(l->sessions->opts.store), &l->row, &l->row.seq);
}

static void adding_finished(struct work *w, int result)
{
	struct live_session *l = list_entry(w, struct live_session, adding);
	session_launched_fn fn = l->launched;
	void *arg = l->launched_arg;

	l->sessions->n_coming--;
	if (result == 0) {
		session_begin(l);
		return;
	}
	session_drop(l);
	fn(arg, result, NULL, NULL);
}

int session_launch_from(struct sessions *s, const struct session_new *in, struct text parent,
			struct text resume, session_launched_fn fn, void *arg, struct error *error)
{
	struct live_session *l = NULL;
	int r = make(s, in, parent, resume, &l, error);

	if (r != 0)
		return r;
	l->launched = fn;
	l->launched_arg = arg;
	l->adding = (struct work) {.run = adding_run, .finished = adding_finished};
	r = workers_submit(s->opts.workers, &l->adding, true);
	if (r != 0)
		session_drop(l);
	else
		s->n_coming++;
	return r;
}

int session_launch(struct sessions *s, const struct session_new *in, session_launched_fn fn,
		   void *arg, struct error *error)
{
	return session_launch_from(s, in, (struct text) {0}, (struct text) {0}, fn, arg, error);
}
