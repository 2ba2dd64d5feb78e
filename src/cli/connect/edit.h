/*
 * Changes to a configuration file that belongs to somebody else: text in, text out, no I/O.
 *
 * An editor changes only what it must. Every other byte stays, comments and odd spacing
 * included, and new text follows the file's own indentation and line ends. A file that it does
 * not understand is refused with a sentence that names the line.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

enum edit_kind {
	EDIT_MEMBER,  /* the value of the member at the path */
	EDIT_ELEMENT, /* one more element of the array at the path */
};

enum { EDIT_PATH_MAX = 8, EDIT_FILE_MAX = 16 << 20 };

struct edit {
	enum edit_kind kind;
	const char *path;  /* keys with slashes between them */
	const char *value; /* JSON; in a TOML file it is an object of plain values */
	bool stays;        /* what others have added may need it: it is never taken out */
	const char *key;   /* one more, below the path, which may have slashes in it; or NULL */
	bool ours;         /* whatever is there, since the key says whose it is; in TOML only */
};

/* An edit on its way. */
struct edit_step {
	const struct editor *by;
	const struct edit *e;
	const struct koine_value *value; /* the edit's, parsed */
	struct text before;              /* for take: the file as it was before the first put */
	/* The JSON editor's: something was taken out; `before`, NULL if it cannot be read. */
	bool taken;
	const struct json_file *old;
};

/*
 * Both write the whole new text into `out`, which is the old text if there is nothing to do, and may
 * leave a part of their work to the next time: they are called until nothing changes. They return 0,
 * -ENOMEM, or a refusal; `out` is worth nothing then.
 *
 * put: a member that has another value is changed only if it is ours (see ours.h), and then only
 * in those parts that `value` names.
 *
 * take: removes what is equal to `value`, or ours, and what of its path is empty then and was not
 * in `before`.
 */
typedef int (*edit_fn)(struct edit_step *c, struct text file, struct buf *out, struct error *error);

struct editor {
	edit_fn put;
	edit_fn take;
	bool comments; /* and trailing commas */
};

extern const struct editor json_editor;
extern const struct editor jsonc_editor;
extern const struct editor toml_editor; /* only members, and only tables */

/* ---- all that belongs to a file ---- */

/* One edit after another. */
int edit_put(const struct editor *by, struct text file, const struct edit *edits, unsigned n,
	     struct buf *out, struct error *error);

/*
 * Takes them out again. If nothing but their values was changed since edit_put, the file is `before`,
 * to the byte; otherwise what others have changed stays.
 */
int edit_take(const struct editor *by, struct text file, struct text before,
	      const struct edit *edits, unsigned n, struct buf *out, struct error *error);

/* The same, but what others have changed always stays. */
int edit_take_each(const struct editor *by, struct text file, struct text before,
		   const struct edit *edits, unsigned n, struct buf *out, struct error *error);

/* ---- for editors ---- */

/* Leaves the file as it is. 0 or -ENOMEM. */
int edit_copy(struct text file, struct buf *out);

/* The line of a byte, from 1. */
unsigned edit_line(struct text file, size_t at);

/* What the file ends its lines with. */
struct text edit_newline(struct text file);

/* Whether something is there, a byte order mark apart, whose last line has no end. */
bool edit_lacks_newline(struct text file);

/* Whether there is nothing, a byte order mark apart. */
bool edit_is_empty(struct text file);

/* Refuses with "line 3: mcpServers.koine " and the words. */
int edit_refuse(unsigned line, const struct text *keys, unsigned n, const char *words,
		struct error *error);

/* The keys of its path; returns how many there are. */
unsigned edit_keys(const struct edit *e, struct text keys[EDIT_PATH_MAX]);

/* ---- changes to a text ---- */

struct splice {
	size_t at;
	size_t removed;
	struct text added;
};

/* They must be sorted, and must not overlap. 0 or -ENOMEM. */
int edit_splice(struct text file, const struct splice *splices, unsigned n, struct buf *out);
