#include "daemon/life.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/unix_name.h"
#include "wire/json.h"

enum { ANSWER_MAX = 1 << 20, PATIENCE_S = 3 };

static int dial(const char *path)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	CLEANUP(unix_name_close) struct unix_name to = {.folder = -1};
	int fd;

	if (unix_name_open(path, &to) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&to.addr, sizeof(to.addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool running_is_ours(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* Sends one line and reads one line. */
static bool ask(int fd, struct buf *answer)
{
	static const char question[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"daemon.status\",\"id\":1}\n";
	char part[16384];
	ssize_t n;

	if (send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(question) - 1)
		return false;
	while ((n = recv(fd, part, sizeof(part), 0)) > 0) {
		buf_add(answer, part, (size_t)n);
		if (answer->err != 0)
			return false;
		if (memchr(part, '\n', (size_t)n))
			return true;
	}
	return false;
}

/* Leaves pid 0 unless the answer is complete. */
static void read_answer(struct running *r, const struct buf *answer)
{
	const struct value *result, *pid;
	char *text = arena_copy(&r->arena, answer->data, answer->len);
	struct value *whole;
	struct error error;
	int64_t n;

	if (!text ||
	    json_read(&r->arena, text, answer->len, &json_default_limits, &whole, &error) != 0)
		return;
	result = value_find(whole, "result");
	pid = value_find(result, "pid");
	r->store = value_text(value_find(value_find(result, "store"), "path"));
	r->listeners = value_find(result, "listeners");
	if (!pid || !value_int(pid, &n) || n <= 0 || !r->store.data)
		return;
	r->pid = (pid_t)n;
}

void running_ask(struct running *r, const char *path)
{
	CLEANUP(closep) int fd = dial(path);
	CLEANUP(buf_donep) struct buf answer;

	*r = (struct running) {.pid = 0};
	arena_init(&r->arena, 4 * ANSWER_MAX);
	buf_init(&answer, ANSWER_MAX);
	if (fd >= 0 && running_is_ours(fd) && ask(fd, &answer))
		read_answer(r, &answer);
}

void running_done(struct running *r)
{
	arena_done(&r->arena);
}

bool running_listens(const struct running *r, const char *address)
{
	if (r->pid == 0 || !r->listeners || r->listeners->kind != VALUE_ARRAY)
		return false;
	value_each (listener, r->listeners) {
		if (text_is(value_text(value_find(listener, "address")), address))
			return true;
	}
	return false;
}
