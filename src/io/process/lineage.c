#include "io/process/lineage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { STAT_MAX = 1024, WORDS_MAX = 4096 };

static ssize_t read_of(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	CLEANUP(closep) int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : read(fd, out, size);
}

static bool link_of(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "PID (NAME) STATE PPID GROUP SESSION TTY ...": the name may contain anything, so the last
 * ")" counts. */
bool process_see(pid_t pid, struct process_seen *ret)
{
	char text[STAT_MAX];
	ssize_t n = pid > 0 ? read_of(pid, "stat", text, sizeof(text) - 1) : -1;
	const char *begin, *end;
	int parent, terminal;

	if (n <= 0)
		return false;
	text[n] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	*ret = (struct process_seen) {.pid = pid};
	if (!begin || !end ||
	    sscanf(end + 1,
		   " %*c %d %*d %*d %d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%lld",
		   &parent, &terminal, &ret->started) != 3)
		return false;
	ret->parent = parent;
	ret->terminal = terminal;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

/* A parent that began later is another process that got its pid. */
static bool see_parent(const struct process_seen *child, struct process_seen *ret)
{
	return process_see(child->parent, ret) && ret->started <= child->started;
}

unsigned lineage_read(pid_t pid, struct process_seen ret[LINEAGE_MAX])
{
	enum { TRIES = 3 };
	unsigned n = 0;

	/* A process that dies while we look leaves its children to another. */
	for (int i = 0; i < TRIES; i++) {
		n = process_see(pid, &ret[0]);
		while (n > 0 && n < LINEAGE_MAX && see_parent(&ret[n - 1], &ret[n]))
			n++;
		if (n == 0 || n == LINEAGE_MAX || ret[n - 1].parent <= 1)
			return n;
	}
	return n;
}

bool lineage_has(const struct process_seen *lineage, unsigned n, pid_t pid, long long started)
{
	for (unsigned i = 0; i < n; i++) {
		if (lineage[i].pid == pid && lineage[i].started == started)
			return true;
	}
	return false;
}

/* ---- who is speaking ---- */

static bool is_pipe(const char *link)
{
	return strncmp(link, "pipe:", 5) == 0 || strncmp(link, "socket:", 7) == 0;
}

static bool is_shell(const char *program)
{
	static const char *const shells[] = {"sh",  "bash", "dash", "zsh",  "ksh",
					     "ash", "fish", "tcsh", "mksh", "busybox"};
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(name, shells[i]) == 0)
			return true;
	}
	return false;
}

static bool is_shell_process(const struct process_seen *p)
{
	char program[PROGRAM_MAX];

	process_program(p, program);
	return is_shell(program);
}

/* A shell without a script or a command to run. */
static bool is_typed_into(const struct process_seen *p)
{
	char words[WORDS_MAX];
	ssize_t n = read_of(p->pid, "cmdline", words, sizeof(words) - 1);
	const char *word;

	if (n <= 0 || !is_shell_process(p))
		return false;
	words[n] = '\0';
	for (word = words + strlen(words) + 1; word < words + n; word += strlen(word) + 1) {
		if (word[0] != '-' || (word[1] != '-' && strchr(word, 'c')))
			return false;
	}
	return true;
}

static bool is_script(const struct process_seen *p)
{
	return is_shell_process(p) && !is_typed_into(p);
}

/* Init: its children are everybody's. */
static bool is_nobody(const struct process_seen *p)
{
	return p->pid == 1 || p->pid == getpid() || strcmp(p->name, "systemd") == 0 ||
	       is_typed_into(p);
}

bool lineage_speaker(pid_t pid, struct process_seen *ret)
{
	struct process_seen lineage[LINEAGE_MAX];
	unsigned n = lineage_read(pid, lineage);
	char own[64], other[64];

	if (n == 0)
		return false;
	*ret = lineage[0];
	if (!link_of(pid, "fd/0", own, sizeof(own)) || !is_pipe(own))
		return true;
	for (unsigned i = 1; i < n; i++) {
		/* A process that we may not look into is no agent of ours. */
		if (!link_of(lineage[i].pid, "fd/0", other, sizeof(other)))
			return true;
		if (is_pipe(own) && strcmp(own, other) == 0)
			continue;
		/* A shell's command line or script, with pipes of its own: whom it runs for. */
		if (is_script(&lineage[i])) {
			strcpy(own, other);
			continue;
		}
		if (!is_nobody(&lineage[i]))
			*ret = lineage[i];
		return true;
	}
	return true;
}

/* ---- its names ---- */

void process_program(const struct process_seen *p, char out[PROGRAM_MAX])
{
	if (!link_of(p->pid, "exe", out, PROGRAM_MAX))
		snprintf(out, PROGRAM_MAX, "%s", p->name);
}

void process_terminal(const struct process_seen *p, char out[TERMINAL_MAX])
{
	enum { CONSOLE = 4, PTS_FIRST = 136, PTS_LAST = 143, CONSOLES = 64 };
	unsigned major = major((dev_t)p->terminal);
	unsigned minor = minor((dev_t)p->terminal);

	out[0] = '\0';
	if (major >= PTS_FIRST && major <= PTS_LAST)
		snprintf(out, TERMINAL_MAX, "pts/%u", (major - PTS_FIRST) * 256 + minor);
	else if (major == CONSOLE && minor < CONSOLES)
		snprintf(out, TERMINAL_MAX, "tty%u", minor);
	else if (p->terminal != 0)
		snprintf(out, TERMINAL_MAX, "%u:%u", major, minor);
}
