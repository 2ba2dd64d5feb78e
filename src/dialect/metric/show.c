/* GET /metrics, and daemon.metrics for those who do not speak HTTP. */
#include <errno.h>

#include "base/log.h"
#include "base/metric.h"
#include "dialect/metric/metric.h"
#include "wire/http/http1.h"

static int write_all(struct call *c, enum metric_format format, struct buf *out)
{
	struct metric_from *from = arena_zalloc(&c->arena, sizeof(*from));

	if (!from)
		return -ENOMEM;
	metric_server_take(from, c->server);
	metric_engine_take(from, call_engine(c));
	metric_process_read(&from->process, c->server->n_clients);
	from->log_left_out = log_left_out();
	metric_write_text(out, format, metric_families, n_metric_families, from);
	return out->err;
}

/* ---- over HTTP ---- */

static int send_all(struct call *c, enum metric_format format, const struct buf *text)
{
	int r = call_stream_begin(c, 200, metric_content_type(format));

	return r != 0 ? r : call_stream(c, text->data, text->len);
}

static struct done handle_scrape(struct call *c)
{
	enum metric_format format = metric_format_wanted(http_header_find(c->http, "Accept"));
	struct buf text;
	int r;

	buf_init(&text, c->server->opts.limits.reply_bytes);
	r = write_all(c, format, &text) ?: send_all(c, format, &text);
	buf_done(&text);
	return r != 0 ? call_fail(c, r) : call_stream_end(c);
}

const struct http_route metric_routes[N_METRIC_ROUTES] = {
	{"GET",
	 "/metrics",
	 {"metrics", "Return metrics for Prometheus", .handle = handle_scrape,
	  .flags = METHOD_LATER}},
};

/* ---- as a call ---- */

struct metrics_in {
	struct text format;
};

static struct done handle_metrics(struct call *c)
{
	const struct metrics_in *in = c->in;
	enum metric_format format =
		text_is(in->format, "openmetrics") ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
	struct json *j;
	struct buf text;
	int r;

	buf_init(&text, c->server->opts.limits.reply_bytes);
	r = write_all(c, format, &text);
	if (r == 0) {
		j = call_result(c);
		json_begin_object(j);
		json_member_str(j, "content_type", metric_content_type(format));
		json_member_text(j, "text", (struct text) {.data = text.data, .len = text.len});
		json_end_object(j);
	}
	buf_done(&text);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

static const struct field metrics_fields[] = {
	FIELD(STRING, metrics_in, format, "Output format: prometheus or openmetrics",
	      .default_text = "prometheus", WORDS("prometheus", "openmetrics")),
};

static const struct method rows[] = {
	{"daemon.metrics", "Return metrics as text for Prometheus",
	 "{content_type:string text:string}", FIELDS(metrics_fields, metrics_in),
	 .handle = handle_metrics},
	{"daemon.samples", "Return samples of the last 24 hours, one per minute",
	 "{samples:[object]}", .handle = metric_samples},
};

const struct method_table metric_methods = METHOD_TABLE(rows);
