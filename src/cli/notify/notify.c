/* koine notifier: whom koined tells, how that goes, and a test. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/list.h"
#include "cli/kit/call.h"

/* ---- list ---- */

static void cell_state(const struct cell *c)
{
	struct text state = member_text(c->row, c->member);

	if (text_is(state, "ok"))
		table_cell_color(c->table, state, COLOR_GREEN);
	else
		table_cell_color(c->table, state, text_is(state, "quiet") ? COLOR_GREY : COLOR_RED);
}

static const struct column columns[] = {
	{"NAME", "name"},
	{"KIND", "kind"},
	{"STATE", "state", cell_state},
	{"SENT", "sent", NULL, 'r'},
	{"LAST", "sent_at", cell_when},
	{"WAITING", "waiting", NULL, 'r'},
	{"ON", "on"},
	{"ERROR", "error"},
	{NULL},
};

/* ---- test ---- */

static int print_test(const struct cli *cli, const struct koine_value *result)
{
	struct text pressed = member_text(result, "pressed");

	if (pressed.len > 0)
		printf("%s was pressed by %.*s\n", text_is(pressed, "approve") ? "Approve" : "Deny",
		       TEXT_ARGS(member_text(result, "by")));
	else
		printf("sent a test message through %s, which has no buttons\n", cli->args[0]);
	return 0;
}

/* Only what has buttons makes somebody wait. One that there is none of is refused at once. */
static int announce(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "notify.list", NULL, &a);

	if (r != 0)
		return r;
	for (EACH(n, member_first(koine_answer_result(a), "notifiers"))) {
		bool asks = member_is(n, "kind", "ntfy") || member_is(n, "kind", "telegram");

		if (asks && member_is(n, "name", cli->args[0]) && !member_is(n, "state", "off"))
			complain("sent a test message to %s; press one of its buttons",
				 cli->args[0]);
	}
	return 0;
}

static int cmd_test(struct cli *cli)
{
	int r = cli->options.json ? 0 : announce(cli);

	return r != 0 ? r : request_run(cli);
}

static const struct option test_options[] = {
	{"--timeout", NULL, "TIME", "wait at most TIME for a button press (default: 2m)",
	 option_seconds, .min = 1, .param = "timeout"},
	{NULL},
};

#define LIST .request = {"notify.list", "notifiers", .columns = columns}

static const struct command subs[] = {
	{"list", "", "List notifiers and their state", NULL, NO_ARGS, LIST,
	 .examples = {"koine notifier list", "koine notifier list --json"}},
	{"test", "NAME", "Send a test message and wait for a button press",
	 "The message is sent even in quiet hours. The command prints which button "
	 "was pressed, and by whom.\n",
	 cmd_test, NULL, test_options, ARGS(1, 1, "requires one NAME"),
	 .request = {"notify.test", .arg = "name", .patient = true, .print = print_test},
	 .examples = {"koine notifier test phone", "koine notifier test phone --timeout 30s"}},
	{NULL},
};

const struct command notify_commands[] = {
	{"notifier", "[COMMAND [ARGUMENT]...]", "List and test notifiers",
	 "A notifier sends approvals and other events to your phone, a chat or a program. Each "
	 "notifier is a [notify NAME] section in koine.conf(5).\n",
	 NULL, subs, LIST, .completes = COMPLETES_NOTIFIER,
	 .examples = {"koine notifier", "koine notifier test phone"}},
	{NULL},
};
