#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet_proxy.py PORT SEED: a bad way to the server at PORT. Prints the port that it listens at, and at the
end, on SIGTERM, how many requests met which fate:

   good      answered
   deaf      done, but the answer gets lost
   late      the connection ends; what was asked is done a while later
   cut       half of the request arrives
   garbage   something else answers
   refused   with a status, nothing done
"""
import collections
import random
import signal
import socket
import sys
import threading
import time

FATES = (["good"] * 180 + ["deaf"] * 5 + ["late"] * 5 + ["cut"] * 3 + ["garbage"] * 2 + ["refused"])
LAST = ["good"] * 5 + ["deaf"] * 3 + ["late"] * 5  # of the request that makes all others count
chance = random.Random(int(sys.argv[2]))
met = collections.Counter()


def read_request(client):
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < length:
        more = client.recv(65536)
        if not more:
            return None
        body += more
    return head + b"\r\n\r\n" + body


def forward(request):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as server:
        server.sendall(request)
        answer = b""
        while True:
            more = server.recv(65536)
            if not more:
                return answer
            answer += more


def later(request, seconds):
    time.sleep(seconds)
    forward(request)


def serve(client, fate, last, wait):
    with client:
        request = read_request(client)
        if request is None:
            return
        if b"INSERT" in request[:200] and b"sent_spans" in request[:200]:
            fate = last
        met[fate] += 1
        if fate == "good":
            client.sendall(forward(request))
        elif fate == "deaf":
            forward(request)
        elif fate == "late":
            threading.Thread(target=later, args=(request, wait)).start()
        elif fate == "cut":
            with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server:
                server.sendall(request[:len(request) // 2])
        elif fate == "garbage":
            client.sendall(b"\x00\xff\r\n" * 1000)
        else:
            client.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nno\n\x1b[")


def stop(*_):
    print(dict(met), flush=True)
    raise SystemExit


signal.signal(signal.SIGTERM, stop)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection, chance.choice(FATES), chance.choice(LAST),
                                         0.3 + chance.random() * 0.2)).start()
