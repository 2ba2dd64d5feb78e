/* The names that the page is served by; see page.h. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "call/http.h"
#include "call/server.h"
#include "dialect/page/page.h"
#include "wire/http/http1.h"

static const char suffix[] = ".localhost";
static const char scheme[] = "https://";

static struct text without_port(struct text host)
{
	const char *colon = host.len > 0 ? memchr(host.data, ':', host.len) : NULL;

	if (colon)
		host.len = (size_t)(colon - host.data);
	return host;
}

/* "" or ":7770" */
static bool is_port(const char *t, size_t len)
{
	return len == 0 || (len > 1 && len < sizeof(":65535") && t[0] == ':' &&
			    strspn(t + 1, "0123456789") >= len - 1);
}

static bool page_origin_is_named(struct text host)
{
	struct text name = without_port(host);
	const size_t len = PAGE_LABEL_LEN + sizeof(suffix) - 1;

	return name.len == len && is_port(host.data + len, host.len - len) &&
	       strspn(name.data, "0123456789abcdef") == PAGE_LABEL_LEN &&
	       memcmp(name.data + PAGE_LABEL_LEN, suffix, sizeof(suffix) - 1) == 0;
}

bool page_is_behind(const struct page_settings *s, const struct http_request *r)
{
	return s->behind[0] && text_is_any_case(http_host(r), s->behind + strlen(scheme));
}

/* A request that names two hosts, as its target and in its header, names none. */
enum page_host page_host(const struct page_settings *s, const struct http_request *r)
{
	struct text host = http_host(r), header = http_header_find(r, "Host");

	if (header.data && !text_equal(host, header))
		return PAGE_FOREIGN;
	if (page_is_behind(s, r))
		return PAGE_BEHIND;
	if (page_origin_is_named(host))
		return PAGE_NAMED;
	return gate_host_is_loopback(r) ? PAGE_BARE : PAGE_FOREIGN;
}

int page_host_new(const struct endpoint *e, char out[PAGE_HOST_MAX])
{
	const char *port = strrchr(e->address, ':');
	char secret[PAGE_SECRET_LEN + 1];
	int r = page_secret(secret);

	if (r == 0)
		snprintf(out, PAGE_HOST_MAX, "%.*s%s%.8s", PAGE_LABEL_LEN, secret, suffix,
			 port ? port : "");
	return r;
}

static void digest_both(struct text host, struct text secret, char out[DIGEST_HEX_LEN + 1])
{
	char both[PAGE_HOST_MAX + PAGE_SECRET_LEN + 2];
	int n = snprintf(both, sizeof(both), "%.*s\n%.*s", TEXT_ARGS(host), TEXT_ARGS(secret));

	/* What is cut is no host of ours. */
	digest_hex((struct text) {.data = both,
				  .len = n < (int)sizeof(both) ? (size_t)n : sizeof(both) - 1},
		   out);
}

void page_link_digest(struct text host, struct text secret, char out[DIGEST_HEX_LEN + 1])
{
	digest_both(page_origin_is_named(host) ? without_port(host) : host, secret, out);
}

void page_secret_digest(struct text host, struct text secret, char out[DIGEST_HEX_LEN + 1])
{
	digest_both(host, secret, out);
}

/* ---- the other address of localhost ---- */

/* Bound, and never listening: connections to it are refused, and browsers go on to ours. */
static int page_origin_hold(bool v6, unsigned port)
{
	const struct sockaddr_in in4 = {.sin_family = AF_INET,
					.sin_port = htons((uint16_t)port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
					 .sin6_port = htons((uint16_t)port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *name =
		v6 ? (const struct sockaddr *)&in6 : (const struct sockaddr *)&in4;
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, name, v6 ? sizeof(in6) : sizeof(in4)) != 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* The last one that was held; koined has one page. */
static struct {
	unsigned port; /* 0: none */
	bool v6;
	int fd;
} held;

static unsigned port_of(const struct endpoint *e)
{
	const char *at = strrchr(e->address, ':');

	return at ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
}

static bool is_v6(const struct endpoint *e)
{
	return strchr(e->address, '[') != NULL;
}

/* The page is served at the other address, too. */
static bool page_origin_is_ours(const struct endpoint *e, bool v6, unsigned port)
{
	list_for_each (at, following, &e->server->endpoints) {
		const struct endpoint *other = list_entry(at, struct endpoint, link);

		if (other->dialect == e->dialect && is_v6(other) == v6 && port_of(other) == port)
			return true;
	}
	return false;
}

int page_held(void)
{
	return held.port ? held.fd : -1;
}

void page_take_held(const struct endpoint *e, int fd)
{
	if (fd < 0)
		return;
	held.port = port_of(e);
	held.v6 = !is_v6(e);
	held.fd = fd;
}

int page_hold_port(const struct endpoint *e, struct error *error)
{
	unsigned port = port_of(e);
	bool v6 = !is_v6(e);
	int fd;

	if ((held.port == port && held.v6 == v6) || page_origin_is_ours(e, v6, port))
		return 0;
	fd = page_origin_hold(v6, port);
	if (fd == -EADDRINUSE)
		return refuse(
			error, REFUSE_UNAVAILABLE,
			"another program uses the port of %s on localhost and could impersonate "
			"the page; set another port: [listen] page = http:127.0.0.1:PORT",
			e->address);
	/* Without the other protocol, no program can listen there. */
	if (fd < 0 && fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot reserve port %u of %s: %s", port,
			      v6 ? "::1" : "127.0.0.1", strerror(-fd));
	if (held.port)
		close(held.fd);
	held.port = fd >= 0 ? port : 0;
	held.v6 = v6;
	held.fd = fd;
	return 0;
}
