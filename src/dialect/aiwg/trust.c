#include "dialect/aiwg/project.h"

#include <errno.h>
#include <string.h>

/* Refuses an address that could lead somewhere else than it seems to: a user name before the
 * host, "..", and characters that not all programs read alike. */
static bool aiwg_trust_is_plain(struct text url)
{
	const char *host = memmem(url.data, url.len, "://", 3);

	for (size_t i = 0; i < url.len; i++) {
		unsigned char c = (unsigned char)url.data[i];

		if (c <= ' ' || c >= 0x7f || c == '\\' || c == '@')
			return false;
	}
	return host && !memmem(url.data, url.len, "..", 2) &&
	       !memmem(url.data, url.len, "%2e", 3) && !memmem(url.data, url.len, "%2E", 3);
}

/* "https://a.example" does not count as a beginning of "https://a.example.org". */
static bool begins(struct text url, struct text with)
{
	if (with.len == 0 || url.len < with.len || memcmp(url.data, with.data, with.len) != 0)
		return false;
	return url.len == with.len || with.data[with.len - 1] == '/' ||
	       strchr("/?#", url.data[with.len]);
}

bool project_webhook_allowed(const char *allowed, struct text url)
{
	if (!aiwg_trust_is_plain(url))
		return false;
	while (*(allowed += strspn(allowed, " \t"))) {
		struct text one = {.data = allowed, .len = strcspn(allowed, " \t")};

		if (begins(url, one))
			return true;
		allowed += one.len;
	}
	return false;
}

void project_forbid(const char *allowed, struct aiwg_config *c)
{
	for (unsigned i = 0; i < c->n_rules; i++) {
		struct rule *r = &c->rules[i];

		r->forbidden =
			r->action == ACTION_WEBHOOK && !project_webhook_allowed(allowed, r->url);
	}
}

int project_offer(struct arena *a, const struct aiwg_config *c, struct trust_offer *ret_offer)
{
	struct text *watches = arena_alloc(a, (c->n_watched + 1) * sizeof(watches[0]));
	struct trust_job *jobs = arena_alloc(a, (c->n_jobs + 1) * sizeof(jobs[0]));

	if (!watches || !jobs)
		return -ENOMEM;
	for (unsigned i = 0; i < c->n_watched; i++)
		watches[i] = c->watched[i].path;
	for (unsigned i = 0; i < c->n_jobs; i++)
		jobs[i] = (struct trust_job) {.id = c->jobs[i].id, .cron = c->jobs[i].cron};
	*ret_offer = (struct trust_offer) {
		.rules = c->rules,
		.n_rules = c->n_rules,
		.n_left_out = c->n_left_out,
		.watches = watches,
		.n_watches = c->watch ? c->n_watched : 0,
		.jobs = jobs,
		.n_jobs = c->schedule ? c->n_jobs : 0,
	};
	return 0;
}
