/*
 * What a session was started with: kept as a tree with it, inherited by those that continue it, and
 * the file with its MCP servers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pack.h"
#include "base/record.h"
#include "io/environment.h"
#include "engine/session/inner.h"

static void add_text(struct record *r, const char *key, struct text t)
{
	if (t.data)
		record_text(r, key, t);
}

static void add_list(struct record *r, const char *key, const struct text *texts, unsigned n)
{
	struct value *list;
	struct value **at;

	if (!texts || r->err != 0)
		return;
	list = arena_zalloc(r->arena, (n + 1) * sizeof(*list));
	if (!list) {
		r->err = -ENOMEM;
		return;
	}
	list[0] = (struct value) {.kind = VALUE_ARRAY, .len = n};
	at = &list[0].first;
	for (unsigned i = 0; i < n; i++) {
		list[i + 1] = (struct value) {
			.kind = VALUE_STRING, .len = (uint32_t)texts[i].len, .text = texts[i].data};
		*at = &list[i + 1];
		at = &list[i + 1].next;
	}
	record_value(r, key, list);
}

int session_config_make(struct arena *a, const struct session_new *in,
			const struct value **ret_config, struct text *ret_packed)
{
	struct record r;
	struct buf packed;
	const char *copy;

	record_begin(&r, a);
	if (in->mcp_config)
		record_value(&r, "mcp_config", in->mcp_config);
	add_text(&r, "permission_prompt_tool", in->permission_prompt_tool);
	if (in->max_turns > 0)
		record_int(&r, "max_turns", in->max_turns);
	add_text(&r, "system_prompt", in->system_prompt);
	add_text(&r, "append_system_prompt", in->append_system_prompt);
	add_list(&r, "allowed_tools", in->allowed_tools, in->n_allowed_tools);
	add_list(&r, "disallowed_tools", in->disallowed_tools, in->n_disallowed_tools);
	add_text(&r, "custom_instructions", in->custom_instructions);
	if (r.err != 0)
		return r.err;
	if (r.root->len == 0)
		return 0;
	/* The tree we keep is the one that is read back: it points nowhere else. */
	buf_init(&packed, SESSION_ARENA_MAX);
	value_pack(&packed, r.root);
	copy = packed.err == 0 ? arena_copy(a, packed.data, packed.len) : NULL;
	*ret_packed = (struct text) {.data = copy, .len = packed.len};
	buf_done(&packed);
	if (!copy)
		return -ENOMEM;
	return value_unpack(a, *ret_packed, (struct value **)ret_config);
}

const struct value *session_config(struct arena *a, const struct session *row)
{
	struct value *v;

	if (!row->config.bytes.data || value_unpack(a, row->config.bytes, &v) != 0)
		return NULL;
	return v;
}

static void inherit_text(const struct value *config, const char *key, struct text *at)
{
	if (!at->data)
		*at = value_text(value_find(config, key));
}

static int inherit_list(struct arena *a, const struct value *config, const char *key,
			const struct text **at, unsigned *n)
{
	const struct value *list = value_find(config, key);
	struct text *texts;
	unsigned i = 0;

	if (*at || !list || list->kind != VALUE_ARRAY)
		return 0;
	texts = arena_alloc(a, (list->len + 1) * sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	value_each (child, list)
		texts[i++] = value_text(child);
	*at = texts;
	*n = i;
	return 0;
}

int session_config_inherit(struct arena *a, const struct session *parent, struct session_new *in)
{
	const struct value *config = session_config(a, parent);
	int r;

	if (!in->model.data)
		in->model = parent->model;
	if (!in->working_dir.data)
		in->working_dir = parent->working_dir;
	if (!in->agent.data)
		in->agent = parent->runner;
	if (!config)
		return 0;
	if (!in->mcp_config)
		in->mcp_config = value_find(config, "mcp_config");
	if (in->max_turns == 0)
		value_int(value_find(config, "max_turns"), &in->max_turns);
	inherit_text(config, "permission_prompt_tool", &in->permission_prompt_tool);
	inherit_text(config, "system_prompt", &in->system_prompt);
	inherit_text(config, "append_system_prompt", &in->append_system_prompt);
	inherit_text(config, "custom_instructions", &in->custom_instructions);
	r = inherit_list(a, config, "allowed_tools", &in->allowed_tools, &in->n_allowed_tools);
	if (r == 0)
		r = inherit_list(a, config, "disallowed_tools", &in->disallowed_tools,
				 &in->n_disallowed_tools);
	return r;
}

/* ---- the file with MCP servers ---- */

/* A copy of an object with room for another member; NULL: no memory, or the key has a NUL. */
static int copy_members(struct record *r, const struct value *from, const char *but)
{
	value_each (child, from) {
		const char *key = arena_copy(r->arena, child->key, child->key_len);

		if (!key)
			return -ENOMEM;
		if (!but || strcmp(key, but) != 0)
			record_value(r, key, child);
	}
	return r->err;
}

/* What servers must know of us, to ask for permission. */
struct own_variables {
	const struct session_wording *names;
	const char *run;
	const char *socket; /* NULL: there is none */
};

/* The run is ours to say; which socket, the server's own environment may know better. */
static int make_env(struct arena *a, const struct value *given, const struct own_variables *own,
		    const struct value **ret_env)
{
	struct record env;
	int e = 0;

	record_begin(&env, a);
	if (given && given->kind == VALUE_OBJECT)
		e = copy_members(&env, given, own->names->run_variable);
	if (e != 0)
		return e;
	record_text(&env, own->names->run_variable, text_of(own->run));
	if (own->socket && !value_find(given, own->names->socket_variable))
		record_text(&env, own->names->socket_variable, text_of(own->socket));
	*ret_env = env.root;
	return env.err;
}

static int with_own(struct arena *a, const struct value *server, const struct own_variables *own,
		    const struct value **ret_server)
{
	const struct value *env = NULL;
	struct record r;
	int e;

	*ret_server = server;
	if (server->kind != VALUE_OBJECT)
		return 0;
	record_begin(&r, a);
	e = copy_members(&r, server, "env");
	if (e == 0)
		e = make_env(a, value_find(server, "env"), own, &env);
	if (e != 0)
		return e;
	record_value(&r, "env", env);
	*ret_server = r.root;
	return r.err;
}

static int all_with_own(struct arena *a, const struct value *config,
			const struct own_variables *own, const struct value **ret_config)
{
	const struct value *servers = value_find(config, "mcpServers");
	struct record whole;
	struct record each;
	int e;

	*ret_config = config;
	if (!servers || servers->kind != VALUE_OBJECT)
		return 0;
	record_begin(&whole, a);
	record_begin(&each, a);
	e = copy_members(&whole, config, "mcpServers");
	value_each (child, servers) {
		const char *key = arena_copy(a, child->key, child->key_len);
		const struct value *server = child;

		if (e == 0)
			e = key ? with_own(a, child, own, &server) : -ENOMEM;
		if (e == 0)
			record_value(&each, key, server);
	}
	if (e == 0)
		e = each.err;
	if (e == 0)
		record_value(&whole, "mcpServers", each.root);
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

static int write_file(const char *path, struct text content)
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

int session_config_write_mcp(struct live_session *l, struct why *why)
{
	const struct value *mcp = value_find(l->config, "mcp_config");
	const struct sessions *s = l->sessions;
	const struct session_wording *names = s->opts.wording;
	const struct own_variables own = {
		.names = names,
		.run = l->run,
		.socket = environment_find(s->opts.env, names->socket_variable),
	};
	struct text json;
	struct arena a;
	int r;

	if (!mcp || !s->opts.to_json)
		return 0;
	r = file_make_folder(s->folder);
	if (r != 0)
		return refuse(why, REFUSE_UNAVAILABLE, "mkdir %.*s: %s", SESSION_PATH_SHOWN,
			      s->folder, strerror(-r));
	if (asprintf(&l->mcp_file, "%s/mcp-%s.json", s->folder, l->run) < 0) {
		l->mcp_file = NULL;
		return -ENOMEM;
	}
	arena_init(&a, SESSION_ARENA_MAX);
	r = all_with_own(&a, mcp, &own, &mcp);
	if (r == 0)
		r = s->opts.to_json(&a, mcp, &json);
	if (r == 0)
		r = write_file(l->mcp_file, json);
	arena_done(&a);
	if (r < 0 && r != -ENOMEM)
		r = refuse(why, REFUSE_UNAVAILABLE, "write %.*s: %s", SESSION_PATH_SHOWN,
			   l->mcp_file, strerror(-r));
	if (r != 0) {
		free(l->mcp_file);
		l->mcp_file = NULL;
	}
	return r;
}
