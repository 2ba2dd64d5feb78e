/* koine grants: lists and revokes what is allowed or denied without asking anybody. */
#include <string.h>

#include "cli/approval/approval.h"
#include "cli/kit/list.h"
#include "cli/kit/request.h"

enum { NARROW = 60 };

int cmd_grants(struct cli *cli)
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
	static const struct request list = {"approval.grants", "grants", .columns = columns,
					    .none = "no grants"};
	static const struct request revoke = {"approval.revoke", .arg = "id", .did = "revoked"};

	if (cli->n_args == 0)
		return request_run_as(cli, &list, NULL);
	if (cli->n_args == 2 && strcmp(cli->args[0], "revoke") == 0)
		return request_run_as(cli, &revoke, cli->args[1]);
	complain("invalid arguments; use koine grants, or koine grants revoke ID");
	return EX_USAGE;
}
