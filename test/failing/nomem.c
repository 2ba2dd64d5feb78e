/*
 * Allocations of koined that fail at will, for tests: linked into a koined of its own, where the linker leads
 * malloc and its like through here. The file that NOMEM names holds two numbers of 64 bits: which allocation fails
 * (0 means none), counted from when a test has set it, and how many there have been since.
 *
 * What libc and other libraries allocate themselves does not fail.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct plan {
	_Atomic uint64_t fail_at;
	_Atomic uint64_t n;
};

static struct plan *plan;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

__attribute__((constructor)) static void read_plan(void)
{
	const char *name = getenv("NOMEM");
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
			   : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED)
		plan = at;
}

static bool shall_fail(void)
{
	uint64_t at = plan ? atomic_load(&plan->fail_at) : 0;

	return at > 0 && atomic_fetch_add(&plan->n, 1) + 1 == at;
}

void *__wrap_malloc(size_t n)
{
	return shall_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return shall_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return shall_fail() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return shall_fail() ? NULL : __real_strdup(s);
}
