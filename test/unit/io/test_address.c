/* Addresses: text in, struct out, and what must never be listened on. */

#include "check.h"

#include "base/unix_name.h"
#include "io/listener.h"

static void expect_same(const char *text)
{
	char out[ADDRESS_TEXT_MAX];
	struct address a;
	struct error error = {0};

	assert_int_equal(address_parse(text, &a, &error), 0);
	address_format(&a, out);
	assert_string_equal(out, text);
}

TEST(addresses_survive_parse_and_format)
{
	expect_same("unix:/run/ash/rpc.sock");
	expect_same("unix:relative.sock");
	expect_same("unix:/odd:name with spaces");
	expect_same("tcp:127.0.0.1:0");
	expect_same("http:127.0.0.1:8765");
	expect_same("http:localhost:65535");
	expect_same("http:127.255.255.254:1");
	expect_same("tcp:[::1]:4000");
}

TEST(parse_fills_kind_host_and_port)
{
	struct address a;
	struct error error;

	assert_int_equal(address_parse("http:[::1]:8765", &a, &error), 0);
	assert_int_equal(a.kind, ADDRESS_HTTP);
	assert_string_equal(a.host, "::1");
	assert_int_equal(a.port, 8765);
	assert_int_equal(address_parse("unix:/a/b", &a, &error), 0);
	assert_int_equal(a.kind, ADDRESS_UNIX);
	assert_string_equal(a.path, "/a/b");
}

TEST(refuses_every_host_that_is_not_loopback)
{
	static const char *const hosts[] = {
		"0.0.0.0",     "10.0.0.1",   "192.168.1.1", "128.0.0.1",        "126.255.255.255",
		"example.com", "127.1",      "0x7f.0.0.1",  "127.0.0.1.evil",   "localhost.evil",
		"2130706433",  "127.0.0.01", "::",          "::ffff:127.0.0.1", "fe80::1",
		"*",           " localhost", "a.local",     "169.254.169.254",  "localhost.",
	};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char text[100], expected[200];
		struct error error = {0};
		struct address a = {.port = 7};

		snprintf(expected, sizeof(expected),
			 "refusing to listen on %s: only loopback addresses "
			 "(127.0.0.1, localhost, ::1) are allowed",
			 hosts[i]);
		snprintf(text, sizeof(text), strchr(hosts[i], ':') ? "http:[%s]:80" : "http:%s:80",
			 hosts[i]);
		assert_int_equal(address_parse(text, &a, &error), REFUSE_FORBIDDEN);
		assert_string_equal(error.text, expected);
		assert_int_equal(a.port, 7);
	}
}

TEST(refuses_no_host_as_every_host)
{
	struct error error = {0};
	struct address a;

	assert_int_equal(address_parse("http::8765", &a, &error), REFUSE_FORBIDDEN);
	assert_non_null(strstr(error.text, "refusing to listen on :8765"));
	assert_int_equal(address_parse("tcp:[]:1", &a, &error), REFUSE_FORBIDDEN);
	assert_int_equal(address_parse("tcp:[127.0.0.1]:1", &a, &error), REFUSE_FORBIDDEN);
}

TEST(refuses_malformed_addresses)
{
	static const char *const texts[] = {
		"",
		"/run/x.sock",
		"unix:",
		"unix:/run/",
		"tcp:127.0.0.1",
		"tcp:127.0.0.1:",
		"tcp:127.0.0.1:65536",
		"tcp:127.0.0.1:99999999999999999999",
		"tcp:127.0.0.1:-1",
		"tcp:127.0.0.1:+1",
		"tcp:127.0.0.1: 1",
		"tcp:127.0.0.1:80x",
		"udp:127.0.0.1:80",
		"UNIX:/x",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = {0};
		struct address a;

		assert_int_equal(address_parse(texts[i], &a, &error), REFUSE_PARAMS);
		assert_true(error.text[0] != '\0');
	}
}

TEST(refuses_a_path_over_the_limit_and_takes_one_at_it)
{
	char text[2 * UNIX_PATH_MAX] = "unix:/";
	struct error error = {0};
	struct address a;

	memset(text + 6, 'p', UNIX_PATH_MAX - 1);
	text[5 + UNIX_PATH_MAX - UNIX_LAST_MAX - 1] = '/';
	assert_int_equal(address_parse(text, &a, &error), 0);
	assert_int_equal(strlen(a.path), UNIX_PATH_MAX);
	memmove(text + 6, text + 5, UNIX_PATH_MAX + 1);
	assert_int_equal(address_parse(text, &a, &error), REFUSE_TOO_LARGE);
	assert_non_null(strstr(error.text, "too long (511 bytes, limit 510): //ppp"));
}

TEST(refuses_a_last_part_that_no_socket_of_a_long_path_has)
{
	char text[200] = "unix:/";
	struct error error = {0};
	struct address a;

	memset(text + 6, 'p', UNIX_NAME_MAX - 1);
	assert_int_equal(address_parse(text, &a, &error), 0);
	strcat(text, "q");
	assert_int_equal(address_parse(text, &a, &error), REFUSE_TOO_LARGE);
	assert_non_null(
		strstr(error.text, "shorten the path to 107 bytes, or its file name to 82"));
	assert_non_null(strstr(error.text, text + 5));
	text[5 + 108 - UNIX_LAST_MAX - 2] = '/';
	assert_int_equal(address_parse(text, &a, &error), REFUSE_TOO_LARGE);
	text[5 + 108 - UNIX_LAST_MAX - 1] = '/';
	assert_int_equal(address_parse(text, &a, &error), 0);
}

TEST(refuses_a_host_longer_than_any_field)
{
	char text[2000] = "http:";
	struct error error = {0};
	struct address a;

	memset(text + 5, '1', 1900);
	strcat(text, ":80");
	assert_int_equal(address_parse(text, &a, &error), REFUSE_FORBIDDEN);
	assert_non_null(strstr(error.text, "are allowed"));
}
