/*
 * The tests of a program: those that its file defines with TEST (check.h). $TEST_FUNCTION limits
 * them to the tests whose names contain it: ./dev test NAME:FUNCTION.
 */
#include "check.h"

enum { TESTS_MAX = 256 };

/* By line: constructors have no order. */
static struct registered *first;

void register_test(struct registered *test)
{
	struct registered **at = &first;

	while (*at && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

static void choose_tests(void)
{
	static char pattern[256];
	const char *part = getenv("TEST_FUNCTION");

	if (!part)
		return;
	snprintf(pattern, sizeof(pattern), "*%s*", part);
	cmocka_set_test_filter(pattern);
}

int run_all_tests(const char *group)
{
	static const struct registered none;
	const struct registered *fixture = &none, *all = &none;
	struct CMUnitTest tests[TESTS_MAX];
	size_t n = 0;

	choose_tests();
	for (const struct registered *r = first; r; r = r->next) {
		const struct registered *with = r->as == A_TEST ? r : fixture;

		if (r->as == A_FIXTURE)
			fixture = r;
		if (r->as == A_GROUP_FIXTURE)
			all = r;
		if (!r->run)
			continue;
		if (n == TESTS_MAX)
			abort();
		tests[n++] =
			(struct CMUnitTest) {r->name, r->run, with->set_up, with->tear_down, NULL};
	}
	return _cmocka_run_group_tests(group, tests, n, all->set_up, all->tear_down);
}

__attribute__((weak)) int main(void)
{
	return run_all_tests("tests");
}
