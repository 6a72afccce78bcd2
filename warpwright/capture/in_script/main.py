"""The program that `warpwright capture` runs with the user's Python: it needs torch and nothing else of ours.

These files are loaded under a private name, so that they hide no module of the script.
"""

import importlib
import json
import sys
import types
from pathlib import Path

if __name__ == "__main__":
    package = types.ModuleType("_warpwright_capture")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules[package.__name__] = package
    try:
        importlib.import_module("torch")
    except ImportError:
        sys.exit("capture: this Python has no torch: name the script's own Python with --python")
    try:
        sys.exit(importlib.import_module("_warpwright_capture.session").main(json.loads(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(130)
