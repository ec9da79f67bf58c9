#!/usr/bin/env python3
"""Attacks a cloud at full scale, and shows what the attacked server takes and what the other players notice.

    swift build --traits Cloud -c release --product keepsake
    Scripts/hostile-cloud.py .build/release/keepsake [--only NAME ...] [--seconds 20]

Starts a server on the loopback interface with a data folder of its own for each attack, and four players that exchange
all the time from addresses of their own (the script acts as a trusted proxy). Prints for each attack the server's
memory before, at its peak and after, the responses that the attackers got, what the log says, and the players' 50th
and 99th percentile in milliseconds during the attack beside their normal ones. Ends with status 1 if the players' 99th
percentile was more than three times the normal one and more than 20 ms, if the memory exceeded its budget, or if the
server died.

Needs only the standard library.
"""
import argparse, collections, http.client, json, multiprocessing, os, re, resource, shutil, socket, subprocess, sys
import tempfile, threading, time

BUDGET = 640 << 20  # What docs/THREAT_MODEL.md states, with the program itself and 1,000 connections.
EMPTY = {"protocolVersion": 1, "cursor": {"epoch": 0, "seq": 0, "mark": 0}, "limit": 1000}


class Server:
    def __init__(self, binary, files=None, flags=()):
        self.folder = tempfile.mkdtemp(prefix="hostile-cloud-")
        self.log = open(os.path.join(self.folder, "log"), "w+")

        def limit():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.process = subprocess.Popen(
            [binary, "serve", "--data", os.path.join(self.folder, "data"), "--port", "0", "--json",
             "--until-input-ends", "--trusted-proxy", "127.0.0.0/8", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, preexec_fn=limit)
        hello = json.loads(self.process.stdout.readline())
        self.port, self.key = hello["port"], hello["appKey"]

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
        return 0

    def processor(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        alive = self.process.poll() is None
        self.process.stdin.close()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.seek(0)
        text = self.log.read()
        shutil.rmtree(self.folder, ignore_errors=True)
        return alive, text


def call(server, method, path, body=None, token=None, address=None, headers=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    fields = dict(headers or {})
    if token:
        fields["Authorization"] = "Bearer " + token
    if address:
        fields["X-Forwarded-For"] = address
    try:
        connection.request(method, path, body=body, headers=fields)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def register(server, address):
    status, body = call(server, "POST", "/v1/devices", json.dumps({"name": "x"}), address=address,
                        headers={"Keepsake-App-Key": server.key})
    if status != 201:
        raise RuntimeError(f"registering: {status} {body[:200]}")
    return json.loads(body)["token"]


class Players:
    """Four honest devices, each with an exchange of one value every 20 ms, in a process of their own: in that of the
    attackers, they would wait for the interpreter's lock while a body is built, up to 150 ms."""

    def __init__(self, server):
        self.server, self.times, self.failures = server, [], collections.Counter()
        self.stopped = multiprocessing.Event()
        self.results, sender = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=self.run, args=(sender,), daemon=True)
        self.process.start()
        sender.close()

    def run(self, sender):
        # The server stops when nobody has this open any more.
        self.server.process.stdin.close()
        threads = [threading.Thread(target=self.play, args=(index,), daemon=True) for index in range(4)]
        for thread in threads:
            thread.start()
        self.stopped.wait()
        for thread in threads:
            thread.join(70)
        sender.send((self.times, self.failures))

    def play(self, index):
        address = f"203.0.113.{10 + index}"
        token = register(self.server, address)
        connection, number = None, 0
        while not self.stopped.is_set():
            number += 1
            cell = {"collection": "progress", "key": "level", "value": {"max": {"int": number}}}
            body = json.dumps({**EMPTY, "cells": [cell]})
            began = time.monotonic()
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
                connection.request("POST", "/v1/exchange", body,
                                   {"Authorization": "Bearer " + token, "X-Forwarded-For": address})
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    self.failures[response.status] += 1
            except OSError as error:
                self.failures[type(error).__name__] += 1
                connection = None
            except http.client.HTTPException as error:
                self.failures[type(error).__name__] += 1
                connection = None
            self.times.append((began, time.monotonic() - began))
            time.sleep(0.02)

    def percentiles(self, start, end):
        times = sorted(took for began, took in self.times if start <= began < end)
        if not times:
            return float("inf"), float("inf"), 0
        return times[len(times) // 2] * 1e3, times[min(len(times) - 1, len(times) * 99 // 100)] * 1e3, len(times)

    def stop(self):
        """Only afterwards there are times and failures."""
        self.stopped.set()
        self.times, self.failures = self.results.recv()
        self.process.join()


# The attacks. Each takes the server, a time to end, and a counter of what it got.


def attackers(count, work, end):
    def loop(index):
        while time.monotonic() < end:
            try:
                work(index)
            except (OSError, http.client.HTTPException, RuntimeError):
                time.sleep(0.2)

    threads = [threading.Thread(target=loop, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, end - time.monotonic()) + 30)


def version(number, covers):
    return {"id": "%032x" % number, "slot": "main", "covers": covers, "length": 0, "savedAtMilliseconds": 0,
            "writer": "%016x" % 1}


def exchange_attack(make, count=4, address="198.51.100.7"):
    def attack(server, end, got):
        tokens = [register(server, address) for _ in range(count)]

        def work(index):
            status, _ = call(server, "POST", "/v1/exchange", make(index), tokens[index], address)
            got[status] += 1
            if status in (429, 503):
                time.sleep(0.05)

        attackers(count, work, end)
    return attack


serial = iter(range(1 << 60))


def covers(count, versions):
    def make(_):
        base = next(serial) << 32
        return json.dumps({**EMPTY, "versions": [
            version(base + 1 + v, ["%032x" % (base + (v + 1 << 20) + i) for i in range(count)])
            for v in range(versions)]})
    return make


def cells(count):
    def make(_):
        base = next(serial)
        return json.dumps({**EMPTY, "cells": [
            {"collection": "progress", "key": f"{base}-{i}", "value": {"max": {"int": 1}}}
            for i in range(count)]})
    return make


def zeros(_):
    return json.dumps(EMPTY)[:-1] + ',"later":[0' + ",0" * (7 << 20) + "]}"


def held_bodies(server, end, got):
    token = register(server, "198.51.100.7")
    held = []
    part = b" " * (1 << 20)
    for _ in range(24):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.sendall((f"POST /v1/exchange HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                            f"X-Forwarded-For: 198.51.100.7\r\nContent-Length: {16 << 20}\r\n\r\n").encode())
        try:
            for _ in range(15):
                connection.sendall(part)
            got["sent 15 MiB"] += 1
        except OSError:
            got["closed"] += 1
        held.append(connection)
    time.sleep(max(0, end - time.monotonic()))


def unread(server, end, got):
    address = "198.51.100.7"
    token = register(server, address)
    text = "v" * 250_000
    for batch in range(2):
        body = json.dumps({**EMPTY, "cells": [
            {"collection": "progress", "key": f"{batch}-{i}", "value": {"max": {"string": text}}}
            for i in range(8)]})
        got[call(server, "POST", "/v1/exchange", body, token, address)[0]] += 1
    body = json.dumps(EMPTY)
    open_ = []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.sendall((f"POST /v1/exchange HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                            f"X-Forwarded-For: {address}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        open_.append(connection)
    time.sleep(max(0, end - time.monotonic()))


def unread_streams(server, end, got):
    address = "198.51.100.7"
    token = register(server, address)
    code = json.loads(call(server, "POST", "/v1/pairing", "", token, address)[1])["code"]
    other = json.loads(call(server, "POST", "/v1/pairing/join", json.dumps({"code": code}), address=address,
                            headers={"Keepsake-App-Key": server.key})[1])["token"]
    open_ = []
    for _ in range(60):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall((f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {other}\r\n"
                            f"X-Forwarded-For: {address}\r\n\r\n").encode())
        open_.append(connection)
    number = 0
    while time.monotonic() < end:
        number += 1
        text = f"{number:06}" + "v" * 20_000
        cell = {"collection": "progress", "key": "x", "value": {"max": {"string": text}}}
        body = json.dumps({**EMPTY, "cells": [cell]})
        status, _ = call(server, "POST", "/v1/exchange", body, token, address)
        got[status] += 1
        time.sleep(0.02)


def connections(server, end, got):
    open_ = []
    while time.monotonic() < end and len(open_) < 4_000:
        try:
            open_.append(socket.create_connection(("127.0.0.1", server.port), timeout=5))
            got["connected"] += 1
        except OSError as error:
            got[type(error).__name__] += 1
            time.sleep(0.1)
    time.sleep(max(0, end - time.monotonic()))


def registrations(server, end, got):
    def work(_):
        try:
            register(server, "198.51.100.7")
            got["registered"] += 1
        except RuntimeError:
            got["refused"] += 1

    attackers(4, work, end)


def guesses(server, end, got):
    def work(index):
        status, _ = call(server, "POST", "/v1/pairing/join", json.dumps({"code": "ABCD2345"}),
                         address=f"198.51.100.{index}", headers={"Keepsake-App-Key": server.key})
        got[status] += 1

    attackers(4, work, end)
    token = register(server, "203.0.113.77")
    code = json.loads(call(server, "POST", "/v1/pairing", "", token, "203.0.113.77")[1])["code"]
    status, _ = call(server, "POST", "/v1/pairing/join", json.dumps({"code": code}), address="203.0.113.78",
                     headers={"Keepsake-App-Key": server.key})
    got["a player's own code: %d" % status] += 1


def empty_exchanges(server, end, got):
    address = "198.51.100.7"
    tokens = [register(server, address) for _ in range(8)]

    def work(index):
        got[call(server, "POST", "/v1/exchange", json.dumps(EMPTY), tokens[index], address)[0]] += 1

    attackers(8, work, end)


ATTACKS = {
    "7 x 60,000 covers": (exchange_attack(covers(60_000, 7), 1), {}),
    "58,000 covers": (exchange_attack(covers(58_000, 1)), {}),
    "8,192 cells": (exchange_attack(cells(8_192)), {}),
    "7 million zeros": (exchange_attack(zeros), {}),
    "24 bodies of 16 MiB held": (held_bodies, {}),
    "40 unread catch-ups": (unread, {}),
    "60 unread event streams": (unread_streams, {}),
    "connections, 1,024 files": (connections, {"files": 1_024}),
    "registrations": (registrations, {}),
    "wrong pairing codes": (guesses, {}),
    "empty exchanges": (empty_exchanges, {}),
}


def mebibytes(count):
    return f"{count / (1 << 20):.0f}"


def run(name, binary, seconds):
    attack, options = ATTACKS[name]
    server = Server(binary, **options)
    failed = []
    try:
        players = Players(server)
        time.sleep(2)
        calm = time.monotonic()
        time.sleep(max(5, seconds / 3))
        begin = time.monotonic()
        before, used = server.status("VmRSS"), server.processor()
        got = collections.Counter()
        attack(server, begin + seconds, got)
        end = time.monotonic()
        used = (server.processor() - used) / (end - begin)
        time.sleep(5)
        peak, after = server.status("VmHWM"), server.status("VmRSS")
        players.stop()
        normal, during = players.percentiles(calm, begin), players.percentiles(begin, end)
        if during[1] > max(3 * normal[1], 20):
            failed.append("the players wait")
        if peak > BUDGET:
            failed.append("memory")
        if players.failures:
            failed.append(f"the players got {dict(players.failures)}")
    finally:
        alive, log = server.stop()
    if not alive:
        failed.append("the server died")
    kinds = collections.Counter(re.findall(r"kind=(\w+)", log))
    print(f"{name:26} {mebibytes(before):>5} {mebibytes(peak):>5} {mebibytes(after):>5}   "
          f"{normal[0]:6.1f} {normal[1]:7.1f}   {during[0]:6.1f} {during[1]:7.1f}   {used:5.0%}   "
          f"{'; '.join(failed) or 'held'}")
    print(f"{'':26} got {dict(got)}; log {dict(kinds)}", flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", action="append", choices=list(ATTACKS))
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    print(f"{'':26} {'memory, MiB':^17}   {'normal, ms':^14}   {'attacked, ms':^14}")
    print(f"{'attack':26} {'before':>5} {'peak':>5} {'after':>5}   {'p50':>6} {'p99':>7}   {'p50':>6} {'p99':>7}   "
          f"{'cores':>5}   verdict")
    results = [run(name, options.binary, options.seconds) for name in options.only or ATTACKS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
