#include "daemon/backstage.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/services.h"

/* A service's work, as the workers know it. */
struct backstage_job {
	struct job job;
	struct background_work *work;
};

static void job_run(struct job *job, int lane)
{
	struct background_work *work = list_entry(job, struct backstage_job, job)->work;

	work->run(work, lane);
	job->keep = work->keep;
}

static void job_finished(struct job *job, int result)
{
	struct backstage_job *j = list_entry(job, struct backstage_job, job);
	struct background_work *work = j->work;

	free(j);
	work->finished(work, result);
}

static int submit(void *arg, struct background_work *work, bool writes)
{
	struct backstage *b = arg;
	struct backstage_job *j;
	int r;

	if (b->closed)
		return -ECANCELED;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job = (struct job) {.run = job_run, .finished = job_finished};
	j->work = work;
	r = server_submit(b->server, &j->job, writes ? WRITER : READER);
	if (r != 0)
		free(j);
	return r;
}

struct background backstage(struct backstage *b)
{
	return (struct background) {.submit = submit, .arg = b};
}

struct job *backstage_trailer(void *arg)
{
	struct services *services = ((struct backstage *)arg)->services;
	struct backstage_job *j;

	if (!services_trails(services))
		return NULL;
	j = calloc(1, sizeof(*j));
	/* It goes with the next. */
	if (!j)
		return NULL;
	j->job.finished = job_finished;
	j->work = services_trailer(services);
	return &j->job;
}
