#!/usr/bin/env python3
"""Compares the cloud on PostgreSQL with the bare upsert of the same bytes (pgbench), and with the cloud on SQLite.

    swift build --traits Cloud,PostgreSQL -c release --product keepsake
    Scripts/with-postgres.sh Scripts/load-postgres.py .build/release/keepsake [--rounds 3] [--seconds 10]
        [--devices 64] [--connections 16] [--json]

Each round runs all of them, so that what else the machine does concerns them alike; the medians of the rounds are
compared. The processor is that of the server, and of all processes of the database, for each exchange or upsert; the
devices and pgbench aren't counted, and share the machine. PostgreSQL waits for its disk at each commit (fsync). Needs
pgbench, which comes with PostgreSQL's server, and otherwise only the standard library.
"""
import argparse, glob, json, os, secrets, statistics, subprocess, sys, tempfile

from postgres_harness import program

# Exchanges a second, as a part of the bare upserts; and milliseconds of the server's processor for an exchange.
LEAST_RATIO = 0.5
MOST_PROCESSOR = 0.3
SLOTS = 8
TICK = os.sysconf("SC_CLK_TCK")


def fields(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def database_seconds():
    """The seconds of the processor that the database's processes have taken, with those that have ended."""
    with open(os.path.join(os.environ["KEEPSAKE_POSTGRES_FOLDER"], "postmaster.pid")) as file:
        server = file.readline().strip()
    ticks = sum(int(number) for number in fields(server)[11:15])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found = fields(pid)
        except OSError:
            continue
        if found[1] == server:
            ticks += int(found[11]) + int(found[12])
    return ticks / TICK


def sql(text):
    subprocess.run([program("psql"), "-qX", os.environ["KEEPSAKE_POSTGRES"], "-c", text], check=True)


def play(options, database, flags=()):
    """The cloud under load, in a new folder, and in a new schema of the database if it is in one."""
    with tempfile.TemporaryDirectory(prefix="load-postgres-") as folder:
        flags = list(flags)
        if database:
            name = "l" + secrets.token_hex(8)
            sql(f"CREATE SCHEMA {name}")
            flags += ["--database", f"{os.environ['KEEPSAKE_POSTGRES']}&options=-csearch_path%3D{name}"]
        with open(os.path.join(folder, "log"), "w") as log:
            server = subprocess.Popen(
                [options.keepsake, "serve", "--data", os.path.join(folder, "data"), "--port", "0", "--json",
                 "--until-input-ends", "--registrations-per-address", "1000000", *flags],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                hello = json.loads(server.stdout.readline())
                before = database_seconds()
                ran = subprocess.run(
                    [options.keepsake, "load", "--url", hello["url"], "--app-key", hello["appKey"],
                     "--server-pid", str(server.pid), "--devices", str(options.devices), "--size", "1K",
                     "--seconds", str(options.seconds), "--json"],
                    check=True, stdout=subprocess.PIPE, text=True)
                seconds = database_seconds() - before
            finally:
                server.stdin.close()
                server.wait(timeout=60)
        if database:
            sql(f"SET client_min_messages = warning; DROP SCHEMA {name} CASCADE")
    report = json.loads(ran.stdout)
    if report["errorCounts"]:
        sys.exit(f"Some requests failed: {report['errorCounts']}")
    save = next(action for action in report["actions"] if action["action"] == "save")
    count = report["exchangesPerSecond"] * report["durationMilliseconds"] / 1_000
    return {
        "perSecond": report["exchangesPerSecond"], "p50Milliseconds": save["p50Milliseconds"],
        "p99Milliseconds": save["p99Milliseconds"],
        "serverMilliseconds": report["server"]["perExchangeMilliseconds"],
        # With what registering has taken, a small part.
        "databaseMilliseconds": seconds * 1_000 / count if database else None,
    }


def upsert(options):
    """The bare upsert of as many bytes, by as many connections as the server has."""
    with tempfile.TemporaryDirectory(prefix="load-postgres-") as folder:
        script = os.path.join(folder, "upsert.sql")
        with open(script, "w") as file:
            file.write(
                f"\\set device random(1, {options.devices})\n\\set slot random(1, {SLOTS})\n"
                f"INSERT INTO bare (device, slot, bytes) VALUES (:device, :slot, '\\x{secrets.token_hex(1_024)}') "
                "ON CONFLICT (device, slot) DO UPDATE SET bytes = excluded.bytes;\n")
        sql("CREATE TABLE bare (device bigint, slot bigint, bytes bytea, PRIMARY KEY (device, slot))")
        try:
            before = database_seconds()
            ran = subprocess.run(
                [program("pgbench"), "--no-vacuum", "--protocol", "prepared", "--client", str(options.connections),
                 "--jobs", "2", "--time", str(round(options.seconds)), "--file", script, "--log",
                 "--log-prefix", os.path.join(folder, "times"), os.environ["KEEPSAKE_POSTGRES"]],
                check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            seconds = database_seconds() - before
        finally:
            sql("DROP TABLE bare")
        times = sorted(
            int(line.split()[2]) / 1_000 for name in glob.glob(os.path.join(folder, "times*")) for line in open(name))
    rate = next(float(line.split()[2]) for line in ran.stdout.splitlines() if line.startswith("tps = "))
    return {
        "perSecond": rate, "p50Milliseconds": times[len(times) // 2], "p99Milliseconds": times[len(times) * 99 // 100],
        "serverMilliseconds": None, "databaseMilliseconds": seconds * 1_000 / len(times),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__.split("\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keepsake")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--connections", type=int, default=16, help="those of pgbench; a server has 16")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if "KEEPSAKE_POSTGRES" not in os.environ:
        sys.exit("There is no PostgreSQL server; run this by Scripts/with-postgres.sh.")
    kinds = {
        "the cloud on PostgreSQL": lambda: play(options, True), "the bare upsert (pgbench)": lambda: upsert(options),
        "the cloud on SQLite": lambda: play(options, False),
        # Without LISTEN and NOTIFY, each statement by itself, and one of twenty transactions fails.
        "the cloud on a stand-in for others": lambda: play(options, True, ["--database-stand-in"]),
    }
    rounds = {name: [] for name in kinds}
    for number in range(options.rounds):
        for name, measure in kinds.items():
            print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
            rounds[name].append(measure())

    def median(name, what):
        values = [one[what] for one in rounds[name] if one[what] is not None]
        return statistics.median(values) if values else None

    cloud, bare = list(kinds)[:2]
    ratio = median(cloud, "perSecond") / median(bare, "perSecond")
    processor = median(cloud, "serverMilliseconds")
    if options.json:
        print(json.dumps({"rounds": rounds, "ratio": ratio}, indent=1))
    else:
        print("| 1 KB | a second | | p50 | p99 | processor: server | database |\n|---|--:|--:|--:|--:|--:|--:|")
        for name in kinds:
            def text(what, form="{:.2f} ms"):
                value = median(name, what)
                return "" if value is None else form.format(value)
            share = median(name, "perSecond") / median(bare, "perSecond")
            print(f"| {name} | {median(name, 'perSecond'):,.0f} | {share:.2f}x | {text('p50Milliseconds')} | "
                  f"{text('p99Milliseconds')} | {text('serverMilliseconds', '{:.3f} ms')} | "
                  f"{text('databaseMilliseconds', '{:.3f} ms')} |")
    missed = []
    if ratio < LEAST_RATIO:
        missed.append(f"{ratio:.2f} of the bare upserts a second; the goal is {LEAST_RATIO}")
    if processor > MOST_PROCESSOR:
        missed.append(f"{processor:.3f} ms of the server's processor an exchange; the goal is {MOST_PROCESSOR}")
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
