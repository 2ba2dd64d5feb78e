#include "daemon/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "service/embedding.h"

enum { KEY_MAX = 4096 };

/* A service's work, as the workers know it. */
struct model_job {
	struct job job;
	struct background_work *work;
};

static void job_run(struct job *job, int lane)
{
	struct background_work *work = list_entry(job, struct model_job, job)->work;

	work->run(work, lane);
	job->keep = work->keep;
}

static void job_finished(struct job *job, int result)
{
	struct model_job *j = list_entry(job, struct model_job, job);
	struct background_work *work = j->work;

	free(j);
	work->finished(work, result);
}

static int submit(void *arg, struct background_work *work, bool writes)
{
	struct model_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->job = (struct job) {.run = job_run, .finished = job_finished};
	j->work = work;
	r = server_submit(arg, &j->job, writes ? WRITER : READER);
	if (r != 0)
		free(j);
	return r;
}

static int read_key(const struct settings *s, char key[KEY_MAX], struct why *why)
{
	int r;

	key[0] = '\0';
	if (!s->embedding_key_file[0])
		return 0;
	r = secret_read(s->embedding_key_file, "embedding key", key, KEY_MAX, why);
	if (r == 0 && !key[0])
		r = refuse(why, REFUSE_PARAMS, "the embedding key file %.100s is empty",
			   s->embedding_key_file);
	return r;
}

int model_check(const struct settings *s, struct why *why)
{
	char key[KEY_MAX];
	int r = s->embedding_url[0] ? read_key(s, key, why) : 0;

	explicit_bzero(key, sizeof(key));
	return r;
}

int model_start(const struct settings *s, struct server *server, struct services *services,
		struct why *why)
{
	char key[KEY_MAX];
	const struct embedding_opts opts = {
		.loop = server->loop,
		.background = {.submit = submit, .arg = server},
		.url = s->embedding_url,
		.model = s->embedding_model,
		.key = key,
		.timeout_ms = s->embedding_timeout_ms,
	};
	int r;

	if (!s->embedding_url[0])
		return 0;
	r = read_key(s, key, why);
	if (r == 0)
		r = embedding_start(services, &opts, why);
	explicit_bzero(key, sizeof(key));
	return r;
}
