/*
 * A disk that fails at times, for tests: loaded before everything else (LD_PRELOAD), it refuses so
 * many of a thousand writes to files as the file says that FAILING names: two bytes, the lower first.
 * They are looked at anew each time, so that a test can break a disk and mend it. More than a
 * thousand: nothing fails, but what waits for the disk waits until that is mended.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const volatile unsigned char *rate;

__attribute__((constructor)) static void look(void)
{
	const char *name = getenv("FAILING");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, 2, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED)
		rate = at;
}

static unsigned random_now(void)
{
	static _Atomic uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = atomic_fetch_add(&state, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)(x >> 33);
}

/* A socket is no disk, and where errors are printed to must stay. */
static int fails(int fd)
{
	unsigned per_mille = rate ? rate[0] + 256U * rate[1] : 0;
	struct stat st;

	if (per_mille == 0 || per_mille > 1000 || fd <= 2 || random_now() % 1000 >= per_mille)
		return 0;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	errno = random_now() % 2 ? ENOSPC : EIO;
	return 1;
}

static void wait_for_disk(void)
{
	while (rate && rate[0] + 256U * rate[1] > 1000)
		usleep(1000);
}

/* The function that this one stands before. */
#define NEXT(name)                                                                                 \
	static __typeof__(name) *next;                                                             \
	next = next ? next : (__typeof__(next))(uintptr_t)dlsym(RTLD_NEXT, #name)

int fsync(int fd)
{
	NEXT(fsync);
	wait_for_disk();
	return fails(fd) ? -1 : next(fd);
}

int fdatasync(int fd)
{
	NEXT(fdatasync);
	wait_for_disk();
	return fails(fd) ? -1 : next(fd);
}

int ftruncate(int fd, off_t length)
{
	NEXT(ftruncate);
	return fails(fd) ? -1 : next(fd, length);
}

int ftruncate64(int fd, off64_t length)
{
	NEXT(ftruncate64);
	return fails(fd) ? -1 : next(fd, length);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	NEXT(write);
	return fails(fd) ? -1 : next(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	NEXT(pwrite);
	return fails(fd) ? -1 : next(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	NEXT(pwrite64);
	return fails(fd) ? -1 : next(fd, bytes, n, at);
}
