/* The hosts that share the store. A store of one koined alone has none. */
#include "dialect/daemon.h"

#include "call/call.h"
#include "dialect/engine.h"
#include "engine/node/node.h"
#include "wire/json.h"

struct host_in {
	struct text name;
};

static void write_host(struct json *j, const struct node *n, const struct host *h, int64_t now_ms)
{
	struct host shown = *h;

	/* Only the database knows it; what it said last may be long ago. */
	if (h->state == HOST_ALIVE && node_fault(n))
		shown.state = HOST_UNKNOWN;
	json_begin_object(j);
	json_members(j, &host_schema, (struct selection) {0}, &shown, 0);
	json_member_bool(j, "this", node_is_us(n, h->name));
	json_member_int(j, "seen_ms_ago", now_ms > h->seen_ms ? now_ms - h->seen_ms : 0);
	json_end_object(j);
}

static struct done dialect_host_handle_list(struct call *c)
{
	const struct node *n = call_node(c);
	struct json *j = call_result(c);
	const struct host *hosts;
	int64_t now_ms;
	unsigned count;

	hosts = node_list(n, &count, &now_ms);
	json_begin_object(j);
	json_member_array(j, "hosts");
	for (unsigned i = 0; i < count; i++)
		write_host(j, n, &hosts[i], now_ms);
	json_end_array(j);
	return call_reply_object(c);
}

static struct done handle_forget(struct call *c)
{
	const struct host_in *in = c->in;
	int r = node_forget(call_node(c), in->name, &c->error);

	return call_answer(c, r, NULL,
			   PAIRS(JSON_TEXT("name", in->name), JSON_BOOL("forgotten", true)));
}

static const struct field forget_fields[] = {
	FIELD(STRING, host_in, name, "Name of the host", .required = true),
};

static const struct method rows[] = {
	{"host.list", "List the hosts that share the store, sorted by name",
	 "{hosts:[{name:string epoch:integer state:alive|left|lost|unknown labels:string "
	 "version:string since:time seen_at:time running:integer parallel:integer this:boolean}]}",
	 .handle = dialect_host_handle_list},
	{"host.forget", "Remove a dead host from the list", "{name:string forgotten:true}",
	 FIELDS(forget_fields, host_in), .where = WRITER, .handle = handle_forget},
};

const struct method_table host_methods = METHOD_TABLE(rows);
