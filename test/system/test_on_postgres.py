"""
The other system tests with one PostgreSQL server in place of their files: those of EVERY_TIME, with KOINE_EVERY_TEST=1 or
KOINE_SOAK=1 all but those of ELSEWHERE, or the suites that are named.

What can only be tested in a file skips itself, see only_in_a_file(). The server's own log is a judge, too: a
query that it did not understand is a fault, even if nobody noticed.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time

from harness import EVERYTHING, Failure, Skip, cpu_used
from postgres_server import Server

HERE = os.path.dirname(os.path.abspath(__file__))
# What runs here every time, and why: of each suite the tests that are named, or all. Every query has the same text in both
# databases, except for locks, batches and counts, and the store's own unit tests run every query on a server
# (test_postgres.py). These tests add what those cannot reach: many writers at once, batches that are retried, connections
# that break, and what a new daemon makes of the rows.
EVERY_TIME = {
    "memory (locks rows that it changes, adds many in a batch, and sweeps what another host does not hold)": {
        "memory": "update_changes_what_is_given_and_searches_see_it export_pages_through_everything"
                  " import_takes_all_or_none",
        "memory_history": "a_new_memory_may_replace_another expiry_takes_what_was_replaced_along"
                          " the_past_survives_a_kill",
        "memory_deleted": "deleted_memory_is_restored_with_its_history replaced_memories_go_and_return_together"
                          " restored_memory_does_not_expire_at_once ambiguous_prefix_is_refused",
        "memory_extract": "a_model_draws_facts_and_what_was_read_is_not_read_again",
        "embeddings": "memories_from_before_get_vectors_in_batches a_restart_goes_on_where_it_was"
                      " a_changed_text_gets_another_vector what_is_deleted_is_not_found_by_its_vector"
                      " another_model_makes_all_anew many_search_and_add_at_once"},
    "tasks (claims skip locked rows; numbers come from the batch)": {
        "tasks": "the_highest_priority_is_next what_comes_after_waits_for_all_of_them"
                 " a_group_has_its_own_limit_across_projects a_task_that_failed_is_queued_again_only_once"
                 " a_list_has_no_holes what_is_told_comes_after_the_answer_and_in_order"
                 " two_hundred_hear_all_of_two_hundred_tasks a_stop_in_the_middle_of_everything",
        "task_cancel": "a_cancel_between_two_tries_is_a_cancel a_cancel_as_soon_as_it_is_submitted many_cancel_the_same",
        "task_stash": "pause_is_seen_everywhere kept_back_over_a_restart_and_a_kill many_are_forgotten",
        "task_limits": "a_full_queue_is_said_and_has_room_again what_is_kept_has_an_end"
                       " a_clock_that_is_set_back_an_hour_confuses_nobody"},
    "conversations (a turn locks its conversation)": {
        "chat": "a_second_send_waits_its_turn cancel_keeps_what_came conversations_run_side_by_side"
                " the_default_conversation_survives_a_restart compact_makes_room pages_of_messages_are_in_order"
                " texts_of_all_kinds_come_through_whole ended_conversations_are_read_and_purged"
                " much_is_purged_in_steps_and_others_go_on",
        "chat_stress": ""},
    "sessions, approvals, and who decided": {
        "sessions": "what_people_change_of_a_session_that_runs_stays_changed many_events_are_shown_as_far_as_they_fit",
        "deciders": "the_connection_that_asks_does_not_decide"},
    "events (numbered by one row), and who follows them": {
        "events": "an_answer_precedes_its_event answers_precede_events_in_one_pipelined_read"
                  " a_batch_is_answered_before_its_events since_a_number_has_neither_gap_nor_double since_a_time"
                  " lists_page_by_page what_is_gone_is_said numbers_go_on_after_a_kill a_hundred_hear_everything"},
    "rules, jobs, their claims and trust": {
        "automation": "a_restart_around_the_minute_fires_once killed_around_the_minute_it_never_fires_twice"
                      " how_often_it_fired_is_known_over_a_restart switched_by_hand_it_stays_so",
        "trust": "a_clone_does_nothing_until_it_is_trusted only_what_is_there_is_distrusted"},
    "counts and lists, which a server folds in the background": {"growth": "", "lists": ""},
    "what was acknowledged is there after a kill": {"chat_durability": "", "task_durability": ""},
}
# All tests of these suites, and all others that have a store, run here in `./dev soak`: dialects, the command line,
# notifications, settings and MCP reach the queries above through the same functions of the engine, and differ in what they
# send.
# What never runs here, and why. Nothing of it is about what is kept.
ELSEWHERE = {
    "each of its tests reads, changes or damages a file": ("durability", "random_calls", "retention"),
    "it has servers of its own": ("availability", "hosts", "hosts_work", "postgres", "store_move"),
    "no store is asked: bytes, and who sends or reads them": (
        "framings", "json_cases", "limits", "mcp", "mcp_pipe", "mcp_wire", "provider", "slow_clients"),
    "no store is asked: files, documents, and places in the system": (
        "codex_trust", "connect", "connect_http", "docs", "doctor", "packaging", "places", "units"),
    "what shells and a browser make of answers, which are the same": ("completion", "page_browser", "page_hostile"),
}
# What is wrong on purpose: keys that are taken are tried, a test's daemon may be killed, and of a large answer not
# all is wanted.
EXPECTED = re.compile(r"duplicate key value|terminating |canceling statement due to user request")
AT_ONCE = 3 * os.cpu_count()
TALLY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def run(name, tests, env):
    begun = time.monotonic()
    done = subprocess.run([sys.executable, os.path.join(HERE, "test_%s.py" % name), *tests], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return name, done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begun


def check_names(chosen):
    for name, tests in chosen.items():
        with open(os.path.join(HERE, "test_%s.py" % name)) as f:
            text = f.read()
        for test in tests:
            if not re.search(r"^def test_\w*" + test, text, re.M):
                raise Failure("there is no test '%s' in %s" % (test, name))


def everything():
    """Those that take long first, so that none of them is left alone at the end."""
    with open(os.path.join(HERE, "meson.build")) as f:
        text = f.read()
    names = re.findall(r"^  '(\w+)': (?:true|false),$", text, re.M)
    long = re.findall(r"'(\w+)'", re.search(r"^long_tests = \[(.*?)\]", text, re.M | re.S).group(1))
    chosen = {name: tests.split() for suites in EVERY_TIME.values() for name, tests in suites.items()}
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    unknown = {*elsewhere, *chosen} - set(names)
    if unknown:
        raise Failure("there is no %s" % ", ".join(sorted(unknown)))
    check_names(chosen)
    if EVERYTHING:
        chosen = {name: [] for name in names if name not in elsewhere}
    return dict(sorted(chosen.items(), key=lambda one: one[0] not in long))


def run_all(chosen, url):
    """How many of their tests passed, failed and were skipped."""
    env = dict(os.environ, KOINE_TEST_SERVER=url)
    total = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, *one, env) for one in chosen.items()]):
            name, status, said, seconds = done.result()
            print("%s, %.0f s:" % (name, seconds))
            print("\n".join("  " + line for line in said.splitlines()
                            if status != 0 or not line.startswith(("ok ", " "))), flush=True)
            found = [int(n or 0) for n in (TALLY.findall(said) or [(0, 0, 0)])[-1]]
            found[1] = max(found[1], int(status != 0))
            total = [a + b for a, b in zip(total, found)]
    return total


def faults_in(log):
    with open(log, errors="replace") as f:
        return [l.strip() for l in f
                if re.search(r" (?:ERROR|FATAL|PANIC): ", l) and not EXPECTED.search(l)]


def main():
    chosen = {name: [] for name in sys.argv[1:]} or everything()
    with Server("-c max_connections=500") as server:
        server.make_template()
        passed, failed, skipped = run_all(chosen, server.url(""))
        faults = faults_in(server.folder + "/log")
    for line in faults[:50]:
        print("FAIL the server says: " + line)
    print("CPU: %.1f s" % cpu_used())
    print("%d passed, %d failed, %d skipped" % (passed, failed + len(faults), skipped))
    sys.exit(1 if failed or faults else 0)


if __name__ == "__main__":
    try:
        main()
    except Skip as why:
        print("skip on_postgres: %s" % why)
        print("0 passed, 0 failed, 1 skipped")
    except Failure as why:
        print("FAIL on_postgres: %s" % why)
        sys.exit(1)
