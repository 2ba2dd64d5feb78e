/*
 * The files of the page. No browser may keep them: what is in a cache may be somebody else's, who
 * listened at our port while we were away.
 */
#include <errno.h>

#include "call/client.h"
#include "call/http.h"
#include "dialect/page/page.h"

/* A call's `opened`; in its arena. */
struct page_asset_asked {
	const struct page_asset *asset;
	bool worker;
};

static const char worker[] =
	"self.addEventListener('install', () => self.skipWaiting());\n"
	"self.addEventListener('activate', () => self.registration.unregister());\n";

static const struct page_asset *page_asset_find(struct text name)
{
	for (unsigned i = 0; i < page_n_assets; i++) {
		if (text_is(name, page_assets[i].name))
			return &page_assets[i];
	}
	return NULL;
}

static void page_asset_deliver(struct client *s, struct call *c)
{
	const struct page_asset_asked *a = c->opened;
	struct http_response response = {
		.status = 200,
		.extra = "Cache-Control: no-store\r\nContent-Encoding: gzip\r\n"
			 "Vary: Accept-Encoding\r\n"};

	if (s && a->worker) {
		response.content_type = "text/javascript; charset=utf-8";
		response.extra = "Cache-Control: no-store\r\n" PAGE_CLEAR;
		http_send_as(s, &response, worker, sizeof(worker) - 1);
		return;
	}
	if (!s)
		return;
	if (c->failed) {
		http_send_error(s, 404, "Cache-Control: no-store\r\n", "File not found.", c->route);
		return;
	}
	response.content_type = a->asset->type;
	http_send_as(s, &response, (const char *)a->asset->data, a->asset->len);
}

int page_asset_head(struct call *c, const struct http_request *r)
{
	struct page_asset_asked *a = arena_zalloc(&c->arena, sizeof(*a));

	if (!a)
		return -ENOMEM;
	c->opened = a;
	c->deliver = page_asset_deliver;
	a->asset = page_asset_find(c->path_name.data ? c->path_name : TEXT("index.html"));
	a->worker = page_is_worker(r);
	return 0;
}

struct done page_asset(struct call *c)
{
	const struct page_asset_asked *a = c->opened;

	if (!a->asset && !a->worker)
		return call_fail(c, refuse(&c->error, REFUSE_NOT_FOUND, "file not found"));
	return call_reply(c);
}
