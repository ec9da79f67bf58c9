"""What is said over HTTP, and the contents: docs/PROTOCOL.md, "Over HTTP" and "Contents"."""

import base64
import hashlib
import json
import os
import random
import subprocess
import time
import urllib.error
import urllib.request

ATTEMPTS = 8  # With pauses that start at half a second and double: about a minute.
TIMEOUT_SECONDS = 60
MOST_CHAIN = 256  # The maximum chain of deltas; devices never create a longer one.
TRIES = 3
WINDOW = "--long=29"  # 512 MiB, for a content and its base.


class Failure(Exception):
    """What the cloud said no to, or what can't be done: a word for programs, and a sentence."""

    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.code, self.details = code, details or {}


class WrongContent(Exception):
    """It came three times, and isn't what its name says."""


class Server:
    def __init__(self, account):
        self.account = account or {}

    def request(self, method, path, body=None, headers=(), once=False):
        """The status, the headers and the body. What may pass is tried again;
        what isn't marked as the cloud's word says nothing."""
        if "url" not in self.account:
            raise Failure("noAccount", "This device has no account yet: register or join.")
        headers = dict(headers)
        if token := self.account.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        for attempt in range(ATTEMPTS):
            pause = 0.5 * 2**attempt * random.uniform(0.5, 1)
            request = urllib.request.Request(self.account["url"].rstrip("/") + path, body, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                    if response.headers.get("Keepsake-Protocol") == "1":
                        return response.status, response.headers, response.read()
                    last = Failure("network", "The response didn't come from the cloud.")
            except urllib.error.HTTPError as error:
                if error.headers.get("Keepsake-Protocol") == "1":
                    details = json.loads(error.read())["error"]
                    last = Failure(details["code"], details["message"], details)
                    if error.code < 500 and error.code != 429:
                        raise last from None
                    pause = max(pause, float(error.headers.get("Retry-After") or 0))
                else:
                    last = Failure("network", f"The response with status {error.code} didn't come from the cloud.")
            except OSError as error:
                last = Failure("network", f"The cloud can't be reached: {error}")
            except Exception as error:  # A connection that breaks within a response raises other errors.
                last = Failure("network", f"The response was cut off: {error}")
            if once:
                break
            if attempt + 1 < ATTEMPTS:
                time.sleep(pause)
        raise last

    def json(self, method, path, message, headers=(), once=False):
        body = json.dumps({key: value for key, value in message.items() if value not in ([], None)}).encode()
        headers = {"Content-Type": "application/json", **dict(headers)}
        return json.loads(self.request(method, path, body, headers, once)[2])

    def polls(self, cursor):
        """Events one by one, for whom no stream reaches."""
        while True:
            place = cursor()
            query = f"after={place['seq']}&cursor={place['epoch']}.{place['seq']}.{place['mark']}"
            status, _, body = self.request("GET", f"/v1/events/next?{query}")
            if status == 200:
                yield json.loads(body)

    def stream(self, cursor):
        """Events as they come; a stream that ends is opened again, from where the device stands by then."""
        while True:
            place = cursor()
            path = f"/v1/events?cursor={place['epoch']}.{place['seq']}.{place['mark']}"
            headers = {"Authorization": f"Bearer {self.account['token']}", "Accept": "text/event-stream"}
            request = urllib.request.Request(self.account["url"].rstrip("/") + path, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as lines:
                    for line in lines:
                        if line.startswith(b"data: "):
                            yield json.loads(line[6:])
            except urllib.error.HTTPError as error:
                if error.code in (401, 403):
                    raise Failure("unauthorized", "The token is no longer accepted.") from None
            except (OSError, ValueError):
                pass  # The next stream delivers what this one would have.
            time.sleep(random.uniform(0.2, 0.5))


def compress(path):
    return subprocess.run(["zstd", "-q", "-3", "-c", str(path)], check=True, stdout=subprocess.PIPE).stdout


def expand(path, most, base):
    """The bytes in a frame, which may be anything: no more than `most` of them are read. None if it can't be read."""
    prefix = [f"--patch-from={base}"] if base and base.stat().st_size else []
    command = ["zstd", "-d", "-q", "-c", WINDOW, *prefix, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        data = process.stdout.read(most + 1)
        if len(data) > most:
            process.kill()
    return data if process.returncode == 0 else None


class Contents:
    """Plain bytes by their SHA-256, whole in this folder; in the cloud, and on the way, they are zstd frames."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        folder.mkdir(exist_ok=True)

    def has(self, name):
        return (self.folder / name).exists()

    def add(self, data):
        name = hashlib.sha256(data).hexdigest()
        if not self.has(name):
            path = self.folder / f"{name}.new"
            with open(path, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            path.replace(self.folder / name)
        return name

    def bytes_of(self, record):
        """A version's contents, one after the other."""
        names = record.get("contents") or []
        data = b"".join((self.folder / name).read_bytes() for name in names if self.has(name))
        if len(data) != record.get("length", 0):
            raise Failure("damaged", f"The parts of the version {record['id']} are not all on this device.")
        return data

    def name_of(self, record):
        return hashlib.sha256(self.bytes_of(record)).hexdigest()

    def frame(self, name):
        """One frame that says how long it is, and the plain length.
        In full always: a client may do without deltas when it sends."""
        path = self.folder / name
        return compress(path), path.stat().st_size

    def put(self, name):
        frame, length = self.frame(name)
        self.server.request("PUT", f"/v1/contents/{name}", frame, {"Keepsake-Length": str(length)})

    def receive(self, contents):
        """Those of a response: bases come before what is encoded against them.
        What can't be read here is asked for when it is needed."""
        for one in contents:
            if not self.has(one["hash"]) and (not one.get("base") or self.has(one["base"])):
                self.unpack(one["hash"], base64.b64decode(one["bytes"]), one["length"], one.get("base"))

    def unpack(self, name, frame, length, base):
        """Keeps what is in a frame if it is what its name says."""
        path = self.folder / f"{name}.frame"
        path.write_bytes(frame)
        data = expand(path, length, self.folder / base if base else None)
        path.unlink()
        if data is None or len(data) != length or hashlib.sha256(data).hexdigest() != name:
            return False
        self.add(data)
        return True

    def fetch(self, name, depth=0):
        """Gets a content and the bases that it leans on; false if the cloud doesn't have one of them any more."""
        for _ in range(TRIES):
            try:
                _, headers, frame = self.server.request("GET", f"/v1/contents/{name}")
            except Failure as failure:
                if failure.code == "content_missing":
                    return False
                raise
            base = headers.get("Keepsake-Base")
            if base and depth >= MOST_CHAIN:
                break
            if base and not self.has(base) and not self.fetch(base, depth + 1):
                return False
            if self.unpack(name, frame, int(headers["Keepsake-Length"]), base):
                return True
        raise WrongContent(name)

    def tidy(self, needed):
        """Of what was replaced only the record is kept, and of what broke off nothing."""
        for path in self.folder.iterdir():
            if path.name not in needed:
                path.unlink()
