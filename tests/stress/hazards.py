# SPDX-License-Identifier: Apache-2.0
"""The hazards: what is run, and what is known about it."""
import os
import platform
import shutil
import sys


class Hazard:
    """A command in which %s stands for the scale. `share`: of the samples that its CPU time makes
    one expects, at least this part must be there (0: none need be). `files` are part of its
    result. `outlives`: seconds that processes may live on after it. `reason`: why it cannot run
    here."""

    def __init__(self, name, *command, share=0.5, files=(), outlives=0.0, pipe=False, reason=""):
        self.name, self.command, self.share = name, command or (name, "%s"), share
        self.files, self.outlives, self.pipe, self.reason = files, outlives, pipe, reason


def without(condition, reason):
    return reason if condition else ""


def script(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets", name)


def python():
    """The interpreter itself: what PATH has may be a script that looks for it."""
    return os.path.realpath(sys.executable)


WAYS_TO_DIE = ("abort", "segv", "kill9", "term", "trap", "overflow", "exit", "_exit", "quick_exit",
               "last_thread", "stkflt")
WAYS_OF_THREADS = ("abort", "segv", "kill9", "overflow", "exit", "_exit")
LIMITS = (("nofile", 8), ("nofile", 4), ("nproc", 4), ("as", 300_000_000), ("as", 64_000_000),
          ("data", 16_000_000), ("stack", 131072), ("fsize", 0), ("cpu", 1), ("memlock", 0),
          ("sigpending", 0), ("mlockall", 0))


def all_hazards():
    root = os.geteuid() == 0
    hazards = [
        Hazard("threads_churn", share=0.3),
        Hazard("fork_storm", share=0.1),
        Hazard("memory", share=0.1),
        Hazard("exec_chain", share=0.05),
        Hazard("dlopen_loop", share=0.3),
        Hazard("throw_loop"),
        Hazard("longjmp_loop"),
        Hazard("cancel", share=0.2),
        Hazard("cancel_anywhere", share=0.05),
        Hazard("coroutines"),
        Hazard("altstack", share=0.3),
        Hazard("altstack_8", "altstack", "%s", "8", share=0.2),
        Hazard("altstack_small", "altstack", "%s", "1", share=0.0),
        Hazard("stack_end"),
        Hazard("tight_stack", share=0.1),  # threads of a millisecond: the collector may be later
        Hazard("block_all"),
        Hazard("own_handlers"),
        Hazard("timers"),
        Hazard("eintr", share=0.1),
        Hazard("transfers", share=0.1),
        Hazard("fds", share=0.3),
        Hazard("setuid_drop", share=0.2, reason=without(not root, "only root can give up root")),
        Hazard("deep"),
        Hazard("closes_std", share=0.3),
        Hazard("daemonize", share=0.2, files=("daemon.out",), outlives=5.0),
        Hazard("signal_storm", share=0.2),
        Hazard("ptrace_self", share=0.0),
        Hazard("big_output", pipe=True, share=0.2),
        Hazard("python", python(), script("runtime.py"), "%s", share=0.2),
        Hazard("subshells", "/bin/bash", script("subshells.sh"), "%s", share=0.05),
        Hazard("perl", "perl", script("forks.pl"), "%s", share=0.1,
               reason=without(not shutil.which("perl"), "perl is not installed")),
    ]
    # Threads of these spin as long as others work: a busy second CPU halves their CPU time.
    hazards += [Hazard(f"die_{way}", "die", "%s", way, share=0.3) for way in WAYS_TO_DIE]
    hazards += [Hazard(f"die_thread_{way}", "die", "%s", "thread_" + way, share=0.3)
                for way in WAYS_OF_THREADS]
    for name, value in LIMITS:
        # what does not fit in the limit is not sampled, but runs
        hazards.append(Hazard(f"rlimit_{name}_{value}", "rlimits", "%s", name, str(value), share=0.0))
    return hazards


def build(folder, cc, cxx):
    """The commands that make the programs: (output, source, command)."""
    sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
    for file in sorted(os.listdir(sources)):
        name, kind = os.path.splitext(file)
        source = os.path.join(sources, file)
        flags = ["-O2", "-g", "-w", "-D_GNU_SOURCE", "-pthread"]
        if name == "stress_library":
            for which in "123":
                output = os.path.join(folder, f"{name}{which}.so")
                yield output, source, [cc, *flags, "-shared", "-fPIC", f"-DWHICH={which}", source,
                                       "-o", output]
        elif kind in (".c", ".cc"):
            output = os.path.join(folder, name)
            libraries = ["-ldl", "-lrt"] if platform.system() == "Linux" else []
            yield output, source, [cc if kind == ".c" else cxx, *flags, source, "-o", output,
                                   *libraries]
