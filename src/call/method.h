/*
 * A method is a row in a table. The row decodes parameters, refuses bad ones by the field's
 * name, answers rpc.discover and says where the handler runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct call;
struct gob_shape;
struct value;
struct error;

/* What a handler returns. Only call_reply, call_fail and call_later make one, so that a path
 * which forgets to answer does not compile. */
struct done {
	int made_by_call_c;
};

enum where {
	ON_LOOP, /* touches no store: answered in the turn in which its bytes came */
	READER,  /* reads the store, on one of a few threads */
	WRITER,  /* changes the store, on the one thread that commits for all waiting */
};

/* What a field becomes in the handler's struct, at `offset`. */
enum field_type {
	FIELD_ANY,    /* const struct value * */
	FIELD_STRING, /* struct text */
	FIELD_INT,    /* int64_t */
	FIELD_NUMBER, /* double */
	FIELD_BOOL,   /* bool */
	FIELD_OBJECT, /* const struct value * */
	FIELD_ARRAY,  /* const struct value * */
};

/* Whether a field chooses which program runs, so that agents may not set it; see call/access.h. */
enum for_humans {
	ANYBODY,
	HUMANS,
	HUMANS_IF_PROGRAM, /* it names an agent: only if that agent is a program */
	HUMANS_IF_RUNNER,  /* the same for one that runs tasks, which the coding agent does, too */
	HUMANS_IF_ELSEWHERE, /* it names a folder: only if the client does not work in it */
};

struct field {
	const char *name;
	enum field_type type;
	bool required;
	enum for_humans for_humans;
	/* For the schema that a model reads; handlers check what they are given. */
	enum field_type items; /* FIELD_ARRAY: the type of its elements */
	const char *const
		*words; /* FIELD_STRING: the values that it takes, up to a NULL; or NULL */
	/* When it is not given, or null. A string without a default is {NULL, 0}. */
	const char *default_text;
	int64_t default_number;
	/* FIELD_INT: the least and the most that may be given; most 0: any number. */
	int64_t least;
	int64_t most;
	const char *doc; /* one line */
	size_t offset;
};

enum method_flags {
	METHOD_LATER = 1 << 0,     /* the handler may return call_later */
	METHOD_OVERTAKES = 1 << 1, /* acts as soon as it is read, ahead of its connection's queue */
	METHOD_FOR_HUMANS = 1 << 2, /* agents may not call it (call/access.h) */
	METHOD_ENDS = 1 << 3,       /* a call is cancelled when its connection closes */
};

struct method {
	const char *name;
	const char *doc; /* one line */
	/* What it answers, for rpc.discover: a type ("object", "string|null"), "time", "any", a list
	 * "[object]", members "{id:string open:boolean}", constants "true", "running|ended". */
	const char *result;
	const struct field *fields;
	unsigned n_fields;
	size_t in_size; /* of the struct that c->in points to */
	struct done (*handle)(struct call *c);
	/* NULL, or what a READER or WRITER row does on the loop before it goes to its thread:
	 * there it may wait for what must not hold a thread. It ends with call_go_on. */
	void (*before)(struct call *c);
	/* NULL, or whether a READER row could be answered on the loop, from what is at hand there:
	 * then it has called call_reply. Otherwise it has not begun its result, and the row goes
	 * to its thread. */
	bool (*at_once)(struct call *c);
	enum where where;
	unsigned flags;
	const void *arg; /* the host's own data */
	/* For Go's clients: the shapes of the parameters and of the result. NULL: Go's clients
	 * do not find the method. */
	const struct gob_shape *gob_args;
	const struct gob_shape *gob_reply;
};

/*
 * A row of a method's fields, and the fields in the method's row. `in` is the tag of the handler's
 * struct, without the word struct, so that most rows fit on one line. Other members of the field
 * follow the doc: .required = true, .default_number = 20.
 */
#define FIELD(kind, in, member, text, ...)                                                         \
	{                                                                                          \
		.name = #member, .type = FIELD_##kind, .doc = (text),                              \
		.offset = offsetof(struct in, member), __VA_ARGS__                                 \
	}
#define FIELD_AS(word, kind, in, member, text, ...)                                                \
	{                                                                                          \
		.name = (word), .type = FIELD_##kind, .doc = (text),                               \
		.offset = offsetof(struct in, member), __VA_ARGS__                                 \
	}
/* The values that a string takes. */
#define WORDS(...)                                                                                 \
	.words = (const char *const[])                                                             \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
/* A field's range; AT_LEAST has no end. */
#define RANGE(from, to) .least = (from), .most = (to)
#define AT_LEAST(from)  RANGE(from, INT64_MAX)

#define FIELDS(rows, in)                                                                           \
	.fields = (rows), .n_fields = sizeof(rows) / sizeof((rows)[0]), .in_size = sizeof(struct in)

/* The rows of a file. */
struct method_table {
	const struct method *rows;
	unsigned n;
};

#define METHOD_TABLE(list)                                                                         \
	{                                                                                          \
		.rows = (list), .n = sizeof(list) / sizeof((list)[0])                              \
	}

/* Finds rows by name. Built once, then only read. */
struct registry;

int registry_new(struct registry **ret_registry);
void registry_free(struct registry *r);

/* The rows must outlive the registry. -EEXIST when a name is taken. */
int registry_add(struct registry *r, const struct method *methods, unsigned n_methods);

const struct method *registry_find(const struct registry *r, struct text name);

/* In the order they were added. */
unsigned registry_count(const struct registry *r);
const struct method *registry_at(const struct registry *r, unsigned i);

const char *field_type_name(enum field_type type);

/* Reads a field that was given and must be an integer; refuses anything else in words a person
 * understands. For fields that a table cannot decode. */
int field_whole(const char *name, const struct value *v, int64_t *ret, struct error *error);

/* Methods about calls themselves, for any server: the "rpc." names that JSON-RPC reserves. */
extern const struct method_table rpc_methods;
