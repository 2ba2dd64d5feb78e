"""A store with so many of everything, for bench/growth.

The rows are put into the file in bulk, while nobody serves it: a million of each through a socket
would take an hour and end in the same rows. `check` then asks koined how many it finds.
"""

import sqlite3

NOW = 1_760_000_000_000  # the time of all rows; in the past, so that nothing is due
NEVER = 9_000_000_000_000

# One user whose memories do not grow, beside ever more users with a few.
ANNA = 500
PER_USER = 25

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) "


def uuid(kind, number):
    """The SQL of an id: `number` is an expression."""
    return f"printf('%08x-0000-4000-{kind}-%012x', {number}, {number})"


def session_id(number):
    return "%08x-0000-4000-9000-%012x" % (number, number)


TASK_COLUMNS = """project, id, state, priority, created_ms, started_ms, completed_ms, pid,
    pid_started, exit_status, signal, output_bytes, timeout_ms, attempts, max_attempts, retry_ms,
    not_before_ms, n_after, group_name, runner, prompt, result"""

# {n} of each noun, {tenth} sessions. Tables in the order of their references.
ROWS = [
    ("memory", f"""id, content_hash, source, category, importance, owner, shared, created_ms,
        updated_ms, stored_ms, subjects, metadata, content""",
     f"""{uuid('8000', 'i')}, i, 'agent', CASE i % 3 WHEN 0 THEN 'fact' WHEN 1 THEN 'plan'
        ELSE 'taste' END, 0.5, CASE WHEN i <= {ANNA} THEN 'anna' ELSE 'user' || (i / {PER_USER}) END,
        0, {NOW} + i, {NOW} + i, {NOW} + i, '', '{{{{}}}}', 'the ' || i || 'th thing is about topic' ||
        (i % 997) || ' and place' || (i % 89) FROM n"""),
    # Half of them ended.
    ("conversation", """id, created_ms, updated_ms, ended_ms, n_messages, answered, summary_tokens,
        summary_turn""",
     f"""'c' || i, {NOW} + i, {NOW} + i, CASE WHEN i % 2 THEN {NOW} + i END, 2, 1, 0, 0
        FROM n WHERE i <= {{n}} / 2"""),
    ("turn", "conversation, request_id, agent, state, started_ms, ended_ms",
     f"i, 'r' || i, 'recall', 1, {NOW} + i, {NOW} + i FROM n WHERE i <= {{n}} / 2"),
    ("message", "conversation, turn, role, tokens, created_ms, failed, n_calls, text",
     f"(i + 1) / 2, (i + 1) / 2, i % 2, 10, {NOW} + i, 0, 0, 'message number ' || i FROM n"),
    # All have ended, two of a hundred of them failed.
    ("task", TASK_COLUMNS,
     f"""'', printf('task-%04d', i), 2 + (i % 50 = 0), i % 7, {NOW} + i, {NOW} + i, {NOW} + i, 0, 0,
        0, 0, 0, 0, 1, 1, 0, 0, 0, CASE WHEN i % 3 = 0 THEN 'group' || (i % 7) END, 'nothing',
        'do thing ' || i, CAST('done' AS BLOB) FROM n"""),
    ("session", """id, run, status, archived, created_ms, active_ms, ended_ms, cost_usd, input_tokens,
        output_tokens, duration_ms, turns, runner, working_dir, summary""",
     f"""{uuid('9000', 'i')}, {uuid('a000', 'i')}, 4, i % 2, {NOW} + i, {NOW} + i, {NOW} + i, 0, 1, 1,
        1, 1, 'claude', '/src/' || (i % 50), 'did ' || i FROM n WHERE i <= {{tenth}}"""),
    ("session_text", "seq, query", "seq, CAST('ask' AS BLOB) FROM session"),
    # Half of all was said in the first session; in the others five each.
    ("session_event", "session, sequence, type, created_ms, completed, approval, role, content",
     f"""CASE WHEN i <= {{n}} / 2 THEN 1 ELSE 2 + i % ({{tenth}} - 1) END,
        CASE WHEN i <= {{n}} / 2 THEN i ELSE 1 + i / ({{tenth}} - 1) END, 0, {NOW} + i, 1, 0,
        'assistant', CAST('words ' || i AS BLOB) FROM n"""),
    ("approval", """id, kind, status, event_id, created_ms, deadline_ms, decided_ms, tool, session,
        decided_by""",
     f"""{uuid('b000', 'i')}, 0, 1 + i % 2, 0, {NOW} + i, 0, {NOW} + i, 'Bash',
        {uuid('9000', '(1 + i % {tenth})')}, 'human' FROM n"""),
    # One type of which there is one, at the very beginning.
    ("event", "type, time_ms, session, run",
     f"""CASE WHEN i = 1 THEN 'rare.one' ELSE 'kind' || (i % 12) END, {NOW} + i,
        {uuid('9000', '(1 + i % {tenth})')}, {uuid('a000', '(1 + i % {tenth})')} FROM n"""),
]


# A tenth more, that wait for a distant day.
WAITING = [
    ("task", TASK_COLUMNS,
     f"""'', printf('task-%04d', {{n}} + i), 0, i % 7, {NOW} + i, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0,
        {NEVER} + i, 0, NULL, 'nothing', 'do thing ' || i, NULL FROM n WHERE i <= {{tenth}}"""),
]


def put(path, n, rows):
    """Into a store that koined has made, and does not serve."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -500000")
    db.execute("BEGIN")
    for table, columns, values in rows:
        count = COUNT if " FROM n" in values else ""
        sql = f"{count}INSERT INTO {table} ({columns}) SELECT {values}"
        db.execute(sql.format(n=n, tenth=n // 10))
    db.execute("INSERT OR REPLACE INTO task_project (name, next) VALUES ('', ?)", (2 * n,))
    db.execute("UPDATE event_counter SET last_seq = max(last_seq, (SELECT coalesce(max(seq), 0) FROM event))")
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
