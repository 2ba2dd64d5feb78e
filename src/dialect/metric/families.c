/* Every family, in the order in which they are shown. doc/metrics.md has a line for each. */
#include "dialect/metric/metric.h"

enum { MS = 1000, NS = 1000000000, MICRO = 1000000 };

/* Compiles only for members of this type. */
#define AT(tag, member, type)                                                                      \
	.at = _Generic(((struct tag *)NULL)->member, type : offsetof(struct tag, member))
#define NUMBER(member)    .collect = collect_number, AT(metric_from, member, uint64_t)
#define LISTENERS(member) .collect = collect_listeners, AT(metric_listeners, member, uint64_t)
#define HISTOGRAM(member)                                                                          \
	.collect = collect_histogram, AT(metric_from, member, const struct histogram *)
#define LABELS(...) .labels = {__VA_ARGS__}

const struct metric_family metric_families[] = {
	{"koine_build_info", METRIC_GAUGE, NULL,
	 "Always 1; the label version contains koined's version.", LABELS("version"),
	 .collect = collect_build},
	{"koine_start_time_seconds", METRIC_GAUGE, "seconds",
	 "Start time of the daemon, in seconds since 1970.", .per = MS, NUMBER(start_ms)},

	{"koine_calls", METRIC_COUNTER, NULL, "Completed calls.",
	 LABELS("dialect", "method", "outcome"), .collect = collect_calls},
	{"koine_call_refusals", METRIC_COUNTER, NULL, "Calls that failed or were rejected.",
	 LABELS("dialect", "reason"), .collect = collect_refusals},
	{"koine_call_duration_seconds", METRIC_HISTOGRAM, "seconds",
	 "Duration of calls, from the start to the response.", LABELS("dialect", "method"),
	 .scale = &histogram_times, .per = NS, .collect = collect_call_times},
	{"koine_calls_running", METRIC_GAUGE, NULL, "Calls in progress.", NUMBER(calls_running)},
	{"koine_calls_parked", METRIC_GAUGE, NULL, "Calls waiting for free RAM for their response.",
	 NUMBER(calls_parked)},

	{"koine_connections", METRIC_GAUGE, NULL, "Open connections.", LABELS("dialect"),
	 LISTENERS(connections)},
	{"koine_connections_accepted", METRIC_COUNTER, NULL, "Accepted connections.",
	 LABELS("dialect"), LISTENERS(accepted)},
	{"koine_connections_refused", METRIC_COUNTER, NULL, "Refused connections.",
	 LABELS("dialect", "reason"), .collect = collect_refused},
	{"koine_http_requests_refused", METRIC_COUNTER, NULL,
	 "HTTP requests rejected before koined parsed a call.", LABELS("dialect", "reason"),
	 .collect = collect_gate},
	{"koine_received_bytes", METRIC_COUNTER, "bytes", "Bytes received from clients.",
	 LABELS("dialect"), LISTENERS(bytes_in)},
	{"koine_sent_bytes", METRIC_COUNTER, "bytes", "Bytes sent to clients.", LABELS("dialect"),
	 LISTENERS(bytes_out)},
	{"koine_notifications_dropped", METRIC_COUNTER, NULL,
	 "Notifications that koined dropped because the client read too slowly.", LABELS("dialect"),
	 LISTENERS(dropped)},
	{"koine_answers_waiting_bytes", METRIC_GAUGE, "bytes",
	 "RAM used by long responses that clients have not read yet.", NUMBER(answers)},
	{"koine_input_waiting_bytes", METRIC_GAUGE, "bytes",
	 "Bytes of incomplete messages from clients.", NUMBER(input)},

	{"koine_loop_held_seconds", METRIC_HISTOGRAM, "seconds",
	 "Event loop delays of at least 4 ms.", .scale = &histogram_times, .per = NS,
	 HISTOGRAM(held)},
	{"koine_work_waiting", METRIC_GAUGE, NULL, "Jobs waiting for a reader or writer thread.",
	 LABELS("queue"), .collect = collect_work},
	{"koine_store_commit_duration_seconds", METRIC_HISTOGRAM, "seconds",
	 "Duration of successful commits to the store.", .scale = &histogram_times, .per = NS,
	 HISTOGRAM(commits)},
	{"koine_store_commits_failed", METRIC_COUNTER, NULL, "Failed commits to the store.",
	 NUMBER(workers.n_failed)},
	{"koine_store_batch_calls", METRIC_HISTOGRAM, NULL,
	 "Number of changes per commit to the store.", .scale = &histogram_sizes, .per = 1,
	 HISTOGRAM(batches)},
	{"koine_store_writable", METRIC_GAUGE, NULL,
	 "State of the store: 1 means writable, 0 means that a write failed.", NUMBER(writable)},

	{"koine_tasks", METRIC_GAUGE, NULL, "Stored tasks.", LABELS("state"),
	 .collect = collect_tasks},
	{"koine_approvals_pending", METRIC_GAUGE, NULL, "Pending approvals.", NUMBER(approvals)},
	{"koine_approvals_decided", METRIC_COUNTER, NULL, "Decided approvals.",
	 LABELS("outcome", "by"), .collect = collect_decisions},
	{"koine_approval_wait_seconds", METRIC_HISTOGRAM, "seconds",
	 "Time from the request to the decision, for approvals not decided by a policy or "
	 "a grant.",
	 .scale = &histogram_waits, .per = MS, HISTOGRAM(approval_waits)},
	{"koine_sessions_running", METRIC_GAUGE, NULL, "Running agent sessions.", NUMBER(sessions)},
	{"koine_agent_turns", METRIC_COUNTER, NULL,
	 "Finished conversation turns and finished sessions.", LABELS("agent", "via", "outcome"),
	 .collect = collect_turns},
	{"koine_agent_tokens", METRIC_COUNTER, NULL, "Tokens that agents reported.",
	 LABELS("agent", "via", "kind"), .collect = collect_tokens},
	{"koine_agent_cost_usd", METRIC_COUNTER, "usd", "Cost that agents reported, in US dollars.",
	 LABELS("agent", "via"), .per = MICRO, .collect = collect_cost},
	{"koine_children_running", METRIC_GAUGE, NULL, "Running programs that the daemon started.",
	 NUMBER(children)},

	{"koine_indexes", METRIC_GAUGE, NULL, "Search indexes in RAM.", NUMBER(memory.n_indexes)},
	{"koine_index_bytes", METRIC_GAUGE, "bytes", "RAM used by search indexes.",
	 NUMBER(memory.index_bytes)},
	{"koine_search_duration_seconds", METRIC_HISTOGRAM, "seconds",
	 "Duration of memory searches, excluding the time in the queue.", .scale = &histogram_times,
	 .per = NS, HISTOGRAM(searches)},

	{"koine_events_published", METRIC_COUNTER, NULL, "Events that this koined has published.",
	 NUMBER(events.published)},
	{"koine_event_subscribers", METRIC_GAUGE, NULL, "Number of event subscriptions.",
	 NUMBER(events.subscribers)},
	{"koine_events_lost", METRIC_COUNTER, NULL,
	 "Events that subscribers missed, summed over all subscribers.", NUMBER(events.lost)},
	{"koine_log_lines", METRIC_COUNTER, NULL, "Log lines that koined wrote.", LABELS("level"),
	 .collect = collect_log_lines},
	{"koine_log_lines_left_out", METRIC_COUNTER, NULL,
	 "Log lines that koined omitted because of the log's rate limit.", NUMBER(log_left_out)},

	{"koine_process_resident_memory_bytes", METRIC_GAUGE, "bytes",
	 "Resident memory of the daemon.", NUMBER(process.rss)},
	{"koine_process_cpu_seconds", METRIC_COUNTER, "seconds",
	 "CPU time of the daemon, excluding its children.", .per = NS, NUMBER(process.cpu_ns)},
	{"koine_process_open_fds", METRIC_GAUGE, NULL, "Open file descriptors of the daemon.",
	 NUMBER(process.open_fds)},
	{"koine_process_max_fds", METRIC_GAUGE, NULL,
	 "Maximum number of open file descriptors of the daemon.", NUMBER(process.max_fds)},
};

const unsigned n_metric_families = sizeof(metric_families) / sizeof(metric_families[0]);
