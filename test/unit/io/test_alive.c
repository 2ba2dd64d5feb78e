/* The end of a process that is not ours to wait for is told, with a descriptor for it or without. */

#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "io/process/lineage.h"

static void on_gone(void *arg)
{
	++*(unsigned *)arg;
}

static pid_t begin(struct process_seen *ret_seen)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_true(process_see(pid, ret_seen));
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void on_tick(void *arg)
{
}

/* A watch does not keep the loop alive. */
static void wait_for(struct loop *l, const unsigned *n)
{
	struct timer *timer;

	assert_int_equal(timer_new(l, on_tick, NULL, &timer), 0);
	timer_repeat(timer, 1000);
	for (int turn = 0; *n == 0 && turn < 60; turn++)
		loop_turn(l, 1000);
	assert_int_equal(*n, 1);
	timer_free(timer);
}

TEST(killed_process_is_told_once)
{
	struct process_watch *w;
	struct process_seen seen;
	struct loop *l;
	unsigned n = 0;
	pid_t pid = begin(&seen);

	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(process_watch_new(l, pid, seen.started, on_gone, &n, &w), 0);
	loop_turn(l, 0);
	assert_int_equal(n, 0);
	end(pid);
	wait_for(l, &n);
	loop_turn(l, 0);
	assert_int_equal(n, 1);
	process_watch_free(w);
	loop_free(l);
}

TEST(reused_pid_counts_as_gone)
{
	struct process_watch *w;
	struct process_seen seen;
	struct loop *l;
	unsigned n = 0;
	pid_t pid = begin(&seen);

	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(process_watch_new(l, pid, seen.started - 1, on_gone, &n, &w), 0);
	assert_int_equal(n, 0);
	wait_for(l, &n);
	process_watch_free(w);
	end(pid);
	loop_free(l);
}

static bool no_polls;

/* In place of libuv's. */
int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
	static int (*start)(uv_poll_t *, int, uv_poll_cb);

	if (no_polls)
		return UV_EEXIST;
	if (!start)
		start = (int (*)(uv_poll_t *, int, uv_poll_cb))dlsym(RTLD_NEXT, "uv_poll_start");
	return start(poll, events, cb);
}

TEST(process_is_looked_for_without_a_descriptor_or_a_poll)
{
	struct rlimit before, none;
	struct process_watch *w, *unpolled;
	struct process_seen seen;
	struct loop *l;
	unsigned n = 0, n_unpolled = 0;
	pid_t pid = begin(&seen);

	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit) {.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(process_watch_new(l, pid, seen.started, on_gone, &n, &w), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	no_polls = true;
	assert_int_equal(process_watch_new(l, pid, seen.started, on_gone, &n_unpolled, &unpolled),
			 0);
	no_polls = false;
	loop_turn(l, 0);
	assert_int_equal(n, 0);
	end(pid);
	wait_for(l, &n);
	wait_for(l, &n_unpolled);
	process_watch_free(w);
	process_watch_free(unpolled);
	loop_free(l);
}

TEST(peer_is_named_until_it_ends)
{
	struct process_seen self;
	struct peer peer;
	long long started = 0;
	pid_t pid = 0;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_true(peer_of_unix(ends[0], &peer));
	assert_true(process_see(getpid(), &self));
	assert_true(process_of_peer(ends[0], &peer, &pid, &started));
	assert_int_equal(pid, getpid());
	assert_int_equal(started, self.started);
	peer.pid = 0;
	assert_false(process_of_peer(ends[0], &peer, &pid, &started));
	close(ends[0]);
	close(ends[1]);
}
