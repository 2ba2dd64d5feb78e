/*
 * One table names every setting; the file, the environment, --set and --check
 * all go through it.
 */
#include "daemon/settings.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "service/embedding.h"

enum setting_type {
	SET_LEVEL,
	SET_BOOL,
	SET_UNSIGNED,
	SET_SIZE,
	SET_SECONDS,
	SET_UIDS,
	SET_PATH,
	SET_URL,
	SET_SECRET
};

struct setting {
	const char *section;
	const char *key;
	enum setting_type type;
	size_t offset;
	uint64_t min;
	uint64_t max;
	const char *doc;
};

#define AT(member)    offsetof(struct settings, member)
#define LIMIT(member) offsetof(struct settings, limits.member)

static const struct setting table[] = {
	{"daemon", "log_level", SET_LEVEL, AT(log_level), 0, 0, "err, warn, info or debug"},
	{"daemon", "debug_methods", SET_BOOL, AT(debug_methods), 0, 0,
	 "offer debug.echo and debug.sleep"},
	{"daemon", "log_messages", SET_BOOL, AT(log_messages), 0, 0,
	 "log every message both ways, at debug"},
	{"koine", "allow_uids", SET_UIDS, AT(allow_uids), 0, 0,
	 "users beside our own and root who may connect"},
	{"koine", "token_file", SET_PATH, AT(token_file), 0, 0,
	 "a file (0600) with the token that HTTP calls must carry"},
	{"store", "url", SET_PATH, AT(store), 0, 0,
	 "sqlite:PATH, where everything is kept; empty for the default place"},
	{"memory", "index_bytes", SET_SIZE, AT(index_bytes), 1 << 20, 1LL << 40,
	 "memory for all search indexes together"},
	{"memory", "embedding_url", SET_URL, AT(embedding_url), 0, 0,
	 "an OpenAI-compatible /v1/embeddings, for searches by meaning; empty for none"},
	{"memory", "embedding_model", SET_PATH, AT(embedding_model), 0, 0,
	 "the model to ask it for"},
	{"memory", "embedding_key_file", SET_PATH, AT(embedding_key_file), 0, 0,
	 "a file (0600) with the key it wants; empty for none"},
	{"memory", "embedding_timeout", SET_UNSIGNED, AT(embedding_timeout_ms), 1, 60000,
	 "milliseconds that a search waits for it"},
	{"ash", "context_secret", SET_SECRET, AT(context_secret), 0, 0,
	 "calls must carry a token signed with it; empty for none"},
	{"limits", "connections", SET_UNSIGNED, LIMIT(connections), 1, 1000000,
	 "connections in all; more wait"},
	{"limits", "calls", SET_UNSIGNED, LIMIT(calls), 1, 1000000,
	 "calls in flight; more are refused"},
	{"limits", "waiting", SET_UNSIGNED, LIMIT(waiting), 1, 10000,
	 "calls of one connection that wait behind a running one"},
	{"limits", "queue_bytes", SET_SIZE, LIMIT(queue_bytes), 4096, 1 << 30,
	 "answers waiting for one client before it is not read any more"},
	{"limits", "total_queue_bytes", SET_SIZE, LIMIT(total_queue_bytes), 1 << 20, 1LL << 40,
	 "answers waiting for all clients, before the slowest are cut"},
	{"limits", "reply_bytes", SET_SIZE, LIMIT(reply_bytes), 4096, 1 << 30, "one answer"},
	{"limits", "json_depth", SET_UNSIGNED, LIMIT(json_depth), 16, JSON_DEPTH_MAX,
	 "nested arrays and objects"},
	{"limits", "json_values", SET_UNSIGNED, LIMIT(json_values), 1000, 100000000,
	 "values in one message"},
	{"limits", "batch", SET_UNSIGNED, LIMIT(batch), 1, 1000000, "requests in one batch"},
	{"limits", "read_timeout", SET_SECONDS, LIMIT(read_timeout_ms), 1, 3600,
	 "seconds to send one HTTP request in"},
	{"limits", "linger", SET_SECONDS, LIMIT(linger_ms), 0, 60,
	 "seconds that a refused client has to read why"},
	{"limits", "stop_time", SET_SECONDS, LIMIT(stop_ms), 0, 3600,
	 "seconds that running calls have when the daemon stops"},
};

enum { N_SETTINGS = sizeof(table) / sizeof(table[0]) };

void settings_init(struct settings *s)
{
	*s = (struct settings) {
		.log_level = LOG_LEVEL_INFO,
		.limits = default_limits,
		.index_bytes = 512 << 20,
		.embedding_timeout_ms = 300,
	};
}

static void *place(const struct settings *s, const struct setting *row)
{
	return (char *)s + row->offset;
}

static int bad_value(const struct setting *row, const char *value, const char *want,
		     struct why *why)
{
	if (row->type == SET_SECRET)
		return refuse(why, REFUSE_PARAMS, "%s.%s must be %s", row->section, row->key, want);
	return refuse(why, REFUSE_PARAMS, "%s.%s = %.60s: must be %s", row->section, row->key,
		      value, want);
}

static int parse_bool(const char *value, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < 4; i++) {
		if (strcasecmp(value, yes[i]) == 0 || strcasecmp(value, no[i]) == 0) {
			*ret = strcasecmp(value, yes[i]) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

/* Digits, then for sizes k, m or g. */
static int parse_number(const char *value, bool size, uint64_t *ret)
{
	static const char units[] = "kmg";
	char *end;
	uint64_t n;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno != 0)
		return -EINVAL;
	if (size && *end) {
		const char *unit = strchr(units, tolower((unsigned char)*end));
		unsigned shift = unit ? 10U * (unsigned)(unit - units + 1) : 0;

		if (!unit || n > UINT64_MAX >> shift)
			return -EINVAL;
		n <<= shift;
		end++;
	}
	if (*end)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int set_number(struct settings *s, const struct setting *row, const char *value,
		      struct why *why)
{
	char want[80];
	uint64_t n;

	if (parse_number(value, row->type == SET_SIZE, &n) != 0 || n < row->min || n > row->max) {
		snprintf(want, sizeof(want), "a number from %llu to %llu",
			 (unsigned long long)row->min, (unsigned long long)row->max);
		return bad_value(row, value, want, why);
	}
	if (row->type == SET_SIZE)
		*(size_t *)place(s, row) = n;
	else
		*(unsigned *)place(s, row) = (unsigned)(row->type == SET_SECONDS ? n * 1000 : n);
	return 0;
}

static int set_uids(struct settings *s, const struct setting *row, const char *value,
		    struct why *why)
{
	char copy[256];
	char *rest = NULL;
	unsigned n = 0;
	uint64_t uid;

	if (strlen(value) >= sizeof(copy))
		return bad_value(row, value, "a short list of numbers", why);
	memcpy(copy, value, strlen(value) + 1);
	for (char *word = strtok_r(copy, " ,\t", &rest); word;
	     word = strtok_r(NULL, " ,\t", &rest)) {
		if (parse_number(word, false, &uid) != 0 || uid >= UINT32_MAX || n == UIDS_MAX)
			return bad_value(row, value, "user ids (numbers), at most 32", why);
		s->allow_uids[n++] = (uid_t)uid;
	}
	s->n_allow_uids = n;
	return 0;
}

static int set_text(struct settings *s, const struct setting *row, const char *value,
		    struct why *why)
{
	if (strlen(value) >= PATH_LEN)
		return bad_value(row, value, "a text of at most 511 bytes", why);
	snprintf(place(s, row), PATH_LEN, "%s", value);
	return 0;
}

static int apply(struct settings *s, const struct setting *row, const char *value, struct why *why)
{
	switch (row->type) {
	case SET_LEVEL:
		if (!log_parse_level(value, place(s, row)))
			return bad_value(row, value, "err, warn, info or debug", why);
		return 0;
	case SET_BOOL:
		if (parse_bool(value, place(s, row)) != 0)
			return bad_value(row, value, "yes or no", why);
		return 0;
	case SET_UNSIGNED:
	case SET_SIZE:
	case SET_SECONDS:
		return set_number(s, row, value, why);
	case SET_UIDS:
		return set_uids(s, row, value, why);
	case SET_URL:
		if (value[0] && embedding_check(value, NULL) != 0)
			return bad_value(row, "?", "http://HOST[:PORT][/PATH], https or unix:PATH",
					 why);
		return set_text(s, row, value, why);
	case SET_PATH:
	case SET_SECRET:
		return set_text(s, row, value, why);
	}
	return -EINVAL;
}

static int add_listen(struct settings *s, const char *dialect, const char *address, struct why *why)
{
	struct listen_setting *l;
	struct address parsed;
	int r = strcmp(address, "off") == 0 ? 0 : address_parse(address, &parsed, why);

	if (r != 0)
		return r;
	if (s->n_listens == LISTENS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d listeners", LISTENS_MAX);
	if (strlen(dialect) >= sizeof(l->dialect) || strlen(address) >= sizeof(l->address))
		return refuse(why, REFUSE_PARAMS, "listener is too long: %.40s", dialect);
	l = &s->listens[s->n_listens++];
	memcpy(l->dialect, dialect, strlen(dialect) + 1);
	memcpy(l->address, address, strlen(address) + 1);
	return 0;
}

/* A dialect that a lower layer has placed elsewhere moves. */
static int move_listen(struct settings *s, const char *dialect, const char *address,
		       struct why *why)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_listens; i++) {
		if (strcmp(s->listens[i].dialect, dialect) != 0)
			s->listens[n++] = s->listens[i];
	}
	s->n_listens = n;
	return add_listen(s, dialect, address, why);
}

int settings_set(struct settings *s, const char *section, const char *key, const char *value,
		 struct why *why)
{
	if (strcmp(section, "listen") == 0)
		return move_listen(s, key, value, why);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(table[i].section, section) == 0 && strcmp(table[i].key, key) == 0)
			return apply(s, &table[i], value, why);
	}
	if (!section[0])
		return refuse(why, REFUSE_PARAMS, "'%.60s' stands outside any [section]", key);
	return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [%.60s]", key, section);
}

int settings_set_pair(struct settings *s, const char *pair, struct why *why)
{
	const char *equals = strchr(pair, '=');
	const char *dot = strchr(pair, '.');
	char section[64];
	char key[64];

	if (!equals || !dot || dot > equals || (size_t)(dot - pair) >= sizeof(section) ||
	    (size_t)(equals - dot) > sizeof(key))
		return refuse(why, REFUSE_PARAMS, "'%.60s' is not SECTION.KEY=VALUE", pair);
	snprintf(section, sizeof(section), "%.*s", (int)(dot - pair), pair);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
	return settings_set(s, section, key, equals + 1, why);
}

int settings_add_listen(struct settings *s, const char *pair, struct why *why)
{
	const char *equals = strchr(pair, '=');
	char dialect[16];

	if (!equals || (size_t)(equals - pair) >= sizeof(dialect))
		return refuse(why, REFUSE_PARAMS, "'%.100s' is not DIALECT=ADDRESS", pair);
	snprintf(dialect, sizeof(dialect), "%.*s", (int)(equals - pair), pair);
	if (!s->listen_only)
		s->n_listens = 0;
	s->listen_only = true;
	return add_listen(s, dialect, equals + 1, why);
}

/* ---- the file ---- */

struct ini_text {
	struct settings *settings;
	const char *file;
	const char *at;
	const char *end;
	unsigned line;
	int result;
	struct why *why;
};

static int ini_refuse(struct ini_text *t, const char *text)
{
	t->result = refuse(t->why, REFUSE_PARAMS, "%.90s:%u: %.100s", t->file, t->line, text);
	return t->result;
}

/* Gives inih one line. One longer than its buffer would be read as two, and one
 * that is indented as more of the value before it, comments included. */
static char *ini_line(char *out, int size, void *stream)
{
	struct ini_text *t = stream;
	const char *newline;
	size_t len;

	if (t->at == t->end || t->result != 0)
		return NULL;
	newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	len = (size_t)((newline ? newline + 1 : t->end) - t->at);
	t->line++;
	while (len > 1 && isspace((unsigned char)*t->at)) {
		t->at++;
		len--;
	}
	if (len >= (size_t)size || memchr(t->at, '\0', len)) {
		ini_refuse(t, "line is too long, or not text");
		return NULL;
	}
	memcpy(out, t->at, len);
	out[len] = '\0';
	t->at += len;
	return out;
}

static int ini_setting(void *user, const char *section, const char *key, const char *value)
{
	struct ini_text *t = user;
	struct why inner;
	int r;

	if (t->result != 0)
		return 0;
	r = settings_set(t->settings, section, key, value, &inner);
	if (r != 0)
		ini_refuse(t, inner.text);
	return r == 0;
}

int settings_read_text(struct settings *s, const char *file, const char *text, size_t len,
		       struct why *why)
{
	struct ini_text t = {
		.settings = s,
		.file = file,
		.at = text,
		.end = text + len,
		.why = why,
	};
	int line = ini_parse_stream(ini_line, &t, ini_setting, &t);

	if (t.result != 0)
		return t.result;
	if (line != 0) {
		t.line = (unsigned)(line > 0 ? line : 0);
		return ini_refuse(&t, "not a [section], a comment, or KEY = VALUE");
	}
	return 0;
}

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int settings_read_file(struct settings *s, const char *file, struct why *why)
{
	CLEANUP(fclosep) FILE *f = fopen(file, "re");
	CLEANUP(buf_donep) struct buf text;
	char part[4096];
	size_t n;

	buf_init(&text, 1 << 20);
	if (!f) {
		int error = errno;

		refuse(why, REFUSE_NOT_FOUND, "cannot read %.100s: %s", file, strerror(error));
		return -error;
	}
	while (text.err == 0 && (n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&text, part, n);
	if (ferror(f))
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read %.100s: %s", file,
			      strerror(errno));
	if (text.err != 0)
		return refuse(why, REFUSE_TOO_LARGE, "%.100s is larger than 1 MiB", file);
	snprintf(s->config, sizeof(s->config), "%s", file);
	return settings_read_text(s, file, text.data, text.len, why);
}

/* ---- the environment ---- */

enum { ENV_NAME_MAX = 128 };

static void env_name(const char *section, const char *key, char out[ENV_NAME_MAX])
{
	snprintf(out, ENV_NAME_MAX, "KOINE_%s_%s", section, key);
	for (char *p = out; *p; p++)
		*p = (char)toupper((unsigned char)*p);
}

static const char *env_of(const char *section, const char *key)
{
	char name[ENV_NAME_MAX];

	env_name(section, key, name);
	return getenv(name);
}

/* "NAME=..." */
static bool env_is(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Of one of our sections, but no setting: a slip that would go unnoticed. */
static bool env_is_unknown(const char *entry)
{
	char name[ENV_NAME_MAX];
	bool ours = false;

	if (strncmp(entry, "KOINE_", 6) != 0)
		return false;
	for (size_t i = 0; i < N_SETTINGS; i++) {
		env_name(table[i].section, table[i].key, name);
		if (env_is(entry, name))
			return false;
		env_name(table[i].section, "", name);
		ours = ours || strncmp(entry, name, strlen(name)) == 0;
	}
	return ours;
}

static int check_env_names(struct why *why)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (env_is_unknown(*entry))
			return refuse(why, REFUSE_PARAMS, "environment: %.*s names no setting",
				      (int)strcspn(*entry, "="), *entry);
	}
	return 0;
}

static int read_env(struct settings *s, const char *section, const char *key, struct why *why)
{
	const char *value = env_of(section, key);
	struct why inner;

	if (!value || settings_set(s, section, key, value, &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int settings_read_listen(struct settings *s, const char *dialect, struct why *why)
{
	return read_env(s, "listen", dialect, why);
}

static bool env_is_on(const char *name)
{
	const char *value = getenv(name);
	bool on = false;

	return value && parse_bool(value, &on) == 0 && on;
}

int settings_read_environment(struct settings *s, struct why *why)
{
	const char *secret = getenv("ASH_CONTEXT_TOKEN_SECRET");
	int r = check_env_names(why);

	if (r == 0 && secret)
		r = settings_set(s, "ash", "context_secret", secret, why);
	for (size_t i = 0; r == 0 && i < N_SETTINGS; i++)
		r = read_env(s, table[i].section, table[i].key, why);
	if (env_is_on("KOINE_DEBUG") || env_is_on("AIWG_IPC_DEBUG")) {
		s->log_level = LOG_LEVEL_DEBUG;
		s->log_messages = true;
	}
	return r;
}

void settings_store_url(const struct settings *s, char *out, size_t size)
{
	char path[PATH_LEN];

	if (s->store[0]) {
		snprintf(out, size, "%s", s->store);
	} else if (s->root[0]) {
		snprintf(out, size, "sqlite:%s/koine.db", s->root);
	} else {
		paths_store(path);
		snprintf(out, size, "sqlite:%s", path);
	}
}

/* ---- out ---- */

static void write_value(const struct settings *s, const struct setting *row, FILE *out)
{
	static const char *const levels[] = {"err", "warn", "info", "debug"};
	const void *at = place(s, row);

	switch (row->type) {
	case SET_LEVEL:
		fprintf(out, "%s", levels[*(const enum log_level *)at]);
		break;
	case SET_BOOL:
		fprintf(out, "%s", *(const bool *)at ? "yes" : "no");
		break;
	case SET_UNSIGNED:
		fprintf(out, "%u", *(const unsigned *)at);
		break;
	case SET_SIZE:
		fprintf(out, "%zu", *(const size_t *)at);
		break;
	case SET_SECONDS:
		fprintf(out, "%u", *(const unsigned *)at / 1000);
		break;
	case SET_UIDS:
		for (unsigned i = 0; i < s->n_allow_uids; i++)
			fprintf(out, "%s%u", i ? " " : "", (unsigned)s->allow_uids[i]);
		break;
	case SET_PATH:
	case SET_URL:
		fprintf(out, "%s", (const char *)at);
		break;
	case SET_SECRET:
		break; /* never shown */
	}
}

void settings_write(const struct settings *s, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(section, table[i].section) != 0)
			fprintf(out, "%s[%s]\n", i ? "\n" : "", table[i].section);
		section = table[i].section;
		/* Tight before a path: after a space, one that begins with ';' is a
		 * comment, and a line has only so much room. */
		fprintf(out, "; %s\n%s%s", table[i].doc, table[i].key,
			table[i].type == SET_PATH ? "=" : " = ");
		write_value(s, &table[i], out);
		fprintf(out, "\n");
	}
}
