/* koine grants: what is allowed or denied without asking anybody, and its end. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/glyph.h"

enum { ID_SHOWN = 8, NARROW = 60 };

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

static void grant_answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

static void cell_id(struct table *t, const struct koine_value *grant, const char *member)
{
	struct text id = approval_member(grant, member);

	if (id.len > ID_SHOWN)
		id.len = ID_SHOWN;
	table_cell(t, id.len > 0 ? id.data : "-", id.len > 0 ? id.len : 1);
}

static void add_grant(struct table *t, const struct koine_value *g, bool narrow)
{
	cell_id(t, g, "id");
	table_cell_value(t, koine_value_get(g, "verdict"));
	cell_id(t, g, "session_id");
	if (!narrow) {
		table_cell_value(t, koine_value_get(g, "agent"));
		table_cell_time(t, koine_value_get(g, "expires_at"));
		table_cell_value(t, koine_value_get(g, "uses"));
	}
	table_cell_value(t, koine_value_get(g, "tool"));
	if (!narrow)
		table_cell_value(t, koine_value_get(g, "pattern"));
}

static int print_grants(const struct cli *cli, const struct koine_value *grants)
{
	static const char *const titles[] = {"ID",    "VERDICT", "SESSION", "AGENT",
					     "UNTIL", "USES",    "TOOL",    "INPUT"};
	unsigned room = cli->terminal ? terminal_columns() : 1000;
	bool narrow = room < NARROW;
	CLEANUP(table_freep) struct table *t = table_new(narrow ? "llll" : "llllnrnl");
	const struct koine_value *g = koine_value_first(grants);

	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		if (!narrow || i < 3 || i == 6)
			table_cell_str(t, titles[i]);
	}
	for (; g; g = koine_value_next(g))
		add_grant(t, g, narrow);
	if (cli->terminal)
		table_fit(t, room);
	return table_print(t, stdout, cli->color);
}

static int list(struct cli *cli)
{
	CLEANUP(grant_answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *grants;
	int r = talk_once(cli, "approval.grants", NULL, &a);

	if (r != 0)
		return r;
	grants = koine_value_get(koine_answer_result(a), "grants");
	if (cli->options.json)
		print_json_compact(stdout, grants);
	else if (!koine_value_first(grants) && cli->terminal)
		fputs("nothing is granted\n", stderr);
	else
		return print_grants(cli, grants);
	return 0;
}

static int end_grant(struct cli *cli, const char *id)
{
	CLEANUP(grant_answer_freep) struct koine_answer *a = NULL;
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *params = NULL;
	int r;

	if (koine_json_new(&j) == 0) {
		koine_json_begin_object(j);
		koine_json_key(j, "id");
		koine_json_string(j, id);
		koine_json_end_object(j);
		params = koine_json_text(j, NULL);
	}
	if (!params) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	r = talk_once(cli, "approval.revoke", params, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		printf("%s revoked\n", id);
	return r;
}

int cmd_grants(struct cli *cli)
{
	if (cli->n_args == 0)
		return list(cli);
	if (cli->n_args == 2 && strcmp(cli->args[0], "revoke") == 0)
		return end_grant(cli, cli->args[1]);
	complain("it is koine grants, or koine grants revoke ID");
	return EX_USAGE;
}
