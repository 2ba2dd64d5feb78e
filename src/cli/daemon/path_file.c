#include "cli/daemon/path_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A format, not only words: a file that does not begin with it is left alone. Do not reword it. */
static const char first_line[] = "# Made by koine daemon enable, which makes it anew each time.\n";

/* In systemd's quotes, where '%' begins a specifier. */
static void add_escaped(struct buf *out, struct text t)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.data[i];

		if (c < 0x20 || c == 0x7f) {
			buf_add_str(out, "\\x");
			buf_add_char(out, digits[c >> 4]);
			buf_add_char(out, digits[c & 15]);
			continue;
		}
		if (c == '"' || c == '\\' || c == '%')
			buf_add_char(out, c == '%' ? '%' : '\\');
		buf_add_char(out, (char)c);
	}
}

/* Anybody could put a program there, unless only its owner may replace what is there. */
static bool open_to_all(struct text folder)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(folder));
	return stat(path, &st) == 0 && (st.st_mode & S_IWOTH);
}

/* Up to where we are. */
static bool came_before(struct text path, const char *at, struct text folder)
{
	struct text rest = {.data = path.data, .len = (size_t)(at - path.data)};
	struct text other;

	while (text_next(&rest, ':', &other)) {
		if (text_equal(other, folder))
			return true;
	}
	return false;
}

int path_file_text(struct text path, struct buf *out, struct buf *left)
{
	struct text rest = path;
	struct text folder;
	unsigned n = 0;

	buf_add_str(out, first_line);
	buf_add_str(out, "[Service]\nEnvironment=\"PATH=");
	while (text_next(&rest, ':', &folder)) {
		bool usable = folder.len > 0 && folder.data[0] == '/' && folder.len < PATH_MAX;

		if (usable && came_before(path, folder.data, folder))
			continue;
		if (!usable || open_to_all(folder)) {
			buf_add(left, folder.data, folder.len);
			buf_add_str(left,
				    usable ? ": writable by all users\n" : ": not absolute\n");
			continue;
		}
		if (n++ > 0)
			buf_add(out, ":", 1);
		add_escaped(out, folder);
	}
	buf_add_str(out, "\"\n");
	return out->err != 0 ? out->err : left->err;
}

bool path_file_is_ours(struct text file)
{
	size_t n = strlen(first_line);

	return file.len >= n && memcmp(file.data, first_line, n) == 0;
}
