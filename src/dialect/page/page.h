/*
 * The page: koine in a browser. Its files are part of the program (web/), its calls are koine's own
 * over HTTP, and what happens comes by one stream of events.
 *
 * A browser is let in by a link that somebody at the machine has made (link.c, enter.c), and shows a
 * cookie from then on (gate.c). Who has none is told how to get one, and nothing else.
 */
#pragma once

#include "call/call.h"
#include "call/dialect.h"
#include "wire/crypto.h"

extern const struct dialect page_dialect;

struct client;
struct gate_refusal;
struct http_request;
struct http_response;
struct route_found;

struct page_settings {
	char behind[256]; /* "https://HOST": a proxy that we are served by; "": none */
	unsigned keep_days;
};

enum {
	PAGE_SECRET_LEN = 64,
	PAGE_COOKIE_NAME_MAX = 32,
	PAGE_LABEL_LEN = 32, /* of the name before ".localhost" */
	PAGE_HOST_MAX = 300,
};

/* For an origin that somebody else has served before: its workers, caches and documents end. */
#define PAGE_CLEAR "Clear-Site-Data: \"cache\", \"storage\", \"executionContexts\"\r\n"

/* What every answer says of how it may be used. */
#define PAGE_HEADERS(sources, forms, referrer)                                                     \
	"Content-Security-Policy: default-src 'none'; " sources "frame-ancestors 'none'; "         \
	"base-uri 'none'; form-action " forms "\r\n"                                               \
	"X-Content-Type-Options: nosniff\r\nReferrer-Policy: " referrer "\r\n"                     \
	"Cross-Origin-Opener-Policy: same-origin\r\n"                                              \
	"Cross-Origin-Resource-Policy: same-origin\r\n"

/* As text in a document. */
void page_add_escaped(struct buf *out, struct text t);

/* 32 random bytes as hexadecimal digits, with a NUL. */
int page_secret(char out[PAGE_SECRET_LEN + 1]);

/* ---- origin.c ---- */

/*
 * Whoever listens at our port while we are away can leave a worker or a cached file in the browser,
 * which then controls our page. So each link has an origin of its own that nobody could prepare:
 * a random name below localhost, which browsers resolve to this machine. The link and the cookie
 * count only at that name: their digests include it.
 */
enum page_host {
	PAGE_FOREIGN, /* a name that leads here by somebody else's will */
	PAGE_BARE,    /* localhost itself or a loopback address: lets nobody in */
	PAGE_NAMED,   /* LABEL.localhost */
	PAGE_BEHIND,  /* the proxy of the settings */
};
enum page_host page_host(const struct page_settings *s, const struct http_request *r);

/* "LABEL.localhost:PORT", with a label that was never used. */
int page_host_new(const struct endpoint *e, char out[PAGE_HOST_MAX]);

/* Of a link's secret, which counts at any port of its name: ssh -L may use another one. */
void page_link_digest(struct text host, struct text secret, char out[DIGEST_HEX_LEN + 1]);
/* Of a cookie's. */
void page_secret_digest(struct text host, struct text secret, char out[DIGEST_HEX_LEN + 1]);

/* Browsers try both addresses of localhost. Keeps others from listening at the one that we do not
 * listen at, and refuses if it cannot. error may be NULL. */
int page_hold_port(const struct endpoint *e, struct error *error);
/* The descriptor of it, which stays ours, or -1; and in the next koined, which owns it then. */
int page_held(void);
void page_take_held(const struct endpoint *e, int fd);

/* ---- gate.c ---- */

bool page_gate(const struct client *s, const struct http_request *r,
	       const struct route_found *found, struct gate_refusal *ret);
/* Whether the request came through the proxy of the settings. */
bool page_is_behind(const struct page_settings *s, const struct http_request *r);
bool page_is_worker(const struct http_request *r);
/* The cookie's name: browsers send those of one port to every port of a host. */
void page_cookie_name(const struct endpoint *e, bool behind, char out[PAGE_COOKIE_NAME_MAX]);
/* The digest of the cookie that a request shows. False: there is none. */
bool page_cookie_digest(const struct endpoint *e, const struct http_request *r,
			char out[DIGEST_HEX_LEN + 1]);
int64_t page_uid(const struct peer *peer);
int64_t page_keep_ms(const struct page_settings *s);

/* ---- link.c: methods of koine's own dialect ---- */

enum { PAGE_METHODS = 3 };
extern const struct method page_methods[PAGE_METHODS];

/* Where the page is served; NULL: nowhere. */
const struct endpoint *page_listener(const struct server *s);

/* "https://HOST" of the proxy, or an origin of the listener's that was never used. False: nobody
 * listens. */
bool page_base(const struct server *s, char *out, size_t size);

/* ---- handover.c ---- */

/* -1: none */
struct page_handover {
	int sessions;
	int held; /* see page_hold_port */
};

/* Before the sockets are closed for a restart; the caller closes `sessions`. And after the next koined
 * has opened its own; takes both. */
void page_hand_over(const struct server *s, struct page_handover *ret);
void page_take_over(const struct server *s, const struct page_handover *from);

/* ---- enter.c ---- */

struct page_link_in {
	struct text link;
	struct text token;
};

int page_enter_head(struct call *c, const struct http_request *r);
struct done page_enter(struct call *c);

/* ---- answer.c: links that decide ---- */

int page_answer_head(struct call *c, const struct http_request *r);
struct done page_answer_look(struct call *c);
struct done page_answer_use(struct call *c);

/* ---- asset.c: its files ---- */

struct page_asset {
	const char *name;
	const char *type;
	const unsigned char *data; /* compressed */
	size_t len;
};

/* Made from web/ by embed.py. */
extern const struct page_asset page_assets[];
extern const unsigned page_n_assets;

int page_asset_head(struct call *c, const struct http_request *r);
struct done page_asset(struct call *c);

/* ---- stream.c: what happens, as it happens ---- */

struct page_events_in {
	int64_t since;
};

int page_events_head(struct call *c, const struct http_request *r);
struct done page_events(struct call *c);
/* Ends the streams of a page session. */
void page_streams_end(struct server *s, struct text page_session);
/* An endpoint's list of them. */
int page_streams_new(struct arena *a, struct endpoint *e);
