#include "dialect/aiwg/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "wire/json.h"

enum {
	DEBOUNCE_MS = 500,
	LIST_MAX = 64,
	WRITTEN_MAX = 64 << 10, /* bytes of a trigger or action that is shown as written */
};

struct aiwg_config_reader {
	struct arena *arena;
	const struct aiwg_config_file *file;
	int err; /* 0 or -ENOMEM */
};

/* ---- complaints ---- */

static unsigned line_at(const struct aiwg_config_reader *r, const char *at)
{
	const struct text text = r->file->text;
	unsigned line = 1;

	for (const char *p = text.data; p < at && p < text.data + text.len; p++)
		line += *p == '\n';
	return line;
}

static void aiwg_config_notify(const struct aiwg_config_reader *r, const struct value *at,
			       const char *what, struct text name)
{
	char sentence[ERROR_TEXT_MAX];
	unsigned line = line_at(r, at && at->raw ? at->raw : r->file->text.data);

	if (name.data)
		snprintf(sentence, sizeof(sentence), "%s:%u: '%.*s' %s", r->file->name, line,
			 (int)(name.len < 60 ? name.len : 60), name.data, what);
	else
		snprintf(sentence, sizeof(sentence), "%s:%u: %s", r->file->name, line, what);
	r->file->complain(r->file->arg, sentence);
}

static struct text where(struct aiwg_config_reader *r, const struct value *at)
{
	char text[ERROR_TEXT_MAX];
	int n = snprintf(text, sizeof(text), "%.600s:%u", r->file->name, line_at(r, at->raw));
	const char *copy = arena_copy(r->arena, text, (size_t)n);

	if (!copy)
		r->err = -ENOMEM;
	return (struct text) {.data = copy, .len = copy ? (size_t)n : 0};
}

/* ---- small values ---- */

static bool is_true(const struct value *v)
{
	return v && v->kind == VALUE_TRUE;
}

/* Returns 0 if there is no sensible number. */
static double number_in(const struct aiwg_config_reader *r, const struct value *from,
			const char *key, double max)
{
	const struct value *v = value_find(from, key);
	double n;

	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (value_double(v, &n) && n >= 0 && n <= max)
		return n;
	aiwg_config_notify(r, v, "must be a number of at least 0", text_of(key));
	return 0;
}

static struct text aiwg_config_text_in(const struct value *from, const char *key)
{
	return value_text(value_find(from, key));
}

/* Takes the strings of an array, or a single string. */
static unsigned texts_in(struct aiwg_config_reader *r, const struct value *v,
			 const struct text **ret)
{
	struct text *list = arena_alloc(r->arena, LIST_MAX * sizeof(list[0]));
	unsigned n = 0;

	*ret = list;
	if (!list) {
		r->err = -ENOMEM;
		return 0;
	}
	if (v && v->kind == VALUE_STRING)
		list[n++] = value_text(v);
	if (!v || v->kind != VALUE_ARRAY)
		return n;
	value_each (item, v) {
		if (item->kind == VALUE_STRING && n < LIST_MAX)
			list[n++] = value_text(item);
	}
	return n;
}

/* ---- lists ---- */

/* A list of the file: where it stands, and how many of its entries are used. */
struct aiwg_config_listed {
	const char *key;
	unsigned max;
	const char *setting; /* that sets the maximum; NULL: none */
	size_t size;         /* of the struct that an entry becomes */
	bool (*read)(struct aiwg_config_reader *r, const struct value *v,
		     void *ret); /* false: left out */
};

static void tell_too_long(const struct aiwg_config_reader *r, const struct value *v,
			  const struct aiwg_config_listed *l)
{
	char what[120];

	snprintf(what, sizeof(what), "has %u entries; koined uses only the first %u%s%s%s", v->len,
		 l->max, l->setting ? ": see " : "", l->setting ? l->setting : "",
		 l->setting ? " in koine.conf" : "");
	aiwg_config_notify(r, v, what, text_of(l->key));
}

static const struct value *list_of(struct aiwg_config_reader *r, const struct value *from,
				   const struct aiwg_config_listed *l)
{
	const struct value *v = value_find(from, l->key);

	if (!v || v->kind == VALUE_NULL)
		return NULL;
	if (v->kind != VALUE_ARRAY) {
		aiwg_config_notify(r, v, "must be a list", text_of(l->key));
		return NULL;
	}
	if (v->len > l->max)
		tell_too_long(r, v, l);
	return v;
}

static void *read_list(struct aiwg_config_reader *r, const struct value *from,
		       const struct aiwg_config_listed *l, unsigned *ret_n)
{
	const struct value *v = list_of(r, from, l);
	unsigned left = v && v->len < l->max ? v->len : l->max;
	char *list = v ? arena_alloc(r->arena, (left + 1) * l->size) : NULL;

	if (v && !list)
		r->err = -ENOMEM;
	if (!list)
		return NULL;
	for (const struct value *item = v->first; item && left-- > 0; item = item->next)
		*ret_n += l->read(r, item, list + *ret_n * l->size);
	return list;
}

/* ---- rules ---- */

static bool read_condition(struct aiwg_config_reader *r, const struct value *v,
			   struct event_condition *ret)
{
	*ret = (struct event_condition) {
		.field = aiwg_config_text_in(v, "field"),
		.operator= aiwg_config_text_in(v, "operator"),
		.value = value_find(v, "value"),
	};
	if (ret->field.data && ret->operator.data)
		return true;
	aiwg_config_notify(r, v, "a condition requires a field and an operator", (struct text) {0});
	return false;
}

static bool read_conditions(struct aiwg_config_reader *r, const struct value *rule,
			    struct rule *ret)
{
	const struct value *v = value_find(rule, "conditions");
	struct event_condition *list;

	if (!v || v->kind == VALUE_NULL)
		return true;
	if (v->kind != VALUE_ARRAY || v->len > RULE_CONDITIONS_MAX) {
		aiwg_config_notify(r, v, "conditions must be a list of at most 32 entries",
				   ret->id);
		return false;
	}
	list = arena_alloc(r->arena, (v->len + 1) * sizeof(list[0]));
	if (!list) {
		r->err = -ENOMEM;
		return false;
	}
	ret->conditions = list;
	value_each (item, v) {
		if (!read_condition(r, item, &list[ret->n_conditions++]))
			return false;
	}
	return true;
}

static const struct value *written(const struct value *v)
{
	return v->raw_len <= WRITTEN_MAX ? v : NULL;
}

static bool read_trigger(struct aiwg_config_reader *r, const struct value *rule, struct rule *ret)
{
	const struct value *v = value_find(rule, "trigger");

	if (!v || v->kind != VALUE_OBJECT) {
		aiwg_config_notify(r, v ? v : rule, "requires a trigger (object)", ret->id);
		return false;
	}
	ret->written_trigger = written(v);
	ret->trigger = TRIGGER_EVENT;
	ret->type = aiwg_config_text_in(v, "type");
	ret->source = aiwg_config_text_in(v, "source");
	ret->pattern = aiwg_config_text_in(v, "pattern");
	/* The original has no event log, so a rule that names neither type nor source does not
	 * mean events of the log. */
	ret->not_logged = ret->type.len == 0 && ret->source.len == 0;
	return true;
}

static bool read_agent_action(struct aiwg_config_reader *r, const struct value *v, struct rule *ret)
{
	ret->action = ACTION_TASK;
	ret->prompt = aiwg_config_text_in(v, "prompt");
	ret->agent = aiwg_config_text_in(v, "agent");
	if (!value_double(value_find(v, "priority"), &ret->priority) || !isfinite(ret->priority))
		ret->priority = 0;
	if (ret->prompt.len > 0)
		return true;
	aiwg_config_notify(r, v, "requires an action with a prompt", ret->id);
	return false;
}

static bool read_action(struct aiwg_config_reader *r, const struct value *rule, struct rule *ret)
{
	const struct value *v = value_find(rule, "action");
	struct text type = aiwg_config_text_in(v, "type");

	if (!v || v->kind != VALUE_OBJECT || !type.data) {
		aiwg_config_notify(r, v ? v : rule, "requires an action (object with a type)",
				   ret->id);
		return false;
	}
	/* A webhook may contain a key, and more people may see rules than may read the file. */
	if (!text_is(type, "webhook"))
		ret->written_action = written(v);
	if (text_is(type, "agent"))
		return read_agent_action(r, v, ret);
	if (text_is(type, "notify")) {
		ret->action = ACTION_DESKTOP;
		ret->message = aiwg_config_text_in(v, "message");
		if (!ret->message.data)
			ret->message = ret->description.len > 0 ? ret->description : ret->id;
		return true;
	}
	if (text_is(type, "webhook")) {
		ret->action = ACTION_WEBHOOK;
		ret->url = aiwg_config_text_in(v, "url");
		if (ret->url.len > 0)
			return true;
		aiwg_config_notify(r, v, "requires an action with a url", ret->id);
		return false;
	}
	aiwg_config_notify(r, v, "action type must be agent, notify or webhook", ret->id);
	return false;
}

static bool read_rule(struct aiwg_config_reader *r, const struct value *v, void *rule)
{
	struct rule *ret = rule;
	const struct value *enabled = value_find(v, "enabled");

	*ret = (struct rule) {
		.id = aiwg_config_text_in(v, "id"),
		.project = r->file->project,
		.where = where(r, v),
		.disabled = enabled && enabled->kind == VALUE_FALSE,
		.description = aiwg_config_text_in(v, "description"),
		.cooldown_ms = (int64_t)number_in(r, v, "cooldownMs", 1e15),
		.needs_approval = is_true(value_find(v, "requiresApproval")),
	};
	if (ret->id.len == 0) {
		aiwg_config_notify(r, v, "a rule requires an id", (struct text) {0});
		return false;
	}
	return read_trigger(r, v, ret) && read_action(r, v, ret) && read_conditions(r, v, ret);
}

static void read_rules(struct aiwg_config_reader *r, const struct value *root,
		       struct aiwg_config *ret)
{
	const struct aiwg_config_listed rules = {"rules", r->file->max_rules, "project.rules",
						 sizeof(ret->rules[0]), read_rule};
	const struct value *v = value_find(root, "rules");

	ret->rules = read_list(r, root, &rules, &ret->n_rules);
	if (v && v->kind == VALUE_ARRAY && v->len > rules.max)
		ret->n_left_out = v->len - rules.max;
}

/* ---- watched folders ---- */

static unsigned read_changes(const struct value *v)
{
	static const struct {
		const char *name;
		unsigned bit;
	} names[] = {
		{"create", CHANGE_CREATE}, {"add", CHANGE_CREATE},    {"modify", CHANGE_MODIFY},
		{"change", CHANGE_MODIFY}, {"delete", CHANGE_DELETE}, {"unlink", CHANGE_DELETE},
	};
	unsigned changes = 0;

	if (!v || v->kind != VALUE_ARRAY)
		return CHANGE_ANY;
	value_each (item, v) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			changes |= text_is(value_text(item), names[i].name) ? names[i].bit : 0;
	}
	return changes ? changes : CHANGE_ANY;
}

static bool read_watched(struct aiwg_config_reader *r, const struct value *v, void *watched)
{
	struct aiwg_watched *ret = watched;

	*ret = (struct aiwg_watched) {
		.path = v->kind == VALUE_STRING ? value_text(v) : aiwg_config_text_in(v, "path"),
		.changes = read_changes(value_find(v, "events")),
	};
	ret->n_ignore = texts_in(r, value_find(v, "ignore"), &ret->ignore);
	ret->n_extensions = texts_in(r, value_find(v, "extensions"), &ret->extensions);
	if (ret->path.len > 0)
		return true;
	aiwg_config_notify(r, v, "a path to watch must be a string, or an object with a path",
			   (struct text) {0});
	return false;
}

static void read_watch(struct aiwg_config_reader *r, const struct value *root,
		       struct aiwg_config *ret)
{
	static const struct aiwg_config_listed paths = {"paths", AIWG_PATHS_MAX, NULL,
							sizeof(struct aiwg_watched), read_watched};
	const struct value *watch = value_find(root, "watch");
	double debounce = number_in(r, watch, "debounce_ms", 3600e3);

	ret->watch = is_true(value_find(watch, "enabled"));
	ret->debounce_ms = debounce > 0 ? (int64_t)debounce : DEBOUNCE_MS;
	ret->watched = read_list(r, watch, &paths, &ret->n_watched);
}

/* ---- the schedule ---- */

static bool read_job(struct aiwg_config_reader *r, const struct value *v, void *job)
{
	struct aiwg_job_config *ret = job;

	*ret = (struct aiwg_job_config) {
		.id = aiwg_config_text_in(v, "id"),
		.cron = aiwg_config_text_in(v, "cron"),
		.action = value_find(v, "action"),
		.where = where(r, v),
	};
	if (!ret->cron.data)
		ret->cron = aiwg_config_text_in(v, "schedule");
	if (ret->id.len > 0 && ret->cron.len > 0)
		return true;
	aiwg_config_notify(r, v, "a job requires an id and a cron expression", (struct text) {0});
	return false;
}

static void read_schedule(struct aiwg_config_reader *r, const struct value *root,
			  struct aiwg_config *ret)
{
	static const struct aiwg_config_listed jobs = {"jobs", AIWG_JOBS_MAX, NULL,
						       sizeof(struct aiwg_job_config), read_job};
	const struct value *schedule = value_find(root, "schedule");

	ret->schedule = is_true(value_find(schedule, "enabled"));
	ret->jobs = read_list(r, schedule, &jobs, &ret->n_jobs);
}

/* ---- the whole file ---- */

static void read_limits(const struct aiwg_config_reader *r, const struct value *root,
			struct aiwg_config *ret)
{
	const struct value *daemon = value_find(root, "daemon");
	const struct value *supervisor = value_find(root, "supervisor");

	ret->parallel = (unsigned)ceil(number_in(r, daemon, "max_parallel_actions", 10000));
	/* Fractions of a minute count. */
	ret->timeout_ms =
		(int64_t)ceil(number_in(r, daemon, "action_timeout_minutes", 1e7) * 60 * 1000);
	ret->heartbeat_ms =
		(int64_t)ceil(number_in(r, daemon, "heartbeat_interval_seconds", 86400) * 1000);
	ret->queue = (unsigned)ceil(number_in(r, supervisor, "max_queue_depth", 1e6));
}

/* json_read reports the position only in its message: "... at byte N". */
static unsigned fault_line(const struct aiwg_config_reader *r, const struct error *error)
{
	const char *byte = strstr(error->text, "byte ");
	unsigned long n = 0;

	if (byte && sscanf(byte, "byte %lu", &n) == 1 && n <= r->file->text.len)
		return line_at(r, r->file->text.data + n);
	return 1;
}

int aiwg_config_read(struct arena *a, const struct aiwg_config_file *file,
		     struct aiwg_config *ret_config, struct error *error)
{
	struct aiwg_config_reader r = {.arena = a, .file = file};
	struct aiwg_config config = {0};
	struct error inner = {.text = ""};
	struct value *root;
	int e = json_read(a, file->text.data, file->text.len, &json_default_limits, &root, &inner);

	if (e > 0)
		return refuse(error, e, "%s:%u: %s", file->name, fault_line(&r, &inner),
			      inner.text);
	if (e < 0)
		return e;
	if (root->kind != VALUE_OBJECT)
		return refuse(error, REFUSE_PARAMS, "%s:1: the file must contain a JSON object",
			      file->name);
	read_limits(&r, root, &config);
	read_rules(&r, root, &config);
	read_watch(&r, root, &config);
	read_schedule(&r, root, &config);
	if (r.err != 0)
		return r.err;
	*ret_config = config;
	return 0;
}
