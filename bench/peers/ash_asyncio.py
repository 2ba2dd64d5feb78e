"""ash's four methods as one writes them with asyncio streams and Python's own sqlite3.

    ash_asyncio.py SOCKET DATABASE MEMORIES.ndjson

The original keeps its memories in SQLite as well, behind an object mapper; this one asks
the database directly. Only what the bench asks for is there: memory.list.
"""

import asyncio
import json
import sqlite3
import struct
import sys
import uuid

FRAME_MAX = 10 << 20


def open_store(path, source):
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    db.execute("CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT,"
               " owner TEXT, chat TEXT, created_at TEXT, expires_at TEXT)")
    db.execute("CREATE INDEX by_owner ON memories (owner, created_at)")
    with open(source) as lines, db:
        db.executemany(
            "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, NULL)",
            ((str(uuid.uuid4()), m["content"], m["source"], m["user_id"], m["chat_id"],
              m["created_at"]) for m in map(json.loads, lines)))
    return db


def memory_list(db, params):
    rows = db.execute(
        "SELECT id, content, source, created_at, expires_at FROM memories WHERE owner = ?"
        " AND (expires_at IS NULL OR expires_at > datetime('now'))"
        " ORDER BY created_at DESC LIMIT ?", (params.get("user_id"), params.get("limit") or 20))
    return [dict(row) for row in rows]


METHODS = {"memory.list": memory_list}


def answer(db, payload):
    try:
        request = json.loads(payload)
    except ValueError:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Invalid JSON"}}
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    method = METHODS.get(request.get("method"))
    if not method:
        return {**answer, "error": {"code": -32601, "message": "Method not found"}}
    try:
        return {**answer, "result": method(db, request.get("params") or {})}
    except Exception as error:  # as the original does: its text is the answer
        return {**answer, "error": {"code": -32603, "message": str(error)}}


async def serve(db, reader, writer):
    try:
        while True:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            if length > FRAME_MAX:
                break
            body = json.dumps(answer(db, await reader.readexactly(length))).encode()
            writer.write(struct.pack(">I", len(body)) + body)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # the client is gone, not wrong
    finally:
        writer.close()


async def main(path, database, source):
    db = open_store(database, source)
    server = await asyncio.start_unix_server(lambda r, w: serve(db, r, w), path, backlog=100)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:4]))
    except KeyboardInterrupt:
        pass
