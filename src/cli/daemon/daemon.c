/* koine daemon: its commands. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

/* "taken: group.build.parallel (koine.conf:7)" */
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
	call_say(cli, a, TEXT("koined"), "has read its settings again");
	row = member_first(koine_answer_result(a), "settings");
	for (; row; row = koine_value_next(row)) {
		if (!cli->options.json)
			print_reloaded(row);
		if (member_is(row, "state", "invalid"))
			r = EX_CONFIG;
	}
	return r;
}

#define AT(member) offsetof(struct daemon_options, member)

static const struct option log_options[] = {
	{"--lines", "-n", "N", "the last so many; 50, at most 1000", option_number, AT(limit),
	 .min = 1},
	{"--follow", "-f", NULL, "go on as more comes", option_flag, AT(follow)},
	{NULL},
};

#define DRAIN                                                                                      \
	{                                                                                          \
		"--drain", NULL, "TIME",                                                           \
			"start nothing new, and wait for what runs: TIME at most, else without a " \
			"limit",                                                                   \
			option_span, AT(drain_ms), .min = 1, .implied = "3650d"                    \
	}

static const struct option restart_options[] = {
	DRAIN,
	{NULL},
};

static const struct option stop_options[] = {
	DRAIN,
	{"--force", NULL, NULL, "do not wait for what runs", option_flag, AT(force)},
	{NULL},
};

static const struct command subs[] = {
	{"disable", "", "let the daemon not start by itself any more",
	 "Undoes koine daemon enable. A daemon that runs goes on.\n", cmd_disable, NO_ARGS},
	{"enable", "", "let the daemon start when you log in, with the PATH of this shell",
	 "By systemd's user manager. Agents such as claude are looked for in the PATH that this\n"
	 "shell has now; say it again when that has changed. Where there is no such manager, it\n"
	 "says what to do instead, and ends with status 69.\n",
	 cmd_enable, NO_ARGS},
	{"log", "", "show what the daemon has logged lately",
	 "Koined keeps the last thousand lines; all of them are where its stderr goes: the\n"
	 "terminal, journalctl --user -u koined, or koined.log beside the store. Of a daemon that\n"
	 "does not run, it shows the end of the last two.\n",
	 cmd_log, NULL, log_options, NO_ARGS},
	{"reload", "", "let the daemon read its settings again",
	 "Agents, rules, policies and limits are taken as they are now; listeners, the store and\n"
	 "all else at the next start. Says what became of each setting that has changed, and ends\n"
	 "with status 78 if a rule is invalid, which then stays as it was. Answers under way end\n"
	 "with the agent they began with.\n",
	 cmd_reload, NO_ARGS},
	{"restart", "", "stop the daemon and start it again",
	 "What runs may come to its end first, as with stop.\n", cmd_restart, NULL, restart_options,
	 NO_ARGS},
	{"start", "", "start the daemon in the background, and wait until it is ready",
	 "By systemd's user manager; where there is none, as a plain process, with its log in\n"
	 "koined.log beside the store. --timeout says how long to wait, 60 s. One that runs\n"
	 "already is left alone.\n",
	 cmd_start, NO_ARGS},
	{"status", "", "show the daemon, its listeners and their counts",
	 "The same as koine status.\n", cmd_status},
	{"stop", "", "stop the daemon, and wait until it has gone",
	 "What runs may come to its end first; --timeout says how long to wait for it, 60 s.\n",
	 cmd_stop, NULL, stop_options, NO_ARGS},
	{NULL},
};

const struct command daemon_commands[] = {
	{"daemon", "COMMAND", "the daemon itself: start, stop, its state, log and settings", NULL,
	 NULL, subs, NULL, sizeof(struct daemon_options)},
	{"backup", "FILE", "copy the daemon's store into a new file while it is in use",
	 "The daemon writes the file, as its own user; one that exists is left alone.\n",
	 cmd_backup, ARGS(1, 1, "wants one FILE")},
	{"store", "COMMAND", "take over a store that somebody else has made", NULL, NULL,
	 store_subs},
	{NULL},
};
