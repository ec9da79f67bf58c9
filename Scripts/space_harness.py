"""A terminal for the example Space: a pseudo-terminal with a shell's part in it,
and a screen that reads what the game writes."""
import fcntl
import os
import pty
import re
import resource
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

# Nothing here takes so long on any machine that runs at all.
PATIENCE = 1_800
BRAILLE = 0x2800
MIDDLE = (0.0, 160.0, 100.0, 0.0, 0.0)


class Failure(Exception):
    """What didn't come back, or wasn't as it should be."""


def state(line):
    """Steps, and heading, position and velocity as their bits: equal only if every bit is."""
    parts = line.split()
    return int(parts[0]), tuple(int(part, 16) for part in parts[1:])


def numbers(bits):
    return tuple(struct.unpack("<d", struct.pack("<Q", part))[0] for part in bits)


class Screen:
    """What a terminal shows of the few sequences that Space uses; another one is a failure."""

    PATTERN = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])")

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells, self.color, self.at = {}, 0, (1, 1)
        self.rest, self.clears, self.modes = "", 0, {}

    def feed(self, data):
        # A letter may be cut off at the end of what was read.
        text = self.rest + data
        self.rest = ""
        place = 0
        while place < len(text):
            if text[place] != "\x1b":
                row, column = self.at
                if text[place] not in "\r\n":
                    self.cells[self.at] = (text[place], self.color)
                self.at = (row, column + 1)
                place += 1
                continue
            found = self.PATTERN.match(text, place)
            if not found:
                if len(text) - place > 20:
                    raise Failure(f"an unknown sequence: {text[place:place + 20]!r}")
                self.rest = text[place:]
                return
            mode, values, letter = found.groups()
            place = found.end()
            if mode:
                self.modes[values] = letter == "h"
            elif letter == "H":
                self.at = tuple(int(value) for value in values.split(";"))
            elif letter == "J":
                self.cells, self.clears = {}, self.clears + 1
            elif letter == "m":
                parts = values.split(";")
                self.color = int(parts[2]) if len(parts) == 3 else 0
            else:
                raise Failure(f"an unknown sequence: {found.group()!r}")

    def line(self, row):
        return "".join(self.cells.get((row, column), (" ", 0))[0] for column in range(1, self.columns + 1))

    def drawn(self, color):
        """Where something is drawn in this colour."""
        return [at for at, (letter, its) in self.cells.items() if its == color and letter != " "]

    def svg(self, title):
        colors = {240: "#585858", 247: "#9e9e9e", 231: "#ffffff", 208: "#ff8700", 159: "#afffff"}
        bits = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.columns * 10} {self.rows * 20}" '
            'font-family="monospace" font-size="16">',
            f"<title>{title}</title>",
            '<rect width="100%" height="100%" rx="8" fill="#0b0e14"/>',
        ]
        for (row, column), (letter, color) in sorted(self.cells.items()):
            x, y, fill = (column - 1) * 10, (row - 1) * 20, colors.get(color, "#808080")
            dots = ord(letter) - BRAILLE
            if 0 <= dots < 256:
                for bit, (right, down) in enumerate(bits):
                    if dots >> bit & 1:
                        center = f'cx="{x + right * 5 + 2.5}" cy="{y + down * 5 + 2.5}"'
                        lines.append(f'<circle {center} r="1.9" fill="{fill}"/>')
            elif letter != " ":
                lines.append(f'<text x="{x}" y="{y + 15}" fill="{fill}">{letter}</text>')
        return "\n".join(lines + ["</svg>"]) + "\n"


class Player:
    """One life of the game. Between it and the terminal stands a process that does what a shell does: without one
    nobody could let a stopped game go on, so the system wouldn't stop it. With `bash` that is a real one, which ends
    with its terminal as real ones do."""

    def __init__(self, space, folder, *options, columns=80, rows=24, bash=False):
        self.screen = Screen(columns, rows)
        self.record = os.path.join(folder, "record")
        if os.path.exists(self.record):
            os.remove(self.record)
        command = [space, "--data", os.path.join(folder, "data"), "--record", self.record, "--within", str(PATIENCE),
                   *options]
        status_in, status_out = os.pipe()
        control_in, control_out = os.pipe()
        self.shell, self.master = pty.fork()
        if self.shell == 0:
            try:
                os.close(status_in)
                os.close(control_out)
                if bash:
                    be_bash(status_out)
                be_shell(command, status_out, control_in, columns, rows)
            finally:
                os._exit(99)
        os.close(status_out)
        os.close(control_in)
        self.status, self.control = status_in, control_out
        self.settings = termios.tcgetattr(self.master)
        self.events, self.ended, self.unread = [], None, b""
        if bash:
            self.resize(columns, rows)
            self.key(shlex.join([sys.executable, os.path.abspath(__file__), str(status_out), *command]) + "\n")
        self.game = int(self.event("pid"))

    # What the game shows and says

    def pump(self, seconds=0.0):
        """Reads what the game writes, for so long or until the process stops or ends."""
        end = time.monotonic() + seconds
        while True:
            files = [file for file in (self.master, self.status) if file is not None]
            ready, _, _ = select.select(files, [], [], max(0, min(end - time.monotonic(), 0.05)))
            if self.master in ready:
                try:
                    data = self.unread + os.read(self.master, 65536)
                except OSError:
                    data = b""
                if data:
                    text = data.decode("utf-8", "ignore")
                    # A letter that is cut off is read with the next ones.
                    self.unread = b"" if text.encode() == data else data[len(text.encode()):]
                    self.screen.feed(text)
                else:
                    os.close(self.master)
                    self.master = None
            if self.status in ready:
                data = os.read(self.status, 4096)
                if not data:
                    os.close(self.status)
                    self.status = None
                self.events += data.decode().split("\n")[:-1]
            if time.monotonic() >= end:
                return

    def event(self, *kinds):
        """The next thing that happened to the process: `stopped`, `exit N`, `signal N`."""
        end = time.monotonic() + PATIENCE
        while not self.events:
            if time.monotonic() > end or self.status is None:
                last_row = self.screen.line(self.screen.rows)
                raise Failure(f"nothing happened: waited for {kinds}; the screen shows {last_row!r}")
            self.pump(0.02)
        kind, _, value = self.events.pop(0).partition(" ")
        if kind not in kinds:
            raise Failure(f"{kind} {value} came instead of {kinds}")
        return value if len(kinds) == 1 else f"{kind} {value}"

    def lines(self):
        try:
            with open(self.record) as file:
                return [state(line) for line in file.read().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while True:
            self.pump(0.005)
            value = condition()
            if value:
                return value
            if self.events or time.monotonic() > end:
                raise Failure(f"{what}: did not happen; {self.events}; {self.output()}")

    def output(self):
        return "\n".join(self.screen.line(row).rstrip() for row in range(1, 4))

    def begun(self):
        """The state in which the game begins: what came back."""
        return self.until(self.lines, "the game begins")[0]

    # What the player does

    def key(self, text):
        os.write(self.master, text.encode())

    def kill(self, number):
        os.kill(self.game, number)

    def is_stopped(self):
        if not os.path.isdir("/proc"):
            shown = subprocess.run(["ps", "-o", "state=", "-p", str(self.game)], capture_output=True)
            return shown.stdout.startswith(b"T")
        with open(f"/proc/{self.game}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def go_on(self):
        os.write(self.control, b"c")

    def hang_up(self):
        os.close(self.master)
        self.master = None

    def resize(self, columns, rows):
        self.screen.columns, self.screen.rows = columns, rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """How the process ended; the terminal has to be as it was unless nobody could see to that."""
        ended = self.event("exit", "signal")
        self.pump(0.02)
        if self.master is not None and ended != "signal 9":
            self.check_restored()
        return ended

    def check_restored(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.pump(0.005)
            settings = termios.tcgetattr(self.master)
            if settings == self.settings and self.screen.modes.get("1049") is False and self.screen.modes.get("25"):
                return
        raise Failure("the terminal was left as the game had it")

    def close(self):
        for file in (self.master, self.status, self.control):
            if file is not None:
                os.close(file)
        os.waitpid(self.shell, 0)


# Whoever runs this may ignore some, and Python ignores others.
SIGNALS = (signal.SIGTTOU, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP)


def be_bash(status):
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(status, True)
    environment = {**os.environ, "PS1": "", "HISTFILE": "", "TERM": "dumb"}
    os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)


def report(status, command):
    """Runs the game as a part of the shell's job and says how it ended,
    which nobody could ask a shell that has ended itself."""
    game = os.fork()
    if game == 0:
        os.close(status)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execv(command[0], command)
    # Stays to the end, whatever the terminal does. Not before the fork: a game must not inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(status, f"pid {game}\n".encode())
    _, how = os.waitpid(game, 0)
    os.write(status, f"{ending(how)}\n".encode())


def ending(how):
    return f"signal {os.WTERMSIG(how)}" if os.WIFSIGNALED(how) else f"exit {os.WEXITSTATUS(how)}"


def be_shell(command, status, control, columns, rows):
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    game = os.fork()
    if game == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.close(status)
        os.close(control)
        os.execv(command[0], command)
    # A terminal that is gone is told to the shell only, which passes it on.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(game, signal.SIGHUP))
    os.write(status, f"pid {game}\n".encode())
    while True:
        _, how = os.waitpid(game, os.WUNTRACED)
        if os.WIFSTOPPED(how):
            os.tcsetpgrp(0, os.getpgrp())
            os.write(status, b"stopped \n")
            if os.read(control, 1) != b"c":
                continue
            os.tcsetpgrp(0, game)
            os.kill(game, signal.SIGCONT)
        else:
            # Until the player has looked at it, the terminal has to stay. Who hangs up then means nobody.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.write(status, f"{ending(how)}\n".encode())
            os.read(control, 1)
            os._exit(0)


if __name__ == "__main__":
    report(int(sys.argv[1]), sys.argv[2:])
