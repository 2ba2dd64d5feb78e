/*
 * Limits a test program to the tests whose names contain $TEST_FUNCTION: ./dev test NAME:FUNCTION.
 */
#include "check.h"

__attribute__((constructor)) static void choose_tests(void)
{
	static char pattern[256];
	const char *part = getenv("TEST_FUNCTION");

	if (!part)
		return;
	snprintf(pattern, sizeof(pattern), "*%s*", part);
	cmocka_set_test_filter(pattern);
}
