/*
 * koined while it runs: its state, and the steps of its life. daemon.c starts and ends it;
 * listen.c, engine.c, agents.c, rules.c and model.c have the steps of a start; stop.c stops
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "call/server.h"
#include "daemon/daemon.h"
#include "daemon/dialects.h"
#include "daemon/settings/settings.h"
#include "engine/engine.h"
#include "io/process/child.h"
#include "io/work.h"

/*
 * The environment of each kind of program that we start. This is the one place that decides
 * what a program gets of our own environment, what the settings add, and where it finds us.
 */

struct environments {
	struct environment plain; /* commands of rules, and commands that print keys */
	struct environment tasks;
	struct environment sessions;
	struct environment agents[AGENTS_MAX]; /* as the settings have them */
	struct environment dialects
		[DIALECTS_MAX]; /* programs that clients and models ask for get a short list */
};

/*
 * They live as long as the arena. Make them when all listeners are open, because they tell
 * programs where we listen. Whoever has a pointer to one earlier must not start a program
 * before.
 */
int environments_make(const struct settings *s, const struct server *server, struct arena *a,
		      struct environments *ret_environments);

/* The dialects in this daemon: the state of each, and its part in starting and stopping. */

enum { TOKEN_MAX = 256 };

struct hosts {
	struct dialect_means means;
	struct dialect_host list[DIALECTS_MAX]; /* as in the array of dialects */
	char tokens[DIALECTS_MAX][TOKEN_MAX];   /* "": none */
};

/* Call it before anything is opened; a refusal means a wrong setting. The hosts and `env` must not
 * move afterwards. */
int hosts_prepare(struct hosts *h, const struct settings *s, struct environments *env,
		  struct error *error);

/* Once the store is there: makes the token of a dialect that has one made for it. */
int hosts_make_token(struct hosts *h, const struct settings *s, const struct dialect *d,
		     struct error *error);

/* NULL for none. */
const char *hosts_token(const struct hosts *h, const struct dialect *d);

/* Notifies the endpoint's dialect. */
int hosts_listening(struct hosts *h, const char *project, struct endpoint *e);

/* Runs this step for each dialect; the first failure ends it. */
int hosts_step(struct hosts *h, enum dialect_step step, struct error *error);

/* The settings were read again; renews sections that follow a reload. `report` may be NULL. */
void hosts_reload(struct hosts *h, const struct settings *fresh,
		  const struct reload_listener *report);

enum { N_READERS = 4 };

/* All agents and the system prompt, before the chat starts. */
struct agents {
	struct agent *list[AGENTS_MAX];
	unsigned n;
	struct buf system; /* NUL-terminated */
};

struct agents_renewed;

struct word_file;

/* What a stop waits for. */
enum { STOP_SERVER, STOP_TASKS, STOP_SESSIONS, STOP_PROCESSES, N_STOPS };

struct stop_part {
	struct daemon *daemon;
	bool stopped;
};

struct daemon {
	struct settings *settings;
	const struct plan *plan;
	reload_fn reload;
	struct arena arena; /* for what lives as long as the daemon */
	struct loop *loop;
	struct server *server;
	struct listener *shut[ACTIVATION_MAX]; /* handed over, but off */
	unsigned n_shut;
	struct engine *engine;
	struct workers *workers;
	struct environments environments;
	struct hosts hosts;
	struct registry *registries[DIALECTS_MAX]; /* as in the array of dialects */
	struct agents agents;                      /* until the chat owns them */
	struct agents_renewed *renewed;
	struct housekeeping *housekeeping;
	struct tree_keeper *keeper;
	struct signal_watch *term;
	struct signal_watch *interrupt;
	struct signal_watch *hangup;
	struct ticker *watchdog;
	struct timer *last_words;
	struct timer *patience;
	struct stop_part stops[N_STOPS];
	/* What the settings said that wait for a start: hashes of rows, and of each dialect's addresses
	 * and additional users (0: it had no section [listen DIALECT]). */
	struct {
		uint64_t rows[SETTING_LINES_MAX];
		uint64_t listens[DIALECTS_MAX];
		uint64_t users[DIALECTS_MAX];
	} at_start;
	bool hurried;  /* told to stop twice, or it took too long */
	bool anew;     /* the program runs itself again once it has stopped */
	bool restarts; /* this stop, or the manager's next one, is a restart */
	char **env;    /* of the program that runs then; NULL: ours */
};

/* ---- listen.c ---- */

/* Methods by name, for each dialect. */
int registries_make(struct daemon *d);
void registries_free(struct daemon *d);

/* A broken project is skipped. Refuses to start if nothing at all can be served. */
/* Tokens that are made stand beside the store, and so come after it. */
int tokens_make(struct daemon *d, struct error *error);
int listen_everywhere(struct daemon *d, struct error *error);

/* One more dialect, at its usual place or, if somebody else is there, at a free port. Unless the
 * settings have it off. For server_opts. */
int listen_on_request(void *daemon, const struct dialect *dialect, struct error *error);

/* Prints the listeners. Call it when the start has succeeded: readers take it for that. */
void listen_say(const struct daemon *d);

/* ---- engine.c ---- */

/* What the writer reports after a commit. */
struct work *daemon_trailer(void *daemon);

int daemon_open_engine(struct daemon *d, struct error *error);
/* As the settings name it, or the machine's. */
void daemon_name_host(const struct settings *s, char out[HOST_NAME_MAX_BYTES + 1]);

int make_own_folder(const struct settings *s, struct error *error);

/* The file in our state directory with the owners that koine store adopt has accepted. */
int daemon_accepted(const struct settings *s, char *out, size_t size);
/* A folder beside the store, named after it, so that two stores in one folder do not share it.
 * `out` has PATH_MAX bytes. */
int daemon_beside_store(const struct daemon *d, const char *ending, char *out);
int node_begin(struct daemon *d, struct error *error);
int events_begin(struct daemon *d);
/* Ends processes that a crash has left, and resumes tasks that waited. Call it before the
 * threads start. */
int tasks_begin(struct daemon *d, struct error *error);
int approvals_begin(struct daemon *d, struct error *error);
int sessions_begin(struct daemon *d);
/* After the agents. */
int extracts_begin(struct daemon *d, struct error *error);
void engine_reload(struct daemon *d);

/* ---- agents.c: the chat, and who answers there ---- */

/* Makes what needs no store, so that wrong settings show before anything listens. Call
 * agents_done in any case. */
int agents_make(struct daemon *d, struct error *error);
void agents_done(struct agents *a);

/* The chat takes the agents, even on failure. It marks in the store what a crash has
 * interrupted, so call it before the threads start. */
int agents_start(struct daemon *d, struct error *error);

/* Takes new and changed agents, and the default. Running turns finish with the agent they began
 * with. On failure nothing changes. */
int agents_reload(struct daemon *d, const struct settings *fresh, struct error *error);
void agents_renewed_free(struct agents_renewed *n); /* accepts NULL; after the chat */

/* Ends all turns and lets them reach the store. It runs the loop until that is done, or until
 * end_ms of the steady clock. */
void agents_end_turns(struct daemon *d, uint64_t end_ms);

/* Prints what each would do and what is wrong with it. False: koined could not start with them. */
bool agents_check(const struct settings *s);

/* ---- servers.c: servers of agents, mirrored into the inbox ---- */

/* After approvals. */
int servers_begin(struct daemon *d);
/* Before the settings are exchanged. Servers that cannot be mirrored are logged. */
void servers_reload(struct daemon *d, const struct settings *fresh);
/* Prints what each would do and what is wrong with it. */
void servers_check(const struct settings *s);

/* ---- rules.c ---- */

/* Call it after tasks and approvals. A wrong rule is logged and left out. */
int rules_start(struct daemon *d);
void rules_reload(struct daemon *d);
/* A rule that is invalid now stays as it was, if it was valid before. */
void rules_keep_former(struct daemon *d, struct settings *fresh,
		       const struct reload_listener *report);

/* ---- reload.c: what becomes of each setting ---- */

/* Call it before the first reload. */
void reload_remember(struct daemon *d);
void reload_report(struct daemon *d, const struct settings *fresh,
		   const struct reload_listener *report);

/* Limits that have changed in the file; others may have been changed by hand. */
void tasks_reload(struct daemon *d, const struct settings *fresh);

/* Stops firing rules, and runs the loop until what was begun is in the store, or until end_ms of
 * the steady clock. */
void rules_end(struct daemon *d, uint64_t end_ms);

/* Prints what each would do and what is wrong with it. A wrong rule does not keep koined from
 * starting. */
void rules_check(const struct settings *s);

/* ---- notify.c ---- */

/* Call it after approvals and events. */
int notify_begin(struct daemon *d, struct error *error);
/* When their settings have changed. */
void notify_reload(struct daemon *d);
/* Prints what each would do, and whether its secrets can be read. */
void notify_check(const struct settings *s);

/* ---- model.c: memory, and the model that makes its vectors ---- */

/* Whether its key can be read. */
int model_check(const struct settings *s, struct error *error);

/* Starts memory, without a model if the settings name none, or if they name our own embedding
 * listener, which is logged. */
int memories_begin(struct daemon *d, struct error *error);

/* Whether the URL leads to our own listener, so that we would ask ourselves. Host names are not
 * resolved, but the names of this machine are known. */
bool model_is_at(const char *url, const struct address *listener);

/* ---- model.c: the table of word vectors ---- */

/* Refuses a file that is named and cannot be used. One in a default place that cannot be used is
 * logged. *ret_file NULL: there is none. */
int words_open(const struct settings *s, struct word_file **ret_file, struct error *error);

/* ---- stop.c ---- */

/* Makes the timers of a stop. */
int stop_prepare(struct daemon *d);

/* Begins a clean stop; a second call hurries it. `force` gives running calls no time. */
void stop_begin(struct daemon *d, bool force);

/* What we remember of the store is wrong: ends all programs, tells subscribers, stops, and runs the program again
 * with the sockets that it listens at. */
void stop_to_start_anew(void *daemon, const char *reason);

/* For server_opts. */
int stop_to_restart(void *daemon, bool by_manager, bool on, const struct value *env);

/* server_stop is done: all connections are closed. */
void stop_server_closed(void *daemon);

/* ---- token.c: secrets in files ---- */

/* As file_read_secret; refuses an empty file. */
int secret_read(const char *file, const char *what, char *out, size_t size, struct error *error);
/* Whether it can be read; whether the variable is set. For "", which names none, both are well. */
int secret_check(const char *file, const char *what, struct error *error);
int secret_check_variable(const char *name, struct error *error);

/* The tokens that HTTP clients must present. */

/* The token of a dialect: its own, or that of koine.token_file unless the dialect only accepts
 * its own. "": none. A token file must be private. */
int token_read(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct error *error);

/* Makes the file of a dialect whose life says so, unless the settings name one or "off". */
int token_make(const struct settings *s, const struct dialect *d, char *out, size_t size,
	       struct error *error);

/* Where the token is that only this dialect has; "": none, or it is not in a file. */
void token_find_file(const struct settings *s, const struct dialect *d, char *out, size_t size);

/* Only its own; only that of koine.token_file. */
int token_read_own(const struct settings *s, const struct dialect *d, char *out, size_t size,
		   struct error *error);
int token_read_common(const struct settings *s, char *out, size_t size, struct error *error);

/*
 * The koined that already runs at the socket we would take. --check asks it, because a
 * listener or store that it holds is not another obstacle.
 */

struct running {
	pid_t pid; /* 0: none is running */
	struct arena arena;
	const struct value *listeners; /* as daemon.status reports them */
	struct text store;             /* its file */
};

/* Asks at the Unix socket, for at most a few seconds. Another user's program, or one that does
 * not answer as koined does, does not count. Call running_done in any case. */
void running_ask(struct running *r, const char *path);
void running_done(struct running *r);

/* Whether it listens there; `address` as address_format has it. */
bool running_listens(const struct running *r, const char *address);

/*
 * What the daemon does for itself on the workers' threads: once a minute it deletes what has
 * expired or is too old, and returns to the file system what has become free; after a crash it
 * checks the store.
 */

struct housekeeping;

int housekeeping_start(struct server *server, struct engine *engine,
		       struct housekeeping **ret_housekeeping);

/* Accepts NULL. Call it after the server and all its work have ended. */
void housekeeping_free(struct housekeeping *h);

/* The engine has no JSON text; it gets this function for what must leave as JSON. */

/* In the arena. -EMSGSIZE for more than 8 MiB. */
int tree_json(struct arena *a, const struct value *v, struct text *ret_text);
