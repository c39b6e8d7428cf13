# SPDX-License-Identifier: Apache-2.0
"""A program in a terminal of its own, and what that shows."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])|\x1b(.)")


class Terminal:
    def __init__(self, command, columns=100, rows=30, env=None):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update({"TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
            for name in [n for n, v in (env or {}).items() if v is None]:
                del os.environ[name]
            os.execvp(command[0], command)
        self.before = termios.tcgetattr(self.fd)
        self.alternate = False
        self.cursor_shown = True
        self.overflow = False  # the picture is larger than the terminal, as after a change of its size
        self.bytes = b""
        self.rest = b""
        self.status = None
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [""] * rows
        self.y = self.x = 0
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def mode(self):
        return termios.tcgetattr(self.fd)

    def is_raw(self):
        return not self.mode()[3] & termios.ICANON

    def type(self, text):
        os.write(self.fd, text.encode())

    def sequence(self, parameters, letter):
        if letter == b"H":
            self.y = self.x = 0
            self.overflow = False
        elif letter == b"K":
            self.lines[self.y] = self.lines[self.y][:self.x]
        elif letter == b"J":
            self.lines[self.y] = self.lines[self.y][:self.x]
            self.lines[self.y + 1:] = [""] * (self.rows - self.y - 1)
        elif letter in b"hl" and parameters == b"?1049":
            self.alternate = letter == b"h"
        elif letter in b"hl" and parameters == b"?25":
            self.cursor_shown = letter == b"h"

    def letter(self, text):
        line = self.lines[self.y].ljust(self.x)
        self.overflow |= self.x >= self.columns
        self.lines[self.y] = line[:self.x] + text + line[self.x + 1:]
        self.x += 1

    def show(self, data):
        data = self.rest + data
        at = 0
        while at < len(data):
            match = SEQUENCE.match(data, at)
            if match:
                if match.group(2):
                    self.sequence(match.group(1), match.group(2))
                at = match.end()
                continue
            if data[at] == 0x1b and len(data) - at < 16:
                break
            size = 1 if data[at] < 0x80 else 2 if data[at] < 0xe0 else 3 if data[at] < 0xf0 else 4
            if at + size > len(data):
                break
            text = data[at:at + size].decode(errors="replace")
            at += size
            if text == "\r":
                self.x = 0
            elif text == "\n":
                self.y += 1
                if self.y >= self.rows:
                    self.overflow |= self.alternate
                    self.y = self.rows - 1
            elif self.alternate:
                self.letter(text)
        self.rest = data[at:]

    def read(self, seconds=0.1):
        """Shows what comes; False where the program has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.bytes += data
        self.show(data)
        return bool(data)

    def wait(self, condition, seconds=10, what=""):
        """Until the condition holds for what is shown."""
        end = time.time() + seconds
        while time.time() < end:
            if condition():
                return time.time()
            if not self.read(0.05) and not condition():
                break
        if condition():
            return time.time()
        print(f"did not come: {what or condition}", "\n".join(self.lines), sep="\n")
        sys.exit(1)

    def has(self, pattern):
        return any(re.search(pattern, line) for line in self.lines)

    def shows(self, pattern, seconds=10):
        return self.wait(lambda: self.has(pattern), seconds, pattern)

    def end(self, seconds=10):
        """Waits for the end; the exit status, or the signal as a negative number."""
        limit = time.time() + seconds
        while time.time() < limit:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.05) and select.select([self.fd], [], [], 0)[0]:
                    pass
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        print("does not end", "\n".join(self.lines), sep="\n")
        sys.exit(1)
