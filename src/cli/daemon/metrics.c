/* koine metrics: what the daemon counts, for Prometheus; or as a file for its node exporter. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

struct metrics_options {
	bool openmetrics;
	const char *textfile; /* NULL: stdout */
};

/* The exporter is somebody else, and never finds half of a file. */
static int write_file(const char *path, struct text text)
{
	int r = file_replace(path, 0644, text.data, text.len);

	if (r == 0)
		return 0;
	complain("cannot write %s: %s", path, strerror(-r));
	return EX_CANTCREAT;
}

static int print_all(struct text text)
{
	if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		return EX_IOERR;
	return 0;
}

static int cmd_metrics(struct cli *cli)
{
	const struct metrics_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *result;
	struct text text;
	int r = call_with(cli, "daemon.metrics", "format",
			  o->openmetrics ? "openmetrics" : "prometheus", &a);

	if (r != 0)
		return r;
	result = koine_answer_result(a);
	if (cli->options.json && !o->textfile)
		return call_print_result(cli, a, NULL, NULL);
	text = member_string(result, "text");
	if (!text.data) {
		complain("the response contains no metrics");
		return EX_PROTOCOL;
	}
	return o->textfile ? write_file(o->textfile, text) : print_all(text);
}

#define AT(member) OPTION_AT(struct metrics_options, member)

static const struct option metrics_options[] = {
	{"--openmetrics", NULL, NULL, "use the OpenMetrics format instead of the Prometheus format",
	 option_flag, AT(openmetrics)},
	{"--textfile", NULL, "FILE", "write to FILE, replacing it atomically (mode 0644)",
	 option_text, AT(textfile)},
	{NULL},
};

const struct command metrics_commands[] = {
	{"metrics", "", "Print metrics for Prometheus",
	 "Prints the same metrics as GET /metrics. Use --textfile with the textfile collector of "
	 "Prometheus's node exporter.\n",
	 cmd_metrics, NULL, metrics_options, sizeof(struct metrics_options), NO_ARGS,
	 .examples = {"koine metrics",
		      "koine metrics --textfile /var/lib/prometheus/node-exporter/koine.prom"}},
	{NULL},
};
