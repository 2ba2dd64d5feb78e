/*
 * Changing files and scheduled times in a project. As its daemon.json asks, both become events
 * for its rules ("watch": file.create, file.modify, file.delete; "schedule": cron.fired).
 */
#pragma once

#include "dialect/aiwg/aiwg.h"
#include "dialect/aiwg/config.h"

struct project_watch;

/* The config and `shown` must outlive it; it keeps in `shown` what the status reports. Folders
 * that cannot be watched, and invalid times, are logged and left out. */
int project_watch_start(struct loop *l, struct engine *s, const struct aiwg_config *config,
			struct aiwg_project *shown, struct project_watch **ret_watch);
void project_watch_free(struct project_watch *w); /* accepts NULL */
