/* Whom a client speaks for: its project, its session, and which tools it wants. */
#include <errno.h>
#include <stdlib.h>

#include "model/project.h"
#include "call/client.h"
#include "dialect/mcp/server.h"
#include "wire/http/http1.h"

enum {
	NAME_MAX_BYTES = 256,
	TOLD_MAX = PROJECT_NAME_MAX * 2 + 64 * 1024,
};

/* What a connection has told; freed when it closes. */
struct mcp_side_told {
	struct client_hook hook;
	struct arena arena;
	struct side side;
};

struct open_in {
	struct text project;
	struct text folder;
	struct text session_id;
	struct text run_id;
	const struct value *tools;
};

/* ---- a connection ---- */

static void mcp_side_on_closed(struct client_hook *h)
{
	struct mcp_side_told *t = list_entry(h, struct mcp_side_told, hook);

	arena_done(&t->arena);
	free(t);
}

static struct mcp_side_told *find_told(const struct client *s)
{
	struct client_hook *h = s ? client_find_hook(s, mcp_side_on_closed) : NULL;

	return h ? list_entry(h, struct mcp_side_told, hook) : NULL;
}

static struct mcp_side_told *have_told(struct client *s)
{
	struct mcp_side_told *t = find_told(s);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	arena_init(&t->arena, TOLD_MAX);
	t->hook.closed = mcp_side_on_closed;
	t->side.groups = GROUPS_ALL;
	client_add_hook(s, &t->hook);
	return t;
}

/* ---- mcp.open ---- */

static const struct {
	const char *name;
	unsigned bit;
} groups[] = {
	{"memory", GROUP_MEMORY},
	{"tasks", GROUP_TASKS},
	{"human", GROUP_HUMAN},
	{"permission", GROUP_PERMISSION},
};

static unsigned group_of(struct text name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (text_is(name, groups[i].name))
			return groups[i].bit;
	}
	return 0;
}

static int read_groups(const struct value *names, unsigned *ret, struct error *error)
{
	unsigned bits = 0;

	if (!names)
		return 0;
	value_each (name, names) {
		struct text word = value_text(name);
		unsigned bit = group_of(word);

		if (!bit)
			return refuse_field(error, "tools",
					    "unknown group '%.*s' in tools: use memory, tasks, "
					    "human or permission",
					    TEXT_ARGS(text_cut(word, 40)));
		bits |= bit;
	}
	if (!bits)
		return refuse_field(error, "tools", "tools must not be empty");
	*ret = bits;
	return 0;
}

static int mcp_side_keep(struct arena *a, struct text from, size_t max, const char *field,
			 struct text *to, struct error *error)
{
	if (from.len > max)
		return refuse_field(error, field, "%s is longer than %zu bytes", field, max);
	if (from.len > 0 && memchr(from.data, '\0', from.len))
		return refuse_field(error, field, "%s must not contain a NUL byte", field);
	return from.len > 0 ? arena_copy_text(a, from, to) : 0;
}

static int mcp_side_check_folder(struct text folder, struct error *error)
{
	if (folder.len > 0 && folder.data[0] != '/')
		return refuse_field(error, "folder", "folder must be an absolute path, not '%.*s'",
				    TEXT_ARGS(text_cut(folder, 200)));
	return 0;
}

static int read_opening(const struct open_in *in, struct arena *a, struct side *side,
			struct error *error)
{
	return mcp_side_keep(a, in->project, PROJECT_NAME_MAX, "project", &side->project, error) ?:
	       mcp_side_keep(a, in->folder, PROJECT_NAME_MAX, "folder", &side->folder, error) ?:
	       mcp_side_check_folder(in->folder, error) ?:
	       mcp_side_keep(a, in->session_id, NAME_MAX_BYTES, "session_id", &side->session, error) ?:
	       mcp_side_keep(a, in->run_id, NAME_MAX_BYTES, "run_id", &side->run, error) ?:
	       read_groups(in->tools, &side->groups, error);
}

/* All of it counts, or nothing: a client that is refused is what it was before. */
static struct done handle_open(struct call *c)
{
	struct side side = {.groups = GROUPS_ALL};
	struct mcp_side_told *t = have_told(c->client);
	struct arena a;
	int r;

	if (!t)
		return call_fail(c, -ENOMEM);
	arena_init(&a, TOLD_MAX);
	r = read_opening(c->in, &a, &side, &c->error);
	if (r != 0) {
		arena_done(&a);
		return call_fail(c, r);
	}
	arena_done(&t->arena);
	t->arena = a;
	t->side = side;
	return call_answer(c, 0, NULL, NULL, 0);
}

static const struct field open_fields[] = {
	FIELD(STRING, open_in, project, "Project of the client, for the memory tools"),
	FIELD(STRING, open_in, folder, "Absolute working directory for tasks that the client adds",
	      .for_humans = HUMANS_IF_ELSEWHERE),
	FIELD(STRING, open_in, session_id, "Session id of the client"),
	FIELD(STRING, open_in, run_id, "Run id of the client"),
	FIELD(ARRAY, open_in, tools,
	      "Tool groups to offer: memory, tasks, human, permission; default: memory, tasks, "
	      "human"),
};

static const struct method open_row = {
	"mcp.open", "Describe the client; must be the first message on a connection",
	FIELDS(open_fields, open_in), .handle = handle_open};

/* ---- messages ---- */

static bool is_opening(const struct value *message)
{
	return message && text_is(value_text(value_find(message, "method")), "mcp.open");
}

bool side_recognise(const struct value *first)
{
	return is_opening(first) || mcp_recognise(first);
}

static int mcp_side_copy(struct call *c, struct text from, struct text *to)
{
	return from.data ? arena_copy_text(&c->arena, from, to) : 0;
}

/* A copy: the connection may close while the call is on its thread. */
static int copy_told(struct call *c, const struct side *told, struct side *side)
{
	side->groups = told->groups;
	return mcp_side_copy(c, told->project, &side->project) ?: mcp_side_copy(c, told->folder, &side->folder) ?:
	       mcp_side_copy(c, told->session, &side->session) ?: mcp_side_copy(c, told->run, &side->run);
}

/* Over HTTP, every request stands for itself. */
static int read_side(struct call *c, const struct http_request *http)
{
	const struct mcp_side_told *told = find_told(c->client);
	struct side *side = arena_zalloc(&c->arena, sizeof(*side));
	int r = 0;

	if (!side)
		return -ENOMEM;
	side->groups = GROUPS_ALL;
	if (told)
		r = copy_told(c, &told->side, side);
	if (r == 0 && http)
		r = mcp_side_copy(c, http_header_find(http, "Koine-Project"), &side->asked);
	mcp_set_own(c, side);
	return r;
}

int side_open(struct call *c, const struct http_request *http)
{
	const struct jsonrpc_rules *rules = &c->dialect->rules;
	int r;

	if (hook_is_route(c))
		return hook_open(c, http);
	if (!http && is_opening(c->tree)) {
		c->method = &open_row;
		return jsonrpc_read(rules, c->tree, &c->request, &c->error);
	}
	r = mcp_open(c, http);
	return r != 0 ? r : read_side(c, http);
}

/* ---- where it works, if it is asked ---- */

/* "file:///home/a%20b" is "/home/a b". False: it is no folder of this machine. */
static bool read_file_uri(struct text uri, char *path, size_t size)
{
	static const struct text scheme = TEXT("file:///");
	size_t n = 0;

	if (uri.len < scheme.len || memcmp(uri.data, scheme.data, scheme.len) != 0)
		return false;
	for (size_t i = scheme.len - 1; i < uri.len; i++) {
		bool escaped = uri.data[i] == '%';
		int high = escaped && i + 2 < uri.len ? hex_digit(uri.data[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(uri.data[i + 2]) : -1;

		if (n + 1 >= size || (escaped && low < 0))
			return false;
		path[n++] = escaped ? (char)(high << 4 | low) : uri.data[i];
		i += escaped ? 2 : 0;
		if (path[n - 1] == '\0')
			return false;
	}
	path[n] = '\0';
	return true;
}

static void take_root(struct call *c)
{
	struct side *side = mcp_own(c);
	char path[PROJECT_NAME_MAX + 1];

	if (read_file_uri(mcp_root(c), path, sizeof(path)))
		(void)mcp_side_copy(c, text_of(path), &side->root);
	side->then(c);
}

void side_before_with(struct call *c, void (*then)(struct call *c))
{
	struct side *side = mcp_own(c);

	side->then = then;
	if (side->project.len > 0 || side->asked.len > 0)
		then(c);
	else
		mcp_with_root(c, take_root);
}

void side_before(struct call *c)
{
	side_before_with(c, call_go_on);
}

const struct side *call_side(const struct call *c)
{
	return mcp_own(c);
}

bool side_offers(const struct call *c, const struct mcp_tool *tool)
{
	const struct mcp_side_told *told = find_told(c->client);
	const unsigned *group = tool->row.arg;
	unsigned chosen = told ? told->side.groups : (unsigned)GROUPS_ALL;

	if (*group == GROUP_PERMISSION && text_is(side_agent(c), "claude"))
		return chosen & (GROUP_PERMISSION | GROUP_HUMAN);
	return chosen & *group;
}

/* Programs call themselves by other names than people do. */
struct text side_agent(const struct call *c)
{
	static const struct {
		const char *begins;
		const char *agent;
	} known[] = {
		{"claude", "claude"},     {"codex", "codex"},   {"gemini", "gemini"},
		{"opencode", "opencode"}, {"cursor", "cursor"},
	};
	struct text name = mcp_client_name(c);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].begins);

		if (name.len >= n && memcmp(name.data, known[i].begins, n) == 0)
			return text_of(known[i].agent);
	}
	return name.len > 0 ? text_cut(name, NAME_MAX_BYTES / 2) : TEXT("mcp");
}

struct text side_tool_use(const struct call *c)
{
	const struct value *id = value_find(mcp_meta(c), "claudecode/toolUseId");

	return text_cut(value_text(id), NAME_MAX_BYTES);
}
