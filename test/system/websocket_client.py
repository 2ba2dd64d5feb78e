"""A WebSocket client of a few lines, which can also say what no client should."""
import base64
import hashlib
import json
import os
import struct

from harness import Client, Failure, check, same

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(op, data=b"", fin=True, mask=True, bits=0, length=None):
    """One frame; length says another than it has."""
    n = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | bits | op])
    top = 0x80 if mask else 0
    if n < 126:
        head += bytes([top | n])
    elif n < 65536:
        head += bytes([top | 126]) + struct.pack(">H", n)
    else:
        head += bytes([top | 127]) + struct.pack(">Q", n)
    if not mask:
        return head + data
    key = os.urandom(4)
    pad = (key * (len(data) // 4 + 1))[:len(data)]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")
    return head + key + masked.to_bytes(len(data), "big")


def ask(address, path, headers="", version="13", key=None, host="localhost"):
    """The connection and the answer to an upgrade."""
    c = Client(address)
    key = base64.b64encode(os.urandom(16)).decode() if key is None else key
    c.send(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive, Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: %s\r\nSec-WebSocket-Key: %s\r\n%s\r\n"
            % (path, host, version, key, headers)).encode())
    head = c.take_until(b"\r\n\r\n").decode()
    return c, int(head.split()[1]), head, key


class WebSocket:
    """For a `with`."""

    def __init__(self, address, path, headers=""):
        self.client, status, head, key = ask(address, path, headers)
        same(status, 101, "status: %s" % head)
        want = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
        check("Sec-WebSocket-Accept: %s\r\n" % want in head, "%s", head)
        check("Upgrade: websocket\r\n" in head, "%s", head)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()

    def send(self, op, data=b"", **how):
        self.client.send(frame(op, data, **how))

    def say(self, message):
        self.send(TEXT, json.dumps(message).encode())

    def frame(self):
        """Opcode and data of the next, which must be whole and bare."""
        first, second = self.client.take(2)
        check(first & 0x70 == 0 and second & 0x80 == 0, "not a server's frame: %x %x", first,
              second)
        check(first & 0x80, "in pieces")
        n = second
        if n == 126:
            n = struct.unpack(">H", self.client.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.client.take(8))[0]
        return first & 15, self.client.take(n)

    def hear(self):
        """The next message; pings on the way are answered."""
        while True:
            op, data = self.frame()
            if op == PING:
                self.send(PONG, data)
            elif op == TEXT:
                return json.loads(data)
            else:
                raise Failure("unexpected frame %d: %r" % (op, data))

    def closed(self, code=None):
        """The code of the close that comes next, before the end of the stream."""
        op, data = self.frame()
        same(op, CLOSE, "frame (%r)" % data)
        got = struct.unpack(">H", data[:2])[0] if data else None
        if code is not None:
            same(got, code, "close code (%r)" % data[2:])
        self.client.ended()
        return got
