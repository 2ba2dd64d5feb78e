/* koine session tree: which session continues which. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/value.h"
#include "cli/session/session.h"

enum { SESSIONS_MAX = 1000, PREFIX_MAX = 64 };

struct node {
	const struct koine_value *session;
	int parent; /* -1: none known */
	bool printed;
};

struct tree {
	const struct cli *cli;
	struct node nodes[SESSIONS_MAX];
	int n;
};

static int find(const struct tree *t, struct text id)
{
	for (int i = 0; i < t->n; i++) {
		if (text_equal(member_text(t->nodes[i].session, "id"), id))
			return i;
	}
	return -1;
}

/* The list has the last active first; a tree reads better from its beginning. */
static void gather(struct tree *t, const struct koine_value *sessions)
{
	const struct koine_value *s = koine_value_first(sessions);

	for (; s && t->n < SESSIONS_MAX; s = koine_value_next(s))
		t->nodes[t->n++].session = s;
	for (int i = 0; i < t->n; i++) {
		struct text id = member_string(t->nodes[i].session, "parent_session_id");

		t->nodes[i].parent = id.data ? find(t, id) : -1;
	}
}

static void print_line(const struct tree *t, const struct node *n, const char *prefix,
		       const char *branch)
{
	unsigned columns = t->cli->terminal ? terminal_columns() : 160;
	size_t used = text_columns(text_of(prefix)) + text_columns(text_of(branch));
	struct text id = text_cut(member_text(n->session, "id"), SHORT_ID);

	printf("%s%s", prefix, branch);
	used += print_fitting(stdout, id, SHORT_ID) + 4;
	fputs("  ", stdout);
	print_style(t->cli, color_begin(session_color(n->session)));
	used += print_fitting(stdout, member_text(n->session, "status"), 20);
	print_plain(t->cli);
	fputs("  ", stdout);
	(void)print_fitting(stdout, session_name(t->cli, n->session),
			    columns > used + 8 ? columns - used : 8);
	fputc('\n', stdout);
}

static int next_child(const struct tree *t, int parent, int before)
{
	int i = before - 1;

	while (i >= 0 && (t->nodes[i].parent != parent || t->nodes[i].printed))
		i--;
	return i;
}

/* Beyond some depth they are not indented any further. */
static void print_children(struct tree *t, int parent, const char *prefix)
{
	int at = next_child(t, parent, t->n);

	while (at >= 0) {
		int following;
		char deeper[PREFIX_MAX];

		t->nodes[at].printed = true;
		following = next_child(t, parent, at);
		print_line(t, &t->nodes[at], prefix, following >= 0 ? "├─ " : "└─ ");
		if (strlen(prefix) + 6 < sizeof(deeper))
			snprintf(deeper, sizeof(deeper), "%s%s", prefix,
				 following >= 0 ? "│  " : "   ");
		else
			snprintf(deeper, sizeof(deeper), "%s", prefix);
		print_children(t, at, deeper);
		at = following;
	}
}

static void print_root(struct tree *t, int at)
{
	t->nodes[at].printed = true;
	print_line(t, &t->nodes[at], "", "");
	print_children(t, at, "");
}

/* The first session of its chain. A server could claim a cycle, so the walk is bounded. */
static int root_of(const struct tree *t, int at)
{
	for (int i = 0; i < t->n && t->nodes[at].parent >= 0; i++)
		at = t->nodes[at].parent;
	return at;
}

static void print_roots(struct tree *t)
{
	for (int i = t->n - 1; i >= 0; i--) {
		if (t->nodes[i].parent < 0)
			print_root(t, i);
	}
}

/* All of them, or the tree of one. */
static int print_tree(const struct cli *cli, const struct koine_value *sessions, struct text wanted)
{
	CLEANUP(freep) struct tree *t = calloc(1, sizeof(*t));
	int at;

	if (!t)
		return out_of_memory();
	t->cli = cli;
	gather(t, sessions);
	if (!wanted.data) {
		print_roots(t);
		return 0;
	}
	at = find(t, wanted);
	if (at < 0) {
		complain("session '%.*s' not found among the last %d sessions", TEXT_ARGS(wanted),
			 SESSIONS_MAX);
		return EXIT_ERROR_ANSWER;
	}
	print_root(t, root_of(t, at));
	return 0;
}

static int print_all(const struct cli *cli, const struct koine_value *sessions)
{
	return print_tree(cli, sessions, (struct text) {0});
}

int cmd_session_tree(struct cli *cli)
{
	const struct session_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(answer_freep) struct koine_answer *one = NULL;
	const struct koine_value *sessions;
	struct koine_json *j;
	struct text wanted;
	int r = 0;

	if (cli->n_args > 0)
		r = call_with(cli, "session.get", "id", cli->args[0], &one);
	if (r != 0)
		return r;
	j = params_new();
	params_add(j, "archived", o->all || cli->n_args > 0 ? "any" : "no");
	params_add_int(j, "limit", SESSIONS_MAX);
	r = call_send(cli, "session.list", j, &a);
	if (r != 0)
		return r;
	sessions = koine_value_get(koine_answer_result(a), "sessions");
	wanted = member_text(koine_answer_result(one), "id");
	if (cli->options.json || !wanted.data)
		return session_print_found(cli, sessions, o->all, print_all);
	return print_tree(cli, sessions, wanted);
}
