"""Other searches with the same scripted proposer and, on request, the same tuner.

All but the plain ones are bench-only and optional: `pip install openevolve shinka-evolve skydiscover gepa`. Their own
code chooses parents and keeps populations, with their default settings. Prompts, models and processes are left out,
since the proposer is scripted.
"""

from __future__ import annotations

import importlib.util

from bench.search.peers.gepa import gepa
from bench.search.peers.openevolve import openevolve
from bench.search.peers.plain import best_of_n, draw_any, random_search
from bench.search.peers.population import Search
from bench.search.peers.shinkaevolve import shinkaevolve
from bench.search.peers.skydiscover import adaevolve, evox

PACKAGES = {"openevolve": "openevolve", "shinka-evolve": "shinka", "skydiscover": "skydiscover", "gepa": "gepa"}
"""The modules of the optional packages."""
_OPTIONAL: dict[str, tuple[str, Search]] = {
    "OpenEvolve": ("openevolve", openevolve),
    "ShinkaEvolve": ("shinka", shinkaevolve),
    "AdaEvolve": ("skydiscover", adaevolve),
    "EvoX": ("skydiscover", evox),
    "GEPA": ("gepa", gepa),
}
UNREAL = "drawn from the recording"


def searches() -> dict[str, Search]:
    """Return the searches that this machine has."""
    found: dict[str, Search] = {"random": random_search, "best-of-N": best_of_n, UNREAL: draw_any}
    found |= {name: run for name, (module, run) in _OPTIONAL.items() if importlib.util.find_spec(module) is not None}
    return found
