/* Whether agents reach koine: by what stands in their files, and as koine mcp answers. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/connect/json_file.h"
#include "cli/connect/ours.h"
#include "cli/connect/plan.h"
#include "cli/connect/toml_file.h"
#include "cli/doctor/exam.h"
#include "cli/kit/place.h"

/* ---- settings of an agent that switch off what koine has put into its files ---- */

/* A setting that switches something off. */
struct doctor_reach_setting {
	const char *file;
	struct text keys[EDIT_PATH_MAX];
	unsigned n;
	const char *value; /* or an element of its list */
	const char *what;  /* is switched off */
	bool allows;       /* a list that has something, but not this */
	bool is_list;      /* as found */
	char where[512];   /* " for PROJECT", where a "*" stands for one of several; or "" */
};

/* A truth or a string as it is written, or a word in a list. */
static bool has_value(const struct koine_value *v, struct doctor_reach_setting *s)
{
	s->is_list = koine_value_kind(v) == KOINE_ARRAY && koine_value_count(v) > 0;
	if (s->is_list)
		return value_has(v, text_of(s->value)) != s->allows;
	if (koine_value_kind(v) == KOINE_ARRAY)
		return strcmp(s->value, "[]") == 0;
	return text_is(text_of_raw(v), s->value);
}

/* The value below this one that switches it off; NULL if there is none. */
static const struct koine_value *follow(const struct json_file *f, const struct koine_value *v,
					struct doctor_reach_setting *s, unsigned depth)
{
	const struct koine_value *found = NULL;

	if (depth == s->n)
		return has_value(v, s) ? v : NULL;
	if (!text_is(s->keys[depth], "*"))
		return json_file_member(f, v, s->keys[depth], &v, NULL) == 0 && v
			       ? follow(f, v, s, depth + 1)
			       : NULL;
	for (v = koine_value_first(v); v && !found; v = koine_value_next(v)) {
		found = follow(f, v, s, depth + 1);
		if (found)
			snprintf(s->where, sizeof(s->where), " for %.*s",
				 TEXT_ARGS(text_cut(text_of_key(v), sizeof(s->where) - 6)));
	}
	return found;
}

/* The line of the setting; 0 if the file does not have it. */
static unsigned line_in_json(struct text text, struct doctor_reach_setting *s)
{
	CLEANUP(json_file_close) struct json_file f;
	const struct koine_value *v = NULL;

	if (json_file_open(&f, text, true, NULL) == 0 && f.root)
		v = follow(&f, f.root, s, 0);
	return v ? edit_line(text, json_file_span(&f, v).start) : 0;
}

static unsigned line_in_toml(struct text text, const struct doctor_reach_setting *s)
{
	struct toml_path path = {.n = s->n};
	CLEANUP(toml_file_close) struct toml_file f;
	unsigned line = 0;
	int r = toml_file_open(&f, text, NULL);

	memcpy(path.keys, s->keys, s->n * sizeof(path.keys[0]));
	for (size_t i = 0; r == 0 && i < f.n_items; i++) {
		const struct toml_item *item = &f.items[i];

		if (item->kind == TOML_KEY && toml_path_equal(&item->path, &path) &&
		    text_is(item->value, s->value))
			line = item->line;
	}
	return line;
}

/* Whether it is off everywhere. */
static bool doctor_reach_find(struct exam *e, const struct connect_plan *p,
			      const struct doctor_reach_setting *s, unsigned line)
{
	struct text key = s->keys[s->n - 1];

	if (line == 0)
		return false;
	exam_find(e, s->where[0] ? MARK_WARN : MARK_BAD,
		  "%s is connected, but a setting in %s turns off %s%s (line %u)", p->agent->title,
		  s->file, s->what, s->where, line);
	if (!s->is_list)
		exam_advise(e, "Remove %.*s from line %u of %s.", TEXT_ARGS(key), line, s->file);
	else
		exam_advise(e, "%s \"%s\" %s %.*s in line %u of %s.", s->allows ? "Add" : "Remove",
			    s->value, s->allows ? "to" : "from", TEXT_ARGS(key), line, s->file);
	return !s->where[0];
}

static bool find_in(struct exam *e, const struct connect_plan *p, const struct plan_file *f,
		    struct doctor_reach_setting *s)
{
	struct text text = buf_text(&f->target.text);
	unsigned line = f->row->by == &toml_editor ? line_in_toml(text, s) : line_in_json(text, s);

	s->file = f->target.path;
	return doctor_reach_find(e, p, s, line);
}

static bool find_elsewhere(struct exam *e, const struct connect_plan *p, const char *row,
			   struct doctor_reach_setting *s)
{
	CLEANUP(buf_donep) struct buf text;
	char path[PATH_MAX];
	char folder[PATH_MAX];
	unsigned line = 0;
	bool found;
	CLEANUP(closep) int fd = -1;

	buf_init(&text, EDIT_FILE_MAX);
	if (place_path(row, path, folder))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && file_read_all(fd, &text) == 0)
		line = line_in_json(buf_text(&text), s);
	s->file = path;
	found = doctor_reach_find(e, p, s, line);
	s->file = NULL; /* the path goes with this function */
	return found;
}

/* Codex can switch off a single hook, in the table that has its trust. */
static bool find_hook(struct exam *e, const struct connect_plan *p)
{
	const struct plan_file *f = &p->files[0];
	bool found = false;

	for (unsigned i = 0; i < f->n_edits && p->agent->trust && !found; i++) {
		struct doctor_reach_setting s = {.value = "false", .what = "one of koine's hooks"};

		s.n = edit_keys(&f->edits[i], s.keys);
		s.keys[s.n++] = TEXT("enabled");
		found = f->edits[i].key && find_in(e, p, f, &s);
	}
	return found;
}

static bool find_row(struct exam *e, const struct connect_plan *p, const struct plan_file *f,
		     const struct agent_off *off)
{
	const struct edit named = {.path = off->path};
	struct doctor_reach_setting s = {
		.value = off->value, .what = off->what, .allows = off->allows};

	s.n = edit_keys(&named, s.keys);
	return off->file ? find_elsewhere(e, p, off->file, &s) : find_in(e, p, f, &s);
}

/* Adds a finding if the agent's settings switch off what koine has put into them. */
static bool exam_find_switched_off(struct exam *e, const struct connect_plan *p)
{
	bool found = false;

	for (unsigned i = 0; i < p->n && !found; i++) {
		const struct agent_off *off = p->files[i].row->off;

		for (unsigned k = 0; k < AGENT_OFF_MAX && off[k].path && !found; k++)
			found = find_row(e, p, &p->files[i], &off[k]);
	}
	return found || find_hook(e, p);
}

enum { MCP_MS = 5000 };

/* ---- agents' files ---- */

/* Which koine an agent's files start. */
struct started {
	const char *own;
	char gone[PATH_MAX];  /* one that is not there; "": none */
	char other[PATH_MAX]; /* one that is not ours */
};

static void on_program(void *arg, struct text program)
{
	struct started *s = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(program));
	if (strcmp(path, s->own) == 0)
		return;
	strcpy(s->other, path);
	if (path[0] == '/' && access(path, X_OK) != 0)
		strcpy(s->gone, path);
}

static void advise_connect(struct exam *e, const struct connect_agent *agent, const char *options)
{
	const char *socket = e->cli->options.socket;
	char word[WORD_MAX];

	exam_command(e, "koine connect %s%s%s%s", agent->name, options, socket ? " --socket " : "",
		     socket ? exam_word(socket, word) : "");
}

static void find_files(struct exam *e, const struct connect_plan *p, const struct started *s)
{
	const char *title = p->agent->title;
	const char *file = p->files[0].target.path;

	for (unsigned i = 0; i < p->n; i++) {
		if (p->files[i].changes)
			file = p->files[i].target.path;
	}
	if (s->gone[0])
		exam_find(e, MARK_BAD, "%s starts %s, which does not exist", title, s->gone);
	else if (s->other[0])
		exam_find(e, MARK_WARN, "%s starts a different koine: %s", title, s->other);
	else
		exam_find(
			e, MARK_BAD,
			"%s: koine's entry in %s differs from the entry that koine connect writes",
			title, file);
	advise_connect(e, p->agent, "");
}

/* Its agent is asked for the hash, which takes a moment. */
static void find_trust(struct exam *e, const struct connect_agent *agent)
{
	CLEANUP(freep) struct connect_plan *p = calloc(1, sizeof(*p));

	if (!p)
		return;
	*p = (struct connect_plan) {.agent = agent, .quiet = true, .asks = true};
	if (plan_make(e->cli, p) != 0 || p->trust != TRUST_GIVEN) {
		exam_find(e, MARK_WARN, "%s does not report whether it trusts koine's hooks",
			  agent->title);
		exam_advise(e, "%s", agent->trust_note);
	} else if (plan_changes(p)) {
		exam_find(e, MARK_BAD,
			  "%s does not run koine's hooks, because it does not trust them",
			  agent->title);
		advise_connect(e, agent, "");
	} else {
		exam_find(e, MARK_OK, "%s is connected and trusts koine's hooks", agent->title);
	}
	plan_done(p);
}

/* What is no JSON or TOML, its agent cannot read either. What koine merely does not edit may work. */
static void find_unreadable(struct exam *e, const struct connect_plan *p)
{
	bool broken = p->error.code == REFUSE_PARSE;

	exam_find(e, broken ? MARK_BAD : MARK_WARN, "%s: %s", p->agent->title, p->error.text);
	if (broken)
		exam_advise(e, "Fix that file manually; koine does not change files that it cannot "
			       "parse.");
	else
		exam_advise(e, "Check that file: koine cannot tell whether %s is connected.",
			    p->agent->title);
}

/* Whether its hooks go to koined's port: each of those has this header. */
static bool posts(const struct connect_plan *p)
{
	static const char mark[] = "Koine-Timeout";

	for (unsigned i = 0; i < p->n && p->agent->posts; i++) {
		struct text file = buf_text(&p->files[i].target.text);

		if (file.len > 0 && memmem(file.data, file.len, mark, strlen(mark)))
			return true;
	}
	return false;
}

/* The address and the token in them must be those that koined has now. */
static void find_posts(struct exam *e, const struct connect_agent *agent)
{
	CLEANUP(freep) struct connect_plan *p = calloc(1, sizeof(*p));
	struct door door;

	if (!p)
		return;
	*p = (struct connect_plan) {.agent = agent, .quiet = true, .door = &door};
	if (!e->status) {
		exam_find(e, MARK_SKIPPED, "%s sends hook requests to koined, which is not running",
			  agent->title);
	} else if (door_find(e->cli, true, &door) != 0) {
		exam_find(
			e, MARK_BAD,
			"%s sends hook requests to koined, which does not listen on a port for MCP",
			agent->title);
		advise_connect(e, agent, "");
	} else if (!door.held) {
		exam_find(e, MARK_WARN,
			  "%s sends hook requests to a port that no systemd socket unit reserves: "
			  "another user could answer them while koined is not running",
			  agent->title);
		advise_connect(e, agent, "");
	} else if (plan_make(e->cli, p) != 0 || plan_changes(p)) {
		exam_find(
			e, MARK_BAD,
			"%s sends some hook requests to the wrong address or with the wrong token",
			agent->title);
		advise_connect(e, agent, " --http");
	} else {
		exam_find(e, MARK_OK, "%s is connected and sends hook requests to koined",
			  agent->title);
	}
	explicit_bzero(&door, sizeof(door));
	plan_done(p);
}

/* An agent that starts before koined has no koine for its whole session. */
static void find_start(struct exam *e, const struct connect_agent *agent)
{
	CLEANUP(freep) struct connect_plan *p = calloc(1, sizeof(*p));

	if (!p || e->findings[e->n - 1].mark != MARK_OK || !words_need_start(e->cli))
		return;
	*p = (struct connect_plan) {.agent = agent, .quiet = true, .starts = true};
	if (plan_make(e->cli, p) == 0 && p->files[0].changes) {
		exam_find(e, MARK_WARN,
			  "nothing starts koined automatically, neither %s nor a service manager",
			  agent->title);
		exam_command(e, "koine connect %s", agent->name);
	}
	plan_done(p);
}

/* Whether it is connected, or was. */
static bool look_at(struct exam *e, const struct connect_agent *agent, const char *own)
{
	CLEANUP(freep) struct connect_plan *p = calloc(1, sizeof(*p));
	struct started s = {.own = own};
	bool connected = true;

	if (!p)
		return false;
	*p = (struct connect_plan) {.agent = agent, .quiet = true};
	if (plan_make(e->cli, p) != 0) {
		find_unreadable(e, p);
	} else if (!plan_has_ours(p)) {
		connected = false;
	} else {
		for (unsigned i = 0; i < p->n; i++)
			program_each(p->files[i].row->by, buf_text(&p->files[i].target.text),
				     on_program, &s);
		if (!s.gone[0] && exam_find_switched_off(e, p))
			;
		else if (posts(p) && !s.gone[0])
			find_posts(e, agent);
		else if (plan_changes(p) || s.gone[0])
			find_files(e, p, &s);
		else if (agent->trust)
			find_trust(e, agent);
		else
			exam_find(e, MARK_OK, "%s", agent->title);
		find_start(e, agent);
	}
	plan_done(p);
	return connected;
}

void check_connected(struct exam *e)
{
	char own[PATH_MAX];
	unsigned n = 0;

	if (!e->socket || !program_of(0, own) || !text_is(text_base_name(text_of(own)), "koine") ||
	    !getenv("HOME")) {
		exam_find(e, MARK_SKIPPED,
			  "not checked: this check requires a Unix socket, the HOME variable and a "
			  "program named koine");
		return;
	}
	if (strchr(e->socket, '\'')) {
		exam_find(e, MARK_SKIPPED, "not checked: the path of the socket contains a quote");
		return;
	}
	for (const struct connect_agent *a = agents; a->name; a++)
		n += look_at(e, a, own);
	if (n > 0)
		return;
	exam_find(e, MARK_WARN, "no agent is connected");
	exam_command(e, "koine connect");
}

/* ---- koine mcp ---- */

static bool doctor_reach_ask(struct cli_child *c, struct koine_doc **ret_tools)
{
	static const struct text hello =
		TEXT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
		     "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{"
		     "\"name\":\"koine-doctor\",\"version\":\"1\"}}}\n");
	static const struct text list =
		TEXT("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
		     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n");
	struct koine_doc *doc = NULL;
	bool ok = child_ask(c, hello, 1, &doc) && koine_value_get(koine_doc_root(doc), "result");

	koine_doc_free(doc);
	return ok && child_ask(c, list, 2, ret_tools);
}

void check_mcp(struct exam *e)
{
	const char *argv[] = {"/proc/self/exe", "mcp", "--socket", e->socket, NULL};
	const struct cli_child_opts opts = {.argv = argv, .patience_ms = exam_patience(e, MCP_MS)};
	struct koine_doc *tools = NULL;
	struct cli_child c;
	unsigned n = 0;

	if (!e->socket) {
		exam_find(e, MARK_SKIPPED, "not checked: koine mcp requires a Unix socket");
		return;
	}
	if (child_start(&c, &opts)) {
		if (doctor_reach_ask(&c, &tools)) {
			for (EACH(one,
				  member_first(koine_value_get(koine_doc_root(tools), "result"),
					       "tools")))
				n++;
		}
		child_end(&c);
	}
	koine_doc_free(tools);
	if (n > 0) {
		exam_find(e, MARK_OK, "koine mcp responds, with %u tools", n);
		return;
	}
	exam_find(e, MARK_BAD, "koine mcp does not respond like an MCP server");
	exam_daemon_command(e, "restart");
}
