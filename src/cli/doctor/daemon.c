/* The daemon: whether it is there, its version, its settings, and the program of its sessions. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/doctor/exam.h"
#include "cli/kit/call.h"

/* "python3, pid 42" */
static void name_process(pid_t pid, char out[64])
{
	char path[64];
	char name[32] = "a program";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
	snprintf(out, 64, "%.31s, pid %d", name, (int)pid);
}

/* ---- whether it is there ---- */

static void find_nobody(struct exam *e)
{
	const char *place = e->socket ? e->socket : e->cli->address;

	if (e->dialled == -ENOENT)
		exam_find(e, MARK_BAD, "koined is not running: no socket at %s", place);
	else if (e->dialled == -ECONNREFUSED)
		exam_find(e, MARK_BAD, "koined is not running: no answer at %s", place);
	else
		exam_find(e, MARK_BAD, "koined cannot be reached at %s: %s", place,
			  e->no_answer[0] ? e->no_answer : strerror(-e->dialled));
	if (e->dialled == KOINE_FORBIDDEN)
		exam_advise(
			e, "If you trust that user, use --server-uid UID or set KOINE_SERVER_UID.");
	else if (e->exit_code == 0 && (e->dialled == -ENOENT || e->dialled == -ECONNREFUSED))
		exam_daemon_command(e, "start");
	else
		exam_advise(e, "Fix the problems below, then start koined.");
}

static void find_another(struct exam *e)
{
	char who[64] = "the program there";

	if (e->pid > 0)
		name_process(e->pid, who);
	if (e->asked == -ETIMEDOUT)
		exam_find(e, MARK_BAD, "%s does not respond at %s", who,
			  e->socket ? e->socket : e->cli->address);
	else
		exam_find(e, MARK_BAD, "another program, not koined, listens at %s: %s",
			  e->socket ? e->socket : e->cli->address, who);
	if (e->pid > 0)
		exam_command(e, "kill %s%d", e->asked == -ETIMEDOUT ? "-KILL " : "", (int)e->pid);
	exam_advise(e, "Then start koined.");
}

void check_daemon(struct exam *e)
{
	if (e->dialled != 0) {
		find_nobody(e);
	} else if (!e->status) {
		find_another(e);
	} else if (member_is(e->status, "health", "healthy")) {
		exam_find(e, MARK_OK, "koined responds, pid %lld",
			  (long long)member_number(e->status, "pid"));
	} else {
		/* The store's own row says why. */
		exam_find(e, MARK_WARN, "koined responds, but is %.*s",
			  TEXT_ARGS(member_text(e->status, "health")));
		exam_command(e, "koine daemon log");
	}
}

/* ---- its version ---- */

void check_version(struct exam *e)
{
	struct text runs = member_text(e->status, "version");
	char link[64];
	char path[PATH_MAX] = "";

	if (!text_is(runs, koine_version())) {
		exam_find(e, MARK_BAD, "version mismatch: koined is %.*s, but koine is %s",
			  TEXT_ARGS(runs), koine_version());
		exam_daemon_command(e, "restart");
		return;
	}
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)e->pid);
	if (e->pid > 0 && readlink(link, path, sizeof(path) - 1) > 0 &&
	    strstr(path, "/koined (deleted)")) {
		exam_find(e, MARK_WARN, "koined was replaced on disk after it started");
		exam_daemon_command(e, "restart");
		return;
	}
	exam_find(e, MARK_OK, "koine and koined are both version %s", koine_version());
}

/* ---- its settings ---- */

/* The last line that it has said. */
static struct text complaint(const struct exam *e)
{
	struct text rest = {0};
	struct text line;
	struct text last = TEXT("no output");

	while (exam_next_line(e, &rest, &line))
		last = line;
	return text_begins(last, TEXT("koined: ")) ? text_skip(last, 8) : last;
}

/* What has a line of its own there, and none here. */
static void find_others(struct exam *e)
{
	static const struct text titles[] = {TEXT("embedding key NO: "),
					     TEXT("word vectors  NO: ")};
	struct text rest = {0};
	struct text line;

	while (exam_next_line(e, &rest, &line)) {
		for (unsigned i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
			if (!text_begins(line, titles[i]))
				continue;
			line = text_skip(line, titles[i].len);
			exam_find(e, MARK_BAD, "[memory]: %.*s", TEXT_ARGS(line));
			exam_advise(e, "Fix the setting in %s.", e->settings);
		}
	}
}

/* "would act     nightly  NO: /x/koine.conf:4: cron: minute '61': not in 0 to 59" */
static void find_rules(struct exam *e)
{
	static const char none[] = "  NO: ";
	struct text rest = {0};
	struct text line;

	while (exam_next_line(e, &rest, &line)) {
		const char *end = memmem(line.data, line.len, none, strlen(none));

		if (!end || !text_begins(line, TEXT("would act     ")))
			continue;
		line = text_skip(line, strlen("would act     "));
		exam_find(e, MARK_BAD, "rule %.*s is invalid: %.*s", (int)(end - line.data),
			  line.data, (int)(line.data + line.len - end - strlen(none)),
			  end + strlen(none));
		exam_advise(e, "Fix the rule, then run koine daemon reload.");
	}
}

void check_settings(struct exam *e)
{
	unsigned n = e->n;

	if (!e->koined[0]) {
		exam_find(e, MARK_BAD, "koined not found in koine's folder or in PATH");
		exam_advise(e, "Install koined.");
		return;
	}
	if (e->exit_code == EX_CONFIG) {
		exam_find(e, MARK_BAD, "koined cannot start: %.*s", TEXT_ARGS(complaint(e)));
		exam_advise(e, "Fix the setting, then run koined --check.");
		return;
	}
	if (e->exit_code != 0 && e->exit_code != EX_UNAVAILABLE) {
		exam_find(e, MARK_BAD, "koined --check fails: %.*s", TEXT_ARGS(complaint(e)));
		exam_command(e, "koined --check");
		return;
	}
	find_others(e);
	find_rules(e);
	if (e->n == n)
		exam_find(e, MARK_OK, "%s",
			  e->settings[0] ? e->settings : "no settings file; using defaults");
}

/* ---- the program of its sessions ---- */

void check_sessions(struct exam *e)
{
	const struct koine_value *program = koine_value_get(e->status, "session_program");
	struct text name = member_text(program, "name");
	char word[PATH_MAX];
	struct probe own;

	if (!program) {
		exam_find(e, MARK_SKIPPED, "this koined does not report its session program");
		return;
	}
	if (member_flag(program, "found")) {
		exam_find(e, MARK_OK, "koined found %.*s", TEXT_ARGS(name));
		return;
	}
	snprintf(word, sizeof(word), "%.*s", TEXT_ARGS(name));
	if (strchr(word, '/') || !program_find(word, own.program)) {
		exam_find(e, MARK_WARN,
			  "%s not found; sessions and tasks without an agent use the default agent",
			  word);
		exam_advise(e, "Install the program, or set [session] program in koine.conf.");
		return;
	}
	exam_find(e, MARK_BAD, "%s is in your PATH, but not in koined's", word);
	exam_advise(e, "Add this to %s and restart koined: [session] program = %s",
		    e->settings[0] ? e->settings : "koine.conf", own.program);
}

/* ---- its agents ---- */

static void find_agent(struct exam *e, const struct koine_value *agent)
{
	struct text name = member_text(agent, "name");

	exam_find(e, MARK_BAD, "%.*s does not respond: %.*s", TEXT_ARGS(name),
		  TEXT_ARGS(member_text(agent, "text")));
	exam_advise(e, "Check [agent %.*s] in %s, then run koine agents.", TEXT_ARGS(name),
		    e->settings[0] ? e->settings : "koine.conf");
}

void check_agents(struct exam *e)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *agent;
	unsigned n = 0;
	unsigned ok = 0;
	int r = koine_client_call(e->cli->client, "chat.agents", NULL, &a);

	if (r == -ETIMEDOUT) {
		exam_find(e, MARK_WARN, "checking the agents timed out");
		exam_command(e, "koine agents");
		return;
	}
	agent = r == 0 ? member_first(koine_answer_result(a), "agents") : NULL;
	for (; agent; agent = koine_value_next(agent), n++) {
		ok += member_flag(agent, "ok");
		if (!member_flag(agent, "ok"))
			find_agent(e, agent);
	}
	if (r != 0)
		exam_find(e, MARK_SKIPPED, "this koined does not report its agents");
	else if (ok == n)
		exam_find(e, MARK_OK, "%s%.*s",
			  n == 1 ? "1 responds: " : "all agents respond; the first is ",
			  TEXT_ARGS(member_text(member_first(koine_answer_result(a), "agents"),
						"name")));
}

/* ---- the servers that agents work in ---- */

static void find_server(struct exam *e, const struct koine_value *server)
{
	struct text name = member_text(server, "name");
	struct text text = member_text(server, "text");
	struct text url = member_text(server, "url");
	const char *file = e->settings[0] ? e->settings : "koine.conf";

	if (!member_is(server, "state", "unreachable")) {
		exam_find(e, MARK_WARN, "koined is still connecting to %.*s at %.*s",
			  TEXT_ARGS(name), TEXT_ARGS(url));
		exam_command(e, "koine agents");
	} else if (member_is(server, "fault", "gone")) {
		/* Whoever does not work with it now has not started it. */
		exam_find(e, MARK_WARN, "%.*s does not respond at %.*s: %.*s", TEXT_ARGS(name),
			  TEXT_ARGS(url), TEXT_ARGS(text));
		exam_advise(e,
			    "Start %.*s at that address, or change url in [agent-server %.*s] of "
			    "%s. Until then its requests are missing from the inbox.",
			    TEXT_ARGS(member_text(server, "kind")), TEXT_ARGS(name), file);
	} else if (member_is(server, "fault", "password")) {
		exam_find(e, MARK_BAD, "%.*s at %.*s: %.*s", TEXT_ARGS(name), TEXT_ARGS(url),
			  TEXT_ARGS(text));
		exam_advise(e, "Set password_file or password_env in [agent-server %.*s] of %s.",
			    TEXT_ARGS(name), file);
	} else {
		exam_find(e, MARK_BAD, "%.*s at %.*s: %.*s", TEXT_ARGS(name), TEXT_ARGS(url),
			  TEXT_ARGS(text));
		exam_advise(e, "Check the program there, and url in [agent-server %.*s] of %s.",
			    TEXT_ARGS(name), file);
	}
}

void check_servers(struct exam *e)
{
	const struct koine_value *servers = koine_value_get(e->status, "agent_servers");
	const struct koine_value *server = koine_value_first(servers);

	if (!servers)
		exam_find(e, MARK_SKIPPED, "this koined does not report its agent servers");
	else if (!server)
		exam_find(e, MARK_OK, "no agent servers configured");
	for (; server; server = koine_value_next(server)) {
		if (member_is(server, "state", "connected"))
			exam_find(e, MARK_OK, "%.*s responds",
				  TEXT_ARGS(member_text(server, "name")));
		else
			find_server(e, server);
	}
}
