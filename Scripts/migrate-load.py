#!/usr/bin/env python3
"""Moves a cloud with many players from a data folder into PostgreSQL while devices play, and compares everything.

    swift build --traits Cloud,PostgreSQL -c release --product keepsake
    Scripts/with-postgres.sh Scripts/migrate-load.py .build/release/keepsake [--players 10000] [--devices 64]
        [--seconds 60] [--think 500] [--json]

The players are made by loads of a few seconds each. Then devices play, others register all the time and keep what was
acknowledged, the command is killed (kill -9) while it copies and run again, and a second server that was started before
takes the first one's place and port. In the end each acknowledged device must be in the new database, and each player
who hasn't changed since must have the same rows there, byte by byte. Play may be stopped for 2 seconds at most. Needs
psql, and otherwise only the standard library.
"""
import argparse, hashlib, http.client, json, os, secrets, signal, socket, sqlite3, subprocess, sys
import tempfile, threading, time

from postgres_harness import program, query

MOST_STOPPED = 2.0
AT_ONCE = 500
# A server registers no more than 6,000 players of an app at once.
PLAYERS_OF_APP = 5_000
# The table and its columns in either database; large ones are compared by their hashes.
TABLES = {
    "version": ["id", "seq", "mark", "slot", "record"],
    "cell": ["collection", "key", "seq", "mark", "state"],
    "content": ["hash", "length", "size", "bytes"],
    "decision": ["operation", "chain", "fingerprint", "details"],
    "device": ["id", "player", "app", "created", "seen"],
    "device_chain": ["device", "chain"],
    "retired": ["device", "at"],
    "covered": ["id", "pruned"],
}
# Where the other database calls it otherwise.
REMOTE = {"decision": "bank_decision"}
NUMBERED = {"version", "cell", "content", "covered"}


class Server:
    """A server whose hello may come later."""

    def __init__(self, options, folder, port, flags=()):
        self.log = open(os.path.join(folder, f"log-{len(flags)}"), "w")
        self.process = subprocess.Popen(
            [options.keepsake, "serve", "--data", os.path.join(folder, "data"), "--port", str(port), "--json",
             "--until-input-ends", "--registrations-per-address", "1000000",
             *(part for key in options.keys for part in ("--app-key", key)), *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def hello(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"A server ended: {open(self.log.name).read()}")
        hello = json.loads(line)
        if "url" not in hello:
            sys.exit(line)
        return hello

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
        return self.process.wait(timeout=120)


class Registering(threading.Thread):
    """Registers one device after the other, and keeps those that were acknowledged, with when."""

    def __init__(self, port, key):
        super().__init__(daemon=True)
        self.port, self.key = port, key
        self.devices, self.times, self.refusals, self.isEnding = [], [], {}, False

    def run(self):
        while not self.isEnding:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request(
                    "POST", "/v1/devices", json.dumps({"name": "registering"}),
                    {"Keepsake-App-Key": self.key, "Content-Type": "application/json"})
                response = connection.getresponse()
                body = response.read()
                connection.close()
                if response.status in (200, 201):
                    self.devices.append(json.loads(body)["device"])
                    self.times.append(time.monotonic())
                else:
                    self.refusals[response.status] = self.refusals.get(response.status, 0) + 1
            except OSError as error:
                name = type(error).__name__
                self.refusals[name] = self.refusals.get(name, 0) + 1
            except http.client.HTTPException as error:
                name = type(error).__name__
                self.refusals[name] = self.refusals.get(name, 0) + 1
            time.sleep(0.01)


def load(options, hello, devices, seconds, key, think=0):
    return subprocess.Popen(
        [options.keepsake, "load", "--url", hello["url"], "--app-key", key, "--devices", str(devices),
         "--size", "1K,20K", "--seconds", str(seconds), "--think", str(think), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def await_play(process):
    """Waits until all devices are registered and play; what comes behind that is read, and forgotten."""
    for line in process.stderr:
        if "loading: 1 of" in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return
    sys.exit("The devices can't play.")


def migrate(options, folder, address):
    return subprocess.Popen(
        [options.keepsake, "migrate", "--from", os.path.join(folder, "data"), "--to", address, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def short(value):
    """A value as both databases write it."""
    if value is None:
        return ""
    if isinstance(value, str):
        value = value.encode()
    return hashlib.md5(value).hexdigest() if isinstance(value, bytes) else str(value)


def local_rows(database, table, columns, wanted):
    name = "".join(word if index == 0 else word.capitalize() for index, word in enumerate(table.split("_")))
    owner = "(SELECT id FROM container AS o WHERE o.number = t.container)" if table in NUMBERED else "container"
    for row in database.execute(f"SELECT {owner}, {', '.join(columns)} FROM {name} AS t"):
        if row[0] in wanted:
            yield hashlib.md5("|".join([row[0].hex()] + [short(value) for value in row[1:]]).encode()).digest()


def remote_rows(address, table, columns, wanted):
    numbers = {"seq", "mark", "length", "size", "fingerprint", "created", "seen", "at", "pruned"}
    texts = [f"coalesce({name}::text, '')" if name in numbers else f"coalesce(md5({name}), '')" for name in columns]
    text = " || '|' || ".join(["encode(container, 'hex')"] + texts)
    ran = subprocess.Popen(
        [program("psql"), "-qXAt", address, "-c", f"COPY (SELECT {text} FROM {REMOTE.get(table, table)}) TO STDOUT"],
        stdout=subprocess.PIPE, text=True)
    for line in ran.stdout:
        line = line.rstrip("\n")
        if bytes.fromhex(line.split("|", 1)[0]) in wanted:
            yield hashlib.md5(line.encode()).digest()
    if ran.wait():
        sys.exit(f"psql can't read {table}.")


def compare(folder, address):
    """Returns how many players and rows were compared, and what differs."""
    database = sqlite3.connect(f"file:{os.path.join(folder, 'data', 'cloud.sqlite')}?mode=ro", uri=True)
    local = dict(database.execute("SELECT id, max(revision, 1) FROM container"))
    remote = {}
    for line in query(address, "SELECT encode(id, 'hex') || ' ' || revision FROM container"):
        name, revision = line.split()
        remote[bytes.fromhex(name)] = int(revision)
    faults = [f"{name.hex()} is missing" for name in local if name not in remote]
    faults += [f"{name.hex()} went back" for name in local if remote.get(name, 1 << 62) < local[name]]
    same = {name for name in local if remote.get(name) == local[name]}
    rows = 0
    for table, columns in TABLES.items():
        one, other = {}, {}
        for found, count in ((local_rows(database, table, columns, same), one),
                             (remote_rows(address, table, columns, same), other)):
            for digest in found:
                count[digest] = count.get(digest, 0) + 1
        rows += sum(one.values())
        if one != other:
            different = sum(1 for digest in one.keys() | other.keys() if one.get(digest) != other.get(digest))
            faults.append(f"{different} rows of {table} differ")
    database.close()
    return len(same), rows, faults


def run(options, folder, address):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    old = Server(options, folder, port)
    hello = old.hello()
    made = 0
    while made < options.players:
        count = min(AT_ONCE, options.players - made)
        filling = load(options, hello, count, 4, options.keys[made // PLAYERS_OF_APP])
        filling.communicate()
        if filling.returncode:
            sys.exit("The players can't be made.")
        made += count
        print(f"{made} players", file=sys.stderr)
    playing = load(options, hello, options.devices, options.seconds, options.keys[-1], options.think)
    registering = Registering(port, options.keys[-1])
    registering.start()
    await_play(playing)
    began = time.monotonic()
    first = migrate(options, folder, address)
    waited = time.monotonic() + 60
    # In the middle of copying: when some, and not all of them, are there.
    while first.poll() is None and time.monotonic() < waited:
        there = query(address, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'cloud_move' "
                      "AND table_schema = current_schema()")
        if there == ["1"] and int(query(address, "SELECT count(*) FROM container")[0]) > options.players // 3:
            break
        time.sleep(0.05)
    killed = first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate()
    new = Server(options, folder, port, ("--database", address))
    time.sleep(1)
    second = migrate(options, folder, address)
    output, _ = second.communicate(timeout=3_600)
    if second.returncode:
        sys.exit(f"keepsake migrate ended with {second.returncode}: {output}")
    answer = json.loads(output)
    seconds = time.monotonic() - began
    hello = new.hello()
    if old.process.wait(timeout=120):
        sys.exit("The old server didn't end with success.")
    time.sleep(3)
    registering.isEnding = True
    registering.join()
    report = json.loads(playing.stdout.read())
    playing.wait()
    if "actions" not in report:
        sys.exit(f"The devices that play ended: {report}")
    if new.end():
        sys.exit("The new server didn't end with success.")
    players, rows, faults = compare(folder, address)
    known = set(query(address, "SELECT encode(id, 'hex') FROM device"))
    lost = [device for device in registering.devices if device.replace("-", "") not in known]
    if lost:
        faults.append(f"{len(lost)} acknowledged devices are missing")
    if not killed:
        faults.append("the command had ended before it could be killed")
    gaps = [after - before for before, after in zip(registering.times, registering.times[1:])]
    return {
        "migration": answer, "seconds": seconds, "stoppedSeconds": answer["stoppedMilliseconds"] / 1_000,
        # From the last device that the old server registered to the first one of the new server.
        "longestGapSeconds": max(gaps, default=None), "registered": len(registering.devices),
        "refusals": registering.refusals, "loadErrors": report["errorCounts"],
        "saves": sum(action["count"] for action in report["actions"] if action["action"] == "save"),
        "playersCompared": players, "rowsCompared": rows, "faults": faults,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__.split("\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keepsake")
    parser.add_argument("--players", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="how long devices play")
    parser.add_argument("--think", type=int, default=500, help="how many ms each of them waits before it saves again")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if "KEEPSAKE_POSTGRES" not in os.environ:
        sys.exit("There is no PostgreSQL server; run this by Scripts/with-postgres.sh.")
    options.keys = [secrets.token_hex(16) for _ in range(options.players // PLAYERS_OF_APP + 2)]
    name = "m" + secrets.token_hex(8)
    query(os.environ["KEEPSAKE_POSTGRES"], f"CREATE SCHEMA {name}")
    address = f"{os.environ['KEEPSAKE_POSTGRES']}&options=-csearch_path%3D{name}"
    with tempfile.TemporaryDirectory(prefix="migrate-load-") as folder:
        result = run(options, folder, address)
    query(os.environ["KEEPSAKE_POSTGRES"], f"SET client_min_messages = warning; DROP SCHEMA {name} CASCADE")
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['playersCompared']:,} players with {result['rowsCompared']:,} rows compared; it took "
              f"{result['seconds']:.0f} s, of which play was stopped for {result['stoppedSeconds']} s, and from the "
              f"old server's last answer to the new one's first it took {result['longestGapSeconds']:.2f} s; "
              f"{result['saves']:,} saves and {result['registered']:,} new devices meanwhile")
    faults = list(result["faults"])
    if result["stoppedSeconds"] > MOST_STOPPED:
        faults.append(f"play was stopped for {result['stoppedSeconds']} s; the goal is {MOST_STOPPED}")
    if faults:
        sys.exit("; ".join(faults))


if __name__ == "__main__":
    main()
