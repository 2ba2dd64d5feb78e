/* koine project: which are served, what their files would do, and trusting them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/kit/glyph.h"
#include "cli/task/task.h"

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

/* ---- calling ---- */

/* This one without an argument. */
static int folder_of(const struct cli *cli, char folder[PATH_MAX])
{
	const char *named = cli->n_args > 0 ? cli->args[0] : ".";

	if (cli->n_args > 1) {
		complain("project %s wants one DIR, or none", cli->sub->name);
		return EX_USAGE;
	}
	if (realpath(named, folder))
		return 0;
	complain("%s: %s", named, strerror(errno));
	return EX_NOINPUT;
}

static struct koine_json *begin_params(const char *key, const char *value)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0)
		return NULL;
	koine_json_begin_object(j);
	if (key) {
		koine_json_key(j, key);
		koine_json_string(j, value);
	}
	return j;
}

static int send_params(struct cli *cli, const char *method, struct koine_json *j,
		       struct koine_answer **ret)
{
	const char *text;
	int r;

	if (!j)
		return out_of_memory();
	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	r = text ? talk_once(cli, method, text, ret) : out_of_memory();
	koine_json_free(j);
	return r;
}

static int ask(struct cli *cli, const char *method, const char *key, const char *value,
	       struct koine_answer **ret)
{
	return send_params(cli, method, begin_params(key, value), ret);
}

/* ---- the list ---- */

static int print_list(const struct cli *cli, const struct koine_value *projects)
{
	static const char *const members[] = {"state", "rules", "watches",
					      "jobs",  "held",  "folder"};
	static const char *const heads[] = {"STATE", "RULES", "WATCHES", "JOBS", "HELD", "PROJECT"};
	CLEANUP(table_freep) struct table *t = table_new("lrrrrl");
	const struct koine_value *p = koine_value_first(projects);

	if (!t)
		return out_of_memory();
	if (!p) {
		puts("No project is served. koined --project DIR serves one.");
		return 0;
	}
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell_str(t, heads[i]);
	for (; p; p = koine_value_next(p)) {
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
			table_cell_value(t, koine_value_get(p, members[i]));
	}
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

int cmd_projects(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	if (cli->n_args > 0) {
		complain("project list takes no arguments");
		return EX_USAGE;
	}
	r = ask(cli, "project.list", NULL, NULL, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_value_get(koine_answer_result(a), "projects"));
	else if (r == 0)
		r = print_list(cli, koine_value_get(koine_answer_result(a), "projects"));
	return r;
}

/* ---- what one would do ---- */

/* On a line of its own, so that no text can pass for another line. */
static void print_value(const char *before, const struct koine_value *v)
{
	struct koine_json *j = NULL;
	struct text t = {0};

	fputs(before, stdout);
	t.data = koine_value_text(v, &t.len);
	if (!t.data && koine_json_new(&j) == 0) {
		koine_json_value(j, v);
		t.data = koine_json_text(j, &t.len);
	}
	print_exact(stdout, t.data ? t : TEXT("?"));
	fputc('\n', stdout);
	koine_json_free(j);
}

/* "  type: memory.added", a line for each of its members. */
static void print_members(const char *title, const struct koine_value *object)
{
	printf("  %s\n", title);
	for (const struct koine_value *v = koine_value_first(object); v; v = koine_value_next(v)) {
		struct text key = {0};

		key.data = koine_value_key(v, &key.len);
		fputs("    ", stdout);
		print_exact(stdout, key);
		print_value(": ", v);
	}
}

static void print_rules(const struct koine_value *rules)
{
	for (const struct koine_value *r = koine_value_first(rules); r; r = koine_value_next(r)) {
		bool forbidden = false;

		print_value("rule ", koine_value_get(r, "rule"));
		print_members("when", koine_value_get(r, "trigger"));
		print_members("does", koine_value_get(r, "action"));
		if (koine_value_bool(koine_value_get(r, "forbidden"), &forbidden) && forbidden)
			puts("  but may not: project.webhooks of koine.conf does not allow it");
	}
}

/* All of its prompt: what is cut off may be what matters. */
static int print_task(struct cli *cli, const char *folder, const struct koine_value *id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = begin_params("project", folder);
	size_t len = 0;
	const char *text = koine_value_text(id, &len);
	char name[TASK_ID_MAX];
	int r;

	if (!j)
		return out_of_memory();
	snprintf(name, sizeof(name), "%.*s", (int)len, text ? text : "");
	koine_json_key(j, "id");
	koine_json_string(j, name);
	r = send_params(cli, "task.show", j, &a);
	if (r != 0)
		return r;
	print_value("held ", id);
	print_value("  agent: ", koine_value_get(koine_answer_result(a), "agent"));
	print_value("  prompt: ", koine_value_get(koine_answer_result(a), "prompt"));
	return 0;
}

static int print_project(struct cli *cli, const char *folder, const struct koine_value *p)
{
	const struct koine_value *v;
	int r = 0;

	print_value("project ", koine_value_get(p, "folder"));
	print_value("state   ", koine_value_get(p, "state"));
	print_value("digest  ", koine_value_get(p, "digest"));
	print_rules(koine_value_get(p, "rules"));
	for (v = koine_value_first(koine_value_get(p, "watches")); v; v = koine_value_next(v))
		print_value("watches ", v);
	for (v = koine_value_first(koine_value_get(p, "jobs")); v; v = koine_value_next(v)) {
		print_value("job ", koine_value_get(v, "id"));
		print_value("  cron: ", koine_value_get(v, "cron"));
	}
	for (v = koine_value_first(koine_value_get(p, "held")); r == 0 && v;
	     v = koine_value_next(v))
		r = print_task(cli, folder, v);
	return r;
}

static int show(struct cli *cli, char folder[PATH_MAX], struct koine_answer **ret)
{
	int r = folder_of(cli, folder);

	if (r == 0)
		r = ask(cli, "project.show", "folder", folder, ret);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(*ret));
	else if (r == 0)
		r = print_project(cli, folder, koine_answer_result(*ret));
	return r;
}

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];

	return show(cli, folder, &a);
}

/* ---- trusting ---- */

/* A person at a terminal is asked; who calls this from a script has made up his mind. */
static bool is_sure(const struct cli *cli)
{
	char line[16];

	if (!cli->terminal || !isatty(STDIN_FILENO))
		return true;
	fputs("Trust it, and let this act? [y/N] ", stdout);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* What was shown, and nothing else. */
static int send_trust(struct cli *cli, const char *folder, const struct koine_value *shown)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = begin_params("folder", folder);
	size_t len = 0;
	const char *digest = koine_value_text(koine_value_get(shown, "digest"), &len);

	if (!j)
		return out_of_memory();
	koine_json_key(j, "digest");
	koine_json_text_n(j, digest ? digest : "", len);
	koine_json_key(j, "tasks");
	koine_json_value(j, koine_value_get(shown, "held"));
	return send_params(cli, "project.trust", j, &a);
}

static int cmd_trust(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];
	int r = show(cli, folder, &a);

	if (r != 0)
		return r;
	if (!is_sure(cli)) {
		complain("not trusted");
		return EXIT_ERROR_ANSWER;
	}
	r = send_trust(cli, folder, koine_answer_result(a));
	if (r == 0 && !cli->options.json)
		puts("trusted");
	return r;
}

static int cmd_distrust(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];
	int r = folder_of(cli, folder);

	if (r == 0)
		r = ask(cli, "project.distrust", "folder", folder, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		puts("not trusted");
	return r;
}

const struct command project_commands[] = {
	{"list", "", "list the projects that are served, and whether they are trusted", NULL,
	 cmd_projects},
	{"show", "[DIR]", "show what a project's files would do", NULL, cmd_show},
	{"trust", "[DIR]", "show it, and let it act as it is",
	 "At a terminal you are asked first. Tasks that are held begin.\n", cmd_trust},
	{"distrust", "[DIR]", "do not let it act any more", NULL, cmd_distrust},
	{NULL},
};
