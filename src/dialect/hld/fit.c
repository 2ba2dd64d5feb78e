/*
 * Answers that would be too large. hld has no pages: a client whose list is refused once would
 * always be refused. So texts are cut first, and if that is not enough, the list is.
 */
#include <errno.h>
#include <stdint.h>

#include "dialect/hld/hld.h"

enum { ENVELOPE = 512 };

const size_t hld_cuts[HLD_N_CUTS] = {SIZE_MAX, 64 << 10, 8 << 10, 1 << 10, 128};

struct hld_fit hld_fit_begin(struct call *c, bool cuts_texts)
{
	struct json *j = call_result(c);

	return (struct hld_fit) {
		.json = j,
		.before = *j,
		.at = j->out->len,
		.envelope = ENVELOPE + 6 * c->request.id.len,
		.cuts_texts = cuts_texts,
		.cut = SIZE_MAX,
	};
}

size_t hld_size(const char *json, size_t len)
{
	size_t n = len;

	for (size_t i = 0; i < len; i++) {
		char c = json[i];

		n += c == '<' || c == '>' || c == '&' || c == '\xe2' ? 5 : 0;
	}
	return n;
}

size_t hld_fit_max(const struct hld_fit *f)
{
	size_t taken = f->at + f->envelope;

	return f->json->out->max > taken ? f->json->out->max - taken : 0;
}

static bool hld_fit_fits(const struct hld_fit *f)
{
	const struct buf *out = f->json->out;

	return out->err == 0 && hld_size(out->data + f->at, out->len - f->at) <= hld_fit_max(f);
}

bool hld_fit_again(struct hld_fit *f)
{
	struct buf *out = f->json->out;
	unsigned last = f->cuts_texts ? HLD_N_CUTS - 1 : 0;

	/* Without memory, writing less does not help; and nothing is smaller than an empty list. */
	if (hld_fit_fits(f) || (out->err != 0 && out->err != -EMSGSIZE) || f->step > last + 32)
		return false;
	f->step++;
	f->cut = hld_cuts[f->step < last ? f->step : last];
	f->halved = f->step > last ? f->step - last : 0;
	*f->json = f->before;
	out->len = f->at;
	out->err = 0;
	return true;
}

unsigned hld_fit_count(const struct hld_fit *f, unsigned n)
{
	return f->halved < 32 ? n >> f->halved : 0;
}

void hld_fit_tell(const struct hld_fit *f, struct json *j)
{
	if (f->halved > 0)
		json_member_bool(j, "truncated", true);
}

struct text hld_fit_text(const struct hld_fit *f, struct text t, bool *ret_cut)
{
	if (t.len <= f->cut)
		return t;
	if (ret_cut)
		*ret_cut = true;
	return text_cut(t, f->cut);
}
