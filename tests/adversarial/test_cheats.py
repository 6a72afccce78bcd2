"""Candidates that cheat, hang, crash or tamper: each gets its Verdict, and the next one is unharmed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.judge import Judge
from evaluator.serve import make_backend
from evaluator.types import Candidate, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, forward, problem


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    one = Judge(make_backend("cpu"))
    yield one
    one.close()


MEMO_BY_POINTER = candidate("""seen = {}
class ModelNew(Base):
    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape))
        if key not in seen:
            seen[key] = right(x, self.weight)
        return seen[key].clone()
""")
FIRST_RESULT_FOR_EVER = candidate("""seen = {}
class ModelNew(Base):
    def forward(self, x):
        key = tuple(x.shape)
        if key not in seen:
            seen[key] = right(x, self.weight)
        return seen[key].clone()
""")
MEMO_BY_SAMPLES = candidate("""seen = {}
class ModelNew(Base):
    def forward(self, x):
        key = (tuple(x.shape), tuple(x.flatten()[:: max(1, x.numel() // 16)].tolist()))
        if key not in seen:
            seen[key] = right(x, self.weight)
        return seen[key].clone()
""")
LATER_FROM_A_THREAD = candidate("""def fill(y, x, w):
    time.sleep(0.2)
    y.copy_(right(x, w))
class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        threading.Thread(target=fill, args=(y, x, self.weight.detach()), daemon=True).start()
        return y
""")
ONE_BUFFER = candidate("""kept = {}
class ModelNew(Base):
    def forward(self, x):
        y = kept.setdefault(tuple(x.shape), torch.empty_like(x))
        return y.copy_(right(x, self.weight))
""")
LAZY = candidate("""class Lazy(torch.Tensor):
    pass
class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight).as_subclass(Lazy)
""")
PHASES = candidate("""calls = [0]
class ModelNew(Base):
    def forward(self, x):
        calls[0] += 1
        return right(x, self.weight) if calls[0] < 120 else torch.empty_like(x)
""")
FORGES_REPLIES = forward(
    "os.write(3, b'\\x00\\x00\\x00\\x02{}')",
    "return torch.empty_like(x)",
)
OTHER_MEMORY = forward(
    "for pid in ('1', str(os.getppid()), '2'):",
    "    try:",
    "        with open(f'/proc/{pid}/mem', 'rb') as f:",
    "            f.seek(1 << 20); f.read(16)",
    "    except OSError as error:",
    "        print(error)",
    "return torch.zeros_like(x)",
)

CASES: list[tuple[str, Candidate, Verdict]] = [
    ("memo by data_ptr", MEMO_BY_POINTER, Verdict.INCORRECT_VALUES),
    ("first result for ever", FIRST_RESULT_FOR_EVER, Verdict.INCORRECT_VALUES),
    ("memo by sampled content", MEMO_BY_SAMPLES, Verdict.INCORRECT_VALUES),
    ("writes the output later from a thread", LATER_FROM_A_THREAD, Verdict.INCORRECT_VALUES),
    ("one output buffer", ONE_BUFFER, Verdict.INCORRECT_VALUES),
    ("tensor subclass", LAZY, Verdict.REWARD_HACK),
    ("right while it is checked, garbage later", PHASES, Verdict.INCORRECT_VALUES),
    ("patched clock", forward("time.perf_counter = lambda: 0.0", "return right(x, self.weight)"), Verdict.REWARD_HACK),
    ("patched by setattr", forward("setattr(torch, 'allclose', print)", "return right(x, self.weight)"),
     Verdict.REWARD_HACK),
    ("forged reply", FORGES_REPLIES, Verdict.RUNTIME_ERROR),
    ("reads other memory", OTHER_MEMORY, Verdict.INCORRECT_VALUES),
    ("exit 0", forward("os._exit(0)"), Verdict.RUNTIME_ERROR),
    ("sys.exit", forward("sys.exit(0)"), Verdict.RUNTIME_ERROR),
    ("segfault", forward("ctypes.string_at(0)"), Verdict.RUNTIME_ERROR),
    ("abort", forward("os.abort()"), Verdict.RUNTIME_ERROR),
    ("recursion", forward("return self.forward(x)"), Verdict.RUNTIME_ERROR),
    ("huge allocation", forward("return torch.empty(1 << 42)"), Verdict.OUT_OF_MEMORY),
    ("too much at once", forward("kept = bytearray(6 << 30)", "return x"), Verdict.OUT_OF_MEMORY),
    ("random", forward("return right(x, self.weight) + torch.rand(1).round()"), Verdict.NONDETERMINISTIC),
]  # fmt: skip


@pytest.mark.parametrize(("cheat", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_gets_its_verdict(judge: Judge, cheat: Candidate, expected: Verdict) -> None:
    task = problem()
    found = judge.judge(task, cheat, eager_only(judge, task))
    allowed = {expected} | ({Verdict.INCORRECT_VALUES} if expected is Verdict.NONDETERMINISTIC else set())
    assert found.verdict in allowed, (found.reason, found.evidence)
    assert not found.measurements


def test_an_endless_loop_is_ended(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.judge.first_call_limit_s", lambda candidate: 1.0)
    found = judge.judge(problem(), forward("while True:", "    pass"))
    assert found.verdict is Verdict.TIMEOUT


def test_the_next_candidate_is_unharmed(judge: Judge) -> None:
    task = problem()
    judge.judge(task, forward("ctypes.string_at(0)"), eager_only(judge, task))
    found = judge.judge(task, candidate(CPP, head=""), eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
