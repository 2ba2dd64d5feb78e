/* koine doctor: whether everything that koine needs is as it should be, and what mends it. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/doctor/exam.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"

enum { SAID_MAX = 4 << 20 };

struct check {
	const char *name;
	void (*run)(struct exam *e);
	bool needs_daemon;
};

static const struct check checks[] = {
	{"daemon", check_daemon},
	{"version", check_version, .needs_daemon = true},
	{"settings", check_settings},
	{"socket", check_socket},
	{"ports", check_ports},
	{"access", check_access},
	{"store", check_store},
	{"agents", check_agents, .needs_daemon = true},
	{"servers", check_servers, .needs_daemon = true},
	{"sessions", check_sessions, .needs_daemon = true},
	{"connected", check_connected},
	{"mcp", check_mcp, .needs_daemon = true},
	{NULL},
};

static int cmd_doctor(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *answer = NULL;
	CLEANUP(freep) struct finding *findings = calloc(FINDINGS_MAX, sizeof(*findings));
	CLEANUP(freep) struct exam *e = calloc(1, sizeof(*e));
	int r;

	if (!e || !findings)
		return out_of_memory();
	e->cli = cli;
	e->findings = findings;
	buf_init(&e->said, SAID_MAX);
	exam_ask_daemon(e);
	answer = e->answer;
	exam_ask_koined(e);
	for (const struct check *c = checks; c->name; c++) {
		e->check = c->name;
		if (c->needs_daemon && !e->status)
			exam_find(e, MARK_SKIPPED, "not checked: koined is not running");
		else
			c->run(e);
	}
	buf_done(&e->said);
	r = cli->options.json ? exam_print_json(e) : exam_print(e);
	return r != 0 ? r : exam_is_well(e) ? EX_OK : EXIT_ERROR_ANSWER;
}

const struct command doctor_commands[] = {
	{"doctor", "", "Check your setup and explain how to fix problems",
	 "Checks the daemon and its version, settings, socket, ports, tokens, store, agents and "
	 "agent servers; the program that runs sessions; the entries of `koine connect` in agents' "
	 "files, and whether Codex trusts koine's hooks; and a connection through `koine mcp`. "
	 "Each check takes a few seconds at most. doctor changes nothing.\n\nThe exit code is 0, "
	 "or 1 "
	 "if there is a problem. Warnings alone exit with 0.\n",
	 cmd_doctor, NO_ARGS, .examples = {"koine doctor", "koine doctor --json"}},
	{NULL},
};
