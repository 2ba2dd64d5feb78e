/*
 * One line per event: words, two spaces, then key=value.
 *
 *	log_info("listener open", "dialect=%s address=%s", name, address);
 *
 * Whoever handles a fault logs it, once. No payloads above debug, no secrets
 * ever. Any thread may log.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Receives a finished line without its newline; called from any thread. */
typedef void (*log_fn)(void *arg, enum log_level level, const char *line);

/* A library must stay silent: lines are discarded until a sink is set. */
void log_set_sink(log_fn sink, void *arg);

/* Writes to stderr; when that is the journal, with its priority prefix. */
void log_to_stderr(void);
/* Writes one line in the same way, for a sink that does more. */
void log_write_stderr(void *arg, enum log_level level, const char *line);

enum { LOG_FILE_MAX = 4 << 20 };

/*
 * Makes stderr this file, 0600, and appends to it; what else is said there is in it, too. When it
 * is full it is moved aside to PATH.1, so that both together have at most twice LOG_FILE_MAX bytes
 * and a line. 0 or -errno; -EINVAL if it is no file.
 */
int log_to_file(const char *path);

void log_set_level(enum log_level level);

enum { N_LOG_LEVELS = LOG_LEVEL_DEBUG + 1 };

/* Lines that were written at this level, and those that were left out. Any thread. */
uint64_t log_written(enum log_level level);
uint64_t log_left_out(void);

const char *log_level_name(enum log_level level);

/* The loop changes it while other threads log. */
extern atomic_int log_level_now;

static inline bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

void log_line(enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_at(level, event, ...)                                                                  \
	do {                                                                                       \
		if (log_enabled(level))                                                            \
			log_line(level, event, __VA_ARGS__);                                       \
	} while (0)

/*
 * Whether a line that a client can cause at will may be written: at most LOG_BURST per second,
 * since otherwise a client could fill the disk. Omitted lines are counted, and the first line
 * of a later second reports them. At debug everything is written.
 */
enum { LOG_BURST = 50 };
bool log_has_room(uint64_t now_ms);

#define log_caused(level, event, ...)                                                              \
	do {                                                                                       \
		if (log_enabled(level) && log_has_room(clock_steady_ms()))                         \
			log_line(level, event, __VA_ARGS__);                                       \
	} while (0)

#define log_err(event, ...)   log_at(LOG_LEVEL_ERR, event, __VA_ARGS__)
#define log_warn(event, ...)  log_at(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_info(event, ...)  log_at(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_at(LOG_LEVEL_DEBUG, event, __VA_ARGS__)

/*
 * The last lines of the log, for clients that ask later. At most LOG_TAIL_LINES are kept; the
 * oldest go first. Any thread may log meanwhile.
 */

enum { LOG_TAIL_LINES = 1000 };

struct log_tail_line {
	uint64_t number; /* counts all lines ever, from 1 */
	int64_t utc_ms;
	enum log_level level;
	const char *text; /* valid in the callback */
};

/* Lines go to stderr as with log_to_stderr, and from now on are kept as well. */
void log_tail_start(void);

/* The lines after number `after`, oldest first, at most the newest `limit`. The log is locked
 * meanwhile, so fn must not log. */
void log_tail_read(uint64_t after, unsigned limit,
		   void (*fn)(void *arg, const struct log_tail_line *line), void *arg);
