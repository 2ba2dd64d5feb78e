/*
 * A server that agents work in, such as opencode's: it has no hooks that could call us, so we are
 * its client. It tells what its agents ask and what was answered, over one stream of events, and
 * takes our answers.
 *
 * A connection begins with a question without a key: who answers there must not be another user's.
 * Then comes the stream and, once that speaks, lists of all that is open, so that nothing is
 * missed. A connection that ends is opened again, later each time.
 *
 * All of it belongs to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/peer.h"

struct agent_server;
struct agent_server_ops;

enum {
	AGENT_SERVER_EVENT_MAX = 8 << 20,  /* bytes of one event */
	AGENT_SERVER_ANSWER_MAX = 8 << 20, /* bytes of one answer, such as a list */
	AGENT_SERVER_ID_MAX = 64,          /* bytes of an id that it gives */
	AGENT_SERVER_PARTS_MAX = 8,        /* questions in one request */
	AGENT_SERVER_FOLDERS_MAX = 64,     /* folders that are asked for lists */
	AGENT_SERVER_TEXT_MAX = 200,
};

enum agent_server_state { AGENT_SERVER_CONNECTING, AGENT_SERVER_CONNECTED, AGENT_SERVER_AWAY };

/* Why a server is away: who can mend it differs. */
enum agent_server_fault {
	AGENT_SERVER_GONE,   /* it does not run, or does not answer */
	AGENT_SERVER_LOCKED, /* the password is missing, or is not the one that it wants */
	AGENT_SERVER_WRONG,  /* what answers there is not what it should be */
};

/* What an agent asks. A request for permission has one part, which is the tool's input; of
 * questions, each is a part. */
struct agent_server_ask {
	bool is_question;
	struct text id; /* the server's own */
	struct text session;
	struct text folder;
	struct text tool;
	struct text tool_use_id; /* {NULL, 0}: not given */
	unsigned n_parts;
	struct {
		const struct value *input; /* an object */
		bool several;              /* the answer may be several of the choices */
	} parts[AGENT_SERVER_PARTS_MAX];
};

/* What an agent does; the words are those of agent.note. */
struct agent_server_note {
	struct text what;
	struct text session;
	struct text folder;
	struct text tool;
	struct text tool_use_id;
	struct text text;
};

/* What the server tells; everything is valid during the callback only. None of them may free the
 * server. */
struct agent_server_fns {
	/* Something is asked: new, or told again by a list. */
	void (*asked)(void *arg, const struct agent_server_ask *ask);
	/* It was answered, by whomever. */
	void (*answered)(void *arg, struct text id);
	/* A session's work is over: nothing of it waits any more. */
	void (*idle)(void *arg, struct text session);
	void (*noted)(void *arg, const struct agent_server_note *note);
	/* Lists will be fetched: agent_server_know_folder says from where. */
	void (*listing)(void *arg);
	/* All that is open in the folders that are known has been told since. */
	void (*listed)(void *arg);
	void (*changed)(void *arg, enum agent_server_state state);
};

struct agent_server_opts {
	const struct agent_server_ops *ops;
	const char *name;
	const char *url;
	const char *user;
	const char *password_env;  /* a variable that has the password; "" for none */
	const char *password_file; /* or a file; "" for none */
	unsigned idle_ms;          /* without a byte, the connection counts as dead */
	const struct agent_server_fns *fns;
	void *arg;
};

/* http://HOST[:PORT][/PATH] where HOST is loopback, or https://…; refuses the rest, without
 * repeating it: it may hold a password. */
int agent_server_check_url(const char *url, struct error *error);

/* Texts are copied. */
int agent_server_new(struct loop *l, const struct agent_server_opts *opts,
		     struct agent_server **ret_server);
/* Connects with the loop's next turn. */
void agent_server_start(struct agent_server *s);
/* Accepts NULL. Replies on their way are not told. */
void agent_server_free(struct agent_server *s);

void agent_server_know_folder(struct agent_server *s, struct text folder);
/* Tells again what is open, if it is connected. */
void agent_server_list_again(struct agent_server *s);

struct agent_server_reply {
	bool is_question;
	struct text id;
	struct text folder;
	bool allow;          /* a permission, this once */
	struct text message; /* to the model, if it is refused; {NULL, 0}: none */
	unsigned n_answers;  /* of questions */
	struct {
		struct text text;
		bool several;
	} answers[AGENT_SERVER_PARTS_MAX];
};

/* REFUSE_NOT_FOUND: nothing waits for it any more. REFUSE_PARAMS: the server does not take it. */
typedef void (*agent_server_fn)(void *arg, int result);

/*
 * Calls fn when the server has answered, never from within. If the connection ends before, fn is
 * not called; `changed` says so, and after the next connect a list tells again what is open.
 * -ENOTCONN: it is not connected.
 */
int agent_server_send(struct agent_server *s, const struct agent_server_reply *reply,
		      agent_server_fn fn, void *arg);

struct agent_server_view {
	const char *kind;
	const char *url;
	enum agent_server_state state;
	int64_t since_ms;              /* UTC */
	enum agent_server_fault fault; /* of one that is away */
	const char *text;              /* why it is away, or "" */
};

void agent_server_look(const struct agent_server *s, struct agent_server_view *ret_view);
const char *agent_server_state_name(enum agent_server_state state);
const char *agent_server_fault_name(enum agent_server_fault fault);
/* The process that answers there, if it is known and on this machine. */
const struct peer *agent_server_peer(const struct agent_server *s);

extern const struct agent_server_ops opencode_server;
