#include "daemon/life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"

enum { SHORTEST = 16, LONGEST = 200, TOKEN_LEN = 64 };

int secret_read(const char *file, const char *what, char *out, size_t size, struct error *error)
{
	int r = file_read_secret(file, what, out, size, error);

	if (r == 0 && !out[0])
		return refuse(error, REFUSE_PARAMS, "the %s file %s is empty", what, file);
	return r;
}

int secret_check(const char *file, const char *what, struct error *error)
{
	char secret[4096];
	int r = file[0] ? secret_read(file, what, secret, sizeof(secret), error) : 0;

	explicit_bzero(secret, sizeof(secret));
	return r;
}

int secret_check_variable(const char *name, struct error *error)
{
	const char *value = name[0] ? getenv(name) : "set";

	if (value && value[0])
		return 0;
	return refuse(error, REFUSE_NOT_FOUND, "environment variable %s is not set", name);
}

/* ---- tokens ---- */

static int read_file(const char *file, char *out, size_t size, struct error *error)
{
	int r = file_read_secret(file, "token", out, size, error);

	if (r != 0)
		return r;
	if (strlen(out) < SHORTEST || strlen(out) > LONGEST)
		return refuse(error, REFUSE_PARAMS,
			      "invalid token in %s: expected 16 to 200 characters", file);
	return 0;
}

/* White space around the token does not count; a script may have left some. */
static int read_variable(const char *name, char *out, size_t size, struct error *error)
{
	const char *value = getenv(name);
	size_t n;

	if (!value)
		return 0;
	value += strspn(value, " \t\r\n");
	n = strlen(value);
	while (n > 0 && strchr(" \t\r\n", value[n - 1]))
		n--;
	if (n > LONGEST || n >= size)
		return refuse(error, REFUSE_PARAMS, "%s is longer than 200 characters", name);
	memcpy(out, value, n);
	out[n] = '\0';
	return 0;
}

/* ---- a token that is made ---- */

static const char *file_of(const struct settings *s, const struct dialect *d)
{
	const struct dialect_token *token = dialect_token(d);

	return token ? (const char *)settings_of(s, d) + token->file : "";
}

/* Its file stands beside the store. */
static void made_file(const struct settings *s, const char *name, char out[PATH_LEN])
{
	char store[PATH_LEN];
	char *slash;

	settings_beside_store(s, store, sizeof(store));
	slash = strrchr(store, '/');
	if (slash)
		*slash = '\0';
	snprintf(out, PATH_LEN, "%.*s/%s", PATH_LEN - 40, slash ? store : ".", name);
}

static bool is_made(const struct settings *s, const struct dialect *d)
{
	const struct dialect_token *token = dialect_token(d);

	return token && token->made && !file_of(s, d)[0];
}

static int random_token(char out[TOKEN_LEN + 2])
{
	unsigned char bytes[TOKEN_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	memcpy(out + TOKEN_LEN, "\n", 2);
	return 0;
}

/* Whoever is first makes it; nobody ever sees half of it. */
static int write_token(const char *path, struct error *error)
{
	char text[TOKEN_LEN + 2];
	char fresh[PATH_LEN + 16];
	int r = random_token(text);
	int fd;

	if (r != 0)
		return r;
	snprintf(fresh, sizeof(fresh), "%s.%d", path, (int)getpid());
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot create %s: %s", fresh,
			      strerror(errno));
	r = write(fd, text, TOKEN_LEN + 1) == TOKEN_LEN + 1 && fsync(fd) == 0 ? 0 : -errno;
	close(fd);
	if (r == 0 && link(fresh, path) != 0 && errno != EEXIST)
		r = -errno;
	unlink(fresh);
	return r >= 0 ? r
		      : refuse(error, REFUSE_UNAVAILABLE, "cannot create %s: %s", path,
			       strerror(-r));
}

int token_make(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct error *error)
{
	char path[PATH_LEN];
	int r;

	out[0] = '\0';
	if (!is_made(s, d))
		return 0;
	made_file(s, dialect_token(d)->made, path);
	r = access(path, F_OK) == 0 ? 0 : write_token(path, error);
	return r != 0 ? r : read_file(path, out, size, error);
}

void token_find_file(const struct settings *s, const struct dialect *d, char *out, size_t size)
{
	const char *named = file_of(s, d);
	char path[PATH_LEN];

	out[0] = '\0';
	if (!dialect_token(d) || !dialect_token(d)->only || strcmp(named, "off") == 0)
		return;
	if (is_made(s, d))
		made_file(s, dialect_token(d)->made, path);
	snprintf(out, size, "%s", is_made(s, d) ? path : named);
}

/* ---- reading them ---- */

int token_read_own(const struct settings *s, const struct dialect *d, char *out, size_t size,
		   struct error *error)
{
	const struct dialect_token *token = dialect_token(d);
	const char *file = file_of(s, d);

	out[0] = '\0';
	if (token && token->made && strcmp(file, "off") == 0)
		return 0;
	if (file[0])
		return read_file(file, out, size, error);
	return token && token->variable ? read_variable(token->variable, out, size, error) : 0;
}

int token_read_common(const struct settings *s, char *out, size_t size, struct error *error)
{
	out[0] = '\0';
	return s->token_file[0] ? read_file(s->token_file, out, size, error) : 0;
}

int token_read(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct error *error)
{
	const struct dialect_token *token = dialect_token(d);
	int r = token_read_own(s, d, out, size, error);

	return r != 0 || out[0] || (token && token->only) ? r
							  : token_read_common(s, out, size, error);
}
