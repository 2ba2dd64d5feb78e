#!/usr/bin/env python3
"""What is installed is enough: examples/ builds against it as C and as C++, and runs.

BUILD is the build folder. Installs into a folder of its own and leaves nothing.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["BUILD"]
EXAMPLES = os.path.join(ROOT, "examples")

COMPILERS = {
    "c": ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L"],
    "c++": ["c++", "-std=c++11"],
}
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), done.stdout))
    return done.stdout


def find(folder, name, under=""):
    for at, _, files in os.walk(folder):
        if name in files and at.endswith(under):
            return os.path.join(at, name)
    sys.exit("%s is not installed" % name)


def flags(dest, package):
    """Compiler and linker flags, as pkg-config tells them of the installed files."""
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=dest,
               PKG_CONFIG_PATH=os.path.dirname(find(dest, package + ".pc")))
    return run(["pkg-config", "--cflags", "--libs", package], env=env).split()


def package_of(source):
    """The examples say themselves what they are built with."""
    with open(source) as f:
        named = re.search(r"pkg-config --cflags --libs ([\w-]+)", f.read())
    if not named:
        sys.exit("%s does not say how to build it" % source)
    return named.group(1)


def check_libraries(dest):
    for name in "libkoine.so.0", "libkoine-client.so.0":
        path = find(dest, name)
        shown = run(["nm", "-D", "--defined-only", path]).split("\n")
        names = {line.split()[2].split("@")[0] for line in shown if len(line.split()) == 3}
        strangers = {n for n in names if not n.startswith("koine_") and n != "KOINE_0"}
        if strangers or not names:
            sys.exit("%s shows %s" % (name, sorted(strangers)))
    client = find(dest, "libkoine-client.so.0")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", client]))
    # the loader is libc's
    if [n for n in needed if not n.startswith(("libc.so", "ld-linux"))]:
        sys.exit("the talking half needs %s" % needed)


def check_openrpc(dest):
    """The methods of koine's own dialect, beside the header."""
    with open(find(dest, "openrpc.json", under="include/koine")) as f:
        names = [m["name"] for m in json.load(f)["methods"]]
    if "task.add" not in names:
        sys.exit("openrpc.json lacks methods: %s" % names)


def check_man_pages(dest):
    """Every page of doc/man, and what it sends the reader to, is there."""
    if not shutil.which("scdoc"):
        return
    pages = [f[:-4] for f in os.listdir(os.path.join(ROOT, "doc", "man")) if f.endswith(".scd")]
    for page in pages:
        with open(find(dest, page)) as f:
            text = f.read().replace("\\fB", "").replace("\\fR", "").replace("\\&", "")
        for name, section in re.findall(r"\b((?:lib)?koined?(?:\.conf)?)\((\d)\)", text):
            if "%s.%s" % (name, section) not in pages:
                sys.exit("%s names %s(%s), which is no page" % (page, name, section))


def check_completions(dest):
    """Where each shell looks, and what the installed files say is what the shells can read."""
    for path in ("bash-completion/completions/koine", "bash-completion/completions/koined",
                 "zsh/site-functions/_koine", "fish/vendor_completions.d/koine.fish",
                 "fish/vendor_completions.d/koined.fish"):
        found = find(dest, os.path.basename(path), under=os.path.dirname(path))
        shell = path.split("/")[0].split("-")[0]
        if shutil.which(shell):
            run([shell, "-n", found])


def compile_examples(dest, out):
    programs = []
    for source in sorted(os.listdir(EXAMPLES)):
        if not source.endswith(".c"):
            continue
        path = os.path.join(EXAMPLES, source)
        for language, compiler in COMPILERS.items():
            program = os.path.join(out, "%s-%s" % (source[:-2], language))
            run(compiler + STRICT + ["-x", language, path, "-x", "none", "-o", program]
                + flags(dest, package_of(path)))
            programs.append(program)
    return programs


def receive(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            sys.exit("the server closed the connection after %r" % data)
        data += part
    return data


def receive_line(s):
    data = b""
    while not data.endswith(b"\n"):
        data += receive(s, 1)
    return data


def ask_line(s, text):
    s.sendall(text + b"\n")
    return receive_line(s)


def ask_length(s, text):
    s.sendall(struct.pack(">I", len(text)) + text)
    return receive(s, struct.unpack(">I", receive(s, 4))[0])


def ask_http(s, text):
    s.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    length = 0
    while True:
        line = receive_line(s)
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        if line == b"\r\n":
            return receive(s, length)


def check_echo(dest, out, language):
    path = os.path.join(out, "echo.sock")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(find(dest, "libkoine.so.0")))
    server = subprocess.Popen([os.path.join(out, "echo-" + language), "unix:" + path], env=env,
                              stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "ready\n":
            sys.exit("echo-%s does not get ready" % language)
        request = {"jsonrpc": "2.0", "method": "echo", "params": {"text": "hello"}, "id": 1}
        for ask in ask_line, ask_length, ask_http:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(20)
                s.connect(path)
                answer = json.loads(ask(s, json.dumps(request).encode()))
            if answer != {"jsonrpc": "2.0", "result": "hello", "id": 1}:
                sys.exit("%s: %s" % (ask.__name__, answer))
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def main():
    work = tempfile.mkdtemp(prefix="koine.")
    try:
        dest = os.path.join(work, "dest")
        out = os.path.join(work, "out")
        os.mkdir(out)
        run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", dest])
        check_libraries(dest)
        check_openrpc(dest)
        check_man_pages(dest)
        check_completions(dest)
        programs = compile_examples(dest, out)
        for language in COMPILERS:
            check_echo(dest, out, language)
        print("ok: %s" % " ".join(os.path.basename(p) for p in programs))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
