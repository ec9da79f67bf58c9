#!/usr/bin/env python3
"""Ends and stops the example Space in every way, many times, and looks at what comes back.

Each life of the game goes on from the one before it in a pseudo-terminal, with keys pressed by a seed; the game writes
its state down in each frame. The first state of the next life has to be the last one of this life, bit for bit; after
SIGKILL and SIGQUIT, which save nothing, a state of this life no older than the autosave interval. Exits with status 1
if anything doesn't come back.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from space_harness import MIDDLE, Failure, Player, numbers

RATE = 60
INTERVAL = 0.5
# Until what was captured is durable, beyond the interval: a disk that many use may take its time.
DURABLE = 2.0
# How long a game is stopped in one stop of ten; in the others hardly.
LONG_STOP = 1.5


def by_signal(number):
    return lambda player, _: player.kill(number)


def by_key(text):
    return lambda player, _: player.key(text)


def stop_and_go(player, index):
    player.key("\x1a")
    player.event("stopped")
    player.check_restored()
    before = player.lines()[-1]
    time.sleep(LONG_STOP if index % 10 == 0 else 0.01)
    if player.lines()[-1] != before:
        raise Failure("the game continued while it was stopped")
    start = time.monotonic()
    player.go_on()
    player.until(
        lambda: player.screen.modes.get("1049") and player.lines()[-1][0] > before[0] + 5, "the game continues"
    )
    player.key("q")
    while not player.events:
        player.pump(0.02)
    flown = player.lines()[-1][0] - before[0]
    if flown > RATE * (time.monotonic() - start) + RATE / 2:
        raise Failure(f"after the stop the ship flew {flown} steps in one go")


def stop_and_kill(player, _):
    player.key("\x1a")
    player.event("stopped")
    player.kill(signal.SIGKILL)
    # It goes on only to end.
    player.go_on()


def stop_and_take_back(player, index):
    before = player.lines()[-1][0]
    player.kill(signal.SIGTSTP)
    time.sleep(index % 5 / 1000)
    if player.is_stopped():
        player.event("stopped")
        player.go_on()
    else:
        player.kill(signal.SIGCONT)

    def has_gone_on():
        # It may have stopped between the look and the signal: the shell saw that and has the terminal now.
        while player.events:
            player.event("stopped")
            player.go_on()
        return player.lines()[-1][0] > before + 15

    player.until(has_gone_on, "the game continues after a stop that was reverted")
    player.key("q")


def end_twice(player, index):
    player.kill(signal.SIGTERM)
    time.sleep(0.001)
    try:
        player.kill([signal.SIGTERM, signal.SIGHUP][index % 2])
    except ProcessLookupError:
        pass  # The first was enough.


def hang_up(player, _):
    player.hang_up()


# Name, what is done, how it may end, whether the last state has to come back, options.
STOPS = [
    ("SIGTERM", by_signal(signal.SIGTERM), ["signal 15"], True, []),
    ("SIGINT (Ctrl-C)", by_key("\x03"), ["signal 2"], True, []),
    ("SIGHUP", by_signal(signal.SIGHUP), ["signal 1"], True, []),
    # Where both wait for a game that had no time, the system hands out the lower number first.
    ("SIGTERM, then SIGTERM or SIGHUP 1 ms later", end_twice, ["signal 15", "signal 1"], True, []),
    ("SIGTSTP (Ctrl-Z), SIGCONT, quit", stop_and_go, ["exit 0"], True, []),
    ("SIGTSTP, SIGCONT up to 4 ms later, quit", stop_and_take_back, ["exit 0"], True, []),
    ("SIGTSTP (Ctrl-Z), SIGKILL", stop_and_kill, ["signal 9"], True, []),
    ("quit key", by_key("q"), ["exit 0"], True, []),
    ("end of standard input (Ctrl-D)", by_key("\x04"), ["exit 0"], True, []),
    # The game sees the end of its input, or a signal of the shell or the system, whichever comes first.
    ("terminal hung up, under bash", hang_up, ["signal 1", "exit 0"], True, []),
    ("normal end of main", lambda player, _: None, ["exit 0"], True, ["--steps", "20"]),
    ("quit within the autosave interval", by_key("q"), ["exit 0"], True, ["--every", "3600"]),
    ("SIGQUIT (Ctrl-\\)", by_key("\x1c"), ["signal 3"], False, []),
    ("SIGKILL", by_signal(signal.SIGKILL), ["signal 9"], False, []),
]


def play(player, chance, seconds):
    """Keys by the seed, for some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not player.events:
        player.key(chance.choice(["\x1b[A", "\x1b[C", "\x1b[D", "w", "a", "d"]))
        player.pump(chance.uniform(0.01, 0.06))


def check(expected, came):
    """How many seconds of play are lost; raises if it is too much, or not what was there."""
    lines, exact = expected
    if exact:
        if came != lines[-1]:
            raise Failure(f"the game was left at {lines[-1]}, but {came} came back")
        return 0.0
    if came not in lines:
        raise Failure(f"{came} came back, which was never the state of the game")
    lost = (lines[-1][0] - came[0]) / RATE
    if lost > INTERVAL + DURABLE:
        raise Failure(f"{lost:.2f} s are lost, but the interval is {INTERVAL} s")
    return lost


def table(lines):
    """By the names of the ways, in their order."""
    head = ["| how it ended | times | came back | lost at most | exit status |", "|---|--:|--:|--:|---|"]
    return "\n".join(head + [lines[stop[0]] for stop in STOPS if stop[0] in lines])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--space", required=True, help="the game's executable")
    options.add_argument("--count", type=int, default=100, help="how often to end the game in each way (100)")
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument(
        "--only", action="append", help="only ways whose name contains this; may be given several times"
    )
    options.add_argument("--write", action="store_true", help="put the table into docs/TESTING.md")
    options = options.parse_args()
    folder = tempfile.mkdtemp(prefix="space-")
    chance = random.Random(options.seed)
    expected, row, failed = None, None, 0
    rows = []

    def settle(came):
        """What the life before left has come back, or not."""
        nonlocal failed
        try:
            lost = check(expected, came)
            row["back"] += 1
            row["lost"] = max(row["lost"], lost)
        except Failure as failure:
            failed += 1
            print(f"{row['name']}: {failure} (seed {options.seed})", file=sys.stderr)

    stops = [stop for stop in STOPS if any(part in stop[0] for part in options.only or [""])]
    for name, stop, endings, exact, extra in stops + [("", None, ["exit 0"], True, [])]:
        for index in range(options.count if stop else 1):
            player = Player(options.space, folder, *(extra or ["--every", str(INTERVAL)]), bash=stop is hang_up)
            try:
                came = player.begun()
                if expected:
                    settle(came)
                elif numbers(came[1]) != MIDDLE:
                    raise Failure(f"the first run began at {numbers(came[1])}")
                if index == 0:
                    row = {"name": name, "back": 0, "lost": 0.0, "exact": exact, "ends": {}, "runs": options.count}
                    rows.append(row)
                if "--steps" not in extra:
                    play(player, chance, chance.uniform(0.05, 0.3) if exact else chance.uniform(0.1, 1.2))
                if stop is None:
                    player.key("q")
                else:
                    stop(player, index)
                ended = player.end()
                row["ends"][ended] = row["ends"].get(ended, 0) + 1
                if ended not in endings:
                    raise Failure(f"the process ended with {ended}, not {endings}")
            except Failure as failure:
                failed += 1
                print(f"{name} {index}: {failure} (seed {options.seed})", file=sys.stderr)
                try:
                    player.kill(signal.SIGKILL)
                except ProcessLookupError:
                    pass
            # What was written last before the end.
            lines = player.lines()
            expected = (lines, exact)
            player.close()
    shutil.rmtree(folder)

    lines = {}
    for row in rows[:-1]:
        counts = sorted(row["ends"].items())
        ends = ", ".join(f"{kind} ({count})" if len(counts) > 1 else kind for kind, count in counts)
        back = f"{row['back']}, {'every bit' if row['exact'] else 'one that was saved'}"
        lost = "nothing" if row["exact"] else f"{row['lost']:.2f} s of play"
        lines[row["name"]] = f"| {row['name']} | {row['runs']} | {back} | {lost} | {ends} |"
    print(table(lines))
    if failed:
        print(f"{failed} failed", file=sys.stderr)
        return 1
    if options.write:
        path = os.path.join(os.path.dirname(__file__), "../docs/TESTING.md")
        with open(path) as file:
            before, rest = file.read().split("<!-- stops -->", 1)
        old, after = rest.split("<!-- /stops -->", 1)
        # Ways that were left out this time stay as they are.
        lines = {**{line.split("|")[1].strip(): line for line in old.split("\n") if line.startswith("| ")}, **lines}
        with open(path, "w") as file:
            file.write(f"{before}<!-- stops -->\n\n{table(lines)}\n\n<!-- /stops -->{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
