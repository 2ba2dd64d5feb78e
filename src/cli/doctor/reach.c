/* Whether agents reach koine: by what stands in their files, and as koine mcp answers. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/connect/plan.h"
#include "cli/connect/probe.h"
#include "cli/connect/ours.h"
#include "cli/doctor/exam.h"

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

static void find_files(struct exam *e, const struct plan *p, const struct started *s)
{
	const char *title = p->agent->title;
	const char *file = p->files[0].target.path;
	char socket[WORD_MAX + 16];

	for (unsigned i = 0; i < p->n; i++) {
		if (p->files[i].changes)
			file = p->files[i].target.path;
	}
	if (s->gone[0])
		exam_find(e, MARK_BAD, "%s starts %s, which does not exist", title, s->gone);
	else if (s->other[0])
		exam_find(e, MARK_WARN, "%s starts a different koine: %s", title, s->other);
	else
		exam_find(e, MARK_BAD,
			  "%s: koine's entry in %s differs from the one that koine connect writes",
			  title, file);
	exam_socket_option(e, socket);
	exam_command(e, "koine connect %s%s", p->agent->name, socket);
}

/* Its agent is asked for the hash, which takes a moment. */
static void find_trust(struct exam *e, const struct agent *agent)
{
	CLEANUP(freep) struct plan *p = calloc(1, sizeof(*p));
	char socket[WORD_MAX + 16];

	if (!p)
		return;
	*p = (struct plan) {.agent = agent, .quiet = true, .asks = true};
	exam_socket_option(e, socket);
	if (plan_make(e->cli, p) != 0 || p->trust != TRUST_GIVEN) {
		exam_find(e, MARK_WARN, "%s does not report whether it trusts koine's hooks",
			  agent->title);
		exam_advise(e, "%s", agent->trust_note);
	} else if (plan_changes(p)) {
		exam_find(e, MARK_BAD,
			  "%s does not run koine's hooks, because it does not trust them",
			  agent->title);
		exam_command(e, "koine connect %s%s", agent->name, socket);
	} else {
		exam_find(e, MARK_OK, "%s is connected and trusts koine's hooks", agent->title);
	}
	plan_done(p);
}

/* What is no JSON or TOML, its agent cannot read either. What koine merely does not edit may work. */
static void find_unreadable(struct exam *e, const struct plan *p)
{
	bool broken = p->why.code == REFUSE_PARSE;

	exam_find(e, broken ? MARK_BAD : MARK_WARN, "%s: %s", p->agent->title, p->why.text);
	if (broken)
		exam_advise(e, "Fix that file by hand; koine does not change a file that it cannot "
			       "parse.");
	else
		exam_advise(e, "Check that file: koine cannot tell whether %s is connected.",
			    p->agent->title);
}

static bool has_ours(const struct plan *p)
{
	bool ours = false;

	for (unsigned i = 0; i < p->n; i++)
		ours |= p->files[i].has_ours;
	return ours;
}

/* Whether its hooks go to koined's port: each of those has this header. */
static bool posts(const struct plan *p)
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
static void find_posts(struct exam *e, const struct agent *agent)
{
	CLEANUP(freep) struct plan *p = calloc(1, sizeof(*p));
	char socket[WORD_MAX + 16];
	struct door door;

	if (!p)
		return;
	exam_socket_option(e, socket);
	*p = (struct plan) {.agent = agent, .quiet = true, .door = &door};
	if (!e->status) {
		exam_find(e, MARK_SKIPPED, "%s sends its hooks to koined, which is not running",
			  agent->title);
	} else if (door_find(e->cli, true, &door) != 0) {
		exam_find(e, MARK_BAD, "%s sends its hooks to koined, which has no port for MCP",
			  agent->title);
		exam_command(e, "koine connect %s%s", agent->name, socket);
	} else if (!door.held) {
		exam_find(e, MARK_WARN,
			  "%s sends its hooks to a port that no systemd socket unit reserves: "
			  "another user can answer them while koined is not running",
			  agent->title);
		exam_command(e, "koine connect %s%s", agent->name, socket);
	} else if (plan_make(e->cli, p) != 0 || plan_changes(p)) {
		exam_find(e, MARK_BAD,
			  "%s sends some hooks to the wrong address or with the wrong token",
			  agent->title);
		exam_command(e, "koine connect %s --http%s", agent->name, socket);
	} else {
		exam_find(e, MARK_OK, "%s is connected and sends its hooks to koined",
			  agent->title);
	}
	explicit_bzero(&door, sizeof(door));
	plan_done(p);
}

/* An agent that starts before koined has no koine for its whole session. */
static void find_start(struct exam *e, const struct agent *agent)
{
	CLEANUP(freep) struct plan *p = calloc(1, sizeof(*p));

	if (!p || e->findings[e->n - 1].mark != MARK_OK || !words_need_start(e->cli))
		return;
	*p = (struct plan) {.agent = agent, .quiet = true, .starts = true};
	if (plan_make(e->cli, p) == 0 && p->files[0].changes) {
		exam_find(e, MARK_WARN, "neither %s nor a service manager starts koined",
			  agent->title);
		exam_command(e, "koine connect %s", agent->name);
	}
	plan_done(p);
}

/* Whether it is connected, or was. */
static bool look_at(struct exam *e, const struct agent *agent, const char *own)
{
	CLEANUP(freep) struct plan *p = calloc(1, sizeof(*p));
	struct started s = {.own = own};
	bool connected = true;

	if (!p)
		return false;
	*p = (struct plan) {.agent = agent, .quiet = true};
	if (plan_make(e->cli, p) != 0) {
		find_unreadable(e, p);
	} else if (!has_ours(p)) {
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
	char own[PATH_MAX] = "";
	unsigned n = 0;

	if (!e->socket || readlink("/proc/self/exe", own, sizeof(own) - 1) <= 0 ||
	    !text_is(text_base_name(text_of(own)), "koine") || !getenv("HOME")) {
		exam_find(
			e, MARK_SKIPPED,
			"not checked: this requires a Unix socket, HOME and a program named koine");
		return;
	}
	if (strchr(e->socket, '\'')) {
		exam_find(e, MARK_SKIPPED, "not checked: the path of the socket contains a quote");
		return;
	}
	for (const struct agent *a = agents; a->name; a++)
		n += look_at(e, a, own);
	if (n > 0)
		return;
	exam_find(e, MARK_WARN, "no agent is connected");
	exam_command(e, "koine connect");
}

/* ---- koine mcp ---- */

static bool ask(struct child *c, struct koine_doc **ret_tools)
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
	const struct child_opts opts = {.argv = argv, .patience_ms = exam_patience(e, MCP_MS)};
	struct koine_doc *tools = NULL;
	const struct koine_value *one;
	struct child c;
	unsigned n = 0;

	if (!e->socket) {
		exam_find(e, MARK_SKIPPED, "not checked: koine mcp requires a Unix socket");
		return;
	}
	if (child_start(&c, &opts)) {
		if (ask(&c, &tools)) {
			one = member_first(koine_value_get(koine_doc_root(tools), "result"),
					   "tools");
			for (; one; one = koine_value_next(one))
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
