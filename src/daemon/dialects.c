#include <string.h>

#include "daemon/daemon.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/ash/ash.h"
#include "dialect/embedding/embedding.h"
#include "dialect/hld/hld.h"
#include "dialect/gateway/gateway.h"
#include "dialect/koine/koine.h"
#include "dialect/nexus/nexus.h"
#include "dialect/ocg/ocg.h"

const struct spoken dialects[] = {
	{.dialect = &koine_dialect, .socket = "koine.sock"},
	{.dialect = &ash_dialect,
	 .socket = "ash.sock",
	 .variable = "ASH_RPC_SOCKET",
	 .place = "/run/ash/rpc.sock"},
	{.dialect = &hld_dialect,
	 .socket = "hld.sock",
	 .variable = "HUMANLAYER_SOCKET_PATH",
	 .old_variable = "HUMANLAYER_DAEMON_SOCKET",
	 .place = "~/.humanlayer/daemon.sock"},
	{.dialect = &ocg_dialect,
	 .socket = "ocg.sock",
	 .variable = "OPENCLAW_AGENT_SOCK",
	 .place = "/tmp/ocg-agent.sock"},
	{.dialect = &nexus_dialect, .address = "http:127.0.0.1:8765"},
	{.dialect = &aiwg_dialect, .socket = ".aiwg/daemon/daemon.sock", .in_project = true},
	{.dialect = &gateway_dialect, .address = "http:127.0.0.1:55003", .optional = true},
	{.dialect = &embedding_dialect, .address = "http:127.0.0.1:50001", .optional = true},
};

const unsigned n_dialects = sizeof(dialects) / sizeof(dialects[0]);

const struct spoken *dialect_find(const char *name)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		if (strcmp(dialects[i].dialect->name, name) == 0)
			return &dialects[i];
	}
	return NULL;
}
