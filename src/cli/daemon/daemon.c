/* koine daemon: its commands. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

/* "applied: group.build.parallel (koine.conf:7)" */
static void print_reloaded(const struct koine_value *row)
{
	FILE *out = member_is(row, "state", "invalid") ? stderr : stdout;
	struct text reason = member_text(row, "reason");

	print_text(out, member_text(row, "state"));
	fputs(": ", out);
	print_text(out, member_text(row, "key"));
	if (member_number(row, "line") > 0) {
		fputs(" (", out);
		print_text(out, member_text(row, "file"));
		fprintf(out, ":%lld)", (long long)member_number(row, "line"));
	}
	if (reason.len > 0) {
		fputs(": ", out);
		print_text(out, reason);
	}
	fputc('\n', out);
}

static int cmd_reload(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *row;
	int r = call_plain(cli, "daemon.reload", NULL, &a);

	if (r != 0)
		return r;
	call_say(cli, a, TEXT("koined"), "has reloaded its settings");
	row = member_first(koine_answer_result(a), "settings");
	for (; row; row = koine_value_next(row)) {
		if (!cli->options.json)
			print_reloaded(row);
		if (member_is(row, "state", "invalid"))
			r = EX_CONFIG;
	}
	return r;
}

#define AT(member) OPTION_AT(struct daemon_options, member)

static const struct option log_options[] = {
	{"--lines", "-n", "N", "show the last N lines, at most 1000; default 50", option_number,
	 AT(limit), .min = 1},
	{"--follow", "-f", NULL, "keep printing new lines", option_flag, AT(follow)},
	{NULL},
};

#define DRAIN                                                                                      \
	{                                                                                          \
		"--drain", NULL, "TIME",                                                           \
			"wait for running tasks, sessions and rules first, at most TIME; "         \
			"default: no limit",                                                       \
			option_span, AT(drain_ms), .min = 1, .implied = "3650d"                    \
	}

static const struct option restart_options[] = {
	DRAIN,
	{NULL},
};

static const struct option stop_options[] = {
	DRAIN,
	{"--force", NULL, NULL, "do not wait for running tasks, sessions and rules", option_flag,
	 AT(force)},
	{NULL},
};

static const struct command subs[] = {
	{"disable", "", "Stop starting koined at login",
	 "Undoes `koine daemon enable`. A running koined keeps running.\n", cmd_disable, NO_ARGS,
	 .examples = {"koine daemon disable", "koine daemon disable && koine daemon stop"}},
	{"enable", "", "Start koined at login, with this shell's PATH",
	 "Uses systemd's user manager. koined looks for agents such as claude in the PATH of this "
	 "shell; run the command again after you change PATH. Without a user manager, the command "
	 "prints instructions and exits with 69.\n",
	 cmd_enable, NO_ARGS,
	 .examples = {"koine daemon enable", "PATH=~/bin:$PATH koine daemon enable"}},
	{"log", "", "Show the log of koined",
	 "koined keeps the last thousand lines in memory. It writes all lines to stderr, which is "
	 "the terminal, the journal (`journalctl --user -u koined`) or koined.log in the folder of "
	 "the store. If koined is not running, the command shows the end of the journal or "
	 "koined.log.\n",
	 cmd_log, NULL, log_options, NO_ARGS,
	 .examples = {"koine daemon log -n 200", "koine daemon log -f"}},
	{"reload", "", "Reload the settings",
	 "Changes to agents, rules, policies, notifiers and limits apply at once; changes to "
	 "listeners, the store and other settings apply at the next start. The command prints each "
	 "changed setting with its state, and each setting that a flag or the environment "
	 "overrides. If a rule is invalid, the previous rule stays in effect, and the command "
	 "exits with 78. Any other invalid setting changes nothing. Answers in progress finish "
	 "with their previous agent.\n",
	 cmd_reload, NO_ARGS, .examples = {"koine daemon reload", "koine daemon reload --json"}},
	{"restart", "", "Restart koined",
	 "Listening sockets stay open, and browsers stay signed in to the page. koined starts with "
	 "this shell's environment, unless systemd starts it. With --drain, koined first waits for "
	 "running tasks, sessions and commands of rules.\n",
	 cmd_restart, NULL, restart_options, NO_ARGS,
	 .examples = {"koine daemon restart", "koine daemon restart --drain=10m"}},
	{"start", "", "Start koined in the background and wait until it is ready",
	 "Uses systemd's user manager. Without a user manager, koined runs as a plain process and "
	 "logs to koined.log in the folder of the store. --timeout limits the wait; default 60 s. "
	 "If koined is already running, the command does nothing.\n",
	 cmd_start, NO_ARGS, .examples = {"koine daemon start", "koine daemon start --timeout 10"}},
	{"status", "", "Show the state of koined and its listeners", "Same as `koine status`.\n",
	 cmd_status, .examples = {"koine daemon status", "koine daemon status --json"}},
	{"stop", "", "Stop koined and wait until it has exited",
	 "With --drain, koined first waits for running tasks, sessions and commands of rules. "
	 "--timeout limits the wait; default 60 s.\n",
	 cmd_stop, NULL, stop_options, NO_ARGS,
	 .examples = {"koine daemon stop", "koine daemon stop --drain=10m"}},
	{NULL},
};

const struct command daemon_commands[] = {
	{"daemon", "COMMAND", "Start, stop and configure koined", NULL, NULL, subs, NULL,
	 sizeof(struct daemon_options), .examples = {"koine daemon start", "koine daemon log -f"}},
	{"backup", "FILE", "Back up the store to a new file",
	 "koined writes the file as the user that koined runs as, and continues to serve clients. "
	 "It refuses to overwrite an existing file.\n",
	 cmd_backup, ARGS(1, 1, "requires one FILE"),
	 .examples = {"koine backup ~/koine-backup.db", "koine backup \"koine-$(date +%F).db\""}},
	{"store", "COMMAND", "Take over or move a store", NULL, NULL, store_subs,
	 .examples = {"koine store adopt", "koine store move sqlite:koine.db postgresql:///koine"}},
	{NULL},
};
