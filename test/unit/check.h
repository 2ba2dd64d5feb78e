/* What every cmocka program here includes, in the order cmocka wants, and how it names its tests. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often something is tried: few times every day, all of them where there is time (./dev soak). */
static inline int rounds(int few, int all)
{
	return getenv("KOINE_SOAK") ? all : few;
}

/* ---- tests ---- */

/* A test, or what comes before and after tests. See run_tests.c. */
struct registered {
	const char *name;
	CMUnitTestFunction run;
	CMFixtureFunction set_up, tear_down;
	enum registered_as { A_TEST, A_TEST_IN_FIXTURE, A_FIXTURE, A_GROUP_FIXTURE } as;
	int line;
	struct registered *next;
};

void register_test(struct registered *test);

/* Runs all tests in the order of their lines. How many failed. The main of run_tests.c calls this. */
int run_all_tests(const char *group);

#define REGISTER(id, run, set_up, tear_down, as)                                                   \
	__attribute__((constructor)) static void register_##id(void)                               \
	{                                                                                          \
		static struct registered self = {#id, run, set_up, tear_down, as, __LINE__, NULL}; \
		register_test(&self);                                                              \
	}                                                                                          \
	struct registered

/* A test, with what it sets up and tears down itself. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
	static void name(void **state);                                                            \
	REGISTER(name, name, set_up, tear_down, A_TEST);                                           \
	static void name(void **state)

/* A test in the FIXTURE above it, if there is one. */
#define TEST(name)                                                                                 \
	static void name(void **state);                                                            \
	REGISTER(name, name, NULL, NULL, A_TEST_IN_FIXTURE);                                       \
	static void name(void **state)

/* Runs before and after each TEST that follows. */
#define FIXTURE(set_up, tear_down) REGISTER(fixture, NULL, set_up, tear_down, A_FIXTURE)

/* Runs before the first and after the last test of the program. */
#define GROUP_FIXTURE(set_up, tear_down) REGISTER(group, NULL, set_up, tear_down, A_GROUP_FIXTURE)
