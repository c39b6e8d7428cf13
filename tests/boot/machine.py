# SPDX-License-Identifier: Apache-2.0
"""A machine to boot: Debian's packages and kernel for a CPU, culprit built with them, QEMU. For `run` and
`large`. Everything lies in one folder and is used again; nothing is installed."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# Each instruction takes some nanoseconds of the booted machine's time, however long it takes here: a
# slow emulator is not seen in shares of time, and what happens does not depend on how busy we are.
CLOCK = ["-icount", "shift={shift},sleep=off,align=off"]
# One CPU: with that clock a second one gets its time from the first, and that of x86-64 does not even start.
MACHINE = {
    "x86_64": ["qemu-system-x86_64", "-M", "q35", "-cpu", "max,la57=off"],
    "aarch64": ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on,sve=off"],
}
CONSOLE = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
LOADER = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}


def execute(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}: status {done.returncode}\n"
                 + done.stdout.decode(errors="replace")[-3000:])
    return done.stdout.decode(errors="replace")


def libraries():
    """What the build needs, by the list that there is of it, and what the unit tests do."""
    with open(os.path.join(ROOT, "tools/install-deps"), encoding="utf-8") as file:
        words = re.search(r'^build="(.*?)"', file.read(), re.S | re.M).group(1).split()
    return [word for word in words if word.endswith("-dev")] + ["libcmocka-dev"]


class Packages:
    """Debian's packages for a CPU, by lists of our own: this machine's are left alone."""

    def __init__(self, cpu, folder):
        self.folder, self.debian = folder, DEBIAN[cpu]
        for name in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        open(os.path.join(folder, "status"), "a", encoding="utf-8").close()

    def apt(self, tool, *words):
        options = {"APT::Architecture": self.debian, "APT::Architectures": "",
                   "APT::Architectures::": self.debian, "Dir::State": f"{self.folder}/state",
                   "Dir::State::status": f"{self.folder}/status", "Dir::Cache": f"{self.folder}/cache",
                   "Debug::NoLocking": "true", "APT::Sandbox::User": ""}
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return execute(tool, *settings, *words, cwd=self.folder)

    def update(self):
        if not glob.glob(os.path.join(self.folder, "state/lists/*Packages*")):
            self.apt("apt-get", "-q", "update")

    def known(self, names):
        """Those of the names that this release has for this CPU."""
        self.update()
        said = self.apt("apt-cache", "pkgnames")
        there = set(said.split())
        return [name for name in names if name in there]

    def fetch(self, names):
        """The files of the packages with these names and of all that they need."""
        self.update()
        # In a folder of their own, so that apt names all of them and not only those that it has not fetched.
        install = ("-q", "-y", "--no-install-recommends")
        self.apt("apt-get", *install, "-d", "install", *names)
        said = self.apt("apt-get", *install, "-s", "install", *names)
        wanted = re.findall(r"^Inst (\S+) \((\S+) .*?\[(\w+)\]\)", said, re.M)
        archives = os.path.join(self.folder, "cache/archives")
        return [os.path.join(archives, f"{name}_{version.replace(':', '%3a')}_{arch}.deb")
                for name, version, arch in wanted]

    def unpack(self, names, root):
        """All of them below `root`, with links that stay in there. Nothing in them is executed."""
        for name in ("bin", "sbin", "lib", "lib64", "lib32", "libx32"):
            os.makedirs(os.path.join(f"{root}.new/usr", name), exist_ok=True)
            if not os.path.islink(os.path.join(f"{root}.new", name)):
                os.symlink(f"usr/{name}", os.path.join(f"{root}.new", name))
        for package in self.fetch(names):
            archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", f"{root}.new"], stdin=archive.stdout,
                           check=True)
            archive.stdout.close()
            if archive.wait():
                sys.exit(f"cannot unpack {package}")
        for place, folders, files in os.walk(f"{root}.new"):
            for path in (os.path.join(place, name) for name in folders + files):
                if os.path.islink(path) and os.readlink(path).startswith("/"):
                    there = os.path.relpath(f"{root}.new{os.readlink(path)}", place)
                    os.unlink(path)
                    os.symlink(there, path)
        os.rename(f"{root}.new", root)

    def kernel(self):
        """The package with the kernel that the newest linux-image stands for."""
        found = glob.glob(os.path.join(self.folder, "linux-image-*.deb"))
        if not found:
            self.update()
            text = self.apt("apt-cache", "depends", f"linux-image-{self.debian}")
            self.apt("apt-get", "download", re.search(r"Depends: (linux-image-\S+)", text).group(1))
            found = glob.glob(os.path.join(self.folder, "linux-image-*.deb"))
        return found[0]


class Machine:
    def __init__(self, cpu, folder):
        self.cpu, self.folder = cpu, os.path.abspath(folder)
        self.packages = Packages(cpu, self.path("packages"))
        self.build = self.path("build")
        self.compiler = f"{cpu}-linux-gnu-gcc"
        self.root = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_root(self, name, packages):
        """A file system of these packages. Another list makes it anew."""
        key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
        root = self.path(f"{name}-{key}")
        if not os.path.exists(root):
            for old in glob.glob(self.path(f"{name}-*")):
                shutil.rmtree(old) if os.path.isdir(old) else os.unlink(old)
            self.packages.unpack(packages, root)
        return root

    def make_culprit(self, *targets):
        self.root = self.make_root("debian", [*libraries(), "busybox-static"])
        multiarch = f"{self.cpu}-linux-gnu"
        arguments = f"['--sysroot={self.root}', '-I{self.root}/usr/include']"
        settings = f"""[binaries]
c = '{self.compiler}'
ar = '{multiarch}-ar'
strip = '{multiarch}-strip'
pkgconfig = 'pkg-config'
[built-in options]
c_args = {arguments}
c_link_args = ['--sysroot={self.root}', '-L{self.root}/usr/lib/{multiarch}']
[properties]
sys_root = '{self.root}'
pkg_config_libdir = '{self.root}/usr/lib/{multiarch}/pkgconfig:{self.root}/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '{self.cpu}'
cpu = '{self.cpu}'
endian = 'little'
"""
        try:
            with open(self.path("cross.ini"), encoding="utf-8") as file:
                same = file.read() == settings
        except OSError:
            same = False
        if not same or not os.path.exists(os.path.join(self.build, "build.ninja")):
            shutil.rmtree(self.build, ignore_errors=True)
            with open(self.path("cross.ini"), "w", encoding="utf-8") as file:
                file.write(settings)
            execute("meson", "setup", "--cross-file", self.path("cross.ini"), "-Dtests=true", self.build, ROOT)
        execute("ninja", "-C", self.build, *targets)

    def compile(self, source, output, *options):
        execute(self.compiler, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w",
                "-D_GNU_SOURCE", "-pthread", source, "-o", output, *options)

    def begin_files(self, files, init):
        """What the kernel needs to begin: busybox and a script."""
        shutil.rmtree(files, ignore_errors=True)
        for name in ("bin", "proc", "sys", "dev", "tmp", "root", "run", "usr/bin"):
            os.makedirs(os.path.join(files, name))
        shutil.copy(os.path.join(self.root, "bin/busybox"), os.path.join(files, "bin/busybox"))
        shutil.copy(os.path.join(HERE, init), os.path.join(files, "init"))

    def pack_files(self, files):
        """As an archive for the kernel to unpack, named as the folder."""
        names = execute("find", ".", cwd=files)
        with open(f"{files}.cpio", "wb") as out:
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), stdout=out,
                           cwd=files, check=True)

    def unpack_kernel(self, package):
        """Its image and its modules; returns the image."""
        to = self.path("kernel")
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(to)
        archive = subprocess.Popen(["dpkg", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", to, "./boot", "./lib"], stdin=archive.stdout, check=True)
        archive.stdout.close()
        archive.wait()
        return glob.glob(os.path.join(to, "boot/vmlinuz-*"))[0]

    def boot(self, image, files, console, seconds, *options, words=""):
        """Until the machine has switched itself off; what it says goes into the file `console`. Returns that
        text and whether it came to its end within `seconds`."""
        said = f"console={CONSOLE[self.cpu]} quiet panic=-1 mitigations=off {words}"
        in_time = True
        try:
            execute("nice", "-n", "5", *MACHINE[self.cpu], *options, "-display", "none", "-monitor", "none",
                    "-no-reboot", "-nic", "none", "-serial", f"file:{console}", "-kernel", image,
                    "-initrd", files, "-append", said, timeout=seconds)
        except subprocess.TimeoutExpired:
            in_time = False
        with open(console, encoding="utf-8", errors="replace") as file:
            return file.read().replace("\r", ""), in_time
