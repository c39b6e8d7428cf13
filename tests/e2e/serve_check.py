# SPDX-License-Identifier: Apache-2.0
"""serve_check.py URL SERVER: what the server of `view --serve` answers, to friends and others.
serve_check.py --live URL RECORDER STATE: newer data comes until the recorder ends (or is killed: cut)."""
import gzip
import os
import re
import signal
import socket
import sys
import time

checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        print(what)
        sys.exit(1)


def parts(url):
    port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", url).groups()
    return int(port), path


def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def receive(sock):
    """One answer: status, fields, body. Status 0 where it hung up."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return 0, {}, data
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
    while len(body) < int(fields["content-length"]):
        body += sock.recv(65536)
    return int(lines[0].split()[1]), fields, body


def ask(path, host=None, method="GET", extra="", raw=None):
    with connect() as sock:
        head = f"{method} {path} HTTP/1.1\r\n"
        head += f"Host: {f'127.0.0.1:{port}' if host is None else host}\r\n" if host != "" else ""
        try:
            sock.sendall(raw if raw is not None else (head + extra + "\r\n").encode())
        except (BrokenPipeError, ConnectionResetError):
            pass
        return receive(sock)


def status(*arguments, **named):
    return ask(*arguments, **named)[0]


def check_answers():
    code, fields, page = ask(path)
    check(code == 200 and fields["content-type"] == "text/html; charset=utf-8", "the page")
    check(page.startswith(b"<!DOCTYPE html>") and page.endswith(b"</html>\n"), "all of the page")
    for name, value in (("cache-control", "no-store"), ("x-content-type-options", "nosniff"),
                        ("x-frame-options", "DENY"), ("referrer-policy", "no-referrer")):
        check(fields[name] == value, name)
    check("access-control-allow-origin" not in fields, "it is open to other pages")
    code, fields, data = ask(path + "data")
    check(code == 200 and fields["culprit-state"] == "ended" and len(gzip.decompress(data)) > 100, "the data")
    check(status(path + "data", extra=f"If-None-Match: {fields['etag']}\r\n") == 304, "304")
    check(status(path, host=f"localhost:{port}") == 200, "localhost")


def check_refusals():
    token = path[1:-1]
    other = ("0" if token[0] != "0" else "1") + token[1:]
    for wrong in ("/", "/data", "/favicon.ico", f"/{other}/", f"/{token}", f"/{token}x", f"/{token[:-1]}/", f"//{token}/",
                  f"{path}../{token}/", f"{path}data/", f"{path}data?", f"{path}nothing", f"{path}{'x' * 500}",
                  f"/{other}/data", f"{path}..%2f..%2fetc/passwd", f"{path}/etc/passwd"):
        check(status(wrong) == 404, f"{wrong} is there")
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", "localhost",
                 f"127.0.0.1:{port}.evil.example", f"[::1]:{port}"):
        check(status(path, host=host) == 404, f"host {host}")
    check(status(path, host="") == 400, "no host")
    check(status(path, extra=f"Host: 127.0.0.1:{port}\r\n") == 400, "two hosts")
    for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"):
        code, fields, body = ask(path, method=method)
        check(code == 405 and fields["allow"] == "GET" and not body, method)
    check(status(path, extra="Content-Length: 5\r\n") == 400, "a body")
    check(status(path, extra="Transfer-Encoding: chunked\r\n") == 400, "chunks")
    for raw, wanted in ((b"\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"\0" * 100 + b"\r\n\r\n", 400),
                        (b"GET / HTTP/2.0\r\n\r\n", 505), (b"GET / HTTP/1.1\nHost: x\n\n" + b"\r\n\r\n", 400),
                        (b"GET  / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
                        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01" + b"x\r\n" * 3, 400),
                        (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n", 414),
                        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100 + b"\r\n", 431),
                        (b"GET / HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n", 431)):
        code = status("", raw=raw)
        # Who sends on after the answer is cut off, and may miss it.
        check(code == wanted or (code == 0 and len(raw) > 8192), f"{raw[:40]}: {code}, not {wanted}")


def check_connections(server):
    good = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    with connect() as sock:  # several on one connection, in pieces, at once
        for byte in good:
            sock.sendall(bytes([byte]))
        check(receive(sock)[0] == 200, "byte by byte")
        sock.sendall(good * 2)
        first = receive_exactly(sock, 2)
        check(first == 2, "two at once")
    with connect() as sock:
        sock.sendall(good.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        check(receive(sock)[0] == 200 and sock.recv(1) == b"", "close")
    # Many that say half of it do not keep others out, and are given up after a while.
    idle = [connect() for _ in range(100)]
    for sock in idle:
        sock.sendall(b"GET / HT")
    check(status(path) == 200, "beside many others")
    check(len(os.listdir(f"/proc/{server}/fd")) < 60, "too many connections are kept")
    start = time.time()
    idle[-1].settimeout(30)
    check(idle[-1].recv(1) == b"" and time.time() - start < 20, "half a request is waited for")
    for sock in idle:
        sock.close()
    # Those that take nothing.
    lazy = [connect() for _ in range(40)]
    for sock in lazy:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(good * 20)
        except OSError:
            pass
    check(status(path) in (200, 0), "beside lazy ones")
    for sock in lazy:
        sock.close()
    end = time.time() + 10  # until it has seen that they are gone
    while status(path) != 200 and time.time() < end:
        time.sleep(0.1)
    check(status(path) == 200, "afterwards")
    listening = [line.split() for line in open("/proc/net/tcp", encoding="ascii") if f":{port:04X} " in line]
    check([f[1] for f in listening if f[3] == "0A"] == [f"0100007F:{port:04X}"], "it listens elsewhere")
    check(not any(f":{port:04X} 00000000000000000000000000000000:0000 0A" in line
                  for line in open("/proc/net/tcp6", encoding="ascii")) if os.path.exists("/proc/net/tcp6") else True,
          "it listens elsewhere")


def receive_exactly(sock, count):
    """How many good answers come, of which one may follow the other at once."""
    data, found = b"", 0
    while found < count:
        piece = sock.recv(65536)
        if not piece:
            return found
        data += piece
        while b"\r\n\r\n" in data:
            head, body = data.split(b"\r\n\r\n", 1)
            size = int(re.search(rb"Content-Length: (\d+)", head).group(1))
            if len(body) < size:
                break
            found += head.startswith(b"HTTP/1.1 200")
            data = body[size:]
    return found


def check_live(recorder, state):
    page = ask(path)[2]
    check(b"connect-src 'self'" in page and re.search(rb'data-live="\d+"', page), "the page is not live")
    code, fields, first = ask(path + "data")
    check(code == 200 and fields["culprit-state"] == "going", "going")
    end, seen, etag = time.time() + 30, 0, fields["etag"]
    while seen < 3 and time.time() < end:
        code, fields, data = ask(path + "data", extra=f"If-None-Match: {etag}\r\n")
        if code == 200:
            check(fields["etag"] != etag and data != first, "newer data is other data")
            etag, seen = fields["etag"], seen + 1
        else:
            check(code == 304 and not data, f"answer {code}")
        time.sleep(0.2)
    check(seen == 3, f"newer data came {seen} times")
    os.kill(recorder, signal.SIGTERM if state == "ended" else signal.SIGKILL)
    while time.time() < end and fields.get("culprit-state") == "going":
        fields = ask(path + "data", extra=f"If-None-Match: {etag}\r\n")[1]
        time.sleep(0.2)
    check(fields.get("culprit-state") == state, f"{fields.get('culprit-state')}, not {state}")
    check(b'data-live=""' in ask(path)[2] or state == "cut", "the page is still live")


live = sys.argv[1] == "--live"
port, path = parts(sys.argv[1 + live])
if live:
    check_live(int(sys.argv[3]), sys.argv[4])
else:
    check_answers()
    check_refusals()
    check_connections(int(sys.argv[2]))
print(f"{checks} checks")
