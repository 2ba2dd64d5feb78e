#include "cli/child/output.h"

#include "cli/child/child.h"

int child_output(const char *const *argv, bool all, unsigned patience_ms, struct buf *out)
{
	const struct child_opts opts = {.argv = argv, .all = all, .patience_ms = patience_ms};
	struct child c;
	struct text line;
	int status;

	if (!child_start(&c, &opts))
		return -1;
	while (child_hear(&c, &line)) {
		buf_add(out, line.data, line.len);
		buf_add(out, "\n", 1);
	}
	status = out->err == 0 ? child_wait(&c) : -1;
	child_end(&c);
	return status;
}
