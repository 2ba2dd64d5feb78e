#include "cli/page/browser.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/kit/options.h"

enum { DESKTOP_MAX = 64 << 10, NAME_LEN_MAX = 200 };

bool browser_may_open(void)
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
static bool write_file(const char *path, const char *link)
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

/* A snap or a flatpak sees neither the runtime folder nor hidden files. */
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

bool browser_open(const char *link)
{
	char path[PATH_MAX];
	pid_t pid;
	int null;

	if (is_packaged() || !find_place(path) || !write_file(path, link))
		return false;
	pid = fork();
	if (pid != 0)
		return pid > 0;
	setsid();
	null = open("/dev/null", O_RDWR);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	execlp("xdg-open", "xdg-open", path, (char *)NULL);
	_exit(127);
}
