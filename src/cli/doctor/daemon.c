/*
 * The daemon: whether it is there, its version, its settings, its agents, where it listens, who may
 * come in there, and where it keeps everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/doctor/exam.h"

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
		exam_find(e, MARK_BAD, "cannot reach koined at %s: %s", place,
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
	char who[64] = "an unknown program";

	if (e->pid > 0)
		name_process(e->pid, who);
	if (e->asked == -ETIMEDOUT)
		exam_find(e, MARK_BAD, "%s is not responding at %s", who,
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
	char path[PATH_MAX];

	if (!text_is(runs, koine_version())) {
		exam_find(e, MARK_BAD, "version mismatch: koined is %.*s, but koine is %s",
			  TEXT_ARGS(runs), koine_version());
		exam_daemon_command(e, "restart");
		return;
	}
	if (e->pid > 0 && program_of(e->pid, path) && strstr(path, "/koined (deleted)")) {
		exam_find(e, MARK_WARN, "koined's program file was replaced after koined started");
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
	static const struct text titles[] = {TEXT("embedding key error: "),
					     TEXT("word vectors  error: ")};
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

/* "would run     nightly  error: /x/koine.conf:4: cron: minute '61': not in 0 to 59" */
static void find_rules(struct exam *e)
{
	static const char none[] = "  error: ";
	struct text rest = {0};
	struct text line;

	while (exam_next_line(e, &rest, &line)) {
		const char *end = memmem(line.data, line.len, none, strlen(none));

		if (!end || !text_begins(line, TEXT("would run     ")))
			continue;
		line = text_skip(line, strlen("would run     "));
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
		exam_find(e, MARK_SKIPPED,
			  "this version of koined does not report which program runs sessions");
		return;
	}
	if (member_flag(program, "found")) {
		exam_find(e, MARK_OK, "koined finds %.*s, which runs sessions", TEXT_ARGS(name));
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
	exam_advise(e, "Add this to %s and restart koined: [session] program = %s", e->file,
		    own.program);
}

/* ---- its agents ---- */

static void find_agent(struct exam *e, const struct koine_value *agent)
{
	struct text name = member_text(agent, "name");

	exam_find(e, MARK_BAD, "%.*s is not responding: %.*s", TEXT_ARGS(name),
		  TEXT_ARGS(member_text(agent, "text")));
	exam_advise(e, "Check [agent %.*s] in %s, then run koine agents.", TEXT_ARGS(name),
		    e->file);
}

void check_agents(struct exam *e)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *agent;
	unsigned n = 0;
	unsigned ok = 0;
	int r = koine_client_call(e->cli->client, "chat.agents", NULL, &a);

	if (r == -ETIMEDOUT) {
		exam_find(e, MARK_WARN, "the check of the agents timed out");
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
		exam_find(e, MARK_SKIPPED, "this version of koined does not report its agents");
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

	if (!member_is(server, "state", "unreachable")) {
		exam_find(e, MARK_WARN, "koined is still connecting to %.*s at %.*s",
			  TEXT_ARGS(name), TEXT_ARGS(url));
		exam_command(e, "koine agents");
	} else if (member_is(server, "fault", "gone")) {
		/* Whoever does not work with it now has not started it. */
		exam_find(e, MARK_WARN, "%.*s is not responding at %.*s: %.*s", TEXT_ARGS(name),
			  TEXT_ARGS(url), TEXT_ARGS(text));
		exam_advise(e,
			    "Start %.*s at that address, or change url in [agent-server %.*s] of "
			    "%s. Until then, the inbox does not show its requests.",
			    TEXT_ARGS(member_text(server, "kind")), TEXT_ARGS(name), e->file);
	} else if (member_is(server, "fault", "password")) {
		exam_find(e, MARK_BAD, "%.*s at %.*s: %.*s", TEXT_ARGS(name), TEXT_ARGS(url),
			  TEXT_ARGS(text));
		exam_advise(e, "Set password_file or password_env in [agent-server %.*s] of %s.",
			    TEXT_ARGS(name), e->file);
	} else {
		exam_find(e, MARK_BAD, "%.*s at %.*s: %.*s", TEXT_ARGS(name), TEXT_ARGS(url),
			  TEXT_ARGS(text));
		exam_advise(
			e,
			"Check the program at that address, and url in [agent-server %.*s] of %s.",
			TEXT_ARGS(name), e->file);
	}
}

void check_servers(struct exam *e)
{
	const struct koine_value *servers = koine_value_get(e->status, "agent_servers");
	const struct koine_value *server = koine_value_first(servers);

	if (!servers)
		exam_find(e, MARK_SKIPPED,
			  "this version of koined does not report its agent servers");
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

/* ---- where koined listens, who may come in there, and where it keeps everything ---- */

enum { ROOM_BAD_MB = 64, ROOM_WARN_MB = 1024 };

static void folder_of(const char *path, char out[PATH_MAX])
{
	char *slash;

	snprintf(out, PATH_MAX, "%s", path);
	slash = strrchr(out, '/');
	if (slash)
		*(slash == out ? slash + 1 : slash) = '\0';
	else
		strcpy(out, ".");
}

static const char *as_root(void)
{
	return geteuid() == 0 ? "" : "sudo ";
}

/* ---- the socket ---- */

/* Whether other users were let in: koined's socket is open to all then, and it looks who comes. */
static bool admits_others(const struct exam *e)
{
	struct text rest = {0};
	struct text line;

	while (exam_next_line(e, &rest, &line)) {
		if (text_begins(line, TEXT("note          users ")) &&
		    text_ends(line, TEXT(" every method of koine")))
			return true;
	}
	return false;
}

static bool check_folder(struct exam *e, const char *path)
{
	char word[WORD_MAX];
	char folder[PATH_MAX];
	struct stat st;

	folder_of(path, folder);
	if (stat(folder, &st) != 0)
		return true;
	if (st.st_uid != geteuid() && st.st_uid != 0 && st.st_uid != e->uid) {
		exam_find(e, MARK_BAD, "%s belongs to user %u, who can replace the socket", folder,
			  (unsigned)st.st_uid);
		exam_command(e, "%schown %u %s", as_root(), (unsigned)geteuid(),
			     exam_word(folder, word));
		return false;
	}
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)) {
		exam_find(e, MARK_BAD, "other users can write to %s and replace the socket",
			  folder);
		exam_command(e, "chmod go-w %s", exam_word(folder, word));
		return false;
	}
	return true;
}

void check_socket(struct exam *e)
{
	char word[WORD_MAX];
	mode_t most = admits_others(e) ? 0666 : 0600;
	struct stat st;

	if (!e->socket) {
		exam_find(e, MARK_SKIPPED,
			  "not checked: koine connects to %s, not to a Unix socket",
			  e->cli->address);
	} else if (lstat(e->socket, &st) != 0) {
		if (check_folder(e, e->socket))
			exam_find(e, MARK_SKIPPED, "no socket at %s", e->socket);
	} else if (!S_ISSOCK(st.st_mode)) {
		exam_find(e, MARK_BAD, "%s is not a socket, so koined does not start", e->socket);
		exam_command(e, "mv %s %s.old", exam_word(e->socket, word), word);
	} else if (!check_folder(e, e->socket)) {
		return;
	} else if (st.st_mode & 0777 & ~most) {
		exam_find(e, MARK_BAD, "%s has mode %04o, expected %04o", e->socket,
			  (unsigned)(st.st_mode & 0777), (unsigned)most);
		exam_command(e, "chmod %04o %s", (unsigned)most, exam_word(e->socket, word));
	} else if (e->dialled == -ECONNREFUSED) {
		exam_find(e, MARK_WARN, "%s is a stale socket; koined replaces it when it starts",
			  e->socket);
	} else {
		exam_find(e, MARK_OK, "%s", e->socket);
	}
}

/* ---- ports, and the other dialects' sockets ---- */

static bool has(struct text line, const char *words)
{
	return memmem(line.data, line.len, words, strlen(words)) != NULL;
}

/* "would listen  nexus http:127.0.0.1:8765  error: address in use (python3, pid 7)" */
static void find_listener(struct exam *e, struct text line)
{
	struct text what = text_skip(line, strlen("would listen  "));
	struct text dialect = {0};
	struct text rest = what;

	text_next(&rest, ' ', &dialect);
	exam_find(e, has(line, "  error: ") ? MARK_BAD : MARK_WARN, "%.*s", TEXT_ARGS(what));
	exam_advise(
		e, "Stop that program, or set %.*s in [listen] of %s to another address or to off.",
		TEXT_ARGS(dialect), e->file);
}

/* koine's own socket has a row of its own, if it is the one that we look at. */
static bool is_our_socket(const struct exam *e, struct text line)
{
	char own[PATH_MAX + 32];

	if (!e->socket)
		return false;
	snprintf(own, sizeof(own), "would listen  koine unix:%s ", e->socket);
	return text_begins(line, text_of(own));
}

void check_ports(struct exam *e)
{
	struct text rest = {0};
	struct text line;
	unsigned n = e->n;

	while (exam_next_line(e, &rest, &line)) {
		bool skips = text_begins(line, TEXT("would skip    "));

		if (!skips && !text_begins(line, TEXT("would listen  ")))
			continue;
		if (!is_our_socket(e, line) &&
		    (skips || has(line, "  error: ") || has(line, " is taken: ")))
			find_listener(e, line);
	}
	if (e->n > n)
		return;
	if (e->exit_code == 0 || e->exit_code == EX_UNAVAILABLE)
		exam_find(e, MARK_OK, "no other program uses koined's addresses");
	else
		exam_find(e, MARK_SKIPPED,
			  "not checked: this version of koined --check does not report addresses");
}

/* ---- who may come in ---- */

/* "cannot read the token file /x: ..."; "": no path is named. */
static void path_in(struct text line, char out[PATH_MAX])
{
	const char *file = memmem(line.data, line.len, " file /", 7);
	struct text path;

	out[0] = '\0';
	if (!file)
		return;
	path = (struct text) {.data = file + 6, .len = line.len - (size_t)(file + 6 - line.data)};
	while (path.len > 0) {
		snprintf(out, PATH_MAX, "%.*s", TEXT_ARGS(path));
		if (access(out, F_OK) == 0)
			return;
		path.len--;
	}
	out[0] = '\0';
}

static void find_token(struct exam *e, struct text line)
{
	char word[WORD_MAX];
	char path[PATH_MAX];
	struct stat st;

	exam_find(e, MARK_BAD, "%.*s", TEXT_ARGS(line));
	path_in(line, path);
	if (path[0] && stat(path, &st) == 0 && (st.st_mode & 077))
		exam_command(e, "chmod 600 %s", exam_word(path, word));
	else
		exam_advise(e, "Check token_file in %s.", e->file);
}

void check_access(struct exam *e)
{
	static const struct text note = TEXT("note          ");
	struct text rest = {0};
	struct text line;
	unsigned n = e->n;

	while (exam_next_line(e, &rest, &line)) {
		struct text words = text_skip(line, line.len < note.len ? line.len : note.len);

		if (has(line, "token") && has(line, " error: "))
			find_token(e, line);
		else if (text_begins(line, note))
			exam_find(e, MARK_WARN, "%.*s", TEXT_ARGS(words));
	}
	if (e->n > n)
		return;
	if (e->exit_code == 0 || e->exit_code == EX_UNAVAILABLE)
		exam_find(e, MARK_OK, "sockets and ports: only you and root have access");
	else
		exam_find(e, MARK_SKIPPED,
			  "not checked: this version of koined --check does not report access "
			  "rights");
}

/* ---- the store ---- */

/* Its file, by the daemon or else by koined --check; "": it is no file, or unknown. */
static void find_store(const struct exam *e, char path[PATH_MAX], struct text *ret_no)
{
	static const struct text keep = TEXT("would open    sqlite:");
	static const char error[] = "  error: ";
	struct text rest = {0};
	struct text line;
	const char *end;

	path[0] = '\0';
	*ret_no = (struct text) {0};
	while (exam_next_line(e, &rest, &line)) {
		if (!text_begins(line, keep))
			continue;
		line = text_skip(line, keep.len);
		end = memmem(line.data, line.len, "  ok: ", 6)
			      ?: memmem(line.data, line.len, error, strlen(error));
		if (!end)
			continue;
		snprintf(path, PATH_MAX, "%.*s", (int)(end - line.data), line.data);
		if (end[2] == 'e')
			*ret_no = text_skip(line, (size_t)(end - line.data) + strlen(error));
	}
	if (e->status)
		member_copy(koine_value_get(e->status, "store"), "path", path, PATH_MAX);
}

static bool check_file(struct exam *e, const char *path)
{
	char word[WORD_MAX];
	static const char magic[] = "SQLite format 3";
	uid_t owner = e->status ? e->uid : geteuid();
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	char head[sizeof(magic)];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return true; /* there is none yet, or it is another's */
	if (st.st_uid != owner) {
		exam_find(e, MARK_BAD, "%s is owned by user %u, who can change it", path,
			  (unsigned)st.st_uid);
		exam_command(e, "koine store adopt %s", exam_word(path, word));
		return false;
	}
	if (st.st_mode & 077) {
		exam_find(e, MARK_BAD, "other users can read the store %s", path);
		exam_command(e, "chmod 600 %s", exam_word(path, word));
		return false;
	}
	if (st.st_size > 0 && (pread(fd, head, sizeof(head), 0) != sizeof(head) ||
			       memcmp(head, magic, sizeof(head)) != 0)) {
		exam_find(e, MARK_BAD, "%s is damaged: it is not an SQLite file", path);
		exam_advise(
			e, "Stop koined and replace the store with a backup (koine store backup).");
		return false;
	}
	return true;
}

static bool check_room(struct exam *e, const char *path)
{
	char word[WORD_MAX];
	char folder[PATH_MAX];
	struct statvfs fs;
	unsigned long long mb;

	folder_of(path, folder);
	if (statvfs(folder, &fs) != 0)
		return true;
	mb = (unsigned long long)fs.f_bavail * fs.f_frsize >> 20;
	if (fs.f_flag & ST_RDONLY) {
		exam_find(e, MARK_BAD, "%s is on a read-only filesystem", folder);
		exam_command(e, "%smount -o remount,rw \"$(stat -c %%m %s)\"", as_root(),
			     exam_word(folder, word));
		return false;
	}
	if ((!e->status || e->uid == geteuid()) && access(folder, F_OK) == 0 &&
	    access(folder, W_OK) != 0) {
		exam_find(e, MARK_BAD, "%s is not writable", folder);
		exam_command(e, "chmod u+w %s", exam_word(folder, word));
		return false;
	}
	if (mb >= ROOM_WARN_MB)
		return true;
	exam_find(e, mb < ROOM_BAD_MB ? MARK_BAD : MARK_WARN,
		  "the filesystem of %s has only %llu MB free", folder, mb);
	exam_advise(e, "Free some disk space.");
	return false;
}

static bool check_words(struct exam *e)
{
	const struct koine_value *store = koine_value_get(e->status, "store");
	struct text writes = member_string(store, "writes");
	struct text check = member_string(store, "check");

	if (writes.data && !text_is(writes, "ok")) {
		exam_find(e, MARK_BAD, "koined cannot write to the store: %.*s", TEXT_ARGS(writes));
		exam_command(e, "koine daemon log");
		return false;
	}
	if (check.data && !text_is(check, "ok") && !text_is(check, "not needed") &&
	    !text_is(check, "under way")) {
		exam_find(e, MARK_BAD, "the store is damaged: %.*s", TEXT_ARGS(check));
		exam_advise(
			e, "Stop koined and replace the store with a backup (koine store backup).");
		return false;
	}
	return true;
}

void check_store(struct exam *e)
{
	char path[PATH_MAX];
	struct text no;

	find_store(e, path, &no);
	if (!path[0]) {
		exam_find(e, MARK_SKIPPED, "not checked: the path of the store is unknown");
		return;
	}
	/* The cause first: what koined says of it may follow from that. */
	if (!check_room(e, path) || !check_file(e, path) || !check_words(e))
		return;
	/* Whoever holds the socket may have it open; then that is to be mended first. */
	if (no.data && e->dialled != 0) {
		exam_find(e, MARK_BAD, "%s: %.*s", path, TEXT_ARGS(no));
		exam_command(e, "koined --check");
		return;
	}
	exam_find(e, MARK_OK, "%s", path);
}
