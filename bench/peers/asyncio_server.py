"""A newline JSON-RPC server as one writes it with Python's asyncio streams."""

import asyncio
import datetime
import json
import sys

LINE_MAX = 1 << 20


def ping(_params):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"pong": True, "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"}


METHODS = {"ping": ping}


def answer(line):
    try:
        request = json.loads(line)
    except ValueError:
        return {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": None}
    method = METHODS.get(request.get("method"))
    if not method:
        error = {"code": -32601, "message": "Method not found"}
        return {"jsonrpc": "2.0", "error": error, "id": request.get("id")}
    return {"jsonrpc": "2.0", "result": method(request.get("params")), "id": request.get("id")}


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            writer.write(json.dumps(answer(line)).encode() + b"\n")
            await writer.drain()
    except ConnectionError:
        pass  # the client is gone, not wrong
    finally:
        writer.close()


async def main(path):
    server = await asyncio.start_unix_server(serve, path, limit=LINE_MAX, backlog=4096)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        pass
