/* What a program is started with, copied for the thread that starts it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/process/spawn.h"

/* Pointers first, then the text that they point at. */
struct spawn_copy_block {
	const char **pointers;
	char *text;
};

static void measure(const char *const *list, size_t *n_pointers, size_t *n_bytes)
{
	for (; list && *list; list++) {
		*n_pointers += 1;
		*n_bytes += strlen(*list) + 1;
	}
	*n_pointers += 1;
}

static const char *copy_text(struct spawn_copy_block *b, const char *text)
{
	const char *copy = b->text;

	if (!text)
		return NULL;
	b->text = stpcpy(b->text, text) + 1;
	return copy;
}

static const char *const *copy_list(struct spawn_copy_block *b, const char *const *list)
{
	const char *const *copy = b->pointers;

	if (!list)
		return NULL;
	for (; *list; list++)
		*b->pointers++ = copy_text(b, *list);
	*b->pointers++ = NULL;
	return copy;
}

static int copy_descriptors(const struct spawn_opts *from, struct spawn_opts *to)
{
	for (int i = 0; i < 3; i++) {
		to->streams[i] = fcntl(from->streams[i], F_DUPFD_CLOEXEC, 3);
		if (to->streams[i] < 0)
			return -errno;
	}
	if (from->confine > 0)
		to->confine = fcntl(from->confine, F_DUPFD_CLOEXEC, 3);
	return to->confine < 0 ? -errno : 0;
}

int spawn_opts_copy(const struct spawn_opts *opts, struct spawn_opts **ret_copy)
{
	size_t n_pointers = 0, n_bytes = opts->cwd ? strlen(opts->cwd) + 1 : 0;
	struct spawn_opts *copy;
	struct spawn_copy_block b;
	int r;

	measure(opts->argv, &n_pointers, &n_bytes);
	measure(opts->env, &n_pointers, &n_bytes);
	measure(opts->more_env, &n_pointers, &n_bytes);
	copy = malloc(sizeof(*copy) + n_pointers * sizeof(*b.pointers) + n_bytes);
	if (!copy)
		return -ENOMEM;
	b.pointers = (const char **)(copy + 1);
	b.text = (char *)(b.pointers + n_pointers);
	*copy = (struct spawn_opts) {.streams = {-1, -1, -1},
				     .die_with_us = opts->die_with_us,
				     .terminal = opts->terminal};
	copy->argv = copy_list(&b, opts->argv);
	copy->env = copy_list(&b, opts->env);
	copy->more_env = copy_list(&b, opts->more_env);
	copy->cwd = copy_text(&b, opts->cwd);
	r = copy_descriptors(opts, copy);
	if (r != 0) {
		spawn_opts_free(copy);
		return r;
	}
	*ret_copy = copy;
	return 0;
}

void spawn_opts_free(struct spawn_opts *copy)
{
	if (!copy)
		return;
	for (int i = 0; i < 3; i++)
		closep(&copy->streams[i]);
	if (copy->confine > 0)
		closep(&copy->confine);
	free(copy);
}
