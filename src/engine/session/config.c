/*
 * The configuration that a session was started with: it is stored with the session as a tree,
 * inherited by sessions that continue it, and written to a file with its MCP servers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/pack.h"
#include "base/object_builder.h"
#include "io/process/child.h"
#include "engine/session/inner.h"

#define MEMBER(kind, field) NULL, MEMBER_OF(struct session_new, kind, field)
#define OMITTED             .absent = ABSENT_LEFT_OUT

/* In display order. */
static const struct member members[] = {
	{"mcp_config", MEMBER(PACKED, mcp_config), OMITTED},
	{"permission_prompt_tool", MEMBER(TEXT, permission_prompt_tool), OMITTED},
	{"max_turns", MEMBER(INT, max_turns), 0, NONE_IS_ZERO, OMITTED},
	{"system_prompt", MEMBER(TEXT, system_prompt), OMITTED},
	{"append_system_prompt", MEMBER(TEXT, append_system_prompt), OMITTED},
	{"allowed_tools", MEMBER(TEXTS, allowed_tools), OMITTED},
	{"disallowed_tools", MEMBER(TEXTS, disallowed_tools), OMITTED},
	{"additional_directories", MEMBER(TEXTS, additional_directories), OMITTED},
	{"custom_instructions", MEMBER(TEXT, custom_instructions), OMITTED},
};

static const struct schema config_schema = SCHEMA(struct session_new, members);

static int read_texts(struct arena *a, const struct value *list, struct texts *ret_texts)
{
	struct text *texts;
	unsigned n = 0;

	if (list->kind != VALUE_ARRAY)
		return 0;
	texts = arena_alloc(a, list->len * sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	value_each (child, list)
		texts[n++] = value_text(child);
	*ret_texts = (struct texts) {.items = texts, .n = n};
	return 0;
}

static int set_member(struct arena *a, const struct member *m, const struct value *v, void *at)
{
	if (m->kind == MEMBER_TEXTS)
		return ((struct texts *)at)->items ? 0 : read_texts(a, v, at);
	if (m->kind == MEMBER_TEXT && !((struct text *)at)->data)
		*(struct text *)at = value_text(v);
	else if (m->kind == MEMBER_PACKED && !((struct packed *)at)->value)
		((struct packed *)at)->value = v;
	else if (m->kind == MEMBER_INT && *(int64_t *)at == 0)
		value_int(v, at);
	return 0;
}

/* Fills in what `in` does not say from the configuration. */
static int set_members(struct arena *a, const struct value *config, struct session_new *in)
{
	schema_each(m, &config_schema)
	{
		const struct value *v = value_find(config, m->name);
		int r = v ? set_member(a, m, v, (char *)in + m->offset) : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

int session_config_make(struct arena *a, const struct session_new *in, struct session_new *ret_plan,
			struct text *ret_packed)
{
	CLEANUP(buf_donep) struct buf packed;
	struct packer p;
	struct value *config;
	int r;

	buf_init(&packed, SESSION_ARENA_MAX);
	packer_begin(&p, &packed);
	packer_members(&p, &config_schema, (struct selection) {0}, in, 0);
	packer_end(&p);
	if (packed.err != 0 || p.n == 0)
		return packed.err;
	/* Keep what is read back from the packed form: it points nowhere else. */
	r = arena_copy_text(a, (struct text) {.data = packed.data, .len = packed.len}, ret_packed);
	if (r == 0)
		r = value_unpack(a, *ret_packed, &config);
	return r == 0 ? set_members(a, config, ret_plan) : r;
}

const struct value *session_config(struct arena *a, const struct session *row)
{
	struct value *v;

	if (!row->config.bytes.data || value_unpack(a, row->config.bytes, &v) != 0)
		return NULL;
	return v;
}

int session_config_inherit(struct arena *a, const struct session *parent, struct session_new *in)
{
	const struct value *config = session_config(a, parent);

	if (!in->model.data)
		in->model = parent->model;
	if (!in->working_dir.data)
		in->working_dir = parent->working_dir;
	if (!in->agent.data)
		in->agent = parent->runner;
	return config ? set_members(a, config, in) : 0;
}

/* ---- the file with MCP servers ---- */

static bool is_one_of(const char *key, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(key, names[i]) == 0)
			return true;
	}
	return false;
}

/* Copies an object's members, except for some. -ENOMEM also if a key contains a NUL. */
static int copy_members(struct object_builder *r, const struct value *from,
			const char *const *except, unsigned n_except)
{
	value_each (child, from) {
		const char *key = arena_copy(r->arena, child->key, child->key_len);

		if (!key)
			return -ENOMEM;
		if (!is_one_of(key, except, n_except))
			object_value(r, key, child);
	}
	return r->err;
}

/* What servers must know about us in order to ask for permission. */
struct own_variables {
	const struct session_wording *names;
	const char *run;
	const char *session;
	const char *socket; /* NULL: there is none */
};

/* We determine run and session; which socket to use, the server's own environment may know better. */
static int make_env(struct arena *a, const struct value *given, const struct own_variables *own,
		    const struct value **ret_env)
{
	const char *const ours[] = {own->names->run_variable, own->names->session_variable};
	struct object_builder env;
	int e = 0;

	object_begin(&env, a);
	if (given && given->kind == VALUE_OBJECT)
		e = copy_members(&env, given, ours, 2);
	if (e != 0)
		return e;
	object_text(&env, own->names->run_variable, text_of(own->run));
	object_text(&env, own->names->session_variable, text_of(own->session));
	if (own->socket && !value_find(given, own->names->socket_variable))
		object_text(&env, own->names->socket_variable, text_of(own->socket));
	*ret_env = env.root;
	return env.err;
}

static int with_own(struct arena *a, const struct value *server, const struct own_variables *own,
		    const struct value **ret_server)
{
	static const char *const replaced[] = {"env"};
	const struct value *env = NULL;
	struct object_builder r;
	int e;

	*ret_server = server;
	if (server->kind != VALUE_OBJECT)
		return 0;
	object_begin(&r, a);
	e = copy_members(&r, server, replaced, 1)
		    ?: make_env(a, value_find(server, "env"), own, &env);
	if (e != 0)
		return e;
	object_value(&r, "env", env);
	*ret_server = r.root;
	return r.err;
}

static int all_with_own(struct arena *a, const struct value *config,
			const struct own_variables *own, const struct value **ret_config)
{
	static const char *const replaced[] = {"mcpServers"};
	const struct value *servers = value_find(config, "mcpServers");
	struct object_builder whole;
	struct object_builder each;
	int e;

	*ret_config = config;
	if (!servers || servers->kind != VALUE_OBJECT)
		return 0;
	object_begin(&whole, a);
	object_begin(&each, a);
	e = copy_members(&whole, config, replaced, 1);
	value_each (child, servers) {
		const char *key = arena_copy(a, child->key, child->key_len);
		const struct value *server = child;

		if (e == 0)
			e = key ? with_own(a, child, own, &server) : -ENOMEM;
		if (e == 0)
			object_value(&each, key, server);
	}
	if (e == 0)
		e = each.err;
	if (e == 0)
		object_value(&whole, "mcpServers", each.root);
	*ret_config = whole.root;
	return e == 0 ? whole.err : e;
}

void session_config_sweep(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, "mcp-", 4) == 0)
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

static int session_config_write_file(const char *path, struct text content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, content.data, content.len);
	if (n < 0)
		r = -errno;
	else if ((size_t)n < content.len)
		r = -ENOSPC;
	close(fd);
	if (r != 0)
		unlink(path);
	return r;
}

int session_config_write_mcp(struct live_session *l, struct error *error)
{
	const struct value *mcp = l->plan.mcp_config.value;
	const struct sessions *s = l->sessions;
	const struct session_wording *names = s->opts.wording;
	const struct own_variables own = {
		.names = names,
		.run = l->run,
		.session = l->id,
		.socket = environment_find(s->opts.env, names->socket_variable),
	};
	struct text json;
	struct arena a;
	int r;

	if (!mcp || !s->opts.to_json)
		return 0;
	r = file_make_folder(s->folder);
	if (r != 0)
		return refuse(error, REFUSE_UNAVAILABLE, "mkdir %.*s: %s", SESSION_PATH_SHOWN,
			      s->folder, strerror(-r));
	if (asprintf(&l->mcp_file, "%s/mcp-%s.json", s->folder, l->run) < 0) {
		l->mcp_file = NULL;
		return -ENOMEM;
	}
	arena_init(&a, SESSION_ARENA_MAX);
	r = all_with_own(&a, mcp, &own, &mcp) ?:
		s->opts.to_json(&a, mcp, &json) ?:
		session_config_write_file(l->mcp_file, json);
	arena_done(&a);
	if (r < 0 && r != -ENOMEM)
		r = refuse(error, REFUSE_UNAVAILABLE, "write %.*s: %s", SESSION_PATH_SHOWN,
			   l->mcp_file, strerror(-r));
	if (r != 0) {
		free(l->mcp_file);
		l->mcp_file = NULL;
	}
	return r;
}
