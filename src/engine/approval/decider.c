/*
 * Who may decide. An agent must not answer its own question: a client that is the asking
 * process, or was started by it, is refused. So is everything that koined itself runs, and
 * every client that cannot be identified. What is known of a client that may decide is
 * recorded with the decision.
 *
 * All of this reads /proc, on the writer's thread.
 */
#include <sys/random.h>
#include <unistd.h>

#include "io/process/lineage.h"
#include "io/process/tree.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"
#include "store/store.h"

enum { HOLDERS_MAX = 16 };

static const char way_out[] = "to allow this, set [approval] agents_decide = yes";

static void see_waiter(pid_t pid, struct approval *row)
{
	struct process_seen waiter;

	if (row->bond == BOND_NONE || row->waiter_pid > 0 || !process_see(pid, &waiter))
		return;
	row->waiter_pid = waiter.pid;
	row->waiter_started = waiter.started;
}

/* Two connections whose processes are unknown must not count as the same waiter. */
static int64_t draw_unknown(void)
{
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return -1 - (int64_t)(random >> 1);
}

void asker_see(const struct approval_client *from, struct approval *row)
{
	const struct peer *peer = &from->peer;
	struct process_seen speaker;
	pid_t pids[HOLDERS_MAX];
	unsigned n = peer->known ? peer_pids(peer, pids, HOLDERS_MAX) : 0;

	row->waiter_pid = row->bond != BOND_NONE ? from->pid : 0;
	row->waiter_started = row->bond != BOND_NONE ? from->started : 0;
	/* Whoever connected to a Unix socket is known by now, or gone, or in another namespace. */
	for (unsigned i = 0; i < n && !peer->local; i++)
		see_waiter(pids[i], row);
	if (row->bond == BOND_PROCESS && row->waiter_pid == 0)
		row->bond = BOND_CONNECTION;
	if (row->bond == BOND_CONNECTION && row->waiter_pid == 0)
		row->waiter_started = draw_unknown();
	for (unsigned i = 0; i < n; i++) {
		if (!lineage_speaker(pids[i], &speaker))
			continue;
		row->asker_pid = speaker.pid;
		row->asker_started = speaker.started;
		return;
	}
}

/* ---- may the client decide? ---- */

struct approval_decider_look {
	const struct approvals *approvals;
	const struct approval *row; /* NULL: for anything that may be asked */
	const char *owner;          /* of our marks */
	struct error *error;
};

static int refuse_agent(const struct approval_decider_look *l, const struct process_seen *who,
			const struct process_seen *agent)
{
	return refuse(l->error, REFUSE_FORBIDDEN,
		      "process %d (%.32s) belongs to process %d (%.32s), an agent that requests "
		      "approvals: a human must decide from another terminal (%s)",
		      (int)who->pid, who->name, (int)agent->pid, agent->name, way_out);
}

/* The agent that asks (a pid of another host is not one of ours) or, for a grant, any agent that has ever asked. */
static int is_asker(const struct approval_decider_look *l, const struct process_seen *p,
		    bool *ret_is)
{
	if (l->row) {
		*ret_is = l->row->asker_pid == p->pid && l->row->asker_started == p->started &&
			  approval_is_of_here(l->approvals, l->row);
		return 0;
	}
	return store_approval_has_asked(store_writer(l->approvals->opts.store),
					events_host(l->approvals->opts.events), p->pid, p->started,
					ret_is);
}

static int check_one(const struct approval_decider_look *l, const struct process_seen *who,
		     const struct process_seen *above)
{
	bool is = false;
	int r;

	if (above->pid == getpid() || (l->owner && tree_is_marked(above->pid, l->owner)))
		return refuse(l->error, REFUSE_FORBIDDEN,
			      "process %d (%.32s) was started by koined; programs that koined "
			      "starts cannot decide (%s)",
			      (int)who->pid, who->name, way_out);
	r = is_asker(l, above, &is);
	return r == 0 && is ? refuse_agent(l, who, above) : r;
}

static int refuse_unknown(const struct approval_decider_look *l)
{
	return refuse(l->error, REFUSE_FORBIDDEN,
		      "cannot identify the process that sent the decision (%s)", way_out);
}

static int check_process(const struct approval_decider_look *l, pid_t pid,
			 struct process_seen *ret_who)
{
	struct process_seen lineage[LINEAGE_MAX];
	unsigned n;
	int r = 0;

	/* An agent could hide where the lineage is incomplete. */
	if (!lineage_read(pid, lineage, &n))
		return refuse_unknown(l);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = check_one(l, &lineage[0], &lineage[i]);
	if (r == 0)
		*ret_who = lineage[0];
	return r;
}

/* ---- recording who decided ---- */

static int record(struct arena *arena, const struct peer *peer, const struct process_seen *who,
		  struct approval *ret)
{
	char program[PROGRAM_MAX];
	char terminal[TERMINAL_MAX];
	int r;

	ret->decider_known = true;
	ret->decider_uid = peer->uid;
	if (who->pid == 0)
		return 0;
	ret->decider_pid = who->pid;
	process_program(who, program);
	process_terminal(who, terminal);
	r = arena_copy_text(arena, text_of(program), &ret->decider_program);
	if (r == 0 && terminal[0])
		r = arena_copy_text(arena, text_of(terminal), &ret->decider_terminal);
	return r;
}

int decider_check(struct approvals *a, struct arena *arena, const struct approval_client *client,
		  const struct approval *row, struct approval *ret_by, struct error *error)
{
	const struct approval_decider_look l = {
		.approvals = a,
		.row = row,
		.owner = store_owner(a->opts.store),
		.error = error,
	};
	struct process_seen who = {0};
	pid_t pids[HOLDERS_MAX];
	unsigned n;
	int r = 0;

	if (!client->is)
		return 0;
	n = peer_pids(&client->peer, pids, HOLDERS_MAX);
	if (n == 0 && client->let_in && client->peer.known && client->peer.uid != geteuid())
		return ret_by ? record(arena, &client->peer, &who, ret_by) : 0;
	/* A larger number than we look at is a place to hide, too. */
	if (!a->opts.agents_decide && (n == 0 || n == HOLDERS_MAX))
		return refuse_unknown(&l);
	for (unsigned i = 0; r == 0 && !a->opts.agents_decide && i < n; i++)
		r = check_process(&l, pids[i], &who);
	if (a->opts.agents_decide && n > 0)
		(void)process_see(pids[0], &who);
	if (r != 0 || !ret_by || !client->peer.known)
		return r;
	return record(arena, &client->peer, &who, ret_by);
}

int approval_may_decide(struct approvals *approvals, const struct approval_client *client,
			struct error *error)
{
	return approvals ? decider_check(approvals, NULL, client, NULL, NULL, error) : 0;
}
