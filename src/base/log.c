#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

atomic_int log_level_now = LOG_LEVEL_INFO;

static atomic_ullong n_written[N_LOG_LEVELS];
static atomic_ullong n_omitted;
static log_fn log_sink;
static void *log_sink_arg;
static bool journal;

static const struct {
	const char *name;
	char priority; /* syslog's numbers: 3 err, 4 warning, 6 info, 7 debug */
} levels[] = {
	[LOG_LEVEL_ERR] = {"err", '3'},
	[LOG_LEVEL_WARN] = {"warn", '4'},
	[LOG_LEVEL_INFO] = {"info", '6'},
	[LOG_LEVEL_DEBUG] = {"debug", '7'},
};

void log_set_sink(log_fn sink, void *arg)
{
	log_sink = sink;
	log_sink_arg = arg;
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
	return levels[level].name;
}

/* systemd names the journal's stream in JOURNAL_STREAM as DEVICE:INODE. Processes may inherit
 * the variable without the stream, so compare. */
static bool stderr_is_journal(void)
{
	const char *named = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!named || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return strcmp(named, ours) == 0;
}

/* ---- a file in the place of stderr ---- */

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static char file[PATH_MAX]; /* "": stderr is what it was */
static size_t file_size;

static int open_file(const char *path)
{
	/* O_NONBLOCK: a FIFO there must not hold us. */
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
	CLEANUP(closep) int fd = open(path, flags | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (dup3(fd, STDERR_FILENO, 0) < 0)
		return -errno;
	file_size = (size_t)st.st_size;
	return 0;
}

int log_to_file(const char *path)
{
	int r;

	if (strlen(path) + sizeof(".1") > sizeof(file))
		return -ENAMETOOLONG;
	r = open_file(path);
	if (r != 0)
		return r;
	strcpy(file, path);
	journal = false;
	return 0;
}

/* If it cannot be moved or made anew, stderr stays the file that it was. */
static void move_aside(void)
{
	char old[PATH_MAX + sizeof(".1")];

	snprintf(old, sizeof(old), "%s.1", file);
	file_size = 0;
	if (rename(file, old) == 0)
		(void)open_file(file);
}

/* Any thread. */
static void count_written(size_t n)
{
	if (!file[0])
		return;
	pthread_mutex_lock(&file_lock);
	file_size += n;
	if (file_size > LOG_FILE_MAX)
		move_aside();
	pthread_mutex_unlock(&file_lock);
}

/* ---- lines ---- */

void log_write_stderr(void *arg, enum log_level level, const char *line)
{
	char text[1200];
	int n;

	if (journal)
		n = snprintf(text, sizeof(text), "<%c>%s\n", levels[level].priority, line);
	else
		n = snprintf(text, sizeof(text), "%s %-5s %s\n", clock_iso_now(),
			     levels[level].name, line);
	if (n >= (int)sizeof(text)) {
		n = sizeof(text) - 1;
		text[n - 1] = '\n';
	}
	/* Use one write, so that lines of several threads do not mix. If stderr is gone, nobody
	 * is left to tell. */
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
	count_written((size_t)n);
}

void log_to_stderr(void)
{
	journal = stderr_is_journal();
	log_set_sink(log_write_stderr, NULL);
}

/* A value from outside must not be able to start a new line. */
static void flatten(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < 0x20 || *line == 0x7f)
			*line = '?';
	}
}

void log_line(enum log_level level, const char *event, const char *format, ...)
{
	char line[1024];
	va_list args;
	int n;

	if (!log_sink)
		return;
	n = snprintf(line, sizeof(line), "%s  ", event);
	if (n < 0 || n >= (int)sizeof(line))
		return;
	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	flatten(line);
	atomic_fetch_add_explicit(&n_written[level], 1, memory_order_relaxed);
	log_sink(log_sink_arg, level, line);
}

uint64_t log_written(enum log_level level)
{
	return atomic_load_explicit(&n_written[level], memory_order_relaxed);
}

uint64_t log_left_out(void)
{
	return atomic_load_explicit(&n_omitted, memory_order_relaxed);
}

bool log_has_room(uint64_t now_ms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second = UINT64_MAX;
	static unsigned n, n_left_out;
	unsigned tell = 0;
	bool room;

	if (!log_sink || log_enabled(LOG_LEVEL_DEBUG))
		return true;
	pthread_mutex_lock(&lock);
	if (second != now_ms / 1000) {
		second = now_ms / 1000;
		tell = n_left_out;
		n = 0;
		n_left_out = 0;
	}
	room = n < LOG_BURST;
	if (room) {
		n++;
	} else {
		n_left_out++;
		atomic_fetch_add_explicit(&n_omitted, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
	if (tell > 0)
		log_info("log lines dropped", "count=%u", tell);
	return room;
}

/* ---- the last lines ---- */

static pthread_mutex_t tail_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_tail_line tail_lines[LOG_TAIL_LINES]; /* by number; we own their texts */
static uint64_t tail_last;

/* Readers expect characters, so other bytes become '?'. */
static void tail_clean(char *text)
{
	const char *end = text + strlen(text);

	while (*text) {
		size_t n = *text & 0x80 ? utf8_sequence(text, end) : 1;

		if (n == 0)
			*text = '?';
		text += n > 0 ? n : 1;
	}
}

static void tail_keep(enum log_level level, const char *text)
{
	char *copy = strdup(text);
	struct log_tail_line *line;

	/* Without memory the line only goes to stderr. */
	if (!copy)
		return;
	tail_clean(copy);
	pthread_mutex_lock(&tail_lock);
	line = &tail_lines[++tail_last % LOG_TAIL_LINES];
	free((char *)line->text);
	*line = (struct log_tail_line) {
		.number = tail_last,
		.utc_ms = clock_utc_ms(),
		.level = level,
		.text = copy,
	};
	pthread_mutex_unlock(&tail_lock);
}

static void write_and_keep(void *arg, enum log_level level, const char *text)
{
	log_write_stderr(arg, level, text);
	tail_keep(level, text);
}

void log_tail_start(void)
{
	log_to_stderr();
	log_set_sink(write_and_keep, NULL);
}

void log_tail_read(uint64_t after, unsigned limit,
		   void (*fn)(void *arg, const struct log_tail_line *line), void *arg)
{
	uint64_t most = limit < LOG_TAIL_LINES ? limit : LOG_TAIL_LINES;
	uint64_t from;

	pthread_mutex_lock(&tail_lock);
	from = tail_last > most ? tail_last - most : 0;
	for (uint64_t n = (from > after ? from : after) + 1; n <= tail_last; n++)
		fn(arg, &tail_lines[n % LOG_TAIL_LINES]);
	pthread_mutex_unlock(&tail_lock);
}
