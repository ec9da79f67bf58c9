"""What the two sync scripts share: one server, folders with a sync process each, and an end to all of them.

Only processes that were started here are ever signalled.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time

# Nothing here takes so long on any machine that runs at all.
PATIENCE = 1_800


class HarnessError(Exception):
    pass


class Process:
    """A keepsake process whose standard output is read as JSON lines."""

    def __init__(self, command, log):
        self.log = open(log, "ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.log.write(line)
            try:
                self.lines.put(json.loads(line))
            except ValueError:
                pass
        self.lines.put(None)

    def wait_for(self, wanted, limit=PATIENCE):
        """The next JSON line for which `wanted` holds."""
        end = time.monotonic() + limit
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise HarnessError("no output from process %d for %d s" % (self.process.pid, limit))
            if line is None:
                raise HarnessError("process %d ended with %s" % (self.process.pid, self.process.wait()))
            if wanted(line):
                return line

    def drain(self):
        """All JSON lines heard so far."""
        result = []
        while True:
            try:
                line = self.lines.get_nowait()
            except queue.Empty:
                return result
            if line is not None:
                result.append(line)

    @property
    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._finish()

    def stop(self, limit=PATIENCE):
        """Asks it to stop; gives its exit code and what it said last."""
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise HarnessError("process %d did not stop within %d s" % (self.process.pid, limit))
        self._finish()
        return code, self.drain()

    def _finish(self):
        self.reader.join(10)
        self.log.close()


class Side:
    """A folder and the process that syncs it."""

    def __init__(self, keepsake, name, root, url, key, interval):
        self.keepsake, self.name, self.url, self.key, self.interval = keepsake, name, url, key, interval
        self.folder = os.path.join(root, name)
        self.log = os.path.join(root, name + ".log")
        os.makedirs(self.folder, exist_ok=True)
        self.process = None

    def command(self, *more):
        return [
            self.keepsake, "sync", self.folder, "--cloud", self.url, "--app-key", self.key,
            "--interval", str(self.interval), "--json", *more,
        ]

    def start(self, *more):
        self.process = Process(self.command(*more), self.log)
        self.started = time.monotonic()
        return self.process

    def once(self, *more, limit=PATIENCE):
        """Runs until nothing is owed; gives the closing line."""
        self.process = Process(self.command("--once", *more), self.log)
        end = self.process.wait_for(lambda line: line.get("event") == "end", limit)
        code, _ = self.process.stop()
        self.process = None
        if code != 0:
            raise HarnessError("%s: sync --once ended with status %d: %s" % (self.name, code, end))
        return end

    def state(self):
        return os.path.join(self.folder, ".keepsake")

    def query(self, *arguments):
        """The answer of a command that reads this side's state."""
        done = subprocess.run([self.keepsake, *arguments, "--json"], capture_output=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise HarnessError("%s: %s" % (" ".join(arguments), (done.stderr or done.stdout).decode(errors="replace")))
        return json.loads(done.stdout)

    def files(self):
        """Path -> bytes of every file that a game would see."""
        result = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if not name.lower().startswith(".keepsake"))
            for name in sorted(names):
                if name.startswith(".keepsake-"):
                    continue
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    result[os.path.relpath(path, self.folder)] = file.read()
        return result

    def temporaries(self):
        """What the mirror left lying about."""
        result = []
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name != ".keepsake"]
            result += [os.path.join(folder, name) for name in names if name.startswith(".keepsake-")]
        return result


class Harness:
    def __init__(self, keepsake, root, interval=100):
        self.keepsake, self.root, self.interval = keepsake, root, interval
        self.server = None
        self.sides = []

    def __enter__(self):
        self.server = Process(
            [self.keepsake, "serve", "--data", os.path.join(self.root, "cloud"), "--port", "0", "--json"],
            os.path.join(self.root, "server.log"),
        )
        hello = self.server.wait_for(lambda line: line.get("event") == "ready")
        self.url, self.key = hello["url"], hello["appKeys"][0]
        return self

    def add(self, name):
        side = Side(self.keepsake, name, self.root, self.url, self.key, self.interval)
        self.sides.append(side)
        return side

    def pair(self, first, second):
        """Registers the first side and lets the second join its player."""
        process = first.start("--pair")
        code = process.wait_for(lambda line: line.get("event") == "pairing")["pairingCode"]
        second.start("--join", code)
        second.process.wait_for(lambda line: line.get("event") == "ready")

    def __exit__(self, *_):
        for process in [side.process for side in self.sides] + [self.server]:
            if process is not None and process.alive:
                process.kill()


def replace(path, data):
    """Writes a file as careful games do: beside, then renamed."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = os.path.join(os.path.dirname(path), ".keepsake-game-writes-" + os.path.basename(path))
    with open(beside, "wb") as file:
        file.write(data)
    os.replace(beside, path)


def overwrite(path, data, pause=0.0):
    """Writes a file as most games do: in place, piece by piece."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb", buffering=0) as file:
        step = max(1, len(data) // 4)
        for start in range(0, len(data), step):
            file.write(data[start : start + step])
            if pause:
                time.sleep(pause)
