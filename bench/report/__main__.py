"""Write bench/RESULTS.md and the result rows of README.md from bench/results.

python -m bench.report            write them
python -m bench.report --check    exit 1 where one differs from its records
"""

import sys

from bench.report.pages import main

sys.exit(main(sys.argv[1:]))
