"""
A client of ash as its specification has it, with nothing of ours in it:
JSON-RPC 2.0 behind a 4-byte big-endian length, on a Unix socket.

rpc_call() is the sandbox's client: one connection a call, and it tries again, with
exponential backoff, when the connection fails. Like the original it reads the
header with one recv(4), so a server that sends it in two pieces is found out.
"""
import json
import os
import socket
import struct
import time

MAX_MESSAGE = 10 * 1024 * 1024
DEFAULT_SOCKET = "/run/ash/rpc.sock"


class RPCError(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def frame(payload):
    return struct.pack(">I", len(payload)) + payload


def read_frame(sock):
    """One message; None when the server closed instead."""
    header = sock.recv(4)
    if len(header) != 4:
        return None
    (length,) = struct.unpack(">I", header)
    if length > MAX_MESSAGE:
        raise ValueError("Message too large: %d" % length)
    parts = []
    while length > 0:
        part = sock.recv(min(length, 1 << 20))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def connect(address, timeout=20.0):
    """address: a path, or (host, port)."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def request_bytes(method, params=None, id=1):
    """As the original writes it: members in this order, everything ASCII."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {},
                       "id": id}).encode()


def open_answer(payload):
    answer = json.loads(payload)
    # The original asks `"error" in data`: a null there would break it.
    if "error" in answer:
        error = answer["error"]
        raise RPCError(error.get("code", -32603), error.get("message", "Unknown error"),
                       error.get("data"))
    return answer.get("result")


def call_once(address, payload):
    with connect(address) as sock:
        sock.sendall(frame(payload))
        answer = read_frame(sock)
    if answer is None:
        raise ConnectionError("Connection closed by server")
    return open_answer(answer)


def rpc_call(method, params=None, max_retries=3, retry_delay=0.5, address=None):
    """Calls; on a connection error tries max_retries times more, waiting twice as long each time."""
    address = address or os.environ.get("ASH_RPC_SOCKET", DEFAULT_SOCKET)
    if isinstance(address, str) and not os.path.exists(address):
        raise ConnectionError("RPC socket not found: %s" % address)
    payload = request_bytes(method, params)
    for attempt in range(max_retries + 1):
        try:
            return call_once(address, payload)
        except (OSError, json.JSONDecodeError) as why:
            if attempt == max_retries:
                raise ConnectionError("RPC connection failed after %d attempts: %s"
                                      % (attempt + 1, why)) from None
            time.sleep(retry_delay * 2 ** attempt)
    raise AssertionError
