#include "agent/command/inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Its last two folders are made if they are missing. */
static int open_state(const char *state, char out[PATH_MAX], struct error *error)
{
	char above[PATH_MAX];
	char *slash;

	snprintf(above, sizeof(above), "%s", state);
	slash = strrchr(above, '/');
	if (slash && slash != above) {
		*slash = '\0';
		(void)mkdir(above, 0700);
	}
	(void)mkdir(state, 0700);
	if (!realpath(state, out))
		return refuse(error, REFUSE_UNAVAILABLE, "cannot use the state directory %s: %s",
			      state, strerror(errno));
	return 0;
}

/* Lines become strings, in `lines` itself, which is cut for it. */
static int command_place_split(char *lines, const char **paths, unsigned *n, struct error *error)
{
	for (char *rest = lines, *at; (at = strsep(&rest, "\n"));) {
		if (!*at)
			continue;
		if (*n == COMMAND_PATHS_MAX)
			return refuse(error, REFUSE_LIMIT, "too many writable paths (limit %d)",
				      COMMAND_PATHS_MAX);
		paths[(*n)++] = at;
	}
	return 0;
}

static void add_variable(struct command_place *p, const char *name, struct text value)
{
	unsigned n = 0;

	while (p->env[n])
		n++;
	snprintf(p->env_text[n], sizeof(p->env_text[n]), "%s=%.*s", name, TEXT_ARGS(value));
	p->env[n] = p->env_text[n];
}

static void add_variables(struct command_place *p, const char *state)
{
	struct text folder = text_of(p->private_folder);

	add_variable(p, "TMPDIR", folder);
	add_variable(p, "TMP", folder);
	add_variable(p, "TEMP", folder);
	if (state[0])
		add_variable(p, "KOINE_STATE", text_of(state));
}

static int confine(const struct agent_bounds *b, const char *state, struct command_place *p,
		   struct error *error)
{
	CLEANUP(freep)
	char *lines =
		strndup(b->write_paths.len > 0 ? b->write_paths.data : "", b->write_paths.len);
	const char *paths[COMMAND_PATHS_MAX + 3];
	char kept[PATH_MAX] = "";
	unsigned n = 0;
	int r = lines ? command_place_split(lines, paths, &n, error) : -ENOMEM;

	if (r == 0 && state[0])
		r = open_state(state, kept, error);
	if (r == 0)
		r = private_folder_new(p->private_folder);
	if (r != 0)
		return r;
	paths[n++] = p->private_folder;
	if (kept[0])
		paths[n++] = kept;
	paths[n] = NULL;
	add_variables(p, kept);
	r = confine_open(paths, &p->confine, error);
	if (r != 0)
		rmdir(p->private_folder);
	return r;
}

int command_place_open(const struct agent_ask *ask, const char *own, const char *state,
		       struct command_place *ret, struct error *error)
{
	const struct agent_bounds *b = &ask->bounds;

	memset(ret, 0, sizeof(*ret));
	add_variable(ret, "KOINE_CONVERSATION", ask->conversation);
	if (b->cwd.len >= sizeof(ret->cwd_text))
		return -ENAMETOOLONG;
	snprintf(ret->cwd_text, sizeof(ret->cwd_text), "%.*s", TEXT_ARGS(b->cwd));
	if (!b->cwd.data)
		snprintf(ret->cwd_text, sizeof(ret->cwd_text), "%s", own);
	ret->cwd = ret->cwd_text[0] ? ret->cwd_text : NULL;
	return b->confined ? confine(b, state, ret, error) : 0;
}

void command_place_close(struct command_place *p)
{
	if (p->confine > 0)
		close(p->confine);
	p->confine = 0;
}
