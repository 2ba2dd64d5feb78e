/*
 * See nomem.h. koined, which a test cannot call, is directed by the file that NOMEM names. The file holds three
 * numbers of 64 bits: which allocation fails, counted from when a test has set it, how many there have been since, and
 * whether steps of SQLite's statements count and fail in place of allocations.
 */
#include "nomem.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct plan {
	_Atomic uint64_t fail_at;
	_Atomic uint64_t n;
	_Atomic uint64_t steps;
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
/* Not every program has a store. */
__attribute__((weak)) int __real_sqlite3_step(sqlite3_stmt *st);
__attribute__((weak)) const char *sqlite3_sql(sqlite3_stmt *st);
int __wrap_sqlite3_step(sqlite3_stmt *st);

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

static void fail(unsigned at, bool and_all_after, bool steps)
{
	nomem_stop();
	atomic_store(&plan->n, 0);
	atomic_store(&plan->steps, steps);
	atomic_store(&failed, false);
	atomic_store(&all_after, and_all_after);
	here = true;
	atomic_store(&plan->fail_at, at);
}

void nomem_fail(unsigned at, bool and_all_after)
{
	fail(at, and_all_after, false);
}

void nomem_fail_step(unsigned at)
{
	fail(at, false, true);
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
static bool fails_now(bool step)
{
	uint64_t at = atomic_load(&plan->fail_at), n;

	if (at == 0 || atomic_load(&plan->steps) != step || nomem_spared ||
	    (nomem_here_only && !here))
		return false;
	n = atomic_fetch_add(&plan->n, 1) + 1;
	if (n != at && !(atomic_load(&all_after) && n > at))
		return false;
	atomic_store(&failed, true);
	return true;
}

static bool shall_fail(void)
{
	return fails_now(false);
}

bool nomem_refuses(void)
{
	return shall_fail();
}

/* Those that begin and end transactions, and pragmas, do not fail. */
static bool reads_or_writes(sqlite3_stmt *st)
{
	const char *sql = sqlite3_sql(st);

	return sql && strchr("SIUDW", sql[0]) && strncmp(sql, "SAVEPOINT", 9) != 0;
}

int __wrap_sqlite3_step(sqlite3_stmt *st)
{
	return reads_or_writes(st) && fails_now(true) ? SQLITE_IOERR : __real_sqlite3_step(st);
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
