/*
 * The load generator: one thread that asks, checks every answer, and reads what
 * the server spent on them. Prints one line of JSON; anything but right answers
 * ends it with status 1.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "idle.h"

struct opts {
	struct client_opts client;
	enum framing framing;
	const char *form;
	bool is_10k;
	unsigned n_idle;
	int cpu; /* -1: wherever */
};

static const struct option names[] = {
	{"target", required_argument, NULL, 't'},      {"framing", required_argument, NULL, 'f'},
	{"connections", required_argument, NULL, 'c'}, {"inflight", required_argument, NULL, 'i'},
	{"requests", required_argument, NULL, 'n'},    {"seconds", required_argument, NULL, 's'},
	{"warmup", required_argument, NULL, 'w'},      {"timeout-ms", required_argument, NULL, 'm'},
	{"payload", required_argument, NULL, 'p'},     {"request", required_argument, NULL, 'r'},
	{"made", required_argument, NULL, 'd'},        {"made-from", required_argument, NULL, 'D'},
	{"answers", required_argument, NULL, 'a'},     {"notifications", no_argument, NULL, 'N'},
	{"pid", required_argument, NULL, 'P'},         {"idle", required_argument, NULL, 'I'},
	{"cpu", required_argument, NULL, 'C'},         {0},
};

static int usage(const char *self)
{
	fprintf(stderr,
		"usage: %s --target unix:PATH|tcp:HOST:PORT [--framing line|length|http|resp|gob]\n"
		"  [--connections N] [--inflight N] [--requests N | --seconds S] [--warmup S]\n"
		"  [--payload small|10k] [--request TEXT] [--answers checked|fixed]\n"
		"  [--notifications] [--made MEMORIES[,USERS,OWN]] [--made-from N]\n"
		"  [--pid PID,...] [--idle N] [--cpu N] [--timeout-ms N]\n"
		"In TEXT, $ID is the request's number, $CONNECTION its connection's, $SERIES one\n"
		"for each sixteen, $PAD about 10 KB of JSON, $TEXT a memory and $QUESTION a "
		"question\n"
		"about those of --made, from number N on. With gob it is what peer_gob form "
		"prints.\n",
		self);
	return 2;
}

static int number(const char *text, unsigned min, unsigned max, unsigned *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end != 0 || n < min || n > max)
		return -EINVAL;
	*ret = (unsigned)n;
	return 0;
}

static int seconds(const char *text, double *ret)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end != 0 || !(s >= 0 && s <= 3600))
		return -EINVAL;
	*ret = s;
	return 0;
}

/* One of two words: false for the first. */
static int word(const char *text, const char *no, const char *yes, bool *ret)
{
	*ret = strcmp(text, yes) == 0;
	return *ret || strcmp(text, no) == 0 ? 0 : -EINVAL;
}

static int take_option(struct opts *o, int name, const char *arg)
{
	unsigned n = 0;
	int r = 0;

	switch (name) {
	case 't':
		o->client.target = arg;
		return 0;
	case 'r':
		o->form = arg;
		return 0;
	case 'f':
		return framing_parse(arg, &o->framing);
	case 'c':
		return number(arg, 1, CONNECTIONS_MAX, &o->client.n_connections);
	case 'i':
		return number(arg, 1, INFLIGHT_MAX, &o->client.inflight);
	case 'n':
		r = number(arg, 1, 1000000000, &n);
		o->client.n_requests = n;
		return r;
	case 's':
		return seconds(arg, &o->client.seconds);
	case 'w':
		return seconds(arg, &o->client.warmup_seconds);
	case 'm':
		return number(arg, 1, 600000, &o->client.timeout_ms);
	case 'p':
		return word(arg, "small", "10k", &o->is_10k);
	case 'd':
		return made_set_parse(arg, &o->client.request->set);
	case 'D':
		r = number(arg, 0, UINT32_MAX, &n);
		o->client.request->n_made = n;
		return r;
	case 'a':
		return word(arg, "checked", "fixed", &o->client.fixed);
	case 'N':
		o->client.notifications = true;
		return 0;
	case 'P':
		return pids_parse(arg, &o->client.pids);
	case 'I':
		return number(arg, 1, 100000, &o->n_idle);
	case 'C':
		r = number(arg, 0, CPU_SETSIZE - 1, &n);
		o->cpu = (int)n;
		return r;
	}
	return -EINVAL;
}

static int pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) != 0 ? -errno : 0;
}

static void print_active(const struct client_result *res)
{
	double n = res->n_requests ? (double)res->n_requests : 1;

	printf("\"requests\":%llu,\"seconds\":%.6f,\"rate\":%.0f,\"p50_ns\":%llu,\"p99_ns\":%llu,"
	       "\"max_ns\":%llu,\"server_cpu_ns\":%.1f,\"client_cpu_ns\":%.1f",
	       (unsigned long long)res->n_requests, (double)res->wall_ns / 1e9,
	       n / ((double)res->wall_ns / 1e9),
	       (unsigned long long)hist_quantile(&res->latency, 0.5),
	       (unsigned long long)hist_quantile(&res->latency, 0.99),
	       (unsigned long long)res->latency.max, (double)res->server_cpu_ns / n,
	       (double)res->client_cpu_ns / n);
}

static int run_busy(const struct opts *o)
{
	static struct client_result res;
	uint64_t kib = 0;
	int r = client_run(&o->client, &res);

	if (r == 0)
		r = proc_own_kib(&o->client.pids, &kib);
	if (r != 0)
		return r;
	printf("{");
	print_active(&res);
	printf(",\"own_kib\":%llu}\n", (unsigned long long)kib);
	return 0;
}

static int run_idle(const struct opts *o)
{
	static struct idle_result res;
	int r = idle_run(&o->client, o->n_idle, &res);

	if (r != 0)
		return r;
	printf("{\"idle\":%u,\"kib_silent\":%.3f,\"kib_spoken\":%.3f,\"idle_cpu_ms\":%.3f,",
	       res.n_connections, res.kib_silent, res.kib_spoken, res.idle_cpu_ms);
	print_active(&res.active);
	printf("}\n");
	return 0;
}

int main(int argc, char **argv)
{
	static struct request request = {.set = {.n_memories = 1, .n_users = 1, .n_own = 1}};
	struct opts o = {
		.client = {.request = &request,
			   .n_connections = 1,
			   .inflight = 1,
			   .seconds = 0.6,
			   .warmup_seconds = 0.1,
			   .timeout_ms = 10000},
		.cpu = -1,
	};
	int c, r;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (take_option(&o, c, optarg) != 0)
			return usage(argv[0]);
	}
	if (!o.client.target || optind != argc)
		return usage(argv[0]);
	r = pin(o.cpu);
	if (r == 0)
		r = request_init(&request, o.framing, o.form, o.is_10k);
	if (r == 0)
		r = o.n_idle ? run_idle(&o) : run_busy(&o);
	request_done(&request);
	if (r != 0)
		fprintf(stderr, "load: %s: %s\n", o.client.target, strerror(-r));
	return r == 0 ? 0 : 1;
}
