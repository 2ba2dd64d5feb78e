/*
 * opencode's server. /global/event tells of all folders that it works in, and names them;
 * everything else is about one folder, which a query names.
 *
 * A permission is only ever given once: what is allowed for longer is a grant of ours, which
 * answers the next request by itself, can be seen and can be taken back.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "agent/server/inner.h"
#include "wire/json.h"

enum { MESSAGE_MAX = 256 << 10 };

enum { PERMISSIONS, QUESTIONS };

/* An event is small. What has more values than this is somebody's diff, and nothing for us. */
static const struct json_limits limits = {.depth = 64, .values = 100000};

static struct text opencode_member(const struct value *v, const char *key)
{
	return value_text(value_find(v, key));
}

/* It becomes a part of our own ids, and of paths. */
static bool is_id(struct text id, const char *start)
{
	size_t n = strlen(start);

	if (id.len <= n || id.len > AGENT_SERVER_ID_MAX || memcmp(id.data, start, n) != 0)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		if (!isalnum((unsigned char)id.data[i]) && id.data[i] != '_' && id.data[i] != '-')
			return false;
	}
	return true;
}

/* ---- making objects ---- */

struct object {
	struct arena *arena;
	struct value *value;
	struct value **last;
};

static bool object_begin(struct arena *a, struct object *ret)
{
	*ret = (struct object) {.arena = a, .value = arena_zalloc(a, sizeof(struct value))};
	if (!ret->value)
		return false;
	ret->value->kind = VALUE_OBJECT;
	ret->last = &ret->value->first;
	return true;
}

/* A copy of the value, which keeps its children. */
static bool object_add(struct object *o, struct text key, const struct value *v)
{
	struct value *copy = arena_alloc(o->arena, sizeof(*copy));

	if (!copy)
		return false;
	*copy = *v;
	copy->key = key.data;
	copy->key_len = (uint32_t)key.len;
	copy->next = NULL;
	*o->last = copy;
	o->last = &copy->next;
	o->value->len++;
	return true;
}

static bool object_add_text(struct object *o, struct text key, struct text text)
{
	const struct value v = {.kind = VALUE_STRING, .text = text.data, .len = (uint32_t)text.len};

	return object_add(o, key, &v);
}

/* ---- a permission ---- */

/* The request's own words ({"command": …}) stand at the top, where rules look for them, and the
 * patterns beside them. */
static const struct value *permission_input(struct arena *a, const struct value *request)
{
	const struct value *metadata = value_find(request, "metadata");
	const struct value *patterns = value_find(request, "patterns");
	struct object o;

	if (!object_begin(a, &o))
		return NULL;
	if (metadata && metadata->kind == VALUE_OBJECT) {
		value_each (v, metadata) {
			const struct text key = {.data = v->key, .len = v->key_len};

			if (!value_same_key(key, TEXT("patterns")) && !object_add(&o, key, v))
				return NULL;
		}
	}
	if (patterns && !object_add(&o, TEXT("patterns"), patterns))
		return NULL;
	return o.value;
}

static int read_permission(struct arena *a, const struct value *request, struct text folder,
			   struct agent_server_sink *sink)
{
	struct agent_server_ask ask = {
		.id = opencode_member(request, "id"),
		.session = opencode_member(request, "sessionID"),
		.folder = folder,
		.tool = opencode_member(request, "permission"),
		.tool_use_id = opencode_member(value_find(request, "tool"), "callID"),
		.n_parts = 1,
	};

	if (!is_id(ask.id, "per") || ask.session.len == 0 || ask.tool.len == 0) {
		sink->skipped++;
		return 0;
	}
	ask.parts[0].input = permission_input(a, request);
	if (!ask.parts[0].input)
		return -ENOMEM;
	sink->fns->asked(sink->arg, &ask);
	return 0;
}

/* ---- questions ---- */

static void add_choice(struct buf *out, const struct value *option)
{
	struct text label = opencode_member(option, "label");
	struct text about = opencode_member(option, "description");

	buf_add_str(out, "\n- ");
	buf_add(out, label.data, label.len);
	if (about.len > 0) {
		buf_add_str(out, ": ");
		buf_add(out, about.data, about.len);
	}
}

/* The question with its choices, so that whoever shows only a text shows all of it. */
static int write_message(struct arena *a, const struct value *question, struct text *ret)
{
	const struct value *options = value_find(question, "options");
	struct text words = opencode_member(question, "question");
	struct buf out;
	int r;

	buf_init(&out, MESSAGE_MAX);
	buf_add(&out, words.data, words.len);
	if (options && options->kind == VALUE_ARRAY) {
		value_each (option, options)
			add_choice(&out, option);
	}
	r = out.err ?: arena_copy_text(a, buf_bytes(&out), ret);
	buf_done(&out);
	return r;
}

static bool add_labels(struct arena *a, struct object *o, const struct value *options)
{
	struct value labels = {.kind = VALUE_ARRAY};
	struct value **last = &labels.first;

	value_each (option, options) {
		const struct value *label = value_find(option, "label");
		struct value *copy = label ? arena_alloc(a, sizeof(*copy)) : NULL;

		if (!label || label->kind != VALUE_STRING)
			continue;
		if (!copy)
			return false;
		*copy = *label;
		copy->key = NULL;
		copy->key_len = 0;
		copy->next = NULL;
		*last = copy;
		last = &copy->next;
		labels.len++;
	}
	return labels.len == 0 || object_add(o, TEXT("choices"), &labels);
}

/* As the inbox shows questions: {"msg": …, "choices": […]}. */
static int question_input(struct arena *a, const struct value *question, const struct value **ret)
{
	const struct value *options = value_find(question, "options");
	struct text header = opencode_member(question, "header");
	struct text message;
	struct object o;
	int r = write_message(a, question, &message);

	if (r != 0)
		return r;
	if (!object_begin(a, &o) || !object_add_text(&o, TEXT("msg"), message) ||
	    (header.len > 0 && !object_add_text(&o, TEXT("header"), header)) ||
	    (options && options->kind == VALUE_ARRAY && !add_labels(a, &o, options)))
		return -ENOMEM;
	*ret = o.value;
	return 0;
}

static bool can_be_shown(const struct agent_server_ask *ask, const struct value *questions)
{
	if (!is_id(ask->id, "que") || ask->session.len == 0 || !questions ||
	    questions->kind != VALUE_ARRAY || questions->len == 0 ||
	    questions->len > AGENT_SERVER_PARTS_MAX)
		return false;
	value_each (q, questions) {
		if (opencode_member(q, "question").len == 0)
			return false;
	}
	return true;
}

static int read_question(struct arena *a, const struct value *request, struct text folder,
			 struct agent_server_sink *sink)
{
	const struct value *questions = value_find(request, "questions");
	struct agent_server_ask ask = {
		.is_question = true,
		.id = opencode_member(request, "id"),
		.session = opencode_member(request, "sessionID"),
		.folder = folder,
		.tool = TEXT("question"),
		.tool_use_id = opencode_member(value_find(request, "tool"), "callID"),
	};

	if (!can_be_shown(&ask, questions)) {
		sink->skipped++;
		return 0;
	}
	value_each (q, questions) {
		const struct value *several = value_find(q, "multiple");
		int r = question_input(a, q, &ask.parts[ask.n_parts].input);

		if (r == -EMSGSIZE)
			sink->skipped++;
		if (r != 0)
			return r == -EMSGSIZE ? 0 : r;
		ask.parts[ask.n_parts++].several = several && several->kind == VALUE_TRUE;
	}
	sink->fns->asked(sink->arg, &ask);
	return 0;
}

/* ---- events ---- */

typedef int (*event_fn)(struct arena *a, const struct value *properties, struct text folder,
			struct agent_server_sink *sink);

static int on_answered(struct arena *a, const struct value *properties, struct text folder,
		       struct agent_server_sink *sink)
{
	sink->answered = true;
	sink->fns->answered(sink->arg, opencode_member(properties, "requestID"));
	return 0;
}

static void opencode_note(struct agent_server_sink *sink, struct agent_server_note n)
{
	if (n.session.len > 0)
		sink->fns->noted(sink->arg, &n);
}

static int on_created(struct arena *a, const struct value *properties, struct text folder,
		      struct agent_server_sink *sink)
{
	opencode_note(sink, (struct agent_server_note) {
				    .what = TEXT("started"),
				    .session = opencode_member(properties, "sessionID"),
				    .folder = folder});
	return 0;
}

static int on_idle(struct arena *a, const struct value *properties, struct text folder,
		   struct agent_server_sink *sink)
{
	struct text session = opencode_member(properties, "sessionID");

	sink->fns->idle(sink->arg, session);
	opencode_note(sink, (struct agent_server_note) {
				    .what = TEXT("stopped"), .session = session, .folder = folder});
	return 0;
}

static int on_deleted(struct arena *a, const struct value *properties, struct text folder,
		      struct agent_server_sink *sink)
{
	struct text session = opencode_member(properties, "sessionID");

	sink->fns->idle(sink->arg, session);
	opencode_note(sink, (struct agent_server_note) {
				    .what = TEXT("ended"), .session = session, .folder = folder});
	return 0;
}

/* session.idle follows. */
static int on_error(struct arena *a, const struct value *properties, struct text folder,
		    struct agent_server_sink *sink)
{
	const struct value *error = value_find(properties, "error");
	struct text said = opencode_member(value_find(error, "data"), "message");

	opencode_note(sink, (struct agent_server_note) {
				    .what = TEXT("stopped"),
				    .session = opencode_member(properties, "sessionID"),
				    .folder = folder,
				    .text = said.data ? said : opencode_member(error, "name")});
	return 0;
}

static int on_part(struct arena *a, const struct value *properties, struct text folder,
		   struct agent_server_sink *sink)
{
	const struct value *part = value_find(properties, "part");
	struct text status = opencode_member(value_find(part, "state"), "status");

	if (!text_is(opencode_member(part, "type"), "tool") ||
	    (!text_is(status, "completed") && !text_is(status, "error")))
		return 0;
	opencode_note(sink,
		      (struct agent_server_note) {.what = TEXT("tool"),
						  .session = opencode_member(part, "sessionID"),
						  .folder = folder,
						  .tool = opencode_member(part, "tool"),
						  .tool_use_id = opencode_member(part, "callID")});
	return 0;
}

static const struct {
	const char *type;
	event_fn fn;
} events[] = {
	{"permission.asked", read_permission},
	{"permission.replied", on_answered},
	{"question.asked", read_question},
	{"question.replied", on_answered},
	{"question.rejected", on_answered},
	{"session.created", on_created},
	{"session.idle", on_idle},
	{"session.deleted", on_deleted},
	{"session.error", on_error},
	{"message.part.updated", on_part},
};

static int read_event(struct arena *a, struct text data, struct agent_server_sink *sink,
		      struct error *error)
{
	const struct value *payload;
	struct text folder, type;
	struct value *root;
	int r = json_read(a, data.data, data.len, &limits, &root, error);

	/* Too many values: not one of those that we look for. */
	if (r == REFUSE_TOO_LARGE)
		return 0;
	if (r != 0)
		return r;
	payload = value_find(root, "payload");
	type = opencode_member(payload, "type");
	folder = opencode_member(root, "directory");
	if (!type.data)
		return refuse(error, REFUSE_PARSE, "an event has no type");
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (!text_is(type, events[i].type))
			continue;
		if (folder.len > 0 && sink->folder)
			sink->folder(sink->folder_arg, folder);
		return events[i].fn(a, value_find(payload, "properties"), folder, sink);
	}
	return 0;
}

/* ---- answers ---- */

static int read_home(struct arena *a, struct text body, struct text *ret_folder,
		     struct error *error)
{
	struct value *root;
	int r = json_read(a, body.data, body.len, &limits, &root, error);

	if (r != 0)
		return r;
	*ret_folder = opencode_member(root, "directory");
	return ret_folder->len > 0 ? 0
				   : refuse(error, REFUSE_PARSE, "the response has no directory");
}

static int read_list(struct arena *a, unsigned which, struct text body, struct text folder,
		     struct agent_server_sink *sink, struct error *error)
{
	struct value *root;
	int r = json_read(a, body.data, body.len, &limits, &root, error);

	if (r == 0 && root->kind != VALUE_ARRAY)
		r = refuse(error, REFUSE_PARSE, "the response is not a list");
	if (r != 0)
		return r;
	value_each (request, root) {
		r = which == PERMISSIONS ? read_permission(a, request, folder, sink)
					 : read_question(a, request, folder, sink);
		if (r != 0)
			return r;
	}
	return 0;
}

static void add_folder(struct buf *path, struct text folder)
{
	static const char hex[] = "0123456789ABCDEF";

	buf_add_str(path, "?directory=");
	for (size_t i = 0; i < folder.len; i++) {
		unsigned char c = (unsigned char)folder.data[i];

		if (isalnum(c) || strchr("-._~/", c)) {
			buf_add_char(path, (char)c);
			continue;
		}
		buf_add_char(path, '%');
		buf_add_char(path, hex[c >> 4]);
		buf_add_char(path, hex[c & 15]);
	}
}

/* ---- replies ---- */

/* Several choices stand on a line each or, on a single line, between commas. */
static void write_answer(struct json *j, struct text answer, bool several)
{
	char mark = memchr(answer.data ? answer.data : "", '\n', answer.len) ? '\n' : ',';
	struct text rest = text_trim(answer, TEXT_SPACE);
	struct text item;

	json_begin_array(j);
	if (!several)
		json_text(j, rest);
	while (several && text_next(&rest, mark, &item)) {
		item = text_trim(item, TEXT_SPACE);
		if (item.len > 0)
			json_text(j, item);
	}
	json_end_array(j);
}

static void write_reply(const struct agent_server_reply *reply, struct buf *path, struct buf *body)
{
	struct json j = json_writer(body);

	buf_add_str(path, reply->is_question ? "/question/" : "/permission/");
	buf_add(path, reply->id.data, reply->id.len);
	buf_add_str(path, "/reply");
	add_folder(path, reply->folder);
	json_begin_object(&j);
	if (reply->is_question) {
		json_member_array(&j, "answers");
		for (unsigned i = 0; i < reply->n_answers; i++)
			write_answer(&j, reply->answers[i].text, reply->answers[i].several);
		json_end_array(&j);
	} else {
		json_member_str(&j, "reply", reply->allow ? "once" : "reject");
		if (!reply->allow && reply->message.len > 0)
			json_member_text(&j, "message", reply->message);
	}
	json_end_object(&j);
}

const struct agent_server_ops opencode_server = {
	.word = "opencode",
	.probe = "/global/health",
	.stream = "/global/event",
	.home = "/path",
	.lists = {[PERMISSIONS] = "/permission", [QUESTIONS] = "/question"},
	.read_event = read_event,
	.read_home = read_home,
	.read_list = read_list,
	.add_folder = add_folder,
	.write_reply = write_reply,
};
