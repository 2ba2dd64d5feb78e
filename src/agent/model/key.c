#include "agent/model/inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "io/process/child.h"

enum { COMMAND_MS = 30000, KEPT_MS = 3600 * 1000 };

struct model_keys {
	struct loop *loop;
	char agent[AGENT_NAME_MAX];
	char *environment; /* "" for none, like the others */
	const struct environment *env;
	char *file;
	char *command;

	struct child *child; /* the command, while it runs */
	struct timer *limit;
	struct buf printed;
	struct list waiting;
	uint64_t taken_ms; /* when the command printed the key */

	char key[MODEL_KEY_MAX]; /* "" for none */
};

/* ---- life ---- */

void model_keys_free(struct model_keys *k)
{
	if (!k)
		return;
	child_free(k->child);
	timer_free(k->limit);
	if (k->printed.data)
		explicit_bzero(k->printed.data, k->printed.len);
	buf_done(&k->printed);
	free(k->environment);
	free(k->file);
	free(k->command);
	explicit_bzero(k->key, sizeof(k->key));
	free(k);
}

CLEANUP_POINTER(model_keys, model_keys_free)

static char *copy_of(const char *s)
{
	return strdup(s ? s : "");
}

static void on_late(void *arg);

int model_keys_new(struct loop *l, const char *agent, const struct model_key *from,
		   struct model_keys **ret_keys, struct error *error)
{
	CLEANUP(model_keys_freep) struct model_keys *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->loop = l;
	k->env = from->env;
	list_init(&k->waiting);
	buf_init(&k->printed, MODEL_KEY_MAX);
	memcpy(k->agent, agent, strnlen(agent, sizeof(k->agent) - 1));
	k->environment = copy_of(from->environment);
	k->file = copy_of(from->file);
	k->command = copy_of(from->command);
	if (!k->environment || !k->file || !k->command)
		return -ENOMEM;
	if (!!k->environment[0] + !!k->file[0] + !!k->command[0] > 1)
		return refuse(error, REFUSE_PARAMS,
			      "agent '%s': set only one of key_env, key_file and key_command",
			      k->agent);
	r = timer_new(l, on_late, k, &k->limit);
	if (r == 0)
		*ret_keys = TAKE(k);
	return r;
}

/* ---- at once ---- */

/* Empty, too long, or impossible in a header. */
static int no_key(const struct model_keys *k, struct error *error, const char *where,
		  const char *name)
{
	return refuse(error, REFUSE_UNAVAILABLE,
		      "agent '%s': no valid key in %s%.100s: a key must be ASCII without spaces",
		      k->agent, where, name);
}

static int from_environment(struct model_keys *k, struct error *error)
{
	const char *value = getenv(k->environment);

	if (!value || !value[0])
		return refuse(error, REFUSE_UNAVAILABLE,
			      "agent '%s': no key: environment variable %.100s is not set",
			      k->agent, k->environment);
	if (strlen(value) >= sizeof(k->key) || !endpoint_key_fits(value))
		return no_key(k, error, "variable ", k->environment);
	memcpy(k->key, value, strlen(value) + 1);
	return 0;
}

static int from_file(struct model_keys *k, struct error *error)
{
	struct error inner;
	int r = file_read_secret(k->file, "key", k->key, sizeof(k->key), &inner);

	if (r < 0)
		return r;
	if (r > 0)
		return refuse(error, REFUSE_UNAVAILABLE, "agent '%s': %.130s", k->agent,
			      inner.text);
	if (!k->key[0] || !endpoint_key_fits(k->key))
		return no_key(k, error, "file ", k->file);
	return 0;
}

/* ---- the command ---- */

static void model_key_notify(struct model_keys *k, const char *key, const struct error *error)
{
	struct list waiting;
	struct list *first;

	list_init(&waiting);
	list_splice(&waiting, &k->waiting);
	while ((first = list_first(&waiting))) {
		struct model_key_wait *w = list_entry(first, struct model_key_wait, link);

		list_remove(first);
		w->fn(w->arg, key, error);
	}
}

static void end_command(struct model_keys *k)
{
	child_free(k->child);
	k->child = NULL;
	timer_stop(k->limit);
	if (k->printed.data)
		explicit_bzero(k->printed.data, k->printed.len);
	buf_clear(&k->printed);
}

/* Its first line, without trailing white space. */
static bool take_printed(struct model_keys *k)
{
	size_t n = 0;

	while (n < k->printed.len && k->printed.data[n] != '\n')
		n++;
	while (n > 0 && (k->printed.data[n - 1] == '\r' || k->printed.data[n - 1] == ' '))
		n--;
	if (n == 0 || n >= sizeof(k->key) || memchr(k->printed.data, '\0', n))
		return false;
	memcpy(k->key, k->printed.data, n);
	k->key[n] = '\0';
	if (endpoint_key_fits(k->key))
		return true;
	explicit_bzero(k->key, sizeof(k->key));
	return false;
}

static void on_printed(void *arg, bool is_stderr, const char *data, size_t len)
{
	struct model_keys *k = arg;
	size_t room = MODEL_KEY_MAX - k->printed.len;

	/* A first line that fills it all is no key; what follows the first line does not matter. */
	if (!is_stderr)
		buf_add(&k->printed, data, len < room ? len : room);
}

static void on_exit_of_command(void *arg, int status, int signal)
{
	struct model_keys *k = arg;
	struct error error = {.code = 0};

	if (status != 0)
		refuse(&error, REFUSE_UNAVAILABLE, "agent '%s': the key command ended with %s %d",
		       k->agent, status < 0 ? "signal" : "status", status < 0 ? signal : status);
	else if (!take_printed(k))
		no_key(k, &error, "the output of the key command", "");
	else
		k->taken_ms = loop_now_ms(k->loop);
	end_command(k);
	model_key_notify(k, error.code ? NULL : k->key, &error);
}

static void on_late(void *arg)
{
	struct model_keys *k = arg;
	struct error error;

	refuse(&error, REFUSE_UNAVAILABLE, "agent '%s': the key command timed out after %d s",
	       k->agent, COMMAND_MS / 1000);
	end_command(k);
	model_key_notify(k, NULL, &error);
}

static int run_command(struct model_keys *k, struct error *error)
{
	const char *const argv[] = {"/bin/sh", "-c", "--", k->command, NULL};
	const struct child_opts opts = {
		.argv = argv,
		.env = environment_list(k->env),
		.on_output = on_printed,
		.on_exit = on_exit_of_command,
		.arg = k,
	};
	int r;

	if (k->child)
		return 0;
	r = child_start(k->loop, &opts, &k->child, error);
	if (r == 0)
		timer_start(k->limit, COMMAND_MS);
	return r;
}

static int from_command(struct model_keys *k, struct model_key_wait *w, const char **ret_key,
			struct error *error)
{
	int r;

	if (k->key[0] && loop_now_ms(k->loop) - k->taken_ms < KEPT_MS) {
		*ret_key = k->key;
		return 0;
	}
	r = run_command(k, error);
	if (r != 0)
		return r;
	list_append(&k->waiting, &w->link);
	*ret_key = NULL;
	return 0;
}

/* ---- asking ---- */

int model_keys_get(struct model_keys *k, struct model_key_wait *w, const char **ret_key,
		   struct error *error)
{
	int r = 0;

	if (k->command[0])
		return from_command(k, w, ret_key, error);
	if (k->environment[0])
		r = from_environment(k, error);
	else if (k->file[0])
		r = from_file(k, error);
	if (r == 0)
		*ret_key = k->key;
	return r;
}

void model_key_wait_cancel(struct model_key_wait *w)
{
	list_remove(&w->link);
}

bool model_keys_forget(struct model_keys *k, const char *key)
{
	if (!k->command[0])
		return false;
	/* Another key may have been refused with it, and the next one may be here already. */
	if (strcmp(k->key, key) == 0)
		explicit_bzero(k->key, sizeof(k->key));
	return true;
}
