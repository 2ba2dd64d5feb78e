/* koine grants: lists and revokes what is allowed or denied without asking anybody. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"

enum { NARROW = 60 };

static int print_grants(const struct cli *cli, const struct koine_value *grants)
{
	static const struct column columns[] = {
		{"ID", "id", cell_short_id},
		{"VERDICT", "verdict"},
		{"SESSION", "session_id", cell_short_id},
		{"AGENT", "agent", NULL, 'l', NARROW},
		{"UNTIL", "expires_at", cell_time, 'n', NARROW},
		{"USES", "uses", NULL, 'r', NARROW},
		{"TOOL", "tool", NULL, 'n'},
		{"INPUT", "pattern", NULL, 'l', NARROW},
		{NULL},
	};

	if (koine_value_first(grants) || !cli->terminal)
		return list_print(cli, columns, grants);
	fputs("no grants\n", stderr);
	return 0;
}

static int list(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "approval.grants", NULL, &a);

	return r != 0 ? r : call_print_result(cli, a, "grants", print_grants);
}

static int end_grant(struct cli *cli, const char *id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_with(cli, "approval.revoke", "id", id, &a);

	if (r == 0)
		call_say(cli, a, text_of(id), "revoked");
	return r;
}

int cmd_grants(struct cli *cli)
{
	if (cli->n_args == 0)
		return list(cli);
	if (cli->n_args == 2 && strcmp(cli->args[0], "revoke") == 0)
		return end_grant(cli, cli->args[1]);
	complain("invalid arguments; use koine grants, or koine grants revoke ID");
	return EX_USAGE;
}
