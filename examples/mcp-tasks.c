/*
 * Long-running tools: for clients that support tasks, a call becomes a task, and the client polls
 * its state and its result. The names are those that the official conformance suite requires.
 *
 *	cc mcp-tasks.c -o mcp-tasks $(pkg-config --cflags --libs koine)
 *	./mcp-tasks 8080       at http://127.0.0.1:8080/mcp
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <koine/koine.h>

static struct koine_server *server;

static void say(struct koine_call *call, const char *text)
{
	koine_mcp_text(call, text);
	koine_call_reply(call);
}

static const char *text_of(const struct koine_value *v, char *out, size_t size)
{
	size_t len = 0;
	const char *text = koine_value_text(v, &len);

	snprintf(out, size, "%.*s", (int)len, text ? text : "");
	return out;
}

/* ---- work that ends by itself ---- */

struct job {
	struct koine_call *call;
	void (*end)(struct koine_call *call);
	int cancelled;
};

static void job_over(void *arg)
{
	struct job *job = (struct job *)arg;

	/* A cancelled one was answered already. */
	if (!job->cancelled)
		job->end(job->call);
	free(job);
}

static void job_cancelled(struct koine_call *call, void *arg)
{
	((struct job *)arg)->cancelled = 1;
	koine_mcp_refuse(call, "Cancelled.");
}

static void begin_job(struct koine_call *call, uint32_t ms, void (*end)(struct koine_call *call))
{
	struct job *job = (struct job *)calloc(1, sizeof(*job));

	if (!job) {
		koine_mcp_refuse(call, "There is no memory for it.");
		return;
	}
	job->call = call;
	job->end = end;
	koine_call_later(call, job_cancelled, job);
	koine_mcp_task(call);
	koine_server_after(server, ms, job_over, job);
}

static void end_compute(struct koine_call *call)
{
	say(call, "Computed.");
}

static void slow_compute(struct koine_call *call, void *arg)
{
	double seconds = 0;

	(void)arg;
	koine_value_double(koine_call_param(call, "seconds"), &seconds);
	if (seconds <= 0)
		end_compute(call);
	else
		begin_job(call, (uint32_t)(seconds * 1000), end_compute);
}

static void end_failing(struct koine_call *call)
{
	koine_mcp_refuse(call, "This job always fails.");
}

static void failing_job(struct koine_call *call, void *arg)
{
	(void)arg;
	begin_job(call, 300, end_failing);
}

static void end_protocol_error(struct koine_call *call)
{
	koine_call_fail(call, -32603, "The server lost it", NULL);
}

static void protocol_error_job(struct koine_call *call, void *arg)
{
	(void)arg;
	begin_job(call, 100, end_protocol_error);
}

static void greet(struct koine_call *call, void *arg)
{
	char text[300];
	char name[200];

	(void)arg;
	snprintf(text, sizeof(text), "Hello, %s!",
		 text_of(koine_call_param(call, "name"), name, sizeof(name)));
	say(call, text);
}

/* ---- work that asks ---- */

static const struct koine_field confirm = {"confirm", KOINE_TYPE_BOOL, true, "Shall it go?"};

static void confirm_delete(struct koine_call *call, void *arg)
{
	const struct koine_value *answer;

	(void)arg;
	koine_mcp_task(call);
	answer = koine_mcp_elicit(call, "confirm", "Really delete it?", &confirm, 1);
	if (answer)
		say(call, "Deleted.");
	else
		koine_mcp_wait(call);
}

static void multi_input(struct koine_call *call, void *arg)
{
	const struct koine_value *one;
	const struct koine_value *two;

	(void)arg;
	koine_mcp_task(call);
	one = koine_mcp_elicit(call, "first", "The first?", &confirm, 1);
	two = koine_mcp_elicit(call, "second", "The second?", &confirm, 1);
	if (one && two)
		say(call, "Both are here.");
	else
		koine_mcp_wait(call);
}

/* Asks first, as part of the request, and becomes a task when it knows enough. */
static void ask_then_work(struct koine_call *call, void *arg)
{
	const struct koine_field name = {"name", KOINE_TYPE_STRING, true, NULL};
	const struct koine_value *answer =
		koine_mcp_elicit(call, "user_name", "What is your name?", &name, 1);
	char text[300];
	char said[200];

	(void)arg;
	if (!answer) {
		koine_mcp_wait(call);
		return;
	}
	koine_mcp_task(call);
	snprintf(text, sizeof(text), "Worked for %s.",
		 text_of(koine_value_get(koine_value_get(answer, "content"), "name"), said,
			 sizeof(said)));
	say(call, text);
}

static const struct koine_field name_field[] = {{"name", KOINE_TYPE_STRING, true, "Whom"}};
static const struct koine_field compute_fields[] = {
	{"seconds", KOINE_TYPE_NUMBER, true, "How long"},
	{"label", KOINE_TYPE_STRING, false, "What for"}};
static const struct koine_field file_field[] = {{"filename", KOINE_TYPE_STRING, true, "Which"}};

static const struct koine_tool tools[] = {
	{"greet", greet, NULL, name_field, 1, "Greets at once", NULL, 0, NULL, NULL},
	{"slow_compute", slow_compute, NULL, compute_fields, 2, "Computes for a while", NULL, 0,
	 NULL, NULL},
	{"failing_job", failing_job, NULL, NULL, 0, "Fails after a while", NULL,
	 KOINE_TOOL_TASK_ONLY, NULL, NULL},
	{"protocol_error_job", protocol_error_job, NULL, NULL, 0, "Ends with an error", NULL, 0,
	 NULL, NULL},
	{"confirm_delete", confirm_delete, NULL, file_field, 1, "Asks before it deletes", NULL, 0,
	 NULL, NULL},
	{"multi_input", multi_input, NULL, NULL, 0, "Asks two things at once", NULL, 0, NULL, NULL},
	{"test_tool_with_task", ask_then_work, NULL, NULL, 0, "Asks, then works", NULL,
	 KOINE_TOOL_TASK_ONLY, NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct koine_mcp_info info = {"mcp-tasks",     "1.0", NULL, NULL,
					    KOINE_MCP_TASKS, 0,     0,    NULL};
	struct koine_mcp *mcp = NULL;
	char address[100];
	char bound[200];
	int r = argc == 2 ? 0 : 2;

	snprintf(address, sizeof(address), "http:127.0.0.1:%s", argc == 2 ? argv[1] : "");
	r = r || koine_server_new(&server) || koine_mcp_new(server, &info, &mcp);
	for (size_t i = 0; r == 0 && i < sizeof(tools) / sizeof(tools[0]); i++)
		r = koine_mcp_add_tool(mcp, &tools[i]);
	r = r || koine_mcp_listen(mcp, address, NULL, bound, sizeof(bound));
	if (r == 0) {
		printf("ready %s\n", bound);
		fflush(stdout);
		koine_server_run(server);
	} else {
		fprintf(stderr, "mcp-tasks: %s\n",
			server ? koine_server_error(server) : "usage: mcp-tasks PORT");
	}
	koine_server_free(server);
	return r != 0;
}
