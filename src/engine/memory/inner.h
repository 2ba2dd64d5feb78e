/* Internal to memory/: the handle, and what its files share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/metric/histogram.h"
#include "engine/memory/changes.h"
#include "engine/memory/memory.h"
#include "search/fuse.h"
#include "search/index.h"

struct memories {
	struct store *store;
	struct events *events; /* NULL: no events are logged */
	struct memory_indexes *indexes;
	struct memory_builder *builder; /* of the indexes */
	struct index_keeping *keeping;  /* of the indexes in files */
	struct memory_recent *recent;   /* lists that are at hand */
	struct memory_changes changes;  /* of the writer's batch */
	struct embedding *embedding;    /* NULL: there is no model */
	struct word_file *words;        /* NULL: there is no table of words */
	struct fuse_fit fit;            /* how well the model's vectors fit; under its lock */
	pthread_mutex_t fit_lock;
	bool off;
	atomic_bool expires;              /* there is something to sweep, now or later */
	struct shared_histogram searches; /* nanoseconds of those that were answered */
	unsigned n_readers;
	struct search_scratch *scratches[]; /* one for each reader, then the writer's */
};

enum {
	MEMORY_ROWS_BYTES = 32 << 20, /* of text in one answer */
	/* Of a page, which must fit into an answer even if everything is escaped: an answer may
	 * have 16 MiB, and an escape takes six bytes. */
	MEMORY_PAGE_BYTES = 2 << 20,
};

/* A lane's own working memory for searches. */
struct search_scratch *memories_scratch(struct memories *m, int lane);

int memory_check_on(const struct memories *m, struct why *why);
int memory_check_category(struct text given, struct why *why);
int memory_need(struct text t, const char *field, struct why *why);

/* As given by clients: 0 or less means the default. */
unsigned memory_limit(int64_t given, unsigned fallback);

/* Logs that a memory has changed, but never its text. Runs on the writer's thread; type:
 * "memory.added" ... */
int memory_publish(struct memories *m, const char *type, const struct memory *memory);
