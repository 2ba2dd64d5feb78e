/* How a life begins. A name has one life at a time; who comes with the name of another waits for the
 * end of its lease, unless it can see that the other has ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/node/inner.h"
#include "store/host/host.h"
#include "store/store.h"

enum { BOOT_LEN = 36, LOOK_AGAIN_MS = 200, FOUND_MAX = 64 << 10 };

/* ---- where a process is ---- */

static void read_boot_id(char out[BOOT_LEN + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, BOOT_LEN) : 0;

	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* "BOOT NAMESPACE PID": where one may look whether it has ended. */
static int describe_place(struct node *n)
{
	char boot[BOOT_LEN + 1], text[100];
	struct stat st = {0};

	read_boot_id(boot);
	(void)stat("/proc/self/ns/pid", &st);
	snprintf(text, sizeof(text), "%s %llu %d", boot, (unsigned long long)st.st_ino,
		 (int)getpid());
	return arena_copy_text(&n->own, text_of(text), &n->us.boot);
}

/* Whether this process was here, and has ended. One with our own number was ours, before we started
 * anew (daemon/stop.c). */
static bool has_ended_here(const struct node *n, struct text boot)
{
	const char *pid = boot.len > 0 ? memrchr(boot.data, ' ', boot.len) : NULL;
	size_t place = pid ? (size_t)(pid - boot.data) + 1 : 0;
	char digits[16];

	if (!pid || n->us.boot.len <= place || memcmp(boot.data, n->us.boot.data, place) != 0 ||
	    boot.len - place >= sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)(boot.len - place), pid + 1);
	return text_equal(boot, n->us.boot) ||
	       (kill((pid_t)strtol(digits, NULL, 10), 0) != 0 && errno == ESRCH);
}

/* ---- a beginning ---- */

static int find_former(struct node *n, struct arena *a, struct host *ret_host)
{
	bool found = false;
	int r = store_host_find(store_feed(n->store), n->us.name, a, ret_host, &found);

	if (r == 0 && !found)
		*ret_host = (struct host) {.state = HOST_LEFT};
	return r;
}

static bool has_ended(const struct node *n, const struct host *former)
{
	return former->state != HOST_ALIVE || former->epoch == n->former ||
	       has_ended_here(n, former->boot);
}

static int begin(struct node *n, const struct host *former, bool *ret_joined)
{
	struct connection *c = store_feed(n->store);
	uint64_t asked_ms = clock_steady_ms();
	int r = store_host_draw_epoch(c, &n->us.epoch)
			?: store_host_join(c, &n->us, n->lease_ms, former->epoch,
					   has_ended(n, former), ret_joined);

	if (r != 0 || !*ret_joined)
		return r;
	n->former = n->us.epoch;
	n->beat_at = asked_ms;
	n->lease_over_ms = asked_ms + (uint64_t)n->lease_ms;
	return 0;
}

int node_begin_life(struct node *n, bool *ret_joined)
{
	struct host former;
	struct arena a;
	int r;

	*ret_joined = false;
	arena_init(&a, FOUND_MAX);
	r = find_former(n, &a, &former) ?: begin(n, &former, ret_joined);
	arena_done(&a);
	return r;
}

/* Less than this is nobody's trouble, and may be what the answer took. */
enum { RIGHT_MS = 2000, PROMPT_MS = 1000 };

int node_set_clock(struct node *n)
{
	uint64_t asked_ms = clock_steady_ms();
	int64_t own_ms = clock_own_utc_ms(), now_ms = 0, by_ms, was_ms;
	int r = store_host_now(store_feed(n->store), &now_ms);
	uint64_t took_ms = clock_steady_ms() - asked_ms;

	if (r != 0 || took_ms > PROMPT_MS)
		return r;
	by_ms = now_ms - own_ms - (int64_t)took_ms / 2;
	if (by_ms >= -RIGHT_MS && by_ms <= RIGHT_MS)
		by_ms = 0;
	was_ms = clock_correct(by_ms);
	if (by_ms - was_ms > RIGHT_MS || was_ms - by_ms > RIGHT_MS)
		log_warn("clock skew, using the database's clock", "host=%.*s by_s=%lld",
			 TEXT_ARGS(n->us.name), (long long)by_ms / 1000);
	return 0;
}

static int refuse_taken(const struct node *n, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT,
		      "another koined already uses the host name '%.*s' in %s: set another [host] "
		      "name on this machine",
		      TEXT_ARGS(n->us.name), store_path(n->store));
}

int node_first_life(struct node *n, struct error *error)
{
	bool joined = false;
	int r = node_begin_life(n, &joined);

	return r != 0 || joined ? r : refuse_taken(n, error);
}

/* The life of our name, and whether it has ended. */
static int look_at_former(struct node *n, struct host *ret_former, bool *ret_ended)
{
	struct arena a;
	int r;

	arena_init(&a, FOUND_MAX);
	r = find_former(n, &a, ret_former);
	if (r == 0)
		*ret_ended = has_ended(n, ret_former);
	ret_former->name = n->us.name; /* that in the arena is gone */
	arena_done(&a);
	return r;
}

/* One that is still alive renews its lease, which shows. One that has stood still for its whole length by our
 * own clock is lost, once the database's clock agrees. */
int node_await_former(struct node *n, struct error *error)
{
	const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
	struct host first = {0}, now;
	bool ended = false;
	int r = describe_place(n) ?: look_at_former(n, &first, &ended);
	uint64_t since_ms = clock_steady_ms();

	if (r == 0 && !ended)
		log_info("previous lease is still valid, waiting for it to expire", "host=%.*s",
			 TEXT_ARGS(n->us.name));
	for (now = first; r == 0 && !ended && now.seen_ms == first.seen_ms;) {
		uint64_t asked_ms;

		nanosleep(&pause, NULL);
		asked_ms = clock_steady_ms();
		r = look_at_former(n, &now, &ended);
		if (r == 0 && !ended && asked_ms >= since_ms + store_host_lease(&first))
			r = store_host_lose(store_feed(n->store), &first, &ended);
	}
	return r != 0 || ended ? r : refuse_taken(n, error);
}
