"""A program for a nursery: it prints what it got, and ends as its argument says."""

from __future__ import annotations

import json
import os
import random
import sys
import time

if __name__ == "__main__":
    told = {
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "session": os.getsid(0),
        "draw": random.random(),
    }
    print(json.dumps(told), flush=True)
    if sys.argv[1] == "stay":
        time.sleep(600)
    sys.exit(int(sys.argv[1]))
