#include "cli/memory/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR = 30, PAUSE_MS = 100 };

void progress_init(struct progress *p, int64_t size)
{
	*p = (struct progress) {.shown = isatty(STDERR_FILENO), .size = size};
}

void progress_set(struct progress *p, int64_t done, int64_t count)
{
	static const char full[] = "##############################";
	uint64_t now = clock_steady_ms();
	int part;

	if (!p->shown || now - p->last_ms < PAUSE_MS)
		return;
	p->last_ms = now;
	if (p->size <= 0) {
		fprintf(stderr, "\r%lld imported", (long long)count);
		return;
	}
	part = done >= p->size ? BAR : (int)(done * BAR / p->size);
	fprintf(stderr, "\r[%-*.*s] %3d%%  %lld imported", BAR, part, full,
		done >= p->size ? 100 : (int)(done * 100 / p->size), (long long)count);
	fflush(stderr);
}

void progress_done(struct progress *p)
{
	if (p->shown && p->last_ms != 0)
		fputs("\r\033[K", stderr);
	p->last_ms = 0;
}
