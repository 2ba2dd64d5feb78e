#include "base/log_tail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_tail_line lines[LOG_TAIL_LINES]; /* by number; we own their texts */
static uint64_t last;

/* Readers expect characters, so other bytes become '?'. */
static void mend(char *text)
{
	const char *end = text + strlen(text);

	while (*text) {
		size_t n = *text & 0x80 ? utf8_sequence(text, end) : 1;

		if (n == 0)
			*text = '?';
		text += n > 0 ? n : 1;
	}
}

static void keep(enum log_level level, const char *text)
{
	char *copy = strdup(text);
	struct log_tail_line *line;

	/* Without memory the line only goes to stderr. */
	if (!copy)
		return;
	mend(copy);
	pthread_mutex_lock(&lock);
	line = &lines[++last % LOG_TAIL_LINES];
	free((char *)line->text);
	*line = (struct log_tail_line) {
		.number = last,
		.utc_ms = clock_utc_ms(),
		.level = level,
		.text = copy,
	};
	pthread_mutex_unlock(&lock);
}

static void write_and_keep(void *arg, enum log_level level, const char *text)
{
	log_write_stderr(arg, level, text);
	keep(level, text);
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

	pthread_mutex_lock(&lock);
	from = last > most ? last - most : 0;
	for (uint64_t n = (from > after ? from : after) + 1; n <= last; n++)
		fn(arg, &lines[n % LOG_TAIL_LINES]);
	pthread_mutex_unlock(&lock);
}
