/* koine call, koine ping. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/kit/cli.h"

int cmd_call(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	struct koine_answer *a = NULL;
	int r;

	if (cli->n_args == 0) {
		complain("call wants a method: koine call METHOD [key=value]...");
		return EX_USAGE;
	}
	talk_be_exact();
	r = params_parse(cli->args + 1, cli->n_args - 1, talk_is_gob(cli), &params);
	if (r == 0)
		r = talk_once(cli, cli->args[0], params, &a);
	if (r == 0)
		print_result(cli, koine_answer_result(a));
	koine_answer_free(a);
	return r;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_pong(const struct cli *cli, const struct koine_value *result, double ms)
{
	const struct koine_value *timestamp = koine_value_get(result, "timestamp");
	size_t len;
	const char *text = koine_value_text(timestamp, &len);

	printf("%s answered in %.3f ms", cli->address, ms);
	if (text) {
		fputs(", timestamp ", stdout);
		print_text(stdout, text, len);
	}
	fputc('\n', stdout);
}

/* The time is that of the call alone, without connecting. */
int cmd_ping(struct cli *cli)
{
	struct koine_client *c = NULL;
	struct koine_answer *a = NULL;
	double begin;
	int r;

	if (cli->n_args > 0) {
		complain("ping takes no arguments");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r != 0)
		return r;
	begin = now_ms();
	r = talk_call(c, "ping", NULL, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		print_pong(cli, koine_answer_result(a), now_ms() - begin);
	koine_answer_free(a);
	koine_client_free(c);
	return r;
}
