#include "agent/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 32 }; /* the longest usual path, with /v1 */

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s);
	size_t m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static int no_url(const char *what, struct error *error)
{
	return refuse(error, REFUSE_PARAMS,
		      "invalid %s URL: expected http://HOST[:PORT][/PATH], https://… or unix:PATH",
		      what);
}

static int parse_unix(const char *path, const char *what, const char *usual, struct endpoint *ret,
		      struct error *error)
{
	if (path[0] != '/' || strlen(path) >= ENDPOINT_SOCKET_MAX)
		return no_url(what, error);
	snprintf(ret->socket, sizeof(ret->socket), "%s", path);
	snprintf(ret->url, sizeof(ret->url), "http://localhost/v1%s", usual);
	return 0;
}

int endpoint_parse(const char *url, const char *what, const char *usual,
		   struct endpoint *ret_endpoint, struct error *error)
{
	const char *host = starts_with(url, "http://")    ? url + 7
			   : starts_with(url, "https://") ? url + 8
							  : NULL;
	size_t len = strlen(url);
	const char *path;
	const char *version;

	if (starts_with(url, "unix:"))
		return parse_unix(url + 5, what, usual, ret_endpoint, error);
	if (!host || host[0] == '\0' || host[0] == '/' || strpbrk(url, " \t\r\n\"<>#?@") ||
	    len + PATH_ROOM > ENDPOINT_URL_MAX)
		return no_url(what, error);
	path = strchr(host, '/');
	if (!path)
		version = "/v1";
	else if (path[1] == '\0')
		version = "v1";
	else
		version = "";
	/* "/v1/" is "/v1" with the slash that people put after a folder. */
	if (path && ends_with(path, "/v1/"))
		len--;
	else if (path && path[1] && !ends_with(path, "/v1"))
		usual = "";
	snprintf(ret_endpoint->url, sizeof(ret_endpoint->url), "%.*s%s%s", (int)len, url, version,
		 usual);
	ret_endpoint->socket[0] = '\0';
	return 0;
}

void endpoint_beside(const struct endpoint *e, const char *usual, const char *other,
		     struct endpoint *ret_endpoint)
{
	size_t keep = strlen(e->url);

	*ret_endpoint = *e;
	if (!ends_with(e->url, usual))
		return;
	keep -= strlen(usual);
	snprintf(ret_endpoint->url + keep, sizeof(ret_endpoint->url) - keep, "%s", other);
}

void secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

bool endpoint_key_fits(const char *key)
{
	for (const char *p = key; *p; p++) {
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
			return false;
	}
	return true;
}
