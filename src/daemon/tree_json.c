#include "daemon/tree_json.h"

#include <errno.h>

#include "base/buf.h"
#include "wire/json.h"

enum { JSON_MAX = 8 << 20 };

int tree_json(struct arena *a, const struct value *v, struct text *ret_text)
{
	struct buf out;
	struct json j;
	char *copy;
	int r;

	buf_init(&out, JSON_MAX);
	j = json_writer(&out);
	json_value(&j, v);
	r = out.err;
	copy = r == 0 ? arena_copy(a, out.data, out.len) : NULL;
	if (r == 0 && !copy)
		r = -ENOMEM;
	if (r == 0)
		*ret_text = (struct text) {.data = copy, .len = out.len};
	buf_done(&out);
	return r;
}
