/* Where koined listens, who may come in there, and where it keeps everything. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/doctor/exam.h"

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
	static const char end[] = " every method of koine";
	struct text rest = {0};
	struct text line;

	while (exam_next_line(e, &rest, &line)) {
		if (text_begins(line, TEXT("note          uids ")) && line.len > strlen(end) &&
		    memcmp(line.data + line.len - strlen(end), end, strlen(end)) == 0)
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

/* "would listen  nexus http:127.0.0.1:8765  NO: address in use (python3, pid 7)" */
static void find_listener(struct exam *e, struct text line)
{
	struct text what = text_skip(line, strlen("would listen  "));
	struct text dialect = {0};
	struct text rest = what;

	text_next(&rest, ' ', &dialect);
	exam_find(e, has(line, "  NO: ") ? MARK_BAD : MARK_WARN, "%.*s", TEXT_ARGS(what));
	exam_advise(
		e, "Stop that program, or set %.*s in [listen] of %s to another address or to off.",
		TEXT_ARGS(dialect), e->settings[0] ? e->settings : "koine.conf");
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
		    (skips || has(line, "  NO: ") || has(line, " is taken: ")))
			find_listener(e, line);
	}
	if (e->n > n)
		return;
	if (e->exit_code == 0 || e->exit_code == EX_UNAVAILABLE)
		exam_find(e, MARK_OK, "no other program uses koined's addresses");
	else
		exam_find(e, MARK_SKIPPED, "not checked: koined --check does not report addresses");
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
		exam_advise(e, "Check token_file in %s.",
			    e->settings[0] ? e->settings : "koine.conf");
}

void check_access(struct exam *e)
{
	static const struct text note = TEXT("note          ");
	struct text rest = {0};
	struct text line;
	unsigned n = e->n;

	while (exam_next_line(e, &rest, &line)) {
		struct text words = text_skip(line, line.len < note.len ? line.len : note.len);

		if (has(line, "token") && has(line, " NO: "))
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
			  "not checked: koined --check does not report access rights");
}

/* ---- the store ---- */

/* Its file, by the daemon or else by koined --check; "": it is no file, or unknown. */
static void find_store(const struct exam *e, char path[PATH_MAX], struct text *ret_no)
{
	static const struct text keep = TEXT("would keep    sqlite:");
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
			      ?: memmem(line.data, line.len, "  NO: ", 6);
		if (!end)
			continue;
		snprintf(path, PATH_MAX, "%.*s", (int)(end - line.data), line.data);
		if (end[2] == 'N')
			*ret_no = text_skip(line, (size_t)(end - line.data) + 6);
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
		exam_find(e, MARK_BAD, "%s is owned by user %u, who can change its content", path,
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
		exam_advise(e, "Stop koined and replace the store with a backup (koine backup).");
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
		exam_find(e, MARK_BAD, "the disk of %s is read-only", folder);
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
		  "the disk of %s has only %llu MB of free space", folder, mb);
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
		exam_advise(e, "Stop koined and replace the store with a backup (koine backup).");
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
