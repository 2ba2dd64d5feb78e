/*
 * A slow machine, for tests: loaded before everything else (LD_PRELOAD), it makes programs late to
 * begin, wake-ups late, disks slow. What a test merely hopes for comes to light.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread uint64_t seed;

static uint64_t random_now(void)
{
	if (seed == 0) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		seed = ((uint64_t)now.tv_nsec << 20) ^ ((uint64_t)getpid() << 40) ^ 1;
	}
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* So often of a thousand times, for so long at most. By its number: no wrapper in between. */
static void perhaps_sleep(unsigned per_mille, unsigned max_ms)
{
	const int error = errno;

	if (random_now() % 1000 < per_mille) {
		const uint64_t ns = random_now() % (max_ms * UINT64_C(1000000));
		const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
					   .tv_nsec = (long)(ns % 1000000000)};

		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	}
	errno = error;
}

/* The function that this one stands before. */
#define NEXT(name)                                                                                 \
	static __typeof__(name) *next;                                                             \
	next = next ? next : (__typeof__(next))(uintptr_t)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin_late(void)
{
	perhaps_sleep(700, 250);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
	NEXT(epoll_wait);
	int r = next(fd, events, n, timeout_ms);

	perhaps_sleep(30, 30);
	return r;
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask)
{
	NEXT(epoll_pwait);
	int r = next(fd, events, n, timeout_ms, mask);

	perhaps_sleep(30, 30);
	return r;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	NEXT(pthread_cond_wait);
	int r = next(condition, mutex);

	perhaps_sleep(20, 20);
	return r;
}

int fsync(int fd)
{
	NEXT(fsync);
	perhaps_sleep(200, 40);
	return next(fd);
}

int fdatasync(int fd)
{
	NEXT(fdatasync);
	perhaps_sleep(200, 40);
	return next(fd);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	NEXT(write);
	perhaps_sleep(5, 20);
	return next(fd, bytes, n);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	NEXT(send);
	perhaps_sleep(5, 20);
	return next(fd, bytes, n, flags);
}

pid_t fork(void)
{
	NEXT(fork);
	pid_t pid = next();

	if (pid == 0)
		seed = 0;
	perhaps_sleep(300, 50);
	return pid;
}
