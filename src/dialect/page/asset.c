/*
 * The files of the page. Each is asked for again whenever the page is opened (no-cache), and its tag
 * says whether it has changed: a new koined is a new page at once.
 */
#include <errno.h>
#include <stdio.h>

#include "call/client.h"
#include "call/http_answer.h"
#include "call/http_route.h"
#include "dialect/page/page.h"

/* A call's `opened`; in its arena. */
struct asked {
	const struct page_asset *asset;
	bool known; /* the browser has it */
};

static const struct page_asset *find(struct text name)
{
	for (unsigned i = 0; i < page_n_assets; i++) {
		if (text_is(name, page_assets[i].name))
			return &page_assets[i];
	}
	return NULL;
}

static void deliver(struct client *s, struct call *c)
{
	const struct asked *a = c->opened;
	char extra[200];
	struct http_response response = {.status = a->known ? 304 : 200, .extra = extra};

	if (!s)
		return;
	if (c->failed) {
		http_send_error(s, 404, "Cache-Control: no-store\r\n", "There is no such file.",
				c->route);
		return;
	}
	response.content_type = a->asset->type;
	response.head_only = a->known;
	snprintf(extra, sizeof(extra),
		 "Cache-Control: no-cache\r\nETag: %s\r\nContent-Encoding: gzip\r\n"
		 "Vary: Accept-Encoding\r\n",
		 a->asset->etag);
	http_send_as(s, &response, (const char *)a->asset->data, a->asset->len);
}

/* "*", or one of a list of tags, which may be called weak. */
static bool names_tag(struct text header, const char *tag)
{
	struct text one;

	while (text_next(&header, ',', &one)) {
		while (one.len > 0 && one.data[0] == ' ') {
			one.data++;
			one.len--;
		}
		while (one.len > 0 && one.data[one.len - 1] == ' ')
			one.len--;
		if (one.len > 2 && one.data[0] == 'W' && one.data[1] == '/') {
			one.data += 2;
			one.len -= 2;
		}
		if (text_is(one, "*") || text_is(one, tag))
			return true;
	}
	return false;
}

int page_asset_head(struct call *c, const struct http_request *r)
{
	struct asked *a = arena_zalloc(&c->arena, sizeof(*a));

	if (!a)
		return -ENOMEM;
	c->opened = a;
	c->deliver = deliver;
	a->asset = find(c->path_name.data ? c->path_name : TEXT("index.html"));
	a->known = a->asset && names_tag(http_header_find(r, "If-None-Match"), a->asset->etag);
	return 0;
}

struct done page_asset(struct call *c)
{
	const struct asked *a = c->opened;

	if (!a->asset)
		return call_fail(c, refuse(&c->why, REFUSE_NOT_FOUND, "there is no such file"));
	return call_reply(c);
}
