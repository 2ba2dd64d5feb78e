/* koine hosts: who shares the store. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/kit/list.h"
#include "cli/kit/value.h"

enum { HOST_COLUMNS = 80 };

/* The one that answers is marked. */
static void cell_host(const struct cell *c)
{
	struct text name = member_text(c->row, "name");
	char text[HOST_COLUMNS];

	snprintf(text, sizeof(text), "%.*s%s", TEXT_ARGS(name),
		 member_flag(c->row, "this") ? "*" : "");
	cell_text(c, text_of(text));
}

static void cell_running(const struct cell *c)
{
	char text[48];

	snprintf(text, sizeof(text), "%lld/%lld", (long long)member_number(c->row, "running"),
		 (long long)member_number(c->row, "parallel"));
	cell_text(c, text_of(text));
}

static void note_unknown(const struct koine_value *hosts)
{
	for (EACH(h, koine_value_first(hosts))) {
		if (!member_is(h, "state", "unknown"))
			continue;
		fputs("the shared database is not responding; see koine status\n", stderr);
		return;
	}
}

static const struct column columns[] = {
	{"HOST", "name", cell_host},
	{"STATE", "state"},
	{"SINCE", "since", cell_age},
	{"SEEN", "seen_at", cell_age},
	{"RUNNING", "running", cell_running, 'r'},
	{"VERSION", "version"},
	{"LABELS", "labels"},
	{NULL},
};

static int print_hosts(const struct cli *cli, const struct koine_value *hosts)
{
	note_unknown(hosts);
	if (koine_value_first(hosts))
		return list_print(cli, columns, hosts);
	fputs("this store has only one host; several hosts require a PostgreSQL store\n", stderr);
	return 0;
}

static const struct command subs[] = {
	{"list", "", "List the hosts that share the store",
	 "* marks the host that koine is connected to.\n", NO_ARGS,
	 .request = {"host.list", "hosts", .print = print_hosts},
	 .examples = {"koine host list", "koine host list --json"}},
	{"delete", "NAME", "Remove a dead host from the list",
	 "The command refuses to remove a live host. Tasks waiting for the removed host keep "
	 "waiting.\n",
	 ARGS(1, 1, "requires one NAME"),
	 .request = {"host.forget", .arg = "name", .did = "deleted"},
	 .examples = {"koine host delete build-2", "koine host delete laptop --json"}},
	{NULL},
};

const struct command host_commands[] = {
	{"host", "COMMAND [ARGUMENT]...", "List the hosts that share a store", NULL, NULL, subs,
	 .completes = COMPLETES_HOST, .examples = {"koine host list", "koine host delete build-2"}},
	{NULL},
};
