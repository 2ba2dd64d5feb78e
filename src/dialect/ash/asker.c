/* Who is asking: from the parameters or, where a secret is set, from a signed token. */
#include "base/clock.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/ash/ash.h"

int ash_asker(struct call *c, const struct ash_who *who, struct memory_asker *ret_asker)
{
	const struct ash_settings *settings =
		c->dialect == &ash_dialect ? c->endpoint->settings : NULL;
	struct context_claims claims;
	int r;

	if (!settings || settings->secret.n == 0) {
		*ret_asker = (struct memory_asker) {
			.user = who->user_id, .chat = who->chat_id, .chat_type = who->chat_type};
		return 0;
	}
	r = context_token_check(&c->arena, who->context_token, &settings->secret,
				clock_utc_ms() / 1000, &claims, &c->why);
	if (r == 0)
		*ret_asker = (struct memory_asker) {
			.user = claims.user, .chat = claims.chat, .chat_type = claims.chat_type};
	return r;
}
