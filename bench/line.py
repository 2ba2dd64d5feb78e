"""A connection to koine's socket, for one call after another."""

import json
import socket
import time


class Line:
    """A connection that speaks JSON lines."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.id = 0

    def close(self):
        self.file.close()
        self.socket.close()

    def request(self, method, params):
        self.id += 1
        text = json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        return text.encode() + b"\n"

    def timed(self, request):
        """The answer's bytes, and how long it took. Notifications before it are passed over."""
        start = time.perf_counter_ns()
        self.socket.sendall(request)
        while True:
            answer = self.file.readline()
            if not answer:
                raise RuntimeError("koined hung up")
            if b'"method"' not in answer[:60]:
                return answer, time.perf_counter_ns() - start

    def call(self, method, params):
        answer = json.loads(self.timed(self.request(method, params))[0])
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]
