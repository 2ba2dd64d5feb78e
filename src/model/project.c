#include "model/project.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

enum {
	CONFIG_MAX = 256 << 10, /* of .git/config; a larger one has no origin for us */
	POINTER_MAX = 8 << 10,  /* of a file that holds a path */
};

_Static_assert(PROJECT_NAME_MAX + 1 >= PATH_MAX, "a folder's path is a name");

/* ---- URLs ---- */

static bool model_project_is_plain(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if ((unsigned char)t.data[i] <= ' ' || t.data[i] == 0x7f)
			return false;
	}
	return t.len > 0;
}

/* The place of a byte, or the text's length. */
static size_t model_project_place_of(struct text t, char c)
{
	const char *at = t.len > 0 ? memchr(t.data, c, t.len) : NULL;

	return at ? (size_t)(at - t.data) : t.len;
}

/* "user@host:22" is "host"; an address in brackets keeps its colons. */
static struct text host_of(struct text t)
{
	size_t user = model_project_place_of(t, '@');

	while (user < t.len) {
		t = text_skip(t, user + 1);
		user = model_project_place_of(t, '@');
	}
	if (t.len > 0 && t.data[0] == '[')
		t.len = model_project_place_of(t, ']') + (model_project_place_of(t, ']') < t.len);
	else
		t.len = model_project_place_of(t, ':');
	return t;
}

/* Names and addresses, also in other scripts. */
static bool is_host(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.data[i];

		if (c < 0x80 && !isalnum(c) && !strchr(".-_:[]", c))
			return false;
	}
	return t.len > 0;
}

/* Splits "scheme://user@host:port/path" or "user@host:path". */
static bool split_url(struct text url, struct text *ret_host, struct text *ret_path)
{
	size_t colon = model_project_place_of(url, ':');
	size_t slash = model_project_place_of(url, '/');
	struct text rest;

	if (colon == 0 || colon >= slash)
		return false; /* a path */
	rest = text_skip(url, colon);
	if (rest.len >= 3 && memcmp(rest.data, "://", 3) == 0) {
		if (colon == 4 && strncasecmp(url.data, "file", 4) == 0)
			return false;
		rest = text_skip(rest, 3);
		slash = model_project_place_of(rest, '/');
	} else {
		rest = url;
		slash = model_project_place_of(url, '[') < colon
				? model_project_place_of(url, ']') + 1
				: colon;
		if (slash >= url.len || url.data[slash] != ':')
			return false;
	}
	if (slash >= rest.len)
		return false;
	*ret_host = host_of((struct text) {.data = rest.data, .len = slash});
	*ret_path = text_skip(rest, slash + 1);
	return true;
}

/* Appends the path's parts, without empty ones; false for "." and "..". */
static bool add_parts(struct buf *out, struct text path)
{
	struct text part;
	bool any = false;

	while (text_next(&path, '/', &part)) {
		if (text_is(part, ".") || text_is(part, ".."))
			return false;
		if (part.len == 0)
			continue;
		buf_add_char(out, '/');
		buf_add(out, part.data, part.len);
		any = true;
	}
	return any;
}

bool project_of_url(struct text url, char ret_name[PROJECT_NAME_MAX + 1])
{
	CLEANUP(buf_donep) struct buf name;
	struct text host, path;

	buf_init(&name, PROJECT_NAME_MAX + 1);
	if (!model_project_is_plain(url) || !split_url(url, &host, &path) || !is_host(host))
		return false;
	for (size_t i = 0; i < host.len; i++)
		buf_add_char(&name, (char)tolower((unsigned char)host.data[i]));
	if (!add_parts(&name, path))
		return false;
	if (name.err == 0 && name.len > host.len + 5 &&
	    memcmp(name.data + name.len - 4, ".git", 4) == 0)
		name.len -= 4;
	buf_add_char(&name, '\0');
	if (name.err != 0)
		return false;
	memcpy(ret_name, name.data, name.len);
	return true;
}

/* ---- git's configuration ---- */

/* Takes "[...]" off a line; *ret_origin: it is the section of the remote we want. */
static bool take_section(struct text *line, bool *ret_origin)
{
	size_t end = model_project_place_of(*line, ']');
	struct text name;
	struct text rest;

	if (line->len == 0 || line->data[0] != '[' || end == line->len)
		return false;
	name = text_trim((struct text) {.data = line->data + 1, .len = end - 1}, TEXT_SPACE);
	rest = name.len > 6 ? text_trim(text_skip(name, 6), TEXT_SPACE) : (struct text) {0};
	*ret_origin = name.len > 6 && strncasecmp(name.data, "remote", 6) == 0 &&
		      text_is(rest, "\"origin\"");
	*line = text_trim(text_skip(*line, end + 1), TEXT_SPACE);
	return true;
}

/* A value without its quotes and comment. Those that escape something, or go on in the next line,
 * are no URLs that we read: false. */
static bool read_value(struct text t, struct buf *out)
{
	bool quoted = false;

	for (size_t i = 0; i < t.len; i++) {
		char c = t.data[i];

		if (c == '\\')
			return false;
		if (!quoted && (c == '#' || c == ';'))
			break;
		if (c == '"')
			quoted = !quoted;
		else
			buf_add_char(out, c);
	}
	while (out->len > 0 && isspace((unsigned char)out->data[out->len - 1]))
		out->len--;
	return !quoted && out->len > 0 && out->err == 0;
}

/* The first one counts, as for git when it fetches. */
bool project_origin(struct text config, struct buf *ret_url)
{
	bool in_origin = false;
	struct text line;

	while (text_next(&config, '\n', &line)) {
		size_t mark;

		line = text_trim(line, TEXT_SPACE);
		take_section(&line, &in_origin);
		mark = model_project_place_of(line, '=');
		if (in_origin && mark < line.len &&
		    text_trim((struct text) {.data = line.data, .len = mark}, TEXT_SPACE).len ==
			    3 &&
		    strncasecmp(line.data, "url", 3) == 0)
			return read_value(text_trim(text_skip(line, mark + 1), TEXT_SPACE),
					  ret_url);
	}
	return false;
}

/* ---- folders ---- */

/* Another user who may write above our folder, as in /tmp, could name our project after any other. */
static bool is_trusted(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

static int read_small(const char *path, struct buf *out)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	return is_trusted(&st) ? file_read_all(fd, out) : -EPERM;
}

static bool model_project_join(char out[PATH_MAX], const char *folder, struct text path)
{
	bool absolute = path.len > 0 && path.data[0] == '/';
	int n = snprintf(out, PATH_MAX, "%s%s%.*s", absolute ? "" : folder, absolute ? "" : "/",
			 TEXT_ARGS(path));

	return path.len > 0 && n > 0 && n < PATH_MAX && !memchr(path.data, '\0', path.len);
}

/* A file that holds a path after `mark`, relative to the folder. */
static bool read_pointer(const char *file, const char *mark, const char *folder, char out[PATH_MAX])
{
	CLEANUP(buf_donep) struct buf text;
	size_t len = strlen(mark);
	struct text t;

	buf_init(&text, POINTER_MAX);
	if (read_small(file, &text) != 0 || text.len < len || memcmp(text.data, mark, len) != 0)
		return false;
	t = text_trim((struct text) {.data = text.data + len, .len = text.len - len}, TEXT_SPACE);
	return model_project_join(out, folder, t);
}

/* The folder with the configuration: .git, or where the file .git points to; the working trees of one
 * repository share one. */
static bool find_git(const char *top, char ret_git[PATH_MAX])
{
	char dot_git[PATH_MAX], git[PATH_MAX], common[PATH_MAX];
	struct stat st;

	if (!model_project_join(dot_git, top, TEXT(".git")) || lstat(dot_git, &st) != 0 ||
	    !is_trusted(&st) || stat(dot_git, &st) != 0 || !is_trusted(&st))
		return false;
	if (S_ISDIR(st.st_mode)) {
		memcpy(git, dot_git, strlen(dot_git) + 1);
	} else if (!S_ISREG(st.st_mode) || !read_pointer(dot_git, "gitdir:", top, git)) {
		return false;
	}
	if (model_project_join(common, git, TEXT("commondir")) &&
	    read_pointer(common, "", git, ret_git))
		return true;
	memcpy(ret_git, git, strlen(git) + 1);
	return true;
}

/* Of a working tree whose origin has a name: a URL, or a folder that exists. */
static bool name_by_origin(const char *top, const char *git, char ret_name[PROJECT_NAME_MAX + 1])
{
	CLEANUP(buf_donep) struct buf config;
	CLEANUP(buf_donep) struct buf url;
	char path[PATH_MAX], folder[PATH_MAX];
	struct text at;

	buf_init(&config, CONFIG_MAX);
	buf_init(&url, PROJECT_NAME_MAX);
	if (!model_project_join(path, git, TEXT("config")) || read_small(path, &config) != 0 ||
	    !project_origin((struct text) {.data = config.data, .len = config.len}, &url))
		return false;
	at = (struct text) {.data = url.data, .len = url.len};
	if (project_of_url(at, ret_name))
		return true;
	if (at.len > 7 && strncasecmp(at.data, "file://", 7) == 0)
		at = text_skip(at, 7);
	if (!model_project_join(path, top, at) || !realpath(path, folder))
		return false;
	memcpy(ret_name, folder, strlen(folder) + 1);
	return true;
}

int project_of_folder(const char *folder, char ret_name[PROJECT_NAME_MAX + 1])
{
	char top[PATH_MAX], git[PATH_MAX];
	char *slash;

	if (!realpath(folder, top))
		return -errno;
	memcpy(ret_name, top, strlen(top) + 1);
	for (;;) {
		if (find_git(top, git)) {
			if (!name_by_origin(top, git, ret_name))
				memcpy(ret_name, top, strlen(top) + 1);
			return 0;
		}
		slash = strrchr(top, '/');
		if (!slash || slash == top)
			return 0;
		*slash = '\0';
	}
}

bool project_of_reported(struct text folder, char ret_name[PROJECT_NAME_MAX + 1])
{
	char path[PATH_MAX];

	if (folder.len == 0 || folder.len >= sizeof(path) || folder.data[0] != '/' ||
	    memchr(folder.data, '\0', folder.len))
		return false;
	memcpy(path, folder.data, folder.len);
	path[folder.len] = '\0';
	return project_of_folder(path, ret_name) == 0;
}

int project_of_word(const char *word, char ret_name[PROJECT_NAME_MAX + 1])
{
	size_t len = strlen(word);

	if (word[0] == '.' || word[0] == '/')
		return project_of_folder(word, ret_name);
	if (len == 0 || len > PROJECT_NAME_MAX)
		return -EINVAL;
	memcpy(ret_name, word, len + 1);
	return 0;
}
