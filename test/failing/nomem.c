/*
 * See nomem.h. koined, which a test cannot call, is directed by the file that NOMEM names. The file holds two numbers of
 * 64 bits: which allocation fails, counted from when a test has set it, and how many there have been since.
 */
#include "nomem.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct plan {
	_Atomic uint64_t fail_at;
	_Atomic uint64_t n;
};

static struct plan own, *plan = &own;
static atomic_bool all_after, failed;
static _Thread_local bool here;

_Thread_local bool nomem_spared;
bool nomem_here_only;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

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

void nomem_stop(void)
{
	atomic_store(&plan->fail_at, 0);
}

void nomem_fail(unsigned at, bool and_all_after)
{
	nomem_stop();
	atomic_store(&plan->n, 0);
	atomic_store(&failed, false);
	atomic_store(&all_after, and_all_after);
	here = true;
	atomic_store(&plan->fail_at, at);
}

unsigned nomem_at(void)
{
	return (unsigned)atomic_load(&plan->fail_at);
}

bool nomem_failed(void)
{
	return atomic_load(&failed);
}

/* Threads allocate side by side; which of them comes first does not matter. */
static bool shall_fail(void)
{
	uint64_t at = atomic_load(&plan->fail_at), n;

	if (at == 0 || nomem_spared || (nomem_here_only && !here))
		return false;
	n = atomic_fetch_add(&plan->n, 1) + 1;
	if (n != at && !(atomic_load(&all_after) && n > at))
		return false;
	atomic_store(&failed, true);
	return true;
}

bool nomem_refuses(void)
{
	return shall_fail();
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

char *__wrap_strndup(const char *s, size_t n)
{
	return shall_fail() ? NULL : __real_strndup(s, n);
}
