"""A relay of streams as one writes it with asyncio streams: JSON-RPC lines on one side, a
provider's server-sent events on the other, a line for each event.

    relay_asyncio.py SOCKET HOST:PORT

No HTTP library is needed for this much, and one would only make it slower. Nothing is
kept but the text, for the answer.
"""

import asyncio
import json
import sys

LINE_MAX = 1 << 20


async def ask(host, port, question):
    """The provider's events, each as the object it holds."""
    body = json.dumps({"model": "bench", "stream": True, "stream_options": {"include_usage": True},
                       "messages": [{"role": "user", "content": question}]}).encode()
    reader, writer = await asyncio.open_connection(host, port, limit=LINE_MAX)
    try:
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: " + host.encode() +
                     b"\r\nContent-Type: application/json\r\nContent-Length: " +
                     str(len(body)).encode() + b"\r\n\r\n" + body)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError("the provider refused")
        while line := await reader.readline():
            if not line.startswith(b"data:"):
                continue  # the chunks' lengths, and empty lines
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)
    finally:
        writer.close()


async def stream(writer, provider, request):
    params, parts, offset = request["params"], [], 0
    name = {"request_id": str(request["id"]), "conversation": params.get("conversation")}
    async for event in ask(*provider, params["content"]):
        for choice in event["choices"]:
            text = choice["delta"].get("content")
            if not text:
                continue
            parts.append(text)
            note = {**name, "offset": offset, "text": text}
            offset += len(text)
            line = json.dumps({"jsonrpc": "2.0", "method": "chat.text", "params": note})
            writer.write(line.encode() + b"\n")
            await writer.drain()
    return {"content": "".join(parts), **name}


async def serve(provider, reader, writer):
    try:
        while line := await reader.readline():
            request = json.loads(line)
            answer = {"jsonrpc": "2.0", "result": await stream(writer, provider, request),
                      "id": request["id"]}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # somebody is gone, not wrong
    finally:
        writer.close()


async def main(path, address):
    host, _, port = address.rpartition(":")
    provider = (host, int(port))
    server = await asyncio.start_unix_server(lambda r, w: serve(provider, r, w), path,
                                             limit=LINE_MAX, backlog=4096)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:3]))
    except KeyboardInterrupt:
        pass
