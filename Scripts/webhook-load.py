#!/usr/bin/env python3
"""Compares what players wait beside a webhook whose backend never answers with what they wait without a webhook.

    swift build --traits Cloud -c release --product keepsake
    Scripts/webhook-load.py .build/release/keepsake [--rounds 12] [--seconds 10] [--devices 64] [--think 100]

Runs `keepsake load` against a server of each kind in turn: without a webhook, with a backend that accepts connections
and says nothing, and with one whose port is closed. Prints the 99th percentiles of each round, the ratios of their
medians, and how much of a processor the server takes afterwards, while nobody plays and requests to the backend wait.
Ends with status 1 if a ratio is above 1.2, or if the server takes more than a twentieth of a processor for waiting.

Needs only the standard library.
"""
import argparse, json, os, socket, statistics, subprocess, sys, tempfile, time

MOST = 1.2
# Of a processor, while the server waits; and for how many seconds that is looked at.
MOST_WAITING = 0.05
WAITING = 3


def processor(process):
    """The seconds of the processor that a process has taken."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(binary, options, webhook):
    """The 99th percentile of all exchanges with a new server, in milliseconds; and what part of a processor it takes
    afterwards."""
    with tempfile.TemporaryDirectory(prefix="webhook-load-") as folder:
        flags = []
        if webhook:
            secrets = os.path.join(folder, "secrets")
            with open(os.open(secrets, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write("a-secret-of-this-run\n")
            flags = ["--webhook", f"silent url=http://127.0.0.1:{webhook}/ secrets={secrets}"]
        with open(os.path.join(folder, "log"), "w") as log:
            server = subprocess.Popen(
                [binary, "serve", "--data", os.path.join(folder, "data"), "--port", "0", "--json",
                 "--until-input-ends", *flags],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            line = server.stdout.readline()
            if not line:
                sys.exit(open(os.path.join(folder, "log")).read() or "the server didn't start")
            hello = json.loads(line)
            if "url" not in hello:
                sys.exit(line.decode())
            result = subprocess.run(
                [binary, "load", "--url", hello["url"], "--app-key", hello["appKey"], "--json",
                 "--devices", str(options.devices), "--seconds", str(options.seconds), "--think", str(options.think),
                 "--size", "1K"], stdout=subprocess.PIPE, check=True)
            actions = json.loads(result.stdout)["actions"]
            before = processor(server)
            time.sleep(WAITING)
            waiting = (processor(server) - before) / WAITING
            return max(actions, key=lambda action: action["count"])["p99Milliseconds"], waiting
        finally:
            server.stdin.close()
            server.wait(timeout=60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--think", type=int, default=100)
    options = parser.parse_args()
    silent = socket.create_server(("127.0.0.1", 0), backlog=1024)
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    kinds = {"no webhook": None, "a silent backend": silent.getsockname()[1], "a closed port": port}
    found = {name: [] for name in kinds}
    idle = {name: [] for name in kinds}
    for number in range(options.rounds):
        for name, webhook in kinds.items():
            p99, waiting = play(options.binary, options, webhook)
            found[name].append(p99)
            idle[name].append(waiting)
            print(f"round {number + 1}: {name}: 99th percentile {p99:.1f} ms, {waiting:.3f} of a processor afterwards",
                  flush=True)
    usual = statistics.median(found["no webhook"])
    status = 0
    for name in list(kinds)[1:]:
        ratio = statistics.median(found[name]) / usual
        print(f"{name}: {ratio:.2f} times that without a webhook, at most {MOST}")
        waiting = statistics.median(idle[name])
        print(f"{name}: {waiting:.3f} of a processor while it waits, at most {MOST_WAITING}")
        if ratio > MOST or waiting > MOST_WAITING:
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
