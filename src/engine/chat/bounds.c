/*
 * What a conversation's programs may do, as create_agent requests it. The request is checked
 * once, when the conversation is created, and is stored with it in its final form. A child may
 * only write what its parent may write, whatever else was requested.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum { TOOL_NAME_MAX = 64, SHOWN = 100 };

/* While the bounds are built: sets of paths as lists, in the arena. */
struct paths {
	struct text *list;
	unsigned n;
	bool any; /* every path: the list is ignored */
};

struct resolver {
	struct connection *db;
	struct arena *arena;
	const struct chat_wish *wish;
	struct conversation parent;
	struct bounds *bounds;
	struct error *error;
};

static int shown(struct text t)
{
	return (int)(t.len < SHOWN ? t.len : SHOWN);
}

/* ---- the parent ---- */

static int find_parent(struct resolver *r, struct text id, struct conversation *row)
{
	bool found = false;
	int e = 0;

	*row = (struct conversation) {0};
	if (chat_check_id(id, "parent_agent_id", NULL) == 0)
		e = store_conversation_find(r->db, id, r->arena, row, &found);
	/* It exists before anything is said in it. */
	if (e != 0 || found || text_is(id, CHAT_DEFAULT))
		return e;
	return refuse_field(r->error, "parent_agent_id", "Parent agent not found: %.*s", shown(id),
			    id.data);
}

/* Limits the number of ancestors. A conversation whose parent was ended counts as the first. */
static int check_depth(struct resolver *r)
{
	struct conversation row = r->parent;
	unsigned depth = 1;
	bool found = true;
	int e = 0;

	while (e == 0 && found && row.bounds.parent.data && depth <= CHAT_CHILD_DEPTH) {
		e = store_conversation_find(r->db, row.bounds.parent, r->arena, &row, &found);
		depth++;
	}
	if (e == 0 && depth > CHAT_CHILD_DEPTH)
		return refuse_field(r->error, "parent_agent_id",
				    "Cannot create agent: max nesting depth (%d) exceeded",
				    CHAT_CHILD_DEPTH);
	return e;
}

static int resolve_parent(struct resolver *r)
{
	struct text id = r->wish->parent;
	int e;

	if (!id.data)
		return 0;
	e = find_parent(r, id, &r->parent) ?: check_depth(r);
	r->bounds->parent = id;
	return e;
}

/* ---- the preset ---- */

static int resolve_preset(struct resolver *r)
{
	struct text word = r->wish->preset;
	enum preset above = r->parent.bounds.preset;

	if (!word.data) {
		r->bounds->preset = above;
		return 0;
	}
	if (text_is(word, "sandboxed")) {
		r->bounds->preset = PRESET_SANDBOXED;
		return 0;
	}
	if (!text_is(word, "trusted"))
		return refuse_field(r->error, "preset",
				    "Invalid preset: %.*s. Valid: ['sandboxed', 'trusted']",
				    shown(word), word.data);
	if (above == PRESET_SANDBOXED)
		return refuse_field(r->error, "preset",
				    "Requested preset 'trusted' exceeds parent ceiling");
	r->bounds->preset = PRESET_TRUSTED;
	return 0;
}

/* ---- paths ---- */

static bool is_below(struct text path, struct text folder)
{
	if (text_is(folder, "/"))
		return true;
	return path.len >= folder.len && memcmp(path.data, folder.data, folder.len) == 0 &&
	       (path.len == folder.len || path.data[folder.len] == '/');
}

static bool is_below_any(struct text path, const struct paths *p)
{
	for (unsigned i = 0; !p->any && i < p->n; i++) {
		if (is_below(path, p->list[i]))
			return true;
	}
	return p->any;
}

/* As a string, relative to `base` if it is not absolute; {NULL, 0}: there is no base. */
static int join(struct resolver *r, const char *what, struct text path, struct text base,
		char out[PATH_MAX])
{
	bool relative = path.len == 0 || path.data[0] != '/';
	size_t room = PATH_MAX - 1;

	if (text_find(path, '\0') || text_find(path, '\n'))
		return refuse_field(r->error, what,
				    "%s has a character that is not allowed in a path", what);
	if (path.len + (relative ? base.len + 1 : 0) > room)
		return refuse_field(r->error, what, "%s is longer than %zu bytes", what, room);
	if (relative && base.data) {
		memcpy(out, base.data, base.len);
		out[base.len] = '/';
		out += base.len + 1;
	}
	memcpy(out, path.data, path.len);
	out[path.len] = '\0';
	return 0;
}

/* Resolves links and dots, in the arena. A refusal names the path as it was given. */
static int find_real(struct resolver *r, const char *what, const char *path, struct text *ret)
{
	CLEANUP(freep) char *real = realpath(path, NULL);

	if (!real && errno == ENOMEM)
		return -ENOMEM;
	if (!real && (errno == ENOENT || errno == ENOTDIR))
		return refuse_field(r->error, what, "%s does not exist: %s", what, path);
	if (!real)
		return refuse_field(r->error, what, "%s: %s: %s", what, path, strerror(errno));
	if (strchr(real, '\n'))
		return refuse_field(r->error, what,
				    "%s has a character that is not allowed in a path", what);
	return arena_copy_text(r->arena, text_of(real), ret);
}

static int check_folder(struct resolver *r, const char *path)
{
	struct stat found;

	if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode))
		return refuse_field(r->error, "cwd", "cwd is not a directory: %s", path);
	if (access(path, X_OK) != 0)
		return refuse_field(r->error, "cwd", "cwd: %s: %s", path, strerror(errno));
	return 0;
}

static int check_cwd_ceiling(struct resolver *r)
{
	struct text cwd = r->bounds->cwd, above = r->parent.bounds.cwd;

	if (r->parent.bounds.preset != PRESET_SANDBOXED || (above.data && is_below(cwd, above)))
		return 0;
	return refuse_field(r->error, "cwd", "cwd '%.*s' is outside parent's cwd '%.*s'",
			    TEXT_ARGS(cwd), TEXT_ARGS(above));
}

static int resolve_cwd(struct resolver *r)
{
	struct text wanted = r->wish->cwd;
	char path[PATH_MAX];
	int e;

	if (!wanted.data) {
		r->bounds->cwd = r->parent.bounds.cwd;
		return 0;
	}
	if ((wanted.len == 0 || wanted.data[0] != '/') && !r->parent.bounds.cwd.data)
		return refuse_field(r->error, "cwd", "cwd must be an absolute path: %.*s",
				    shown(wanted), wanted.data);
	e = join(r, "cwd", wanted, r->parent.bounds.cwd, path) ?:
		find_real(r, "cwd", path, &r->bounds->cwd) ?:
		check_folder(r, path);
	return e != 0 ? e : check_cwd_ceiling(r);
}

/* ---- what may be written ---- */

static int paths_new(struct arena *a, unsigned n, struct paths *ret)
{
	*ret = (struct paths) {.list = arena_zalloc(a, n * sizeof(ret->list[0]))};
	return ret->list ? 0 : -ENOMEM;
}

/* Reads what is stored, one path per line. If nothing was said, every path is meant. */
static int paths_of(struct arena *a, struct text lines, struct paths *ret)
{
	struct text path;
	int r = paths_new(a, CHAT_PATHS_MAX, ret);

	if (r != 0)
		return r;
	ret->any = !lines.data;
	while (ret->n < CHAT_PATHS_MAX && text_next(&lines, '\n', &path)) {
		if (path.len > 0)
			ret->list[ret->n++] = path;
	}
	return 0;
}

static int keep_paths(struct arena *a, const struct paths *p, struct text *ret)
{
	size_t size = 1;
	char *out;

	*ret = (struct text) {0};
	if (p->any)
		return 0;
	for (unsigned i = 0; i < p->n; i++)
		size += p->list[i].len + 1;
	out = arena_alloc(a, size);
	if (!out)
		return -ENOMEM;
	*ret = (struct text) {.data = out};
	for (unsigned i = 0; i < p->n; i++) {
		if (i > 0)
			*out++ = '\n';
		out = mempcpy(out, p->list[i].data, p->list[i].len);
	}
	ret->len = (size_t)(out - ret->data);
	return 0;
}

static int check_write_path(struct resolver *r, struct text path, const struct paths *above)
{
	struct text root = r->bounds->cwd;

	if (r->bounds->preset == PRESET_SANDBOXED && !(root.data && is_below(path, root)))
		return refuse_field(r->error, "allowed_write_paths",
				    "allowed_write_path '%.*s' is outside sandbox root '%.*s'",
				    TEXT_ARGS(path), TEXT_ARGS(root));
	if (!is_below_any(path, above))
		return refuse_field(r->error, "allowed_write_paths",
				    "allowed_write_path '%.*s' is outside parent's allowed paths",
				    TEXT_ARGS(path));
	return 0;
}

static int resolve_write_path(struct resolver *r, unsigned i, const struct paths *above,
			      struct text *ret)
{
	struct text wanted = r->wish->write_paths[i];
	char what[40], path[PATH_MAX];
	int e;

	snprintf(what, sizeof(what), "allowed_write_paths[%u]", i);
	if ((wanted.len == 0 || wanted.data[0] != '/') && !r->bounds->cwd.data)
		return refuse_field(r->error, what,
				    "%s must be an absolute path, because cwd is not set: %.*s",
				    what, shown(wanted), wanted.data);
	e = join(r, what, wanted, r->bounds->cwd, path) ?: find_real(r, what, path, ret);
	return e != 0 ? e : check_write_path(r, *ret, above);
}

static int take_wished_paths(struct resolver *r, const struct paths *above, struct paths *ret)
{
	int e = 0;

	if (r->wish->n_write_paths > CHAT_PATHS_MAX)
		return refuse_field(r->error, "allowed_write_paths", "more than %d paths",
				    CHAT_PATHS_MAX);
	for (unsigned i = 0; e == 0 && i < r->wish->n_write_paths; i++)
		e = resolve_write_path(r, i, above, &ret->list[ret->n++]);
	return e;
}

/* What is both in the folder and in what the parent may write: if one contains the other, the
 * inner one. */
static void take_common_paths(struct text folder, const struct paths *above, struct paths *ret)
{
	if (above->any)
		ret->list[ret->n++] = folder;
	for (unsigned i = 0; !above->any && i < above->n; i++) {
		if (is_below(folder, above->list[i]))
			ret->list[ret->n++] = folder;
		else if (is_below(above->list[i], folder))
			ret->list[ret->n++] = above->list[i];
	}
}

static int resolve_write_paths(struct resolver *r)
{
	struct text folder = r->bounds->cwd;
	struct paths above, own;
	int e = paths_of(r->arena, r->parent.bounds.write_paths, &above)
			?: paths_new(r->arena, CHAT_PATHS_MAX, &own);

	if (e != 0)
		return e;
	if (r->wish->has_write_paths)
		e = take_wished_paths(r, &above, &own);
	else if (r->bounds->preset != PRESET_SANDBOXED)
		own = above;
	else if (folder.data)
		take_common_paths(folder, &above, &own);
	return e != 0 ? e : keep_paths(r->arena, &own, &r->bounds->write_paths);
}

/* ---- tools ---- */

/* It goes into a comma-separated list, and may become part of a word of a command. */
static bool is_tool_name(struct text t)
{
	static const char marks[] = "_-.:/";

	if (t.len == 0 || t.len > TOOL_NAME_MAX || t.data[0] == '-')
		return false;
	for (size_t i = 0; i < t.len; i++) {
		char c = t.data[i];

		if (!ascii_alnum(c) && (c == '\0' || !strchr(marks, c)))
			return false;
	}
	return true;
}

bool bounds_disable(struct text tools, struct text name)
{
	struct text tool;

	while (text_next(&tools, ',', &tool)) {
		if (text_equal(tool, name))
			return true;
	}
	return false;
}

static int check_tools(struct resolver *r)
{
	const struct chat_wish *wish = r->wish;

	if (wish->n_disabled_tools > CHAT_TOOLS_MAX)
		return refuse_field(r->error, "disable_tools",
				    "disable_tools has more than %d names", CHAT_TOOLS_MAX);
	for (unsigned i = 0; i < wish->n_disabled_tools; i++) {
		if (!is_tool_name(wish->disabled_tools[i]))
			return refuse_field(r->error, "disable_tools",
					    "disable_tools[%u] is not the name of a tool: '%.*s'",
					    i, shown(wish->disabled_tools[i]),
					    wish->disabled_tools[i].data);
	}
	return 0;
}

/* The parent's and its own, without duplicates. */
static int resolve_tools(struct resolver *r)
{
	const struct chat_wish *wish = r->wish;
	struct text all = r->parent.bounds.disabled_tools;
	size_t room = all.len + (size_t)wish->n_disabled_tools * (TOOL_NAME_MAX + 1) + 1;
	char *out;
	int e = check_tools(r);

	if (e != 0)
		return e;
	out = arena_alloc(r->arena, room);
	if (!out)
		return -ENOMEM;
	if (all.len > 0)
		memcpy(out, all.data, all.len);
	all.data = out;
	for (unsigned i = 0; i < wish->n_disabled_tools; i++) {
		struct text name = wish->disabled_tools[i];

		if (bounds_disable(all, name))
			continue;
		if (all.len > 0)
			out[all.len++] = ',';
		memcpy(out + all.len, name.data, name.len);
		all.len += name.len;
	}
	if (all.len > 0)
		r->bounds->disabled_tools = all;
	return 0;
}

/* ---- the whole ---- */

struct agent_bounds bounds_for_agent(struct text cwd, struct text write_paths, struct text tools)
{
	return (struct agent_bounds) {
		.cwd = cwd,
		.confined = write_paths.data != NULL,
		.write_paths = write_paths,
		.disabled_tools = tools,
	};
}

/* An unknown agent is refused elsewhere. */
static int check_agent(struct chat *chat, struct text name, const struct bounds *b,
		       struct error *error)
{
	const struct agent *agent = chat_agent(chat, name);
	const struct agent_bounds bounds =
		bounds_for_agent(b->cwd, b->write_paths, b->disabled_tools);

	if (!agent || !agent->ops->check_bounds)
		return 0;
	return agent->ops->check_bounds(agent, &bounds, error);
}

int chat_resolve(struct chat *chat, int lane, struct arena *a, const struct chat_wish *wish,
		 struct bounds *ret, struct error *error)
{
	struct bounds bounds = {0};
	struct resolver r = {
		.db = store_lane(chat->opts.store, lane),
		.arena = a,
		.wish = wish,
		.bounds = &bounds,
		.error = error,
	};
	int (*const steps[])(struct resolver *) = {
		resolve_parent, resolve_preset, resolve_cwd, resolve_write_paths, resolve_tools,
	};
	int e;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		e = steps[i](&r);
		if (e != 0)
			return e;
	}
	e = check_agent(chat, wish->agent, &bounds, error);
	if (e == 0)
		*ret = bounds;
	return e;
}
