/* koine approvals -w on a terminal. */
#include "cli/approval/inbox.h"

struct watch {
	struct live live;
	struct inbox inbox;
};

static void on_back(void *arg)
{
	struct watch *w = arg;

	inbox_back(&w->inbox);
}

static void on_away(void *arg)
{
	struct watch *w = arg;

	inbox_away(&w->inbox);
}

static void on_told(void *arg, const struct koine_value *event)
{
	struct watch *w = arg;

	inbox_told(&w->inbox, event);
}

static int ask(void *arg)
{
	struct watch *w = arg;

	inbox_ask(&w->inbox);
	return LIVE_NEVER;
}

static void on_key(void *arg, int key)
{
	struct watch *w = arg;

	inbox_key(&w->inbox, key);
}

static void draw(void *arg, struct canvas *c)
{
	struct watch *w = arg;

	if (inbox_is_viewing(&w->inbox))
		inbox_draw_view(&w->inbox, c);
	else
		inbox_draw_list(&w->inbox, c, 0, c->rows > 2 ? c->rows - 1 : 1);
	inbox_draw_foot(&w->inbox, c);
}

int approvals_watch(struct cli *cli)
{
	static const struct option_list types = {.values = {"approval.*"}, .n = 1};
	const struct approval_options *o = cli->own;
	struct watch w = {
		.live = {.cli = cli,
			 .arg = &w,
			 .types = &types,
			 .back = on_back,
			 .away = on_away,
			 .told = on_told,
			 .ask = ask,
			 .key = on_key,
			 .draw = draw},
	};
	int r;

	inbox_init(&w.inbox, &w.live, o->session);
	r = live_run(&w.live);
	inbox_done(&w.inbox);
	return r;
}
