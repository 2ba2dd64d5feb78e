/*
 * Every allocation of a turn fails in turn, once alone and once with all that follow. The
 * turn may be refused or fail, but it ends, leaks nothing, and the next one works.
 */
#include "check.h"

#include "failing/nomem.h"
#include "model_fixture.h"

typedef int (*new_fn)(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
		      struct error *error);

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
	if (make(f->loop, &f->opts, &f->agent, &f->error) != 0)
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

static void fail_each(struct fixture *f, new_fn make, bool all_after)
{
	bool ran_out = true;

	nomem_here_only = true; /* the provider's threads are none of ours */
	for (unsigned at = 1; ran_out; at++) {
		nomem_fail(at, all_after);
		one_turn(f, make);
		ran_out = nomem_failed();
		nomem_stop();
		assert_true(one_turn(f, make));
		assert_true(at < 2000);
	}
}

TEST_WITH(every_allocation_may_fail, setup, teardown)
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
