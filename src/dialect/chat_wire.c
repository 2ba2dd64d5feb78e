#include "dialect/chat_wire.h"

#include "wire/json.h"

static bool is_integer(const struct value *v)
{
	for (uint32_t i = 0; i < v->raw_len; i++)
		if (v->raw[i] == '.' || v->raw[i] == 'e' || v->raw[i] == 'E')
			return false;
	return v->kind == VALUE_NUMBER;
}

int chat_wire_request_id(struct arena *a, const struct value *v, struct text *ret_id)
{
	if (v->kind != VALUE_STRING && !is_integer(v))
		return REFUSE_PARAMS;
	return json_compact(a, v, ret_id);
}

bool chat_wire_agent_words(const struct chat_answer *a, struct buf *ret_words)
{
	buf_init(ret_words, 64 << 10);
	if (a->outcome != AGENT_FAILED || !a->error_type || !a->error_type[0])
		return false;
	buf_printf(ret_words, "Internal error: %s: %s", a->error_type,
		   a->error_text ? a->error_text : "");
	return ret_words->err == 0;
}
