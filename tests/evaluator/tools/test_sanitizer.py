"""A Candidate beneath compute-sanitizer: stand-ins write its logs, the cage and the application below it are real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import CageError, Rejection
from evaluator.languages import gpu_kernels
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.stages.trial import secret_generator
from evaluator.tools import sanitizer, sanitizer_log, tool
from evaluator.tools.sanitizer import Outcome, ToolHistory
from evaluator.tools.target_application import TargetApplication, add_small_calls
from evaluator.tools.tool import SANITIZER, ToolRun
from evaluator.types import Candidate, DeviceKind, Stage, Verdict
from tests.evaluator import stand_ins
from tests.evaluator.rooms import CPP, candidate, forward, problem
from tests.evaluator.stand_ins import MARK, out_of_bounds, race

# What is called runs on the CPU; the kernel is there to be named by a log.
SOURCE = CPP + '\nKERNEL = """extern "C" __global__ void __launch_bounds__(64) scale(float* x, int n) { }"""\n'
OWN = candidate(SOURCE, head="")
DONE = {"done": True, "did": 4, "at": "rows=49"}


@pytest.fixture(scope="module")
def application(judge: Judge) -> TargetApplication:
    return _application(judge, OWN)


def _application(judge: Judge, one: Candidate, **limits: int) -> TargetApplication:
    task = problem()
    with judge.children.start(one, Stage.CONFIRM) as subject, judge.session.references.start(task) as reference:
        workloads = task.workloads_for(DeviceKind.CPU)
        found = replace(TargetApplication.of(task, one, judge.device, judge.children.files(one)), **limits)
        why = add_small_calls(found, subject, reference, secret_generator(), workloads)
    assert not why
    return found


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def install(body: str = "honest", limit_s: float = 60, **logs: str) -> None:
        program = stand_ins.install(tmp_path / body, "compute-sanitizer", body, **logs)
        monkeypatch.setenv(SANITIZER.variable, str(program))
        monkeypatch.setenv(SANITIZER.limit_variable, str(limit_s))

    return install


def _memcheck(application: TargetApplication, known: ToolHistory | None = None) -> dict[str, object]:
    return sanitizer._run("memcheck", application, known or ToolHistory()).evidence()


def _clean_in(name: str) -> ToolHistory:
    """Findings of one tool that has run, so that the other alone is run."""
    return ToolHistory(clean={(problem().hash, OWN.hash, name): Outcome(tool=name, status="clean")})


def _ran(log: str, **words: object) -> ToolRun:
    return ToolRun(exit=0, log=log, words={**DONE, **words})


# ------------------------------------------------------------ what is run, in a cage


def test_a_clean_run_is_told_as_such(application: TargetApplication, installed) -> None:
    installed()
    known = ToolHistory()
    found = sanitizer.check(application, known)
    assert {name: one["status"] for name, one in found.items()} == {"memcheck": "clean", "racecheck": "clean"}
    assert (found["memcheck"]["calls"], found["racecheck"]["calls"]) == (4, 1)
    again = sanitizer.check(application, known)
    assert again["memcheck"]["why"] == "found earlier"


def test_a_finding_is_a_verdict_to_repair_from(judge: Judge, installed, monkeypatch) -> None:
    """Through `confirm`, which on a CPU would run neither tool."""
    monkeypatch.setattr(sanitizer, "DEVICES", (DeviceKind.CPU,))
    monkeypatch.setattr(judge, "tool_history", _clean_in("racecheck"))
    installed(memcheck=out_of_bounds("scale"))
    found = confirm(judge, problem(), OWN)
    assert (found.verdict, found.stage) == (Verdict.RUNTIME_ERROR, Stage.CONFIRM), found.reason
    words = ("Invalid __global__ write", "scale", "31", "0x7f3b2a001000")
    assert all(word in found.reason for word in words), found.reason
    assert found.evidence["check"] == "memcheck"
    assert found.evidence["kernel"] == "scale"
    assert found.evidence["source_line"] == OWN.source.splitlines()[found.evidence["line"] - 1].strip()
    assert found.evidence["findings"][0]["where"][0].startswith("scale")


def test_a_race_is_told_too_where_memory_is_clean(application: TargetApplication, installed) -> None:
    installed(racecheck=race("scale(float *, int)"))
    with pytest.raises(Rejection) as found:
        sanitizer.check(application, _clean_in("memcheck"))
    words = ("race between write and read", "scale", "18")
    assert all(word in found.value.reason for word in words), found.value.reason
    assert (found.value.evidence["check"], found.value.evidence["kernel"]) == ("racecheck", "scale")
    assert found.value.evidence["findings"][0]["where"][0].startswith("scale")


@pytest.mark.parametrize(
    ("body", "log", "limit_s", "why"),
    [
        ("idle", stand_ins.UNSUPPORTED, 60, "Device not supported"),
        ("hang", "", 2, "not done within"),
        ("crash", "", 60, "status -11"),
        pytest.param("garbage", "", 60, "status 3", marks=pytest.mark.soak),
        pytest.param("pipe", "", 60, "no summary", marks=pytest.mark.soak),
        ("idle", stand_ins.CLEAN["memcheck"], 60, "the calls were not made"),
    ],
)
def test_a_tool_that_does_not_work_refuses_nobody(
    application: TargetApplication, installed, body, log, limit_s, why
) -> None:
    installed(body, limit_s, memcheck=log)
    known = ToolHistory()
    found = _memcheck(application, known)
    assert found["status"] == "not run"
    assert why in str(found["why"])
    assert bool(known.broken) == (why == "Device not supported")
    assert not known.clean


def test_a_log_that_breaks_off_is_no_clean_one() -> None:
    found = sanitizer.read("memcheck", _ran(f"{MARK} COMPUTE-SANITIZER\n"), OWN)
    assert found.status == "not run"
    assert "no summary" in found.why


def test_a_device_that_is_not_supported_is_not_tried_again(
    application: TargetApplication, installed, monkeypatch
) -> None:
    installed(memcheck=stand_ins.UNSUPPORTED)
    known = ToolHistory(broken={SANITIZER.name: "Device not supported"})
    monkeypatch.setattr(tool, "run", lambda *_, **__: pytest.fail("it was run"))
    assert "Device not supported" in sanitizer.check(application, known)["memcheck"]["why"]


def test_what_is_not_installed_or_switched_off_is_said(
    application: TargetApplication, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SANITIZER.variable, "off")
    assert "switched off" in sanitizer.check(application, ToolHistory())["memcheck"]["why"]
    monkeypatch.setenv(SANITIZER.variable, str(tmp_path / "nothing"))
    assert "no program" in sanitizer.check(application, ToolHistory())["memcheck"]["why"]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(SANITIZER.variable)
    monkeypatch.setattr(tool, "SANITIZER", replace(SANITIZER, toolkit=str(tmp_path)))
    assert "not installed" in sanitizer.check(application, ToolHistory())["memcheck"]["why"]


@pytest.mark.parametrize("text", ["0", "-3", "soon", "nan", "inf"])
def test_a_limit_that_is_no_time_is_refused(monkeypatch, text: str) -> None:
    monkeypatch.setenv(SANITIZER.limit_variable, text)
    with pytest.raises(CageError, match="positive number of seconds"):
        SANITIZER.seconds()


@pytest.mark.soak
def test_a_candidate_that_fails_beneath_the_tool_is_tried_with_torchs_allocator_and_not_refused(
    judge: Judge, installed
) -> None:
    """As one that captures a CUDA graph of its own does where every tensor is an allocation."""
    picky = forward(
        'if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"): raise RuntimeError("operation not permitted")',
        "return right(x, self.weight)",
    )
    own = Candidate(source=picky.source + SOURCE[len(CPP) :], language=picky.language)
    installed()
    assert _memcheck(_application(judge, own))["status"] == "clean"
    never = forward("if 'WARP_WORDS' in os.environ: sys.exit(3)", "return right(x, self.weight)")
    own = Candidate(source=never.source + SOURCE[len(CPP) :], language=never.language)
    found = _memcheck(_application(judge, own))
    assert found["status"] == "not run"
    assert "SystemExit" in str(found["why"])


def test_values_that_do_not_fit_are_drawn_beneath_the_tool(judge: Judge, installed) -> None:
    small = _application(judge, OWN, values_bytes=1000)
    assert len(small._values) <= 1000
    installed()
    assert _memcheck(small)["status"] == "clean"


# ------------------------------------------------------------ what counts


def test_findings_in_other_kernels_do_not_count() -> None:
    log = out_of_bounds("void at::native::vectorized_elementwise_kernel<4, float>(int)", "Loops.cuh", 40)
    found = sanitizer.read("memcheck", _ran(log), OWN)
    assert (found.status, found.others) == ("clean", 1)
    found = sanitizer.read("racecheck", _ran(race("cublasLt_fused_dgemm_kernel_sm80", file="gemm.cu")), OWN)
    assert (found.status, found.others) == ("clean", 1)


def test_a_helper_inlined_from_the_candidates_file_counts() -> None:
    log = out_of_bounds("store(float *, int)").replace(
        f"{MARK}     by thread",
        f"{MARK}         Device Frame: scale(float *, int)+0x1d0 in candidate.py:44\n{MARK}     by thread",
    )
    found = sanitizer.read("memcheck", _ran(log), OWN)
    assert found.status == "found"
    refused = sanitizer.rejection(found, OWN)
    assert (refused.evidence["kernel"], refused.evidence["line"]) == ("scale", 31)


def test_a_warning_is_no_race() -> None:
    assert sanitizer.read("racecheck", _ran(race("scale", "Warning")), OWN).status == "clean"


@pytest.mark.parametrize(
    "way", ['asm volatile("bar.sync 1, 64;");', "cuda::barrier<> b;", "__threadfence_block();", "volatile float* p;"]
)
def test_a_race_counts_only_where_racecheck_can_follow_how_threads_agree(way: str) -> None:
    source = SOURCE.replace("{ }", "{ " + way + " }")
    own = Candidate(source=source, language=OWN.language)
    assert sanitizer.read("racecheck", _ran(race("scale")), own).status == "clean"
    assert sanitizer.read("racecheck", _ran(race("scale")), OWN).status == "found"


def test_a_tritons_shared_memory_is_its_compilers() -> None:
    source = "import triton\n@triton.jit\ndef scale(x):\n    pass\n"
    own = Candidate(source=source, language=OWN.language)
    assert sanitizer._needless("racecheck", own)
    assert not sanitizer._needless("memcheck", own)
    assert sanitizer.read("memcheck", _ran(out_of_bounds("scale")), own).status == "found"
    assert sanitizer.unavailable(forward("return right(x, self.weight)"), ToolHistory())


# ------------------------------------------------------------ logs


def test_an_older_tools_places_are_read() -> None:
    log = f"""{MARK} Invalid __shared__ read of size 16 bytes
{MARK}     at 0x160 in /tmp/candidate.py:12:scale(float*, int)
{MARK}     by thread (7,0,0) in block (0,1,0)
{MARK}     Address 0x400 is out of bounds
{MARK} ERROR SUMMARY: 1 error
"""
    (found,) = sanitizer_log.memory_errors(log)
    assert (found.places[0].base, found.places[0].file, found.places[0].line) == ("scale", "candidate.py", 12)
    assert (found.thread, found.block) == ("(7,0,0)", "(0,1,0)")


def test_api_errors_and_leaks_are_no_findings() -> None:
    log = f"""{MARK} Program hit cudaErrorInvalidValue (error 1) on CUDA API call to cudaMalloc.
{MARK}     Saved host backtrace up to driver entry point at error
{MARK}         Host Frame: scale+0x10 in candidate.py:3
{MARK} Leaked 4,092 bytes at 0x7b95b4000000
{MARK}     at scale+0x10 in candidate.py:3
"""
    assert sanitizer_log.memory_errors(log) == []
    assert sanitizer_log.races(log) == []


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("scale", "scale"),
        ("scale(float *, int)", "scale"),
        ("void ns::scale<float, (int)4>(float const *, ns::other<int>)", "scale"),
        ("void (anonymous namespace)::scale<(bool)1>(int)", "scale"),
        ("", ""),
    ],
)
def test_bare_names_of_kernels(name: str, bare: str) -> None:
    assert sanitizer_log.base_name(name) == bare


@given(st.text(alphabet="= \n()+x01aInvalid__global__ write of size 4 bytes Race reported between :,[]", max_size=400))
def test_no_log_is_too_strange_to_read(text: str) -> None:
    for read in (sanitizer_log.memory_errors, sanitizer_log.races):
        for record in read(text) + read("\n".join(f"{MARK} {line}" for line in text.splitlines())):
            assert record.what
    sanitizer.read("memcheck", _ran(text), OWN)


def test_kernels_are_found_in_a_source() -> None:
    source = """
    template <int N> __global__ void __launch_bounds__(N, 2) first(const float* x) {}
    extern "C" __global__ void second(int n) {}
    // __global__ void third(int n) {}
    __device__ float helper(float x);
    """
    assert gpu_kernels(source) == {"first", "second"}
