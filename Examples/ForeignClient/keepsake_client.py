#!/usr/bin/env python3
"""A Keepsake device in another language, written from docs/PROTOCOL.md.
README.md beside it says what it does and what it leaves out.

It needs Python 3.9 or later and the program `zstd`. All that it knows is in one folder, HOME: `state.json`, which is
replaced whole, and the plain bytes of contents under their hashes. One process at a time.
"""

import argparse
import base64
import fcntl
import json
import os
import secrets
import sys
import time
from pathlib import Path

from joins import additions, elements, join, join_versions, only, order, plain
from joins import state as state_of
from server import Contents, Failure, Server, WrongContent

# The limits of a request (docs/PROTOCOL.md, "Limits"). A group is never split, whatever its size.
MOST_CELLS, MOST_VERSIONS, MOST_BYTES = 8_192, 1_024, 1 << 20
MOST_INLINE_BYTES = 256 << 10
MOST_PARTS, MOST_OFFER_BYTES = 1_024, 32 << 20
OFFER_PAUSE_SECONDS = 30
ROUNDS = 200  # The limit for one `sync`: a client that needs more is in an endless loop.
START = {"epoch": 0, "seq": 0, "mark": 0}
EMPTY = {
    "account": None, "cursor": START, "caughtUp": False, "clock": 0, "cells": {}, "versions": {}, "loaded": {},
    "outbox": [], "offers": [], "staged": [], "refused": [], "damaged": [],
}


def key_of(collection, key):
    return json.dumps([collection, key])


def named(key):
    return dict(zip(("collection", "key"), json.loads(key)))


def chunks(items, measure, limits):
    """Items one after another, as lists of which no measure goes beyond its limit, unless one item does alone."""
    chunk, sums = [], [0] * len(limits)
    for item in items:
        added = measure(item)
        if chunk and any(so_far + more > most for so_far, more, most in zip(sums, added, limits)):
            yield chunk
            chunk, sums = [], [0] * len(limits)
        chunk.append(item)
        sums = [so_far + more for so_far, more in zip(sums, added)]
    if chunk:
        yield chunk


class Device:
    def __init__(self, home, limit=1_000):
        self.home, self.limit = Path(home), limit
        self.home.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.home / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        path = self.home / "state.json"
        self.state = {**EMPTY, **(json.loads(path.read_text()) if path.exists() else {})}
        # Random each time the state is opened, so that a copy of this folder never counts under the same name.
        self.writer = secrets.token_hex(8)
        self.group = None
        self.fresh = set()  # Saved by this process and never sent, so no other device can know these.
        self.told = {"exchanges": 0, "restarts": 0}
        self.server = Server(self.state["account"])
        self.contents = Contents(self.home / "contents", self.server)

    def keep(self):
        """One transaction: the state is replaced whole, and is on the disk when this returns."""
        path = self.home / "state.json.new"
        with open(path, "w") as file:
            json.dump(self.state, file)
            file.flush()
            os.fsync(file.fileno())
        path.replace(self.home / "state.json")
        folder = os.open(self.home, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def open_account(self, url, app_key, name, code=None):
        body = {"name": name} if code is None else {"name": name, "code": code}
        self.server = Server({"url": url})
        path = "/v1/devices" if code is None else "/v1/pairing/join"
        response = self.server.json("POST", path, body, {"Keepsake-App-Key": app_key}, once=True)
        self.state["account"] = {"url": url, **response}
        self.keep()

    # What the player sees and does.

    def heads(self, slot=None):
        """The versions that no known version covers."""
        versions = self.state["versions"]
        covered = {name for record in versions.values() for name in record.get("covers") or []}
        return sorted(
            name for name, record in versions.items() if name not in covered and slot in (None, record["slot"])
        )

    def load(self, slot):
        """The heads with their bytes: two are a conflict, and what is saved next replaces both.
        A delete beside a save is none."""
        heads = self.heads(slot)
        records = [self.state["versions"][name] for name in heads]
        self.state["loaded"][slot] = heads
        self.keep()
        return [(record, self.contents.bytes_of(record)) for record in records if not record.get("tombstone")]

    def commit(self, changes):
        """All of it is one group: it is kept, sent and shown as a whole or not at all."""
        self.group = {"cells": {}, "versions": []}
        for command, *words in changes:
            {"save": self.save, "delete": self.delete}.get(command, lambda *rest: self.change(command, *rest))(*words)
        if self.group["cells"] or self.group["versions"]:
            self.state["outbox"].append(self.group)
        self.group = None
        self.keep()

    def save(self, slot, file, title=None):
        data = Path(file).read_bytes()
        metadata = {"metadata": {"title": title}} if title else {}
        fields = {"contents": [self.contents.add(data)], "length": len(data), **metadata}
        self.add_version(slot, fields, self.state["loaded"].get(slot))

    def delete(self, slot):
        self.add_version(slot, {"tombstone": True}, None)

    def add_version(self, slot, fields, basis):
        """It covers what the game loaded or saved last, else all heads;
        and what these cover, where the cloud may never get them."""
        basis = self.heads(slot) if basis is None else basis
        versions, waiting = self.state["versions"], self.unacknowledged()
        known = [versions[name] for name in basis if name in versions]
        covers = set(basis)
        for record in known:
            if record["id"] in waiting:
                covers |= set(record.get("covers") or [])
        if known:
            provisional = all(one.get("provisional") for one in known)
        else:
            provisional = not basis and not self.state["caughtUp"]
        record = {
            "id": secrets.token_hex(16), "slot": slot, "covers": sorted(covers), "writer": self.writer,
            "provisional": provisional, "savedAtMilliseconds": self.now(), **fields,
        }
        self.drop(self.fresh.intersection(basis))
        versions[record["id"]] = record
        self.fresh.add(record["id"])
        self.group["versions"].append(record["id"])
        self.state["loaded"][slot] = [record["id"]]

    def drop(self, names):
        """Never sent, and replaced: they need no place in the outbox.
        What waits behind them then goes as one with what replaces them."""
        outbox = self.state["outbox"]
        for index, group in enumerate(outbox):
            if names.intersection(group["versions"]):
                for later in [*outbox[index:], self.group]:
                    self.merge(later)
                del outbox[index:]
                break
        for name in names:
            del self.state["versions"][name]
            self.group["versions"] = [other for other in self.group["versions"] if other != name]
            self.fresh.discard(name)

    def merge(self, group):
        if group is self.group:
            return
        for key, cell in group["cells"].items():
            self.group["cells"][key] = join(cell, self.group["cells"].get(key))
        self.group["versions"] = [*group["versions"], *self.group["versions"]]

    def unacknowledged(self):
        parts = (part for offer in self.state["offers"] for part in offer["parts"])
        groups = [*self.state["outbox"], *self.state["refused"], *parts, self.group]
        return {name for group in groups if group for name in group["versions"]}

    def now(self):
        return int(time.time() * 1000) + self.state["clock"]

    def change(self, rule, key, *words, collection="progress"):
        """What is sent is the least that says it; what is shown is that, joined with what was known."""
        name = key_of(collection, key)
        known = self.state["cells"].get(name)
        generation = known.get("generation", 0) if known else 0
        if rule == "reset":
            if not self.state["caughtUp"]:
                message = "A value can be reset only after this device has fetched everything once."
                raise Failure("resetBeforeCatchUp", message)
            if known and "later" in known["value"]:
                raise Failure("tooNew", "A value of a rule that this client doesn't know can't be reset.")
            (rule, *words), generation, known = words, generation + 1, None
        delta = state_of(generation, {rule: self.delta(rule, known and known["value"], *words)})
        joined = join(known, delta)
        if joined != known:
            self.state["cells"][name] = joined
            self.group["cells"][name] = join(self.group["cells"].get(name), delta)

    def delta(self, rule, known, *words):
        if known is not None and rule not in known:
            code = "tooNew" if "later" in known else "ruleMismatch"
            raise Failure(code, f"This value has the rule {only(known)[0]}, not {rule}.")
        held = known[rule] if known else None
        if rule in ("max", "min"):
            return {"int": int(words[0])}
        if rule == "latest":
            then = held["stamp"]["milliseconds"] + 1 if held else 0
            stamp = {"caughtUp": self.state["caughtUp"], "milliseconds": max(self.now(), then), "writer": self.writer}
            return {"stamp": stamp, "value": {"string": words[0]}}
        if rule == "union":
            return sorted(({"string": word} for word in set(words)), key=order)
        if rule == "counter":
            mine = next((one for one in held or [] if one["writer"] == self.writer), {"plus": 0, "minus": 0})
            plus, minus = max(int(words[0]), 0), max(-int(words[0]), 0)
            return [{"writer": self.writer, "plus": mine["plus"] + plus, "minus": mine["minus"] + minus}]
        if rule == "set":
            return self.put(held or [], words[1:]) if words[0] == "put" else self.take(held or [], words[1:])
        if rule == "dictionary":
            place, inner, *rest = words
            value = next((one["value"] for one in held or [] if one["key"] == {"string": place}), None)
            return [{"key": {"string": place}, "value": {inner: self.delta(inner, value, *rest)}}]
        if rule == "optional":
            return {words[0]: self.delta(words[0], held, *words[1:])} if words else None
        raise Failure("tooNew", f"This client can't write values of the rule {rule}.")

    def put(self, held, words):
        missing = [{"string": word} for word in sorted(set(words)) if {"string": word} not in elements(held)]
        if not missing:
            return []
        seen = additions(held).get(self.writer, ([], {}))[0]
        first = seen[-1][1] + 1 if seen else 1
        standing = [{"number": first + index, "element": element} for index, element in enumerate(missing)]
        return [{"writer": self.writer, "seen": [[first, first + len(missing) - 1]], "standing": standing}]

    def take(self, held, words):
        gone = []
        for writer, (_, standing) in sorted(additions(held).items()):
            numbers = sorted(number for number, element in standing.items() if only(element)[1] in words)
            if numbers:
                gone.append({"writer": writer, "seen": [[number, number] for number in numbers]})
        return gone

    # Exchanges.

    def sync(self):
        """Exchanges until all is told, heard and shown."""
        self.state["outbox"] += self.state.pop("refused")
        self.state["refused"] = []
        more = False
        for _ in range(ROUNDS):
            more = self.exchange(sends=not more)
            if more or more is None or not self.show():
                continue
            if not self.state["outbox"] and not self.state["offers"]:
                return
        raise Failure("endless", f"After {ROUNDS} exchanges there is still something to send or fetch.")

    def exchange(self, sends=True):
        """One exchange; whether there is more to hear, or None where nothing was heard."""
        state = self.state
        offer = state["offers"][0] if state["offers"] else None
        groups = ([offer["parts"][offer["held"]]] if offer else self.fitting()) if sends else []
        request = {
            "protocolVersion": 1, "cursor": state["cursor"], "limit": self.limit, "damaged": state["damaged"][:64],
        }
        cells = {}
        for group in groups:
            for key, cell in group["cells"].items():
                cells[key] = join(cells.get(key), cell)
        request["cells"] = [{**named(key), **cell} for key, cell in cells.items()]
        request["versions"] = [state["versions"][name] for group in groups for name in group["versions"]]
        if groups and offer and len(offer["parts"]) > 1:
            last = offer["held"] == len(offer["parts"]) - 1
            request["part"] = {"offer": offer["id"], "number": offer["held"], "last": last}
        elif not offer:
            request["contents"], refusals = self.needed(request["versions"])
            if refusals:
                self.refuse(refusals, groups, None)
                self.keep()
                return None
        self.fresh.clear()  # From here on, other devices may know them.
        response = self.server.json("POST", "/v1/exchange", request)
        self.told["exchanges"] += 1
        state["clock"] = response["serverTimeMilliseconds"] - int(time.time() * 1000)
        if response.get("restart"):
            self.begin_epoch(response["cursor"]["epoch"])
            return None
        self.stage(response.get("changes") or [], response.get("contents") or [], response["cursor"])
        more, outcome = response.get("more", False), response.get("outcome")
        if groups and outcome:
            kind, details = only(outcome)
            if kind == "accepted" and not more:
                del state["offers" if offer else "outbox"][: 1 if offer else len(groups)]
            elif kind == "missing":
                whole = offer["parts"] if offer else groups
                versions = [state["versions"][name] for group in whole for name in group["versions"]]
                refusals = self.put_all(details, versions)
                if refusals:
                    self.refuse(refusals, groups, offer)
            elif kind == "refused":
                self.refuse(details, groups, offer)
            elif kind == "held":
                self.held(details["parts"], offer)
        self.keep()
        for name in response.get("wanted") or []:
            if self.contents.has(name):
                self.contents.put(name)
        return more

    def fitting(self):
        """Groups from the first on that one request takes."""
        return next(chunks(self.state["outbox"], self.measure, (MOST_CELLS, MOST_VERSIONS, MOST_BYTES)), [])

    def measure(self, group):
        records = [self.state["versions"][name] for name in group["versions"]]
        return len(group["cells"]), len(records), len(json.dumps([group["cells"], records]))

    def needed(self, versions):
        """The contents of what will be heads: small ones to go along, large ones are put first.
        And what the cloud has no room for."""
        covered = {name for record in versions for name in record.get("covers") or []}
        names = {name for record in versions if record["id"] not in covered for name in record.get("contents") or []}
        inline, large, room = [], [], MOST_INLINE_BYTES
        for name in sorted(names):
            frame, length = self.contents.frame(name)
            if len(frame) <= room:
                room -= len(frame)
                inline.append({"hash": name, "length": length, "bytes": base64.b64encode(frame).decode()})
            else:
                large.append(name)
        return inline, self.put_all(large, versions)

    def put_all(self, names, versions):
        """Puts contents; the refusals of the versions whose contents can't be put."""
        refusals = []
        for name in names:
            try:
                if self.contents.has(name):
                    self.contents.put(name)
                    continue
                why = {"reason": "missing", "message": "Its content is gone."}
            except Failure as failure:
                if failure.code not in ("quota", "too_large"):
                    raise
                why = {"reason": "tooLarge" if failure.code == "too_large" else "quota", "message": str(failure)}
                if failure.code == "quota":
                    why["quota"] = {part: failure.details[part] for part in ("limit", "used", "needed")}
            without = [one for one in versions if name in (one.get("contents") or [])]
            refusals += [{"item": f"version {one['id']}", **why} for one in without]
        return refusals

    def refuse(self, details, groups, offer):
        """What is named waits for the next `sync`, with the reason;
        the rest goes on, of an offer as ordinary groups."""
        reasons = {one["item"]: one for one in details}
        parts = offer["parts"] if offer else groups
        if offer:
            del self.state["offers"][0]
            self.state["outbox"] = [*parts, *self.state["outbox"]]
        for group in parts:
            for key in list(group["cells"]):
                item = "cell {collection}/{key}".format(**named(key))
                if item in reasons:
                    cells = {key: group["cells"].pop(key)}
                    self.state["refused"].append({"cells": cells, "versions": [], "why": reasons[item]})
            for name in [one for one in group["versions"] if f"version {one}" in reasons]:
                group["versions"].remove(name)
                self.state["refused"].append({"cells": {}, "versions": [name], "why": reasons[f"version {name}"]})
        self.state["outbox"] = [group for group in self.state["outbox"] if group["cells"] or group["versions"]]

    def held(self, parts, offer):
        sent = offer["held"]
        offer["held"] = min(parts, len(offer["parts"]) - 1)
        if parts == sent:  # The cloud has no room for the offer now, because other devices are offering.
            self.keep()
            time.sleep(OFFER_PAUSE_SECONDS)

    def begin_epoch(self, epoch):
        """The cloud isn't what it was: all that is held here goes as one offer,
        in place of what waited, and all is heard again."""
        state = self.state
        self.told["restarts"] += 1
        state.update(cursor={**START, "epoch": epoch}, staged=[], outbox=[], offers=[])
        pieces = [{"cells": {}, "versions": [name]} for name in self.newest_first()]
        pieces += [{"cells": {key: cell}, "versions": []} for key, cell in state["cells"].items()]
        parts = []
        for chunk in chunks(pieces, self.measure, (MOST_CELLS, MOST_VERSIONS, MOST_BYTES)):
            cells = {key: cell for piece in chunk for key, cell in piece["cells"].items()}
            parts.append({"cells": cells, "versions": [name for piece in chunk for name in piece["versions"]]})
        for some in chunks(parts, lambda part: (1, self.measure(part)[2]), (MOST_PARTS, MOST_OFFER_BYTES)):
            state["offers"].append({"id": secrets.token_hex(16), "held": 0, "parts": some})
        self.keep()

    def newest_first(self):
        """Who replaces comes before what is replaced, so that the cloud never takes history for a head."""
        names, place = self.heads(), 0
        seen = set(names)
        while place < len(names):
            for older in self.state["versions"][names[place]].get("covers") or []:
                if older in self.state["versions"] and older not in seen:
                    seen.add(older)
                    names.append(older)
            place += 1
        return names

    # Fetching.

    def stage(self, changes, contents, cursor):
        """Changes wait with their cursor until all pages are here, and the contents of what will be heads."""
        self.contents.receive(contents)
        for change in changes:
            named_again = (change.get("version") or {}).get("contents") or []
            self.state["damaged"] = [name for name in self.state["damaged"] if name not in named_again]
        self.state["staged"] += changes
        self.state["cursor"] = cursor

    def show(self):
        """Shows what is staged, all at once;
        false if a content isn't in the cloud any more, and another exchange has to tell why."""
        state = self.state
        cells, versions = dict(state["cells"]), dict(state["versions"])
        for change in state["staged"]:
            if cell := change.get("cell"):
                key = key_of(cell["collection"], cell["key"])
                cells[key] = join(cells.get(key), state_of(cell.get("generation", 0), cell["value"]))
            elif record := change.get("version"):
                versions[record["id"]] = join_versions(versions.get(record["id"]), record)
        covered = {name for record in versions.values() for name in record.get("covers") or []}
        heads = [record for record in versions.values() if record["id"] not in covered]
        needed = {name for record in heads for name in record.get("contents") or []}
        for name in sorted(needed.difference(state["damaged"])):
            try:
                if not self.contents.has(name) and not self.contents.fetch(name):
                    return False
            except WrongContent as wrong:
                state["damaged"] += sorted({name, str(wrong)})
        state.update(cells=cells, versions=versions, staged=[], caughtUp=True)
        self.keep()
        waiting = [versions[name] for name in self.unacknowledged()]
        self.contents.tidy(needed.union(*(record.get("contents") or [] for record in waiting)))
        return True

    def hear(self, event):
        """What an event says, if it follows on from where this device stands; else an exchange.
        True if the event was enough."""
        if event.get("unknown") and event["unknown"] == self.state["cursor"] and event["unknown"]["seq"]:
            self.begin_epoch(event["unknown"]["epoch"])
        elif event.get("after") and event["after"] == self.state["cursor"] and not self.state["staged"]:
            self.stage(event["changes"], event.get("contents") or [], event["cursor"])
            if self.show():
                return True
        elif event["seq"] <= self.state["cursor"]["seq"] and not event.get("unknown"):
            return True
        self.sync()
        return False

    def listen(self, kind, count):
        """Hears so many events, and says what became of each."""
        source = self.server.stream if kind == "stream" else self.server.polls
        for event in source(lambda: self.state["cursor"]):
            taken = self.hear(event)
            print(json.dumps({"event": event["seq"], "enough": taken}), flush=True)
            count -= 1
            if count <= 0:
                return

    def shown(self):
        state, slots = self.state, {}
        for name in self.heads():
            record = state["versions"][name]
            if not record.get("tombstone"):
                sha = record["contents"] if len(record.get("contents") or []) == 1 else [self.contents.name_of(record)]
                about = {
                    "id": name, "sha256": sha[0], "length": record.get("length", 0),
                    "provisional": record.get("provisional", False),
                    "title": (record.get("metadata") or {}).get("title"),
                }
                slots.setdefault(record["slot"], []).append(about)
        values = {"/".join(json.loads(key)): plain(cell["value"]) for key, cell in sorted(state["cells"].items())}
        waiting = len(state["outbox"]) + len(state["offers"])
        why = [one["why"] for one in state["refused"]]
        return {
            "values": values, "slots": slots, "waiting": waiting, "refused": why, "cursor": state["cursor"],
            **self.told,
        }


def main():
    parser = argparse.ArgumentParser(
        description="A Keepsake device in Python. Each command is one process; README.md lists them."
    )
    parser.add_argument("home", help="the folder of everything that this device knows")
    parser.add_argument("command", help="register, join, pair, sync, show, load, listen, together, or a change")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--limit", type=int, default=1_000, help="changes in one response")
    arguments = parser.parse_args()
    device, words = Device(arguments.home, arguments.limit), arguments.words
    try:
        if arguments.command == "register":
            device.open_account(words[0], words[1], "Python")
        elif arguments.command == "join":
            device.open_account(words[0], words[1], "Python", code=words[2])
        elif arguments.command == "pair":
            print(device.server.json("POST", "/v1/pairing", {}, once=True)["code"])
        elif arguments.command == "sync":
            device.sync()
            print(json.dumps(device.shown()))
        elif arguments.command == "show":
            print(json.dumps(device.shown()))
        elif arguments.command == "load":
            for number, (_, data) in enumerate(device.load(words[0])):
                Path(words[1] + (f".{number}" if number else "")).write_bytes(data)
        elif arguments.command == "listen":
            device.listen(words[0], int(words[1]))
        elif arguments.command == "together":
            device.commit([json.loads(line) for line in sys.stdin if line.strip()])
        else:
            device.commit([[arguments.command, *words]])
    except Failure as failure:
        sys.exit(f"{failure.code}: {failure}")


if __name__ == "__main__":
    main()
