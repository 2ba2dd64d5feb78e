/*
 * Every allocation of a turn fails in turn, once alone and once with all that follow. The
 * turn may be refused or fail, but it ends, leaks nothing, and the next one works.
 */
#include "check.h"

#include "model_fixture.h"

static long fail_at; /* 0: never */
static long n_allocations;
static bool all_after;
static _Thread_local bool watched; /* the provider's threads are none of ours */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static bool shall_fail(void)
{
	if (!watched || fail_at == 0)
		return false;
	n_allocations++;
	return all_after ? n_allocations >= fail_at : n_allocations == fail_at;
}

void *__wrap_malloc(size_t n)
{
	return shall_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return shall_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return shall_fail() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return shall_fail() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return shall_fail() ? NULL : __real_strndup(s, n);
}

typedef int (*new_fn)(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
		      struct why *why);

static const char openai_answer[] =
	"data: {\"choices\":[{\"delta\":{\"content\":\"a \\\"quoted\\\" word\"}}]}\n\n"
	"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":"
	"{\"name\":\"one\",\"arguments\":\"{}\"}}]}}]}\n\n"
	"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
	"data: [DONE]\n\n";

static const char anthropic_answer[] =
	"{\"content\":[{\"type\":\"text\",\"text\":\"whole\"},{\"type\":\"tool_use\",\"id\":\"i\","
	"\"name\":\"one\",\"input\":{\"a\":1}}],\"stop_reason\":\"tool_use\"}";

/* True when it went well to its end. */
static bool one_turn(struct fixture *f, new_fn make)
{
	bool good = false;

	f->end.done = false;
	f->n_calls = 0;
	f->text_len = 0;
	if (make(f->loop, &f->opts, &f->agent, &f->why) != 0)
		return false;
	if (start(f, hello()) == 0) {
		run(f);
		assert_true(f->end.done);
		good = f->end.outcome == AGENT_CALLS;
		assert_true(good || f->end.outcome == AGENT_FAILED);
	}
	f->probed = true;
	if (f->agent->ops->probe(f->agent, on_health, f) == 0) {
		f->probed = false;
		run(f);
		assert_true(f->probed);
	}
	agent_free(f->agent);
	f->agent = NULL;
	return good && f->n_calls == 1;
}

static void fail_each(struct fixture *f, new_fn make, bool and_all_after)
{
	bool ran_out = true;

	all_after = and_all_after;
	for (long at = 1; ran_out; at++) {
		fail_at = at;
		n_allocations = 0;
		watched = true;
		one_turn(f, make);
		watched = false;
		ran_out = n_allocations >= at;
		fail_at = 0;
		assert_true(one_turn(f, make));
		assert_true(at < 2000);
	}
}

static void every_allocation_may_fail(void **state)
{
	struct fixture *f = *state;

	f->opts.key.command = "echo a-key";
	script(f, (struct step) {.body = openai_answer, .piece = 50});
	fail_each(f, openai_new, false);
	fail_each(f, openai_new, true);
	setenv("TEST_MODEL_KEY", "a-key", 1);
	f->opts.key = (struct model_key) {.environment = "TEST_MODEL_KEY"};
	afresh(f);
	script(f, (struct step) {.body = anthropic_answer, .piece = 50});
	fail_each(f, anthropic_new, false);
	fail_each(f, anthropic_new, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
