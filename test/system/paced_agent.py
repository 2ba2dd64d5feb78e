#!/usr/bin/env python3
"""
An agent for sessions that says as many lines as it is let:

    koined --set session.program="python3 test/system/paced_agent.py SOCKET"

It connects to SOCKET, says "line 1", "line 2" and so on, one for each byte that it is sent, and
ends well when the other side does.
"""
import json
import socket
import sys


def line(**members):
    return json.dumps({**members, "session_id": "paced"}, separators=(",", ":")).encode() + b"\n"


def main():
    out = sys.stdout.buffer
    text = line(type="assistant", message={"role": "assistant", "content": [
        {"type": "text", "text": "line %d"}]})
    said = 0
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sys.argv[1])
        out.write(line(type="system", subtype="init"))
        out.flush()
        while leave := s.recv(1 << 16):
            out.write(b"".join(text % n for n in range(said + 1, said + len(leave) + 1)))
            out.flush()
            said += len(leave)
    out.write(line(type="result", subtype="success", is_error=False, result="said"))
    out.flush()


if __name__ == "__main__":
    main()
