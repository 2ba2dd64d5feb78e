/*
 * The guard's own process. One thread, one poll: nothing here waits for koined, for a disk, or for
 * anybody's log. What it reads and writes is in the kernel's memory (/proc, cgroups, a socket), and
 * what it runs is kept in ours where that is allowed.
 *
 * kill -9 of a koined that hangs in the kernel closes nothing until the hanging ends; the time then
 * does what the end of the socket cannot.
 */
#include "io/process/guard.h"

#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/process/inner.h"
#include "io/process/tree.h"

const char guard_command[] = "__guard";

enum {
	SOCKET = STDIN_FILENO,
	AGAIN_MS = 5,     /* while those that were killed have not gone */
	PAUSE_MS = 100,   /* while the time is over, and somebody might still be started */
	PAUSE_SHARE = 20, /* but a look takes no more than this part of one processor */
	/* Looks without a find after koined has gone: a program that was just being started carries
	 * no mark for an instant. */
	N_CLEAN = 2,
	N_DESCRIPTORS = 64,
};

struct post {
	const char *owner;
	int timer;
	uint64_t until_ms; /* 0: no limit */
	struct guard_report report, told;
	bool has_told;
	bool over;  /* the time has passed */
	bool alone; /* koined has gone */
	bool dirty; /* somebody may live who must not */
	unsigned n_found;
	unsigned n_clean;
	int pause_ms;
};

/* ---- what koined says ---- */

static void set_timer(struct post *p)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(p->until_ms / 1000),
			     .tv_nsec = (long)(p->until_ms % 1000) * 1000000}};

	timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void take_order(struct post *p, const struct guard_order *o)
{
	if (o->number <= p->report.number)
		return;
	p->report.number = o->number;
	p->until_ms = o->until_ms;
	p->dirty |= o->late > p->report.swept;
	set_timer(p);
}

static void take_orders(struct post *p)
{
	struct guard_order o;
	ssize_t n = 0;

	while (!p->alone) {
		n = recv(SOCKET, &o, sizeof(o), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(o))
			take_order(p, &o);
		else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			p->alone = true, p->n_clean = 0;
		else if (errno == EAGAIN)
			return;
	}
}

/* Only news. If koined does not read, the next will do. */
static void guard_post_notify(struct post *p)
{
	if (p->alone || (p->has_told && memcmp(&p->told, &p->report, sizeof(p->told)) == 0))
		return;
	if (send(SOCKET, &p->report, sizeof(p->report), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	p->told = p->report;
	p->has_told = true;
}

/* ---- what is done ---- */

static void note_time(struct post *p)
{
	bool over = p->until_ms > 0 && clock_boot_ms() >= p->until_ms;

	if (over && !p->over)
		p->dirty = true;
	p->over = over;
}

/* Once begun it goes on until nobody is left, whatever time koined names meanwhile. */
static void guard_post_look(struct post *p)
{
	uint64_t began_ms = clock_boot_ms();
	unsigned n = sweep(p->owner);
	int took_ms = (int)(clock_boot_ms() - began_ms);

	p->dirty |= n > 0;
	p->n_clean = n > 0 ? 0 : p->n_clean + 1;
	p->n_found = n > p->n_found ? n : p->n_found;
	if (n == 0 && p->dirty) {
		p->dirty = false;
		p->report.n_sweeps++;
		p->report.n_ended = p->n_found;
		p->n_found = 0;
	}
	p->pause_ms = n > 0 ? AGAIN_MS : PAUSE_MS;
	if (n == 0 && !p->alone && took_ms * PAUSE_SHARE > p->pause_ms)
		p->pause_ms = took_ms * PAUSE_SHARE;
}

static bool is_busy(const struct post *p)
{
	return p->over || p->alone || p->dirty;
}

/* While it is busy, the timer has fired and would do so for ever. */
static void wait_for_news(const struct post *p)
{
	bool busy = is_busy(p);
	struct pollfd fds[] = {{.fd = p->alone ? -1 : SOCKET, .events = POLLIN},
			       {.fd = busy ? -1 : p->timer, .events = POLLIN}};

	poll(fds, 2, busy ? p->pause_ms : -1);
}

static int stand(struct post *p)
{
	for (;;) {
		take_orders(p);
		note_time(p);
		if (is_busy(p))
			guard_post_look(p);
		if (!p->dirty)
			p->report.swept = p->report.number;
		guard_post_notify(p);
		if (p->alone && p->n_clean >= N_CLEAN)
			return 0;
		wait_for_news(p);
	}
}

/* ---- how it begins ---- */

/* The segments of the program itself, and of libc. */
static int lock_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name;

	if (*name && !strstr(name, "/libc."))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD)
			mlock2((const char *)info->dlpi_addr + part->p_vaddr, part->p_memsz,
			       MLOCK_ONFAULT);
	}
	return 0;
}

/* A page that must be read from a disk that hangs would keep us from our work. What is used is
 * locked as it is touched, and the first look touches it. Who may not lock everything locks what
 * it can. */
static void stay_in_memory(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		dl_iterate_phdr(lock_object, NULL);
}

static void ignore_signals(void)
{
	static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
				      SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], SIG_IGN);
}

/* In place of "/proc/self/exe". */
static void take_name(char *program)
{
	static const char name[] = "koined: guard";

	prctl(PR_SET_NAME, "koined-guard");
	if (strlen(program) >= strlen(name))
		strcpy(program, name);
}

static void be_small(void)
{
	const struct rlimit descriptors = {N_DESCRIPTORS, N_DESCRIPTORS}, no_core = {0, 0};

	setrlimit(RLIMIT_NOFILE, &descriptors);
	setrlimit(RLIMIT_CORE, &no_core);
	/* Before programs that compute; who may not is served like everybody. */
	setpriority(PRIO_PROCESS, 0, -10);
	stay_in_memory();
}

static bool is_socket(void)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(SOCKET, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

int guard_main(int argc, char **argv)
{
	struct post p = {.owner = argc > 2 ? argv[2] : ""};

	if (!*p.owner || !is_socket()) {
		fprintf(stderr, "koined: only koined can start a guard process\n");
		return EX_USAGE;
	}
	ignore_signals();
	take_name(argv[0]);
	be_small();
	/* It may carry the mark itself: a program of its own may have restarted it. */
	tree_spare(getppid());
	p.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p.timer < 0)
		return EX_OSERR;
	tree_signal(p.owner, true, 0);
	return stand(&p);
}
