/* koine page: prints and opens a sign-in link, and lists signed-in browsers. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/kit/list.h"
#include "cli/kit/call.h"

/* ---- the browser ---- */

enum { NAME_LEN_MAX = 200 };

/* Whether there is a display to open one at. */
static bool browser_may_open(void)
{
	return option_from_environment("DISPLAY") || option_from_environment("WAYLAND_DISPLAY");
}

/* ---- the file ---- */

static bool find_place(char out[PATH_MAX])
{
	const char *runtime = option_from_environment("XDG_RUNTIME_DIR");
	const char *folder = runtime ? runtime : option_from_environment("HOME");
	int n = folder && folder[0] == '/' ? snprintf(out, PATH_MAX, "%s/%skoine-page.html", folder,
						      runtime ? "" : ".")
					   : -1;

	return n > 0 && n < PATH_MAX;
}

/* One file, which the next link replaces: a link that was used, or is five minutes old, is nothing. */
static bool page_write_file(const char *path, const char *link)
{
	CLEANUP(closep) int fd = -1;
	char text[2048];
	int n = snprintf(
		text, sizeof(text),
		"<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
		"<meta http-equiv=refresh content=\"0;url=%s\"><title>koine</title>"
		"<p><a href=\"%s\">Continue to koine</a>\n",
		link, link);

	if (n < 0 || n >= (int)sizeof(text) || strpbrk(link, "\"<>& "))
		return false;
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, text, (size_t)n) == n;
}

/* ---- the browser ---- */

/* Its desktop file, "firefox.desktop"; "" if that is not known. */
static void find_default(char out[NAME_LEN_MAX])
{
	FILE *f = popen("xdg-settings get default-web-browser 2>/dev/null", "re");

	out[0] = '\0';
	if (!f)
		return;
	if (!fgets(out, NAME_LEN_MAX, f))
		out[0] = '\0';
	pclose(f);
	out[strcspn(out, "\n")] = '\0';
}

static bool runs_packaged(const char *folder, const char *name)
{
	char path[PATH_MAX], line[1024];
	bool packaged = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	while (f && !packaged && fgets(line, sizeof(line), f))
		packaged = strncmp(line, "Exec=", 5) == 0 &&
			   (strstr(line, "/snap/") || strstr(line, "flatpak"));
	if (f)
		(void)fclose(f);
	return packaged;
}

/* A snap or a flatpak sees neither the runtime directory nor hidden files. */
static bool is_packaged(void)
{
	static const char *const folders[] = {"/var/lib/snapd/desktop/applications",
					      "/var/lib/flatpak/exports/share/applications",
					      "/usr/local/share/applications",
					      "/usr/share/applications", NULL};
	const char *home = option_from_environment("HOME");
	char name[NAME_LEN_MAX], own[PATH_MAX];

	find_default(name);
	if (!name[0] || strchr(name, '/'))
		return false;
	for (const char *const *folder = folders; *folder; folder++) {
		if (runs_packaged(*folder, name))
			return true;
	}
	snprintf(own, sizeof(own), "%.3000s/.local/share/applications", home ? home : "");
	if (runs_packaged(own, name))
		return true;
	snprintf(own, sizeof(own), "%.3000s/.local/share/flatpak/exports/share/applications",
		 home ? home : "");
	return runs_packaged(own, name);
}

/*
 * Nothing waits for the browser, and it outlives us. The link lets in whoever has it, and everybody
 * can read our arguments, so the browser is given a file of ours (0600) that leads there. False: it
 * could not be written, or the browser is packaged so that it cannot read it; the user must open the
 * link then.
 */
static bool browser_open(const char *link)
{
	char path[PATH_MAX];

	return !is_packaged() && find_place(path) && page_write_file(path, link) &&
	       child_detach((const char *const[]) {"xdg-open", path, NULL});
}

/* ---- the link ---- */

enum { LINK_MAX_BYTES = 512 };

struct page_options {
	bool no_open;
	bool sessions;
	const char *end;
	const char *link;
};

/* The part of a link that follows its host. */
static const char *path_of(const char *link)
{
	const char *host = strstr(link, "://");
	const char *path = host ? strchr(host + 3, '/') : NULL;

	return path ? path : "";
}

/* ---- for another address ---- */

static const char secure[] = "https://";
static const char tunnel[] = "http://"; /* only at a loopback address: ssh's other end */

static bool is_here(const char *base)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost"};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		const char *host = base + strlen(tunnel);
		size_t n = strlen(hosts[i]);

		if (strncmp(base, tunnel, strlen(tunnel)) == 0 && strncmp(host, hosts[i], n) == 0 &&
		    (!host[n] || host[n] == ':'))
			return true;
	}
	return false;
}

/* In small letters and without a slash at its end, as browsers say it and [page] behind wants it. */
static bool read_base(const char *url, char out[LINK_MAX_BYTES])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
	size_t n = strlen(url);
	const char *at;

	while (n > 0 && url[n - 1] == '/')
		n--;
	if (n >= LINK_MAX_BYTES)
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = url[i] >= 'A' && url[i] <= 'Z' ? (char)(url[i] - 'A' + 'a') : url[i];
	out[n] = '\0';
	if (strncmp(out, secure, strlen(secure)) == 0)
		at = out + strlen(secure);
	else if (is_here(out))
		at = out + strlen(tunnel);
	else
		return false;
	n = strspn(at, letters);
	at += n;
	if (*at == ':' && at[1])
		at += 1 + strspn(at + 1, "0123456789");
	return n > 0 && !*at;
}

/* The link's name with the other end's port. */
static void print_tunnelled(const char *base, const char *link)
{
	const char *host = strstr(link, "://") ? strstr(link, "://") + 3 : link;
	const char *port = strrchr(base, ':');

	printf("%s%.*s%s%s\n", tunnel, (int)strcspn(host, ":/"), host,
	       port && port[1] != '/' ? port : "", path_of(link));
}

static void say_elsewhere(const char *base, const struct koine_value *result, const char *link)
{
	char address[LINK_MAX_BYTES];

	if (is_here(base))
		print_tunnelled(base, link);
	else
		printf("%s%s\n", base, path_of(link));
	if (text_is(member_string(result, "behind"), base)) {
		fputs("Links in webhook messages also use this address.\n", stderr);
		return;
	}
	member_copy(result, "address", address, sizeof(address));
	fprintf(stderr,
		"koined serves the page at %s to this machine only. To open it on another machine, "
		"use\n  ssh -L 7770:%s HOST   and a link to http://127.0.0.1:7770\n",
		address, strlen(address) > strlen(tunnel) ? address + strlen(tunnel) : "");
	if (is_here(base))
		return;
	fprintf(stderr,
		"  or an https proxy on this machine, such as `tailscale serve`, with these "
		"settings:\n  [page] behind = %s\n  [listen page] allow_uids = UID   (if the proxy "
		"runs as another user)\nLinks in webhook messages then also use this address.\n",
		base);
}

/* ---- the link ---- */

static int open_page(struct cli *cli, const struct page_options *o)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char link[LINK_MAX_BYTES];
	char behind[LINK_MAX_BYTES];
	char base[LINK_MAX_BYTES];
	int r;

	if (o->link && !read_base(o->link, base))
		return fail_with(EX_USAGE,
				 "--link requires https://HOST, https://HOST:PORT or, for ssh -L, "
				 "http://127.0.0.1:PORT");
	r = call_plain(cli, "page.open", NULL, &a);
	if (r != 0 || cli->options.json)
		return r != 0 ? r : call_print_result(cli, a, NULL, NULL);
	member_copy(koine_answer_result(a), "link", link, sizeof(link));
	member_copy(koine_answer_result(a), "link_behind", behind, sizeof(behind));
	if (o->link) {
		say_elsewhere(base, koine_answer_result(a), link);
		return 0;
	}
	printf("%s\n%s%s", link, behind, behind[0] ? "\n" : "");
	fflush(stdout);
	fprintf(stderr, "The link signs in one browser and expires in %lld minutes.\n",
		(long long)member_number(koine_answer_result(a), "expires_in") / 60);
	if (!o->no_open && browser_may_open() && !browser_open(link))
		fputs("Your browser cannot read koine's file: open the link yourself.\n", stderr);
	return 0;
}

/* ---- who was let in ---- */

static const struct column columns[] = {
	{"ID", "id", cell_short_id},
	{"SIGNED IN", "entered_at", cell_age},
	{"LAST SEEN", "seen_at", cell_age},
	{"UID", "uid", NULL, 'r'},
	{"BROWSER", "program"},
	{NULL},
};

#define LIST                                                                                       \
	{                                                                                          \
		"page.sessions", "sessions", .columns = columns, .none = "no signed-in browsers"   \
	}
#define DELETE                                                                                     \
	{                                                                                          \
		"page.end", .arg = "id", .did = "signed out"                                       \
	}

static int cmd_page(struct cli *cli)
{
	const struct page_options *o = cli->own;

	if (o->end)
		return request_run_as(cli, &(const struct cli_request)DELETE, o->end);
	return o->sessions ? request_run_as(cli, &(const struct cli_request)LIST, NULL)
			   : open_page(cli, o);
}

#define AT(member) OPTION_AT(struct page_options, member)

static const struct option options[] = {
	{"--no-open", NULL, NULL, "only print the link", option_flag, AT(no_open)},
	{"--link", NULL, "URL", "print a link for the address URL, with instructions", option_word,
	 AT(link)},
	/* Of the previous version. */
	{"--sessions", NULL, NULL, NULL, option_flag, AT(sessions)},
	{"--end", NULL, "ID", NULL, option_word, AT(end)},
	{NULL},
};

static const struct command browser_subs[] = {
	{"list", "", "List signed-in browsers", NULL, NO_ARGS, .request = LIST,
	 .examples = {"koine browser list", "koine browser list --json"}},
	{"delete", "ID...", "Sign out browsers", "ID may be a unique prefix.\n",
	 ARGS(1, INT_MAX, "requires at least one ID (koine browsers lists IDs)"), .request = DELETE,
	 .examples = {"koine browser delete 3f2a", "koine browser delete 3f2a 9bc1"}},
	{NULL},
};

const struct command page_commands[] = {
	{"page", "", "Open the web page: inbox, tasks, sessions, memory",
	 "The command prints a sign-in link for one browser, and opens it if there is "
	 "a display. koined serves the page until it stops. To serve it after every "
	 "start, set [listen] page = on.\n",
	 cmd_page, NULL, options, sizeof(struct page_options), NO_ARGS,
	 .examples = {"koine page", "koine page --no-open"}},
	{"browser", "COMMAND [ID]...", "List and sign out browsers", NULL, NULL, browser_subs,
	 .examples = {"koine browser list", "koine browser delete 3f2a"}},
	{NULL},
};
