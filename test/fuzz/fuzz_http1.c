/*
 * HTTP requests, whole and in pieces (see fuzz_framing.h); and the same bytes
 * as a header's value, for the checks that read one.
 */
#include "fuzz_framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1);
	struct text value = {exact, size};
	bool host;

	FEED_CHECK(exact);
	memcpy(exact, data, size);
	host = http_host_is_loopback(value);
	/* nothing that is a loopback host also has a scheme, a user or a second name */
	FEED_CHECK(!host || !memchr(exact, '/', size));
	FEED_CHECK(!host || !memchr(exact, '@', size));
	FEED_CHECK(!host || size <= sizeof("127.255.255.255:65535") - 1);
	FEED_CHECK(!host || !http_origin_is_loopback(value));
	http_has_token(value, "close");
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_value(data, size);
	fuzz_framing(&framing_http, data, size);
	return 0;
}
