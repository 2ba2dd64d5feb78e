#include "io/process/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Newer than some systems' headers. */
#define ACCESS_REFER          (1ULL << 13)
#define ACCESS_TRUNCATE       (1ULL << 14)
#define SCOPE_ABSTRACT_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL          (1ULL << 1)

enum { ABI_SCOPES = 6 };

static const uint64_t file_accesses = LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE;

static const uint64_t accesses = LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_REFER |
				 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
				 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
				 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
				 LANDLOCK_ACCESS_FS_MAKE_SYM;

/* Through a disk's device everything could be written: no device may be made anywhere. */
static const uint64_t devices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

/* As the kernel has it since ABI 6; older kernels take the first member alone. */
struct ruleset {
	uint64_t accesses;
	uint64_t net;
	uint64_t scopes;
};

static atomic_bool used;

static int abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

int confine_check(struct error *error)
{
	int version = abi();

	if (version >= CONFINE_ABI)
		return 0;
	if (version < 0)
		return refuse(error, REFUSE_UNAVAILABLE,
			      "Landlock ABI %d or newer is required, but this kernel does not "
			      "support Landlock",
			      CONFINE_ABI);
	return refuse(error, REFUSE_UNAVAILABLE,
		      "Landlock ABI %d or newer is required, but this kernel has ABI %d",
		      CONFINE_ABI, version);
}

static int add_rule(int ruleset, int fd)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = accesses & ~devices,
						  .parent_fd = fd};
	struct stat found;

	if (fstat(fd, &found) != 0)
		return -errno;
	if (!S_ISDIR(found.st_mode))
		rule.allowed_access = file_accesses;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
		return -errno;
	return 0;
}

/* No link, and still where the kernel says it is. */
static bool is_at(int fd, const char *path)
{
	char link[40], name[PATH_MAX + 1];
	struct stat found;
	ssize_t n;

	if (fstat(fd, &found) != 0 || S_ISLNK(found.st_mode))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	return strcmp(name, path) == 0;
}

static int allow(int ruleset, const char *path, struct error *error)
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return refuse(error, REFUSE_CONFLICT, "%s: %s", path, strerror(errno));
	if (!is_at(fd, path))
		return refuse(error, REFUSE_CONFLICT,
			      "%s was replaced after the conversation was created", path);
	return add_rule(ruleset, fd);
}

/* Where it does not exist, nobody needs it. */
static int allow_device(int ruleset, const char *path)
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? 0 : add_rule(ruleset, fd);
}

static int create(int *ret_fd)
{
	const struct ruleset rules = {.accesses = accesses,
				      .scopes = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL};
	size_t size = abi() >= ABI_SCOPES ? sizeof(rules) : sizeof(rules.accesses);

	*ret_fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
	return *ret_fd < 0 ? -errno : 0;
}

int confine_open(const char *const *paths, int *ret_fd, struct error *error)
{
	static const char *const always[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
	CLEANUP(closep) int fd = -1;
	int r = confine_check(error) ?: create(&fd);

	for (; r == 0 && *paths; paths++)
		r = allow(fd, *paths, error);
	for (unsigned i = 0; r == 0 && i < sizeof(always) / sizeof(always[0]); i++)
		r = allow_device(fd, always[i]);
	if (r != 0)
		return r;
	atomic_store(&used, true);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

bool confine_used(void)
{
	return atomic_load(&used);
}

/* A number in /proc/PID/status; -1: there is no such process, or line. */
static long status_of(pid_t pid, const char *name)
{
	char path[40], line[256];
	size_t n = strlen(name);
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			value = strtol(line + n + 1, NULL, 10);
	}
	fclose(f);
	return value;
}

enum { ABOVE_MAX = 4096 }; /* more than a process can have above it, unless pids are reused */

bool confine_holds(pid_t pid)
{
	pid_t us = getpid();
	long at = pid;
	bool gains = status_of(us, "NoNewPrivs") == 0 && status_of(pid, "NoNewPrivs") == 0;

	for (int i = 0; i < ABOVE_MAX && at > 1; i++) {
		if (at == us)
			return pid != us && !gains;
		at = status_of((pid_t)at, "PPid");
	}
	/* One of these has ended while we looked. */
	return at < 0;
}
