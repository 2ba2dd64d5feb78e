/* koine daemon: its commands. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/value.h"

static int cmd_reload(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "daemon.reload", NULL, &a);

	if (r == 0)
		call_say(cli, a, TEXT("koined"), "has read its settings again");
	return r;
}

#define AT(member) offsetof(struct daemon_options, member)

static const struct option log_options[] = {
	{"--lines", "-n", "N", "the last so many; 50, at most 1000", option_number, AT(limit),
	 .min = 1},
	{"--follow", "-f", NULL, "go on as more comes", option_flag, AT(follow)},
	{NULL},
};

static const struct option stop_options[] = {
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
	 "all else at the next start. Answers under way end with the agent they began with.\n",
	 cmd_reload, NO_ARGS},
	{"restart", "", "stop the daemon and start it again",
	 "What runs may come to its end first, as with stop.\n", cmd_restart, NO_ARGS},
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
