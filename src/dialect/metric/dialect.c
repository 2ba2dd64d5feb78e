/*
 * A listener that tells figures and does nothing else, so that another user, such as Prometheus's,
 * can be let in: koine's own dialect can approve, back up and stop.
 */
#include "dialect/daemon.h"
#include "dialect/life.h"
#include "dialect/metric/metric.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {0, "malformed request", WORDS_TEXT, 400},
	[REFUSE_INTERNAL] = {0, "internal error", WORDS_BOTH, 500},
	DIALECT_HTTP_ERRORS,
};

struct metrics_settings {
	char token_file[PATH_LEN]; /* "": koine.token_file */
};

static const struct setting rows[] = {
	{"metrics", "token_file", SET_PATH, SETTING_TEXT(struct metrics_settings, token_file),
	 "file (mode 0600) with the token that scrapers must send; empty means koine.token_file"},
};

static const struct metrics_settings defaults;

static const struct dialect_section section = {SECTION(rows, defaults)};

static const struct dialect_token token = {.file = offsetof(struct metrics_settings, token_file)};

/* ---- the last day: kept whether or not somebody listens ---- */

static int metric_dialect_start(struct dialect_host *h, struct error *error)
{
	struct samples *s = NULL;
	int r = samples_start(h->daemon->server, h->daemon->engine, &s);

	h->state = h->daemon->server->samples = s;
	return r;
}

/* Also after a start that failed, when the server is gone already. */
static int metric_dialect_release(struct dialect_host *h, struct error *error)
{
	samples_free(h->state);
	h->state = NULL;
	return 0;
}

static int stopping(struct dialect_host *h, struct error *error)
{
	h->daemon->server->samples = NULL;
	return metric_dialect_release(h, error);
}

static const struct dialect_life life = {
	.steps = {[DIALECT_START] = metric_dialect_start,
		  [DIALECT_STOPPING] = stopping,
		  [DIALECT_FREE] = metric_dialect_release},
	.token = &token,
};

static void write_refusal(struct buf *body, const struct http_refusal *no)
{
	struct json j = json_writer(body);

	json_begin_object(&j);
	json_member_text(&j, "error", no->message);
	json_end_object(&j);
}

const struct dialect metric_dialect = {
	.name = "metrics",
	.framing = SPEAKS_HTTP,
	.message_max = 1 << 16,
	.errors = errors,
	.http_routes = metric_routes,
	.n_http_routes = N_METRIC_ROUTES,
	.http_refusal = write_refusal,
	.home = {.address = "http:127.0.0.1:9464", .optional = true},
	.section = &section,
	.life = &life,
};
