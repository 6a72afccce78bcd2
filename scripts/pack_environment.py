"""Pack the packages for a machine without network, which has torch and Triton: a GPU node behind an air gap.

    python scripts/pack_environment.py --python 3.12 environment.tar.xz
    there: mkdir site && tar xf environment.tar.xz -C site && PYTHONPATH=$PWD/site python -m bench.inrun --device cuda:0

The packages are those of constraints.txt for Linux on x86_64 and that version of Python, without torch, Triton and
CUDA's, which the machine has in versions that fit its driver, and without what only checks code or is optional to a
package. The file has some 35 MB. Exit 1 names a package without a wheel.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_OF_THE_MACHINE = ("torch", "triton", "nvidia", "cuda")
_OF_CHECKS = (
    "ast-serialize", "docker", "graphql", "grimp", "hypothesis-graphql", "import-linter", "jsonschema-rs", "librt",
    "mpmath", "mypy", "networkx", "playwright", "ruff", "schemathesis", "setuptools", "sympy", "testcontainers",
)  # fmt: skip
# Helion fits one version of torch: `pip download` the one for the machine's. The others are optional to packages.
_OPTIONAL = (
    "helion", "hf-xet", "joblib", "rfc3161-client", "scikit-learn", "scipy", "sigstore", "sigstore-models",
    "sigstore-rekor-types",
)  # fmt: skip
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "linux_x86_64", "any")


def packed(lines: Iterable[str]) -> Iterator[str]:
    """Yield the requirements of a constraints file that are packed."""
    for line in lines:
        name = re.sub(r"[-_.]+", "-", re.split(r"[=<>!~;\[ ]", line.strip(), maxsplit=1)[0]).lower()
        left_out = name in (*_OF_CHECKS, *_OPTIONAL) or name.partition("-")[0] in _OF_THE_MACHINE
        if name and not name.startswith("#") and (not left_out or name == "nvidia-ml-py"):
            yield line.strip()


def pack(version: str, output: Path) -> None:
    """Write a compressed archive of the packages. Raise CalledProcessError where pip or tar fails."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, wheels, site = (Path(folder, name) for name in ("wanted.txt", "wheels", "site"))
        wanted.write_text("\n".join(packed((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())))
        pip = [sys.executable, "-m", "pip"]
        only = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", version]
        only += [part for platform in _PLATFORMS for part in ("--platform", platform)]
        subprocess.run([*pip, "download", "--quiet", *only, "-r", str(wanted), "-d", str(wheels)], check=True)
        found = sorted(str(wheel) for wheel in wheels.glob("*.whl"))
        subprocess.run(
            [*pip, "install", "--quiet", "--no-index", "--no-compile", *only, "--target", str(site), *found], check=True
        )
        folder_in = ["--directory", str(site), "."]
        tar = ["tar", "--create", "--use-compress-program=xz --threads=0", "--file", str(output.resolve())]
        subprocess.run([*tar, *folder_in], check=True)


def main(arguments: list[str] | None = None) -> int:
    """Pack, and print how large the file is. Return the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("output", type=Path)
    options.add_argument("--python", default="3.12", help="the version of the machine's Python (3.12)")
    chosen = options.parse_args(arguments)
    try:
        pack(chosen.python, chosen.output)
    except subprocess.CalledProcessError as failure:
        print(f"{failure.cmd[0]} ended with {failure.returncode}: its message is above", file=sys.stderr)
        return 1
    print(f"{chosen.output}: {chosen.output.stat().st_size / 1e6:.0f} MB for Python {chosen.python}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
