#include "dialect/koine/event_in.h"

#include <errno.h>

#include "base/clock.h"
#include "wire/json.h"

/* In bytes. A connection may hold many filters, so each must be small. */
enum { TYPE_MAX = 100, ID_MAX = 256, PROJECT_MAX = 4096 };

const struct field event_in_fields[N_EVENT_IN_FIELDS] = {
	FIELD(ARRAY, event_in, types,
	      "Event types, such as [\"task.*\"] (default: all types); * matches any text"),
	FIELD(ANY, event_in, since, "Start after this sequence number, or at this ISO 8601 time"),
	FIELD(STRING, event_in, session_id, "Select only events of this session or conversation"),
	FIELD(STRING, event_in, run_id, "Select only events of this run"),
	FIELD(STRING, event_in, project, "Select only events of this project"),
	FIELD(INT, event_in, limit, "Maximum number of events, up to 1000",
	      .default_number = EVENT_PAGE_DEFAULT),
};

static int read_types(const struct value *types, struct arena *a, struct event_filter *f,
		      struct why *why)
{
	struct text *out;

	if (!types || types->kind == VALUE_NULL)
		return 0;
	if (types->len > EVENT_TYPES_MAX)
		return refuse_field(why, "types", "types must have at most %d entries",
				    EVENT_TYPES_MAX);
	out = arena_alloc(a, types->len * sizeof(out[0]));
	if (!out)
		return -ENOMEM;
	f->types = out;
	value_each (type, types) {
		if (type->kind != VALUE_STRING || type->len == 0 || type->len > TYPE_MAX)
			return refuse_field(why, "types",
					    "types must be strings of 1 to %d characters",
					    TYPE_MAX);
		out[f->n_types++] = value_text(type);
	}
	return 0;
}

static int read_since(const struct value *since, struct event_since *ret, struct why *why)
{
	*ret = (struct event_since) {.seq = -1};
	if (!since || since->kind == VALUE_NULL)
		return 0;
	if (since->kind == VALUE_NUMBER && value_int(since, &ret->seq) && ret->seq >= 0)
		return 0;
	if (since->kind == VALUE_STRING && clock_parse_iso(value_text(since), &ret->ms)) {
		/* No event is older than 1970, and 0 means that no time is given. */
		if (ret->ms <= 0)
			ret->ms = 1;
		return 0;
	}
	return refuse_field(why, "since", "'since' must be a sequence number or an ISO 8601 time");
}

/* An empty name counts as none. */
static int read_name(struct text t, const char *field, size_t max, struct text *ret,
		     struct why *why)
{
	*ret = t.len > 0 ? t : (struct text) {0};
	if (t.len <= max)
		return 0;
	return refuse_field(why, field, "%s must not be longer than %zu bytes", field, max);
}

static int read_names(const struct event_in *in, struct event_filter *f, struct why *why)
{
	int r = read_name(in->project, "project", PROJECT_MAX, &f->project, why);

	if (r == 0)
		r = read_name(in->session_id, "session_id", ID_MAX, &f->session, why);
	if (r == 0)
		r = read_name(in->run_id, "run_id", ID_MAX, &f->run, why);
	return r;
}

int event_in_read(const struct event_in *in, struct arena *a, struct event_filter *ret_filter,
		  struct event_since *ret_since, struct why *why)
{
	int r = read_since(in->since, ret_since, why);

	*ret_filter = (struct event_filter) {0};
	if (r == 0)
		r = read_names(in, ret_filter, why);
	return r != 0 ? r : read_types(in->types, a, ret_filter, why);
}

void event_write_members(struct json *j, const struct event *e)
{
	json_members(j, &event_portrait, (struct selection) {0}, e, 0);
	json_key(j, "data");
	json_packed_as(j, e->data, event_names(e));
}
