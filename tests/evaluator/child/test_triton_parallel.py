"""Compilations run in several processes, and a worker's end or failure changes no result."""

import multiprocessing
import os
import signal
import threading

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is not installed")
import triton.language as tl  # noqa: E402

from evaluator.cage.policy import CagePolicy  # noqa: E402
from evaluator.child.triton_build.offline import recording  # noqa: E402
from evaluator.child.triton_build.parallel import Compilations, WorkerFailed, processes  # noqa: E402
from evaluator.devices.cuda_children import build_environment  # noqa: E402
from evaluator.sandbox.build_cache import collect_built_files  # noqa: E402
from evaluator.sandbox.pool import ChildPool  # noqa: E402
from evaluator.types import DeviceKind  # noqa: E402
from tests.evaluator.rooms import DOUBLE_IN_TRITON  # noqa: E402

HERE = os.getpid()


@triton.jit
def _store(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 7.0)


@triton.jit
def _broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), nowhere)  # noqa: F821


@pytest.fixture(autouse=True)
def _private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def _with_cores(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)))


@pytest.mark.parametrize(("cores", "wanted"), [(1, 1), (2, 2), (7, 2), (16, 4), (192, 6)])
def test_one_process_for_four_with_cores(monkeypatch, cores, wanted):
    _with_cores(monkeypatch, cores)
    assert processes() == wanted


def test_kernels_compile_beside_each_other(monkeypatch):
    shared = multiprocessing.get_context("fork")
    here, there = shared.Semaphore(0), shared.Semaphore(0)
    real, met = triton.compiler.compile, set()

    def compile_together(*args, **options):
        if os.getpid() not in met:  # this process reads the worker's result later
            met.add(os.getpid())
            mine, other = (here, there) if os.getpid() == HERE else (there, here)
            mine.release()
            assert other.acquire(timeout=60.0)
        return real(*args, **options)

    monkeypatch.setattr(triton.compiler, "compile", compile_together)
    _with_cores(monkeypatch, 2)
    kernel = triton.JITFunction(_store.fn)  # it has not bound the real compiler yet
    x = torch.empty(64, device="meta")
    with recording(90) as found:
        kernel[(1,)](x, BLOCK=64)
        kernel[(1,)](x, BLOCK=32)
    assert (len(found.launches), found.failed) == (2, "")


@pytest.mark.parametrize("cores", [1, 2])
def test_compile_errors_are_told_alike(monkeypatch, cores):
    _with_cores(monkeypatch, cores)
    x = torch.empty(64, device="meta")
    with recording(90) as found:
        for block in (16, 32, 64, 128):
            _broken[(1,)](x, BLOCK=block)
            _store[(1,)](x, BLOCK=block)
    assert [launch.name for launch in found.launches] == ["_store"] * 4
    assert found.error.startswith("CompilationError: at 2:")
    assert "nowhere is not defined" in found.error
    assert found.failed.startswith("CompilationError")


def test_each_failure_is_told_by_the_process_that_saw_it(tmp_path):
    (tmp_path / "seen").touch()

    def fail(number):
        with (tmp_path / "seen").open("a") as file:
            file.write(f"{number}\n")
        raise ValueError(f"number {number}")

    compilations = Compilations()
    all_of_them = [compilations.submit(fail, number) for number in range(20)]
    compilations.run(3)
    for number, one in enumerate(all_of_them):
        error = one.exception()
        assert error is not None
        told = error.said if isinstance(error, WorkerFailed) else f"ValueError: {error}"
        assert told == f"ValueError: number {number}"
    assert sorted(map(int, (tmp_path / "seen").read_text().split())) == list(range(20))


def _end_a_worker(ready, pid, ways):
    """Return work that tells the pid of any worker and ends it in such a way, while this process waits for that."""

    def work():
        if os.getpid() != HERE:
            pid.value = os.getpid()
            ready.release()
            ways()
        elif not ready.acquire(timeout=60.0):
            raise TimeoutError
        ready.release()
        return "compiled here"

    return work


@pytest.mark.parametrize(
    "way",
    [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: threading.Event().wait()],
    ids=["exit", "kill", "hang"],
)
def test_what_a_worker_does_not_finish_is_compiled_here(way):
    compilations = Compilations()
    context = multiprocessing.get_context("fork")
    ready, pid = context.Semaphore(0), context.RawValue("i", 0)
    futures = [compilations.submit(_end_a_worker(ready, pid, way)) for _ in range(4)]
    compilations.run(2, wait_s=0.1)
    assert [one.result() for one in futures] == ["compiled here"] * 4
    with pytest.raises(ChildProcessError):
        os.waitpid(pid.value, os.WNOHANG)  # the worker has ended, and was waited for


def test_a_result_that_is_needed_at_once_is_compiled_at_once():
    compilations = Compilations()
    first, second = compilations.submit(lambda: os.getpid()), compilations.submit(lambda: os.getpid())
    assert first.result() == HERE
    assert not second.done()
    compilations.run(2)
    assert second.result() == HERE


def test_launches_are_compiled_where_forward_fails(tmp_path):
    def forward():
        with recording(90):
            _store[(1,)](torch.empty(64, device="meta"), BLOCK=2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        forward()
    assert list(tmp_path.glob("*/*.cubin"))


def test_output_is_printed_once(capfd):
    print("before", end="")
    compilations = Compilations()
    for _ in range(8):
        compilations.submit(lambda: None)
    compilations.run(3)
    print("after", flush=True)
    assert capfd.readouterr().out == "beforeafter\n"


def test_without_more_processes_all_is_done_here(monkeypatch):
    def refuse():
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    compilations = Compilations()
    futures = [compilations.submit(lambda number: number, n) for n in range(5)]
    compilations.run(4)
    assert [one.result() for one in futures] == list(range(5))


CANDIDATE = f"""
import os
os.sched_getaffinity = lambda pid: {{0, 1}}
os.register_at_fork(after_in_parent=lambda: print("forked", flush=True))
{DOUBLE_IN_TRITON}"""


def _shapes(n):
    inputs = {"tree": {"list": [{"tensor": 0}]}, "layouts": [{"shape": [n], "stride": [1], "dtype": "float32"}]}
    return {"init": {"tree": {"list": []}, "layouts": []}, "inputs": inputs}


@pytest.mark.compiles
def test_a_cage_lets_workers_start_and_their_files_are_kept():
    policy = CagePolicy(environment=build_environment("sm_90a"))
    with ChildPool(DeviceKind.CUDA, policy=policy) as pool:
        with pool.start(name="build", files={"candidate.py": CANDIDATE.encode()}) as child:
            child.request("build_imports", timeout_s=60.0)
            shapes = [_shapes(n) for n in (16, 17, 1)]
            found = child.request("triton_ahead", timeout_s=60.0, shapes=shapes, capability=90)
            files = collect_built_files(child)
        assert "forked" in child.output()
    assert found == {"compiled": 3, "failed": "", "error": ""}
    assert sum(name.endswith(".cubin") for name in files) == 3
