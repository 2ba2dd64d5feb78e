/* The agents that the settings define, and the chat that they answer in. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/command/command.h"
#include "agent/command/words.h"
#include "agent/model/model.h"
#include "agent/recall/recall.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "daemon/life.h"
#include "engine/chat/chat.h"
#include "engine/extract/extract.h"

enum {
	SYSTEM_MAX = 64 << 10,
	ENVIRONMENTS_MAX = 1 << 20,
	STEP_MS = 20,
};

/* ---- one agent ---- */

static int make_recall(const struct settings *s, const struct agent_setting *a, struct loop *l,
		       struct agent **ret)
{
	const struct recall_opts opts = {
		.name = a->name,
		.word_delay_ms = a->word_delay_ms,
		.budget = settings_budget(s, a),
		.reserve = settings_reserve(s, a),
		.rank = chat_rank,
	};

	return recall_new(l, &opts, ret);
}

static const char *model_url(const struct agent_setting *a)
{
	return a->url[0] ? a->url : "https://api.anthropic.com";
}

static int make_model(const struct settings *s, const struct agent_setting *a, struct loop *l,
		      const struct environments *env, struct agent **ret, struct error *error)
{
	const struct model_opts opts = {
		.name = a->name,
		.url = model_url(a),
		.model = a->model,
		.key = {.environment = a->key_env,
			.file = a->key_file,
			.command = a->key_command,
			.env = env ? &env->plain : NULL},
		.max_tokens = a->max_tokens,
		.temperature = a->temperature,
		.connect_timeout_ms = a->connect_timeout_ms,
		.idle_timeout_ms = a->idle_timeout_ms,
		.total_timeout_ms = a->total_timeout_ms,
		.retries = a->retries,
		.budget = settings_budget(s, a),
		.reserve = settings_reserve(s, a),
	};

	return a->kind == AGENT_OPENAI ? openai_new(l, &opts, ret, error)
				       : anthropic_new(l, &opts, ret, error);
}

/* The folder that was set; otherwise agents/NAME beside the store. */
static void command_state(const struct settings *s, const struct agent_setting *a,
			  char out[PATH_LEN])
{
	char store[PATH_LEN];
	const char *slash;

	snprintf(out, PATH_LEN, "%s", a->state);
	if (out[0])
		return;
	settings_beside_store(s, store, sizeof(store));
	slash = strrchr(store, '/');
	if (!slash)
		return;
	if (snprintf(out, PATH_LEN, "%.*s/agents/%s", (int)(slash - store), store, a->name) >=
	    PATH_LEN)
		out[0] = '\0';
}

static int make_command(const struct settings *s, const struct agent_setting *a, struct loop *l,
			const struct environments *env, struct agent **ret, struct error *error)
{
	char state[PATH_LEN];
	const struct command_opts opts = {
		.name = a->name,
		.command = a->command,
		.input = a->input,
		.output = a->output,
		.cwd = a->cwd,
		.env = env ? &env->agents[a - s->agents.list] : NULL,
		.state = state,
		.interrupt_ms = a->interrupt_ms,
		.terminate_ms = a->terminate_ms,
		.total_timeout_ms = a->total_timeout_ms,
		.budget = settings_budget(s, a),
		.reserve = settings_reserve(s, a),
	};

	command_state(s, a, state);
	return command_new(l, &opts, ret, error);
}

/* Without an environment (env is NULL) the agent is made only to be checked. */
static int make_agent(const struct settings *s, const struct agent_setting *a, struct loop *l,
		      const struct environments *env, struct agent **ret, struct error *error)
{
	struct error inner = {.text = ""};
	int r = -EINVAL;

	switch (a->kind) {
	case AGENT_RECALL:
		r = make_recall(s, a, l, ret);
		break;
	case AGENT_OPENAI:
	case AGENT_ANTHROPIC:
		r = make_model(s, a, l, env, ret, &inner);
		break;
	case AGENT_COMMAND:
		r = make_command(s, a, l, env, ret, &inner);
		break;
	case AGENT_UNSAID:
		break; /* settings_check has refused it */
	}
	if (r > 0)
		return refuse(error, r, "[agent %s]: %s", a->name, inner.text);
	return r;
}

static int look_for_program(const struct agent_setting *a, struct error *error)
{
	CLEANUP(freep) char **words = NULL;
	char path[PATH_MAX];

	return command_split(a->command, &words, NULL, error)
		       ?: command_find(words[0], a->cwd, path, sizeof(path), error);
}

/* Refuses with what keeps the agent from answering, as far as that can be seen now. The key itself is
 * read when a turn begins, so that a file that is corrected later is used then. */
static int look_at_agent(const struct agent_setting *a, struct error *error)
{
	char what[SECTION_NAME_MAX + 8];
	int r;

	snprintf(what, sizeof(what), "%s key", a->name);
	r = secret_check_variable(a->key_env, error) ?: secret_check(a->key_file, what, error);
	if (r != 0 || a->kind != AGENT_COMMAND)
		return r;
	return look_for_program(a, error);
}

static bool lacks_model(const struct agent_setting *a)
{
	return a->kind == AGENT_OPENAI && !a->model[0];
}

static const char no_model[] = "no model is set, but most servers require a model";

/* An agent that cannot be made still exists by name, and says why whenever it is asked. */
static int make_or_excuse(const struct settings *s, const struct agent_setting *a, struct loop *l,
			  const struct environments *env, struct agent **ret)
{
	struct error error = {.text = ""};
	int r = make_agent(s, a, l, env, ret, &error);

	if (r > 0 || (r == 0 && look_at_agent(a, &error) > 0))
		log_warn("agent unavailable", "agent=%s reason=\"%s\"", a->name, error.text);
	else if (lacks_model(a))
		log_info("agent has no model", "agent=%s reason=\"%s\"", a->name, no_model);
	if (r > 0)
		r = absent_new(l, a->name, agent_kind_word(a->kind), error.text, ret);
	return r;
}

/* ---- the system prompt ---- */

static int read_system_file(const char *file, struct buf *out, struct error *error)
{
	/* O_NONBLOCK: opening a FIFO must not block us. */
	CLEANUP(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r = fd < 0 ? -errno : file_read_all(fd, out);

	if (r == -ENOMEM)
		return r;
	if (r == -EINVAL)
		return refuse(error, REFUSE_PARAMS, "chat.system_file %s is not a file", file);
	if (r == -EFBIG)
		return refuse(error, REFUSE_TOO_LARGE, "chat.system_file %s is larger than 64 KiB",
			      file);
	if (r != 0)
		return refuse(error, REFUSE_NOT_FOUND, "cannot read chat.system_file %s: %s", file,
			      strerror(-r));
	if ((out->len > 0 && memchr(out->data, '\0', out->len)) ||
	    !utf8_is_valid(out->data, out->len))
		return refuse(error, REFUSE_PARAMS, "chat.system_file %s is not UTF-8 text", file);
	return 0;
}

/* NUL-terminated. */
static int read_system(const struct settings *s, struct buf *out, struct error *error)
{
	int r = 0;

	if (s->chat_system_file[0])
		r = read_system_file(s->chat_system_file, out, error);
	else
		buf_add(out, s->chat_system, strlen(s->chat_system));
	out->max++;
	buf_add(out, "", 1);
	return r != 0 ? r : out->err;
}

/* ---- all of them ---- */

int agents_make(struct daemon *d, struct error *error)
{
	const struct settings *s = d->settings;
	struct agents *a = &d->agents;
	int r;

	buf_init(&a->system, SYSTEM_MAX);
	r = read_system(s, &a->system, error);
	for (unsigned i = 0; r == 0 && i < s->agents.n; i++) {
		r = make_or_excuse(s, &s->agents.list[i], d->loop, &d->environments, &a->list[i]);
		a->n += r == 0;
	}
	return r;
}

void agents_done(struct agents *a)
{
	for (unsigned i = 0; i < a->n; i++)
		agent_free(a->list[i]);
	a->n = 0;
	buf_done(&a->system);
}

static const char *default_agent(const struct settings *s)
{
	return s->chat_agent[0] && strcmp(s->chat_agent, "none") != 0 ? s->chat_agent : NULL;
}

int agents_start(struct daemon *d, struct error *error)
{
	struct engine *engine = d->engine;
	struct agents *a = &d->agents;
	const struct chat_opts opts = {
		.store = engine->store,
		.events = engine->events,
		.node = engine->node,
		.memories = engine->memories,
		.loop = d->loop,
		.workers = d->workers,
		.agents = a->list,
		.n_agents = a->n,
		.agent = default_agent(d->settings),
		.system = a->system.data,
		.numbered = dialects_first(offsetof(struct dialect_life, numbered)),
		.keep_ms = (int64_t)d->settings->chat_keep_days * 24 * 3600 * 1000,
	};

	a->n = 0;
	return chat_start(&opts, &engine->chat, error);
}

/* Whether it was made from the same settings. */
static bool unchanged(const struct settings *old, const struct settings *fresh,
		      const struct agent_setting *now)
{
	const struct agent_setting *was = section_find(&agent_section, old, now->name);

	return was && section_equal(&agent_section, was, now) &&
	       settings_budget(old, was) == settings_budget(fresh, now) &&
	       settings_reserve(old, was) == settings_reserve(fresh, now);
}

/* The environments of agents that a reload made; older agents keep theirs. */
struct agents_renewed {
	struct agents_renewed *before;
	struct arena arena;
	struct environments environments;
};

static void renewed_free(struct agents_renewed *n)
{
	if (n)
		arena_done(&n->arena);
	free(n);
}

static int renew(struct daemon *d, const struct settings *fresh, struct agents_renewed **ret)
{
	struct agents_renewed *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	arena_init(&n->arena, ENVIRONMENTS_MAX);
	*ret = n;
	return environments_make(fresh, d->server, &n->arena, &n->environments);
}

static int make_changed(struct daemon *d, const struct settings *fresh,
			const struct environments *env, struct agent *list[AGENTS_MAX],
			struct agents *made)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < fresh->agents.n; i++) {
		const struct agent_setting *a = &fresh->agents.list[i];

		list[i] = chat_agent(d->engine->chat, text_of(a->name));
		if (list[i] && unchanged(d->settings, fresh, a))
			continue;
		r = make_or_excuse(fresh, a, d->loop, env, &list[i]);
		if (r == 0)
			made->list[made->n++] = list[i];
	}
	return r;
}

static bool any_changed(const struct settings *old, const struct settings *fresh)
{
	bool changed = old->agents.n != fresh->agents.n;

	for (unsigned i = 0; !changed && i < fresh->agents.n; i++)
		changed = !unchanged(old, fresh, &fresh->agents.list[i]);
	return changed || strcmp(old->chat_agent, fresh->chat_agent) != 0;
}

int agents_reload(struct daemon *d, const struct settings *fresh, struct error *error)
{
	struct agents_renewed *renewed = NULL;
	struct agent *list[AGENTS_MAX];
	struct agents made = {.n = 0};
	int r;

	if (!any_changed(d->settings, fresh))
		return 0;
	r = renew(d, fresh, &renewed)
		    ?: make_changed(d, fresh, &renewed->environments, list, &made);
	if (r == 0)
		r = chat_set_agents(d->engine->chat, list, fresh->agents.n, default_agent(fresh),
				    error);
	else
		agents_done(&made);
	/* If the new agents were refused, nobody needs their environments. */
	if (r != 0) {
		renewed_free(renewed);
		return r;
	}
	renewed->before = d->renewed;
	d->renewed = renewed;
	return 0;
}

void agents_renewed_free(struct agents_renewed *n)
{
	while (n) {
		struct agents_renewed *before = n->before;

		renewed_free(n);
		n = before;
	}
}

void agents_end_turns(struct daemon *d, uint64_t end_ms)
{
	extracts_stop(d->engine->extracts);
	chat_stop(d->engine->chat);
	while (!chat_idle(d->engine->chat) && clock_steady_ms() < end_ms)
		loop_turn(d->loop, STEP_MS);
}

/* ---- --check ---- */

static void check_agent(const struct settings *s, const struct agent_setting *a, struct loop *l)
{
	struct error error = {.text = ""};
	enum agent_kind kind = a->kind;
	struct agent *agent = NULL;
	int r = make_agent(s, a, l, NULL, &agent, &error) ?: look_at_agent(a, &error);

	if (r == 0 && lacks_model(a))
		refuse(&error, REFUSE_NOT_FOUND, "%s", no_model);
	else if (r < 0)
		refuse(&error, REFUSE_INTERNAL, "%s", strerror(-r));
	agent_free(agent);
	printf("would use     agent %s (%s%s%s)  %s%s%s%s\n", a->name, agent_kind_word(kind),
	       kind == AGENT_OPENAI || kind == AGENT_ANTHROPIC ? " " : "",
	       kind == AGENT_OPENAI || kind == AGENT_ANTHROPIC ? model_url(a) : "",
	       r != 0          ? "not available"
	       : error.text[0] ? "warning"
			       : "ok",
	       strcmp(a->name, s->chat_agent) == 0 ? ", the default" : "",
	       error.text[0] ? ": " : "", error.text);
}

bool agents_check(const struct settings *s)
{
	CLEANUP(buf_donep) struct buf system;
	struct error error = {.text = "out of memory"};
	struct loop *l;

	buf_init(&system, SYSTEM_MAX);
	if (loop_new(&l) != 0)
		return false;
	for (unsigned i = 0; i < s->agents.n; i++)
		check_agent(s, &s->agents.list[i], l);
	loop_free(l);
	if (read_system(s, &system, &error) == 0)
		return true;
	printf("invalid system prompt: %s\n", error.text);
	return false;
}
