# SPDX-License-Identifier: Apache-2.0
"""Source packages of the distribution that this machine has, in a folder of their own."""
import glob
import os
import re
import subprocess
import sys


class Sources:
    """Fetches source packages into a folder, with package lists of its own: the machine's are left
    as they are. The archive is the one that the machine's packages come from."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder + "/apt/lists/partial", exist_ok=True)
        listed = subprocess.run(["apt-get", "indextargets", "--no-release-info", "--format",
                                 "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                                stdout=subprocess.PIPE, text=True, check=False).stdout
        with open(self.folder + "/apt/sources.list", "w", encoding="ascii") as file:
            # The same version may be in several: what is kept longest comes first.
            for line in sorted(set(listed.splitlines()), key=lambda line: ("security" in line, line)):
                file.write(f"deb-src {line}\n")
        self.apt(["update"])

    def apt(self, words, tool="apt-get"):
        """Runs one of apt's tools; its output."""
        settings = {"Dir::Etc::sourcelist": self.folder + "/apt/sources.list",
                    "Dir::Etc::sourceparts": "/dev/null",
                    "Dir::State::lists": self.folder + "/apt/lists",
                    "Dir::Cache::srcpkgcache": "", "Dir::Cache::pkgcache": ""}
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        return subprocess.run([tool, *options, *words], cwd=self.folder, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace").stdout

    def versions(self, package):
        """Names of its source for apt: the newest, then each version that the archive lists, for it may not have the newest."""
        listed = self.apt(["showsrc", "--only-source", package], "apt-cache")
        return [package, *(f"{package}={version}" for version in sorted(set(re.findall(r"^Version: (\S+)$", listed, re.M))))]

    def get(self, package):
        """The folder with its source, None where it cannot be had."""
        found = glob.glob(f"{self.folder}/{package}-*/")
        for name in self.versions(package) if not found else []:
            self.apt(["source", name])
            found = glob.glob(f"{self.folder}/{package}-*/")
            if found:
                break
        return found[0] if found else None


def main():
    """FOLDER PACKAGE...: prints where their sources are, in that folder."""
    kept = Sources(sys.argv[1])
    for package in sys.argv[2:]:
        source = kept.get(package)
        if source:
            print(source)
        else:
            print(f"no source of {package}", file=sys.stderr)


if __name__ == "__main__":
    main()
