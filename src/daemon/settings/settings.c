/*
 * All settings: one table for each section. The file, the environment, --set and --check all
 * use them.
 */
#include "daemon/settings/settings.h"

#include <assert.h>
#include <string.h>

#include "agent/agent.h"
#include "base/utf8.h"
#include "daemon/dialects.h"
#include "store/store.h"

/* ---- the tables ---- */

void *settings_of(const struct settings *s, const struct dialect *d)
{
	return (void *)s->dialects[dialect_index(d)];
}

/* Each dialect has rows about its own section. */
static const struct setting *dialect_row(const struct settings *s, unsigned *i, void **ret_base)
{
	for (unsigned k = 0; k < n_dialects; k++) {
		const struct dialect_section *section = dialects[k]->section;

		if (!section)
			continue;
		if (*i < section->n_rows) {
			*ret_base = settings_of(s, dialects[k]);
			return &section->rows[*i];
		}
		*i -= section->n_rows;
	}
	return NULL;
}

const struct setting *settings_row(const struct settings *s, unsigned i, void **ret_base)
{
	for (unsigned k = 0; k < n_settings_tables; k++) {
		const struct settings_table *t = &settings_tables[k];
		const struct setting *row = t->rows ? NULL : dialect_row(s, &i, ret_base);

		if (row)
			return row;
		if (i < t->n) {
			*ret_base = (void *)s;
			return &t->rows[i];
		}
		i -= t->n;
	}
	return NULL;
}

static int check_gone(const char *section, const char *key, struct error *error)
{
	for (unsigned i = 0; i < n_settings_gone; i++) {
		const struct setting_gone *g = &settings_gone[i];

		if (strcmp(g->section, section) == 0 && strcmp(g->key, key) == 0)
			return refuse(error, REFUSE_PARAMS, "%s", g->text);
	}
	return 0;
}

void settings_init(struct settings *s)
{
	*s = (struct settings) {
		.log_level = LOG_LEVEL_INFO,
		.programs = true,
		.limits = default_limits,
		.memory_enabled = true,
		.index_bytes = 512 << 20,
		.index_file_bytes = 1 << 30,
		.keep_deleted_days = 30,
		.embedding_timeout_ms = 300,
		.extract_idle_s = 300,
		.chat_agent = "recall",
		.chat_system = "You are an assistant on the user's own machine, reached through "
			       "koine. Be brief and exact, and say so when you do not know.",
		.chat_budget = 8000,
		.chat_reserve = 2000,
		.sessions = {.program = CODING_AGENT,
			     .parallel = 64,
			     .interrupt_ms = 5000,
			     .terminate_ms = 5000,
			     .silence_ms = 4 * 3600 * 1000,
			     .keep_bytes = 256 << 20,
			     .keep_days = 365},
		.tasks = {.parallel = 16,
			  .project_parallel = 3,
			  .queue = 1000,
			  .timeout_ms = 120 * 60 * 1000,
			  .output_bytes = 16 << 20,
			  .keep_days = 365,
			  .interrupt_ms = 5 * 1000},
		.approvals = {.pending = 1000, .keep_days = 365},
		.events_keep_days = 7,
		.events_keep = 100000,
		.host_lease_ms = 30 * 1000,
	};
	(void)section_add(&agent_section, s, "recall", "", NULL);
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect_section *section = dialects[i]->section;

		assert(i < DIALECTS_MAX && (!section || section->size <= sizeof(s->dialects[i])));
		if (section)
			memcpy(settings_of(s, dialects[i]), section->defaults, section->size);
	}
}

/* ---- where to listen ---- */

static int check_address(const struct dialect *d, const char *address, struct error *error)
{
	struct address parsed;
	int r = 0;

	if (strcmp(address, "off") == 0 || strcmp(address, "on") == 0)
		return 0;
	if (d->life && d->life->check_address)
		r = d->life->check_address(address, error);
	return r ?: address_parse(address, &parsed, error);
}

static int add_listen(struct settings *s, const char *name, const char *address,
		      struct error *error)
{
	const struct dialect *d;
	int r = dialect_get(name, &d, error) ?: check_address(d, address, error);
	struct listen_setting *l;

	if (r != 0)
		return r;
	if (s->n_listens == LISTENS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many listeners (limit %d)", LISTENS_MAX);
	if (strlen(address) >= sizeof(l->address))
		return refuse(error, REFUSE_PARAMS,
			      "[listen] %.40s: the address is longer than %zu bytes", name,
			      sizeof(l->address) - 1);
	l = &s->listens[s->n_listens++];
	l->dialect = d;
	memcpy(l->address, address, strlen(address) + 1);
	l->line = section_line(s->where);
	return 0;
}

/* Replaces the listeners that a file or variable of lower precedence gave the dialect. */
static int move_listen(struct settings *s, const char *dialect, const char *address,
		       struct error *error)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_listens; i++) {
		if (strcmp(s->listens[i].dialect->name, dialect) != 0)
			s->listens[n++] = s->listens[i];
	}
	s->n_listens = n;
	return add_listen(s, dialect, address, error);
}

/* ---- one setting ---- */

/* [task] is another name for [tasks]. */
static const char *whole_name(const char *section)
{
	return strcmp(section, "task") == 0 ? "tasks" : section;
}

int settings_add_section(struct settings *s, const char *section, struct error *error)
{
	const char *name;
	const struct section_kind *kind = section_kind_of(section, &name);
	const struct setting *row;
	void *base;

	if (kind)
		return kind->keys_make_it ? 0 : section_add(kind, s, name, s->where, error);
	if (strcmp(section, "listen") == 0)
		return 0;
	for (unsigned i = 0; (row = settings_row(s, i, &base)); i++) {
		if (strcmp(row->section, whole_name(section)) == 0)
			return 0;
	}
	return refuse(error, REFUSE_PARAMS, "unknown section [%.60s]", section);
}

static int apply_row(struct settings *s, const struct setting *row, unsigned i, void *base,
		     const char *value, struct error *error)
{
	int r = setting_apply(row, base, row->section, value, error);

	if (r != 0 || i >= SETTING_LINES_MAX)
		return r;
	if (!s->where[0] && s->lines[i] > 0)
		s->overridden[i] = s->lines[i];
	s->lines[i] = (uint16_t)section_line(s->where);
	return 0;
}

int settings_set(struct settings *s, const char *section, const char *key, const char *value,
		 struct error *error)
{
	const char *name;
	const struct section_kind *kind = section_kind_of(section, &name);
	const struct setting *row;
	void *base;
	int r = check_gone(section, key, error);

	if (r != 0)
		return r;
	if (kind)
		return section_set(kind, s, name, key, value, s->where[0] ? s->where : "--set",
				   error);
	if (strcmp(section, "listen") == 0)
		return move_listen(s, key, value, error);
	section = whole_name(section);
	for (unsigned i = 0; (row = settings_row(s, i, &base)); i++) {
		if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0)
			return apply_row(s, row, i, base, value, error);
	}
	if (!section[0])
		return refuse(error, REFUSE_PARAMS, "setting '%.60s' is outside any [section]",
			      key);
	return refuse(error, REFUSE_PARAMS, "unknown setting '%.60s' in [%.60s]", key, section);
}

/* In "agent.NAME.KEY" the section is "agent NAME", and a NAME may contain dots. NULL: it is not
 * such a section. */
static const char *named_dot(const char *pair, const char *equals)
{
	const char *dot = equals;

	while (dot > pair && *dot != '.')
		dot--;
	for (unsigned i = 0; i < N_SECTION_KINDS; i++) {
		size_t n = strlen(section_kinds[i]->word);

		if (strncmp(pair, section_kinds[i]->word, n) == 0 && pair[n] == '.')
			return dot - pair <= (ptrdiff_t)n ? NULL : dot;
	}
	return NULL;
}

int settings_set_pair(struct settings *s, const char *pair, struct error *error)
{
	const char *equals = strchr(pair, '=');
	const char *named = equals ? named_dot(pair, equals) : NULL;
	const char *dot = named ? named : strchr(pair, '.');
	char section[64];
	char key[64];

	if (!equals || !dot || dot > equals || (size_t)(dot - pair) >= sizeof(section) ||
	    (size_t)(equals - dot) > sizeof(key))
		return refuse(error, REFUSE_PARSE,
			      "invalid --set '%.60s': expected SECTION.KEY=VALUE", pair);
	snprintf(section, sizeof(section), "%.*s", (int)(dot - pair), pair);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
	if (named)
		section[strcspn(section, ".")] = ' ';
	return settings_set(s, section, key, equals + 1, error);
}

int settings_add_listen(struct settings *s, const char *pair, struct error *error)
{
	const char *equals = strchr(pair, '=');
	char dialect[16];

	if (!equals || (size_t)(equals - pair) >= sizeof(dialect))
		return refuse(error, REFUSE_PARSE,
			      "invalid --listen '%.100s': expected DIALECT=ADDRESS", pair);
	snprintf(dialect, sizeof(dialect), "%.*s", (int)(equals - pair), pair);
	if (!s->listen_only)
		s->n_listens = 0;
	s->listen_only = true;
	return add_listen(s, dialect, equals + 1, error);
}

int settings_add_project(struct settings *s, const char *folder, struct error *error)
{
	char path[PATH_LEN];
	struct error inner;
	int r = paths_folder(folder, path, &inner);

	if (r != 0)
		return refuse(error, r, "--project %s", inner.text);
	for (unsigned i = 0; i < s->n_projects; i++) {
		if (strcmp(s->projects[i], path) == 0)
			return 0;
	}
	if (s->n_projects == PROJECTS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many projects (limit %d)", PROJECTS_MAX);
	memcpy(s->projects[s->n_projects++], path, strlen(path) + 1);
	return 0;
}

void settings_store_url(const struct settings *s, char *out, size_t size)
{
	char path[PATH_LEN];

	if (s->store[0]) {
		snprintf(out, size, "%s", s->store);
	} else if (s->root[0]) {
		snprintf(out, size, "sqlite:%s/koine.db", s->root);
	} else {
		paths_state("koine.db", path);
		snprintf(out, size, "sqlite:%s", path);
	}
}

void settings_beside_store(const struct settings *s, char *out, size_t size)
{
	static const char scheme[] = "sqlite:";
	char url[PATH_LEN + 16];

	settings_store_url(s, url, sizeof(url));
	if (strncmp(url, scheme, sizeof(scheme) - 1) == 0)
		snprintf(out, size, "%s", url + sizeof(scheme) - 1);
	else if (s->root[0])
		snprintf(out, size, "%s/koine.db", s->root);
	else
		paths_state("koine.db", out);
}

/* ---- checks when all was read ---- */

static int check_budgets(const struct settings *s, struct error *error)
{
	if (s->chat_reserve >= s->chat_budget)
		return refuse(error, REFUSE_PARAMS,
			      "invalid chat.reserve '%u': expected less than chat.budget (%u)",
			      s->chat_reserve, s->chat_budget);
	for (unsigned i = 0; i < s->agents.n; i++) {
		const struct agent_setting *a = &s->agents.list[i];

		if (settings_reserve(s, a) >= settings_budget(s, a))
			return refuse(error, REFUSE_PARAMS,
				      "[agent %s]: invalid reserve '%u': expected less than the "
				      "budget (%u)",
				      a->name, settings_reserve(s, a), settings_budget(s, a));
	}
	return 0;
}

/* The name must be that of an agent, or the other word that is allowed there. */
static int check_named(const struct settings *s, const char *key, const char *name,
		       const char *other, struct error *error)
{
	char names[200];

	if (!name[0] || strcmp(name, other) == 0 || section_find(&agent_section, s, name))
		return 0;
	agent_settings_names(&s->agents, names, sizeof(names));
	return refuse(error, REFUSE_PARAMS, "%s = %.40s: agent not found (available: %s)", key,
		      name, names);
}

static int check_chat(const struct settings *s, struct error *error)
{
	int r = check_named(s, "chat.agent", s->chat_agent, "none", error)
			?: check_named(s, "tasks.runner", s->tasks.runner, CODING_AGENT, error)
			?: check_named(s, "session.runner", s->sessions.runner, CODING_AGENT, error);

	if (r != 0)
		return r;
	if (!utf8_is_valid(s->chat_system, strlen(s->chat_system)))
		return refuse(error, REFUSE_PARAMS, "chat.system is not valid UTF-8");
	return check_budgets(s, error);
}

static int check_store(const struct settings *s, struct error *error)
{
	struct error what;
	int r = s->store[0] ? store_check_url(s->store, &what) : 0;

	/* What it says is not shown: it may contain a secret. */
	return r > 0 ? refuse(error, what.code, "store.url: %s", what.text) : r;
}

/* Names and labels are typed and stand in lists: words without signs. */
static int check_host(const struct settings *s, struct error *error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._- ";

	if (s->host_name[strspn(s->host_name, allowed)] || strchr(s->host_name, ' '))
		return refuse(
			error, REFUSE_PARAMS,
			"invalid host.name '%.60s': expected letters, digits, '.', '_' and '-'",
			s->host_name);
	if (s->host_labels[strspn(s->host_labels, allowed)])
		return refuse(error, REFUSE_PARAMS,
			      "invalid host.labels '%.60s': expected words of letters, digits, "
			      "'.', '_' and '-'",
			      s->host_labels);
	return 0;
}

static int check_all(const struct settings *s, struct error *error)
{
	int r = sections_check(s, error) ?: check_store(s, error) ?: check_host(s, error);

	for (unsigned i = 0; r == 0 && i < n_dialects; i++) {
		const struct dialect_section *section = dialects[i]->section;

		if (section && section->check)
			r = section->check(settings_of(s, dialects[i]), error);
	}
	return r != 0 ? r : check_chat(s, error);
}

/* Sentences begin with "[WORD NAME]" or "SECTION.KEY". */
static unsigned line_of(const struct settings *s, const char *sentence)
{
	char name[2 * SECTION_NAME_MAX];
	const struct section_kind *kind;
	const struct setting *row;
	const char *of;
	void *base;

	if (sentence[0] == '[') {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(sentence + 1, "]"), sentence + 1);
		kind = section_kind_of(name, &of);
		return kind ? section_first_line(kind, s, of) : 0;
	}
	for (unsigned i = 0; i < SETTING_LINES_MAX && (row = settings_row(s, i, &base)); i++) {
		snprintf(name, sizeof(name), "%s.%s", row->section, row->key);
		if (strlen(name) == strcspn(sentence, " :") &&
		    strncmp(name, sentence, strlen(name)) == 0)
			return s->lines[i];
	}
	return 0;
}

int settings_check(const struct settings *s, struct error *error)
{
	struct error said = {.text = ""};
	int r = check_all(s, &said);
	unsigned line = r > 0 ? line_of(s, said.text) : 0;

	if (r <= 0)
		return r;
	return line > 0 ? refuse(error, said.code, "%s:%u: %s", s->config, line, said.text)
			: refuse(error, said.code, "%s", said.text);
}

unsigned settings_budget(const struct settings *s, const struct agent_setting *a)
{
	return a->budget ? a->budget : s->chat_budget;
}

unsigned settings_reserve(const struct settings *s, const struct agent_setting *a)
{
	return a->reserve ? a->reserve : s->chat_reserve;
}

void settings_secrets(const struct settings *s, const char *out[SECRETS_MAX + 1])
{
	const struct setting *row;
	void *base;
	unsigned n = 0;

	for (unsigned i = 0; (row = settings_row(s, i, &base)); i++) {
		if (row->secret && n < SECRETS_MAX)
			out[n++] = row->secret;
	}
	n += sections_secrets(s, out + n, SECRETS_MAX - n);
	/* libpq reads these two for the store. */
	if (n + 2 <= SECRETS_MAX) {
		out[n++] = "PGPASSWORD";
		out[n++] = "PGPASSFILE";
	}
	out[n] = NULL;
}

/* ---- out ---- */

void settings_write(const struct settings *s, FILE *out)
{
	const char *section = "";
	const struct setting *row;
	void *base;

	for (unsigned i = 0; (row = settings_row(s, i, &base)); i++) {
		if (strcmp(section, row->section) != 0)
			fprintf(out, "%s[%s]\n", section[0] ? "\n" : "", row->section);
		section = row->section;
		setting_write(row, base, out);
	}
	for (unsigned i = 0; i < N_SECTION_KINDS; i++)
		section_write(section_kinds[i], s, out);
}
