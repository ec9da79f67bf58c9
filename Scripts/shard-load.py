#!/usr/bin/env python3
"""Moves players between two PostgreSQL databases while devices play at two servers, and compares everything.

    swift build --traits Cloud,PostgreSQL -c release --product keepsake
    Scripts/with-postgres.sh Scripts/shard-load.py .build/release/keepsake [--players 1000] [--devices 64]
        [--seconds 60] [--think 500] [--json]

The players are made by loads of a few seconds each. Then devices play, half of them at each server, while everybody is
moved to the second database by a command that is killed (kill -9) in the middle and run again, and then back to the
first one. In the end no request may have failed, each player who didn't play must have the same rows, byte by byte, and
everybody must live in one database, which is the one that the directory says. Needs psql, and otherwise only the
standard library.
"""
import argparse, json, os, secrets, shutil, signal, subprocess, sys, tempfile, time

from postgres_harness import query

AT_ONCE = 500
# How long servers may take to find what the killed command has left: they look once a minute.
MENDED = 90
TABLES = [
    "version", "cell", "content", "content_object", "content_part", "bank_decision", "packed_decision", "device",
    "device_chain", "retired", "covered", "mark", "reached", "past_position", "bank_order", "paid_claim", "good",
    "closed_chain", "token_use",
]


class Server:
    def __init__(self, options, folder, flags):
        self.log = open(folder + ".log", "w")
        self.process = subprocess.Popen(
            [options.keepsake, "serve", "--data", folder, "--port", "0", "--json", "--until-input-ends",
             "--registrations-per-address", "1000000", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(open(folder + ".log").read() or "A server ended.")
        self.hello = json.loads(line)
        if "url" not in self.hello:
            sys.exit(line)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=120)


def load(options, server, devices, seconds, think):
    return subprocess.Popen(
        [options.keepsake, "load", "--url", server.hello["url"], "--app-key", server.hello["appKey"],
         "--devices", str(devices), "--size", "1K,20K", "--seconds", str(seconds), "--think", str(think), "--json"],
        stdout=subprocess.PIPE, text=True)


def rows(addresses):
    """The hash of all rows of each player, by the table and the player's id; and of how many there are two."""
    found, twice = {}, 0
    for address in addresses:
        living = "SELECT id FROM container WHERE revision >= 0"
        for table in TABLES:
            text = (f"SELECT encode(container, 'hex'), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) "
                    f"FROM {table} AS t WHERE container IN ({living}) GROUP BY container")
            for line in query(address, text):
                container, digest = line.split("|")
                twice += (table, container) in found
                found[table, container] = digest
    return found, twice


def living(address):
    return set(query(address, "SELECT encode(id, 'hex') FROM container WHERE revision >= 0"))


def run(options, folder, addresses):
    home, two = addresses
    flags = ["--database", home, "--shard", f"two={two}"]
    first = Server(options, os.path.join(folder, "one"), flags)
    os.makedirs(os.path.join(folder, "other"))
    for name in ["secret", "server-keys", "apps", "app-key"]:
        source = os.path.join(folder, "one", name)
        if os.path.isfile(source):
            shutil.copy(source, os.path.join(folder, "other", name))
        elif os.path.isdir(source):
            shutil.copytree(source, os.path.join(folder, "other", name))
    other = Server(options, os.path.join(folder, "other"), flags)
    made = 0
    while made < options.players:
        count = min(AT_ONCE, options.players - made)
        filling = load(options, first, count, 4, 0)
        filling.communicate()
        if filling.returncode:
            sys.exit("The players can't be made.")
        made += count
        print(f"{made} players", file=sys.stderr)
    idle = living(home) | living(two)
    before, twice = rows(addresses)
    playing = [load(options, server, options.devices // 2, options.seconds, options.think) for server in (first, other)]
    time.sleep(2)

    def move(source, target):
        return subprocess.Popen(
            [options.keepsake, "shard", "move", *flags, "--from", source, "--to", target, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    began = time.monotonic()
    killed = move("home", "two")
    left = len(living(home))
    waited = time.monotonic() + 60
    while killed.poll() is None and len(living(home)) > left * 2 // 3 and time.monotonic() < waited:
        time.sleep(0.02)
    was_killed = killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    moved = 0
    for source, target in [("home", "two"), ("two", "home")]:
        moving = move(source, target)
        answer = moving.communicate()[0]
        if moving.returncode:
            sys.exit(f"Players can't be moved: {answer}")
        moved += json.loads(answer)["movedCount"]
        print(f"moved to {target}: {moved} so far", file=sys.stderr)
    seconds = time.monotonic() - began
    reports = []
    for one in playing:
        text = one.communicate()[0]
        if one.returncode:
            sys.exit("A load failed.")
        reports.append(json.loads(text))
    faults = [f"requests failed: {report['errorCounts']}" for report in reports if report["errorCounts"]]
    if not was_killed:
        faults.append("the command had ended before it could be killed: take more players")
    unfinished = "SELECT count(*) FROM placement WHERE moving_to IS NOT NULL OR left_at IS NOT NULL"
    waited = time.monotonic() + MENDED
    while query(home, unfinished) != ["0"] and time.monotonic() < waited:
        time.sleep(1)
    if query(home, unfinished) != ["0"]:
        faults.append(f"{query(home, unfinished)[0]} moves were never finished")
    after, now_twice = rows(addresses)
    if twice or now_twice:
        faults.append(f"{twice + now_twice} players have rows in both databases")
    same = {key: digest for key, digest in before.items() if key[1] in idle}
    different = [key for key, digest in same.items() if after.get(key) != digest]
    different += [key for key in after if key[1] in idle and key not in same]
    if different:
        faults.append(f"the rows of {len(different)} tables of players who didn't play differ: {different[:3]}")
    for name, address in [("home", home), ("two", two)]:
        said = set(query(home, "SELECT encode(container, 'hex') FROM placement WHERE shard = "
                         f"convert_to('{name}', 'UTF8')"))
        lost = living(address) ^ said
        if lost:
            faults.append(f"{len(lost)} players don't live in {name} as the directory says")
    saves = sum(action["count"] for report in reports for action in report["actions"] if action["action"] == "save")
    changes = sum(int(line.split("|")[1]) for address in addresses
                  for line in query(address, "SELECT encode(id, 'hex'), seq FROM container WHERE revision >= 0")
                  if line.split("|")[0] not in idle)
    # The changes are also those of each load's warm-up, which isn't among its saves: as many lost ones wouldn't show.
    if changes < saves:
        faults.append(f"{saves} saves were acknowledged, and only {changes} changes are there")
    for server in (first, other):
        if server.end():
            faults.append(f"a server failed: see {server.log.name}")
    def longest(what):
        return max(action[what] for report in reports for action in report["actions"])

    return {"players": len(idle), "moved": moved, "seconds": seconds, "saves": saves, "comparedTables": len(same),
            "p99Milliseconds": longest("p99Milliseconds"), "longestMilliseconds": longest("longestMilliseconds"),
            "faults": faults}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__.split("\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keepsake")
    parser.add_argument("--players", type=int, default=1_000)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=500, help="the mean pause of a device, in milliseconds")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if "KEEPSAKE_POSTGRES" not in os.environ:
        sys.exit("There is no PostgreSQL server; run this by Scripts/with-postgres.sh.")
    base = os.environ["KEEPSAKE_POSTGRES"]
    names = ["l" + secrets.token_hex(8) for _ in range(2)]
    for name in names:
        query(base, f"CREATE SCHEMA {name}")
    separator = "&" if "?" in base else "?"
    try:
        with tempfile.TemporaryDirectory(prefix="shard-load-") as folder:
            result = run(options, folder, [f"{base}{separator}options=-csearch_path%3D{name}" for name in names])
    finally:
        for name in names:
            query(base, f"SET client_min_messages = warning; DROP SCHEMA {name} CASCADE")
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['players']} players, {result['moved']} moves in {result['seconds']:.1f} s beside "
              f"{result['saves']} saves (99 % within {result['p99Milliseconds']:.0f} ms, the "
              f"longest {result['longestMilliseconds']:.0f} ms); "
              f"{result['comparedTables']} tables of players compared")
    if result["faults"]:
        sys.exit("; ".join(result["faults"]))


if __name__ == "__main__":
    main()
