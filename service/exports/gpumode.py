"""GPU MODE: submission.py with its directives, for `popcorn submit` and for a problem folder's own eval.py."""

from __future__ import annotations

from service.exports.base import Export, Format, file_stem
from service.exports.parts.header import header
from service.exports.parts.origin import origin, text
from service.exports.parts.standalone import calling, kernel_module, require_gpu

_GPUS = ("B200", "H100", "H200", "A100", "MI355X", "MI300", "MI250", "L4", "T4")
_ENTRY = """

def custom_kernel(data: input_t) -> output_t:
    inputs = {inputs}
    with _ww_torch.no_grad():
        return _ww_model([one for one in _ww_leaves(inputs) if isinstance(one, _ww_torch.Tensor)])(*inputs)


def _ww_leaves(data):
    if isinstance(data, dict):
        data = list(data.values())
    return [leaf for one in data for leaf in _ww_leaves(one)] if isinstance(data, (list, tuple)) else [data]
"""
_ENTRY_WITH_WEIGHTS = """

def custom_kernel(data: input_t) -> output_t:
    *inputs, weights = data  # the last part of the data holds the weights by name
    model = _ww_model([one for one in inputs if isinstance(one, _ww_torch.Tensor)])
    with _ww_torch.no_grad():
        return _ww_loaded(model, list(weights), list(weights.values()))(*inputs)
"""


def build(export: Export) -> str:
    """Return the submission. Raise Unsupported."""
    require_gpu(export, "GPU MODE")
    told = origin(export.problem.source, "gpumode")
    future, kernel = kernel_module(export, taken="custom_kernel")
    weights = any(fact.weights for fact in export.facts)
    board = text(told, "leaderboard", file_stem(export.problem.name, export.device_kind))
    lines = [f"#!POPCORN leaderboard {board}"]
    if gpu := _gpu(export, told.get("gpus")):
        lines.append(f"#!POPCORN gpu {gpu}")
    inputs = "data" if told.get("packed", True) else "(data,)"
    return "\n".join(
        [
            *lines,
            f'\n"""{header(export, alone=True)}"""\n',
            future + "from task import input_t, output_t\n",
            kernel + calling(export, weights=weights),
            (_ENTRY_WITH_WEIGHTS if weights else _ENTRY.format(inputs=inputs)).lstrip("\n"),
        ]
    )


def _gpu(export: Export, offered: object) -> str:
    """Return the leaderboard's name of the GPU that the kernel was measured on, else its first one; "" if neither."""
    name = export.evaluation.device.name if export.evaluation and export.evaluation.device else ""
    known = [one for one in offered if isinstance(one, str) and one in _GPUS] if isinstance(offered, list) else []
    measured = next((one for one in known or _GPUS if one in name), "")
    return measured or (known[0] if known else "")


FORMAT = Format(
    about="GPU MODE's form: submission.py with custom_kernel and the directives of popcorn.",
    media_type="text/x-python",
    extension="submission.py",
    build=build,
    file_name="submission.py",
)
