#!/usr/bin/env python3
"""support.py: answers "my level went back". Finds the player, shows what changed between the save that the player has
and an earlier one, and restores that if you say so. Needs an admin key with the scopes read and saves (docs/ADMIN.md).

  support.py --url http://127.0.0.1:8081 --key-file key --device 5f0c4a1e9b7d4c2fa8e61d3b2c907f14 --slot main
"""
import argparse
import datetime
import json
import sys
import urllib.error
import urllib.parse
import urllib.request


class Studio:
    """The port of a cloud for the studio."""

    def __init__(self, url, key):
        self.url, self.key = url.rstrip("/"), key

    def ask(self, method, path, query=None, body=None):
        """Returns the answer's JSON. Ends the program with the server's sentence for any error."""
        place = f"{self.url}/admin/v1/{path}"
        if query:
            place += "?" + urllib.parse.urlencode(query)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(place, data, {"Authorization": f"Bearer {self.key}"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            sys.exit(f"{path}: {json.load(error)['error']['message']}")
        except urllib.error.URLError as error:
            sys.exit(f"{self.url} can't be reached: {error.reason}")


def when(milliseconds):
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def find(studio, arguments):
    """Returns the one player that was asked for."""
    if arguments.player:
        return studio.ask("GET", f"players/{arguments.player}")
    players = studio.ask("GET", "players", {"device": arguments.device})["players"]
    if not players:
        sys.exit("no player has this device: ask for the id that the game shows now")
    return players[0]


def choose(versions, wanted):
    """Returns the current version, and the one to go back to: the one that is named, or the newest before that."""
    current = [version for version in versions if version["head"]]
    if not current:
        sys.exit("there is no such save")
    earlier = [v for v in versions if not v["head"] and v["available"] and not v["tombstone"]]
    if wanted:
        earlier = [version for version in earlier if version["version"] == wanted]
    if not earlier:
        sys.exit("no earlier version can be restored")
    return current[0], earlier[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--key-file", required=True)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--player")
    who.add_argument("--device")
    parser.add_argument("--slot", required=True)
    parser.add_argument("--version", help="restore this version; the newest earlier one if left out")
    parser.add_argument("--reason", default="support", help="for the audit log: a ticket, no names of people")
    parser.add_argument("--yes", action="store_true", help="restore without asking")
    arguments = parser.parse_args()
    with open(arguments.key_file, encoding="ascii") as file:
        studio = Studio(arguments.url, file.read().strip())

    player = find(studio, arguments)
    path = f"players/{player['player']}"
    print(f"player {player['player']}")
    for device in player["devices"]:
        print(f"  {device['name'] or device['device']}, last seen {when(device['seenMilliseconds'])}")

    versions = studio.ask("GET", f"{path}/versions", {"slot": arguments.slot})["versions"]
    for version in versions[:10]:
        mark = "*" if version["head"] else " "
        print(f"{mark} {version['version']}  {when(version['savedAtMilliseconds'])}  {version['bytes']} bytes")
    current, earlier = choose(versions, arguments.version)

    difference = studio.ask("GET", f"{path}/diff", {"from": earlier["version"], "to": current["version"]})
    if difference["equal"]:
        sys.exit("both versions have the same contents")
    print("what changed since the earlier version:")
    print(json.dumps(difference["changes"], indent=2, ensure_ascii=False))

    if not arguments.yes and input(f"restore {earlier['version']}? [y/N] ").strip().lower() != "y":
        sys.exit("nothing was changed")
    restored = studio.ask(
        "POST", f"{path}/versions/{earlier['version']}/restore", body={"reason": arguments.reason})
    print(f"restored as {restored['version']}" if restored["changed"] else "the slot shows it already")


if __name__ == "__main__":
    main()
