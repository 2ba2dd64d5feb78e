/* koine session tree: which session goes on from which. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/glyph.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

enum { SESSIONS_MAX = 1000, PREFIX_MAX = 64 };

struct node {
	const struct koine_value *session;
	int parent; /* -1: none that is known */
	bool printed;
};

struct tree {
	const struct cli *cli;
	struct node nodes[SESSIONS_MAX];
	int n;
};

static bool same(const struct koine_value *a, const struct koine_value *b)
{
	size_t len;
	size_t n;
	const char *text = koine_value_text(a, &len);
	const char *other = koine_value_text(b, &n);

	return text && other && len == n && memcmp(text, other, n) == 0;
}

static int find(const struct tree *t, const struct koine_value *id)
{
	for (int i = 0; i < t->n; i++) {
		if (same(koine_value_get(t->nodes[i].session, "id"), id))
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
		const struct koine_value *id =
			koine_value_get(t->nodes[i].session, "parent_session_id");

		t->nodes[i].parent = koine_value_kind(id) == KOINE_STRING ? find(t, id) : -1;
	}
}

static void print_line(const struct tree *t, const struct node *n, const char *prefix,
		       const char *branch)
{
	bool color = t->cli->color;
	unsigned columns = t->cli->terminal ? terminal_columns() : 160;
	size_t used = text_columns(prefix, strlen(prefix)) + text_columns(branch, strlen(branch));
	size_t len;
	size_t name_len;
	const char *name = session_name(t->cli, n->session, &name_len);
	const char *id = koine_value_text(koine_value_get(n->session, "id"), &len);

	printf("%s%s", prefix, branch);
	len = id && len > SESSION_ID_SHOWN ? SESSION_ID_SHOWN : len;
	used += print_fitting(stdout, id ? id : "", id ? len : 0, NULL, SESSION_ID_SHOWN) + 4;
	id = koine_value_text(koine_value_get(n->session, "status"), &len);
	printf("  %s", color ? color_begin(session_color(n->session)) : "");
	used += print_fitting(stdout, id ? id : "", id ? len : 0, NULL, 20);
	printf("%s  ", color ? "\033[0m" : "");
	(void)print_fitting(stdout, name, name_len, NULL, columns > used + 8 ? columns - used : 8);
	fputc('\n', stdout);
}

static int next_child(const struct tree *t, int parent, int before)
{
	int i = before - 1;

	while (i >= 0 && (t->nodes[i].parent != parent || t->nodes[i].printed))
		i--;
	return i;
}

/* Deep ones are not indented any further. */
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

/* The first of those that it goes on from; nobody is its own ancestor, whatever a server says. */
static int root_of(const struct tree *t, int at)
{
	for (int i = 0; i < t->n && t->nodes[at].parent >= 0; i++)
		at = t->nodes[at].parent;
	return at;
}

static int ask_list(struct cli *cli, struct koine_client *c, struct koine_answer **ret)
{
	struct koine_json *j = session_params();
	bool all = cli->options.session.all || cli->n_args > 0;

	if (!j)
		return EX_SOFTWARE;
	session_add_text(j, "archived", all ? "any" : "no");
	koine_json_key(j, "limit");
	koine_json_int(j, SESSIONS_MAX);
	return session_send(c, "session.list", j, ret);
}

static int print_tree(struct cli *cli, const struct koine_value *sessions,
		      const struct koine_value *wanted)
{
	struct tree *t = calloc(1, sizeof(*t));
	int at;

	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	t->cli = cli;
	gather(t, sessions);
	at = wanted ? find(t, wanted) : -1;
	if (wanted && at >= 0)
		print_root(t, root_of(t, at));
	for (int i = t->n - 1; !wanted && i >= 0; i--) {
		if (t->nodes[i].parent < 0)
			print_root(t, i);
	}
	free(t);
	if (!wanted || at >= 0)
		return 0;
	complain("it is not among the last %d sessions", SESSIONS_MAX);
	return EXIT_ERROR_ANSWER;
}

int cmd_session_tree(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(answer_freep) struct koine_answer *one = NULL;
	const struct koine_value *sessions;
	struct koine_client *c = NULL;
	int r;

	if (cli->n_args > 1) {
		complain("session tree wants one ID, or none");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0 && cli->n_args > 0)
		r = session_send_id(c, "session.get", cli->args[0], &one);
	if (r == 0)
		r = ask_list(cli, c, &a);
	sessions = koine_value_get(koine_answer_result(a), "sessions");
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, sessions);
	else if (r == 0 && cli->terminal && !koine_value_first(sessions))
		session_say_none(cli->options.session.all);
	else if (r == 0)
		r = print_tree(cli, sessions, koine_value_get(koine_answer_result(one), "id"));
	koine_client_free(c);
	return r;
}
