/*
 * A clock that tests move, loaded before everything else (LD_PRELOAD): no build of koined has a way to move its own. The file
 * that CLOCK names holds two numbers of eight bytes, by how many milliseconds the steady clock and the time of day differ
 * from the machine's.
 *
 * Only the main thread sees it, whose loop has koined's timers. What other threads wait for stays real: disks, databases,
 * a host's lease. So does CLOCK_BOOTTIME, by which the guard ends programs.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *moved_ms;
static __thread int is_main;

__attribute__((constructor)) static void look(void)
{
	const char *name = getenv("CLOCK");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	/* Programs that koined runs have the machine's clock. */
	unsetenv("LD_PRELOAD");
	is_main = at != MAP_FAILED;
	if (is_main)
		moved_ms = at;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int steady = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE;
	int64_t ns;
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (r != 0 || !is_main || (!steady && id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return r;
	ns = t->tv_nsec + moved_ms[!steady] % 1000 * 1000000;
	t->tv_sec += moved_ms[!steady] / 1000;
	if (ns < 0 || ns >= 1000000000) {
		t->tv_sec += ns < 0 ? -1 : 1;
		ns += ns < 0 ? 1000000000 : -1000000000;
	}
	t->tv_nsec = ns;
	return 0;
}
