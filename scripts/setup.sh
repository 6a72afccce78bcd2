#!/usr/bin/env bash
# Makes $VENV hold everything that this checkout needs, and does nothing when it already does.
#
#   scripts/setup.sh            the interpreter's environment, and a C++ compiler for kernels on the CPU
#   scripts/setup.sh --browser  Chromium too, for the browser tests (never fatal: they say why they are skipped)
#
# VENV (.venv) and PYTHON (python3, 3.11 or newer) may be set. What a package of the system must provide is installed
# with apt-get when this runs as root; otherwise one line to paste is printed and this ends with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}
EXTRAS="judge,stack,dev"

say() { printf 'setup: %s\n' "$*" >&2; }

as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {  # quietly, and without questions
    export DEBIAN_FRONTEND=noninteractive
    say "installing $* (packages of the system; this runs as root)"
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
}

python_is_new_enough() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# A venv needs ensurepip, which Debian packs apart from python3.
can_make_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }

system_packages() {
    local missing=()
    if [ ! -x "$VENV/bin/python" ]; then
        python_is_new_enough || missing+=(python3)
        can_make_venv || missing+=(python3-venv)
    fi
    command -v g++ >/dev/null || missing+=(g++)
    [ ${#missing[@]} = 0 ] && return
    if as_root && apt_install "${missing[@]}"; then return; fi
    say "packages of the system are missing. Paste this line, then run the same make command again:"
    printf '\n    sudo apt-get update && sudo apt-get install -y %s\n\n' "${missing[*]}" >&2
    exit 1
}

browser() {
    command -v chromium >/dev/null && return
    if as_root && apt_install chromium; then return; fi
    say "no Chromium: browser tests will be skipped. For them: sudo apt-get install -y chromium"
}

# Where the interpreter already has a CUDA build of torch (a GPU machine's image), that one is kept and used.
system_torch() { "$PYTHON" -c 'import torch, sys; sys.exit(torch.version.cuda is None)' 2>/dev/null; }

install() {
    local wanted constraints=constraints.txt options=()
    wanted="$(cat pyproject.toml constraints.txt scripts/setup.sh | sha256sum | cut -d' ' -f1) $PWD"
    [ -x "$VENV/bin/python" ] && [ "$(cat "$VENV/.setup-stamp" 2>/dev/null)" = "$wanted" ] && return
    if ! python_is_new_enough; then
        say "$PYTHON is not Python 3.11 or newer. Name one that is: make PYTHON=python3.12 ..."
        exit 1
    fi
    if system_torch; then
        say "keeping the CUDA build of torch that $PYTHON has"
        options=(--system-site-packages)
        constraints="$(mktemp)"
        trap 'rm -f "$constraints"' RETURN
        grep -v -i -E '^(torch|triton|numpy|sympy|networkx|fsspec|nvidia-ml-py)==' constraints.txt >"$constraints"
    fi
    if [ ! -x "$VENV/bin/python" ]; then
        say "creating $VENV"
        "$PYTHON" -m venv "${options[@]}" "$VENV"
    fi
    # The system's packages of an interpreter that is itself a virtual environment's are its base's: name its own, too.
    if [ ${#options[@]} != 0 ]; then
        "$PYTHON" -c 'import sysconfig; print(*{sysconfig.get_path(one) for one in ("purelib", "platlib")}, sep="\n")' \
            >"$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
    fi
    say "installing what constraints.txt pins (a minute or two the first time)"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile -c "$constraints" -e ".[$EXTRAS]"
    # Compiled here, on all cores: later the packages are read-only to most of what uses them. Some files are not meant to.
    "$VENV/bin/python" -m compileall -q -j 0 "$VENV"/lib/python3*/site-packages >/dev/null 2>&1 || true
    printf '%s\n' "$wanted" >"$VENV/.setup-stamp"
}

system_packages
exec 9>.setup-stamp  # two makes at once take turns
if command -v flock >/dev/null; then flock 9; fi
install
# Our own rooms too: where Python is told to write no bytecode, every process that starts would compile them again.
"$VENV/bin/python" -m compileall -q -j 0 db evaluator evolution prompts runtime service synthesis warpwright workers
if [ "${1:-}" = --browser ]; then browser; fi
