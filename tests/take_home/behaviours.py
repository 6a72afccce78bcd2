"""Use the exported kernel of this folder as people use modules, and compare each use with the reference's."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import parametrizations, prune

CASE: dict[str, Any] = json.loads(sys.argv[1])
GRAPH = {"fullgraph": True, "backend": "aot_eager"}
calls = 0


def loaded() -> Any:
    """Return what has ModelNew, UnguardedModelNew and the reference."""
    if CASE["format"] == "py":
        return importlib.import_module("kernel")
    if CASE["format"] == "package":
        sys.path.insert(0, str(next(Path().glob("*/src")).absolute()))
        return importlib.import_module(f"{next(Path().glob('*/src/*')).name}.model")
    kernels = importlib.import_module("kernels")
    return kernels.get_local_kernel(next(Path().glob("*/build")).parent).model


LOADED = loaded()
REFERENCE = LOADED._ww_reference if CASE["format"] == "py" else LOADED.reference
unguarded = LOADED.UnguardedModelNew.forward


def counted(self: Any, *args: Any) -> Any:
    global calls
    calls += 1
    return unguarded(self, *args)


LOADED.UnguardedModelNew.forward = counted


def sized(recipe: Any) -> list[Any]:
    names = inspect.signature(recipe).parameters
    return list(recipe(**{name: size for name, size in CASE["sizes"].items() if name in names}))


def inputs() -> list[Any]:
    torch.manual_seed(7)
    return sized(REFERENCE.get_inputs)


def initial() -> list[Any]:
    return sized(REFERENCE.get_init_inputs) if hasattr(REFERENCE, "get_init_inputs") else []


def made(kind: type, *args: Any) -> Any:
    torch.manual_seed(3)
    model = kind(*(args or initial()))
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            tensor.data += torch.rand_like(tensor)
    return model.eval()


class NotHere(Exception):
    """This model has nothing that can be used like this."""


LAYERS = (torch.nn.Linear, torch.nn.LayerNorm, torch.nn.RMSNorm, torch.nn.BatchNorm1d, torch.nn.Conv2d)


def layer_name() -> str:
    for name, one in REFERENCE.Model(*initial()).named_modules():
        if isinstance(one, LAYERS):
            return name
    raise NotHere


def layer(model: Any) -> Any:
    return model.get_submodule(layer_name())


def attribute() -> tuple[str, str, float]:
    """Return the first float among the attributes: the module's path, its name, and another value."""
    for path, one in REFERENCE.Model(*initial()).named_modules():
        for name, value in vars(one).items():
            if type(value) is float:
                return path, name, 2 * value + 0.25
            for inner, number in vars(value).items() if hasattr(value, "__dataclass_fields__") else ():
                if type(number) is float:
                    return path, f"{name}.{inner}", 2 * number + 0.25
    raise NotHere


def changed(model: Any) -> Any:
    path, name, value = attribute()
    owner, _, last = name.rpartition(".")
    found = model.get_submodule(path)
    setattr(getattr(found, owner) if owner else found, last, value)
    return model


def plain(kind: type) -> Any:
    return [made(kind)(*inputs()) for _ in range(2)]


def again(kind: type) -> Any:
    model = made(kind)
    return [model(*inputs()) for _ in range(3)]


def other_arguments(kind: type) -> Any:
    given = initial()
    if not any(type(value) is float or hasattr(value, "__dataclass_fields__") for value in given):
        names = [one for one in inspect.signature(REFERENCE.Model).parameters.values() if type(one.default) is float]
        if given or not names:
            raise NotHere
        return made(kind, 2 * names[0].default - 0.1)(*inputs())
    return made(kind, *(2 * value + 0.25 if type(value) is float else value for value in given))(*inputs())


def no_arguments(kind: type) -> Any:
    return kind()(*inputs())


def training(kind: type) -> Any:
    model, (x, *rest) = made(kind).train(), inputs()
    with torch.enable_grad():
        x.requires_grad_()
        found = model(x, *rest)
        found.square().sum().backward()
    return [found, x.grad, *(p.grad for p in model.parameters()), *model.buffers(), model.eval()(*inputs())]


def training_without_gradients(kind: type) -> Any:
    model = made(kind)
    first = model(*inputs())
    torch.manual_seed(1)
    return [first, model.train()(*inputs()), *model.buffers(), model.eval()(*inputs())]


def steps(kind: type) -> Any:
    model, found = made(kind), []
    for _ in range(2):
        found.append(model(*inputs()))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
                parameter.data.add_(0.1)
    return [*found, model(*inputs())]


def compiled(kind: type) -> Any:
    model = torch.compile(made(kind), **GRAPH)
    return [model(*inputs()), model(*inputs())]


def compiled_with_gradients(kind: type) -> Any:
    model = made(kind)
    with torch.enable_grad():
        x, *rest = inputs()
        torch.compile(model, **GRAPH)(x.requires_grad_(), *rest).square().sum().backward()
    return [x.grad, *(p.grad for p in model.parameters())]


def compiled_in_place(kind: type) -> Any:
    model = made(kind)
    model.compile(**GRAPH)
    return model(*inputs())


def compiled_and_changed(kind: type) -> Any:
    model = made(kind)
    fast = torch.compile(model, **GRAPH)
    first = fast(*inputs())
    changed(model)
    return [first, fast(*inputs()), torch.compile(model, **GRAPH)(*inputs())]


def compiled_in_training(kind: type) -> Any:
    model = made(kind)
    fast = torch.compile(model, **GRAPH)
    return [fast(*inputs()), torch.manual_seed(1) and None, fast.train()(*inputs()), fast.eval()(*inputs())]


def exported(kind: type) -> Any:
    program = torch.export.export(made(kind), tuple(inputs()))
    kept = io.BytesIO()
    torch.export.save(program, kept)
    kept.seek(0)
    return [program.module()(*inputs()), torch.export.load(kept).module()(*inputs())]


def traced(kind: type) -> Any:
    given = inputs()
    if not all(isinstance(one, torch.Tensor) for one in given):
        raise NotHere
    return torch.jit.trace(made(kind), tuple(given))(*given)


def scripted(kind: type) -> Any:
    return torch.jit.script(made(kind))(*inputs())


def symbolic(kind: type) -> Any:
    return torch.fx.symbolic_trace(made(kind))(*inputs())


def made_fx(kind: type) -> Any:
    return make_fx(made(kind))(*inputs())(*[one for one in inputs() if isinstance(one, torch.Tensor)])


def vmapped(kind: type) -> Any:
    model, given = made(kind), inputs()
    dims = tuple(0 if number == 0 else None for number in range(len(given)))
    given[0] = torch.stack([given[0], given[0] + 1])
    return torch.vmap(model, in_dims=dims)(*given)


def gradient_transform(kind: type) -> Any:
    model, (x, *rest) = made(kind), inputs()
    return torch.func.grad(lambda one: model(one, *rest).square().sum())(x)


def functional(kind: type) -> Any:
    model = made(kind)
    named = {name: tensor * 2 for name, tensor in model.named_parameters()}
    return torch.func.functional_call(model, named, tuple(inputs()))


def hooked(kind: type) -> Any:
    model = made(kind)
    handle = model.register_forward_hook(lambda module, args, out: out + 1)
    found = [model(*inputs())]
    handle.remove()
    return [*found, model(*inputs())]


def layer_hooked(kind: type) -> Any:
    model = made(kind)
    found = [model(*inputs())]
    handle = layer(model).register_forward_hook(lambda module, args, out: out + 1)
    found += [model(*inputs()), torch.compile(model, **GRAPH)(*inputs())]
    handle.remove()
    return [*found, model(*inputs())]


def hooked_everywhere(kind: type) -> Any:
    model = made(kind)
    found = [model(*inputs())]
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2)
    found += [model(*inputs())]
    handle.remove()
    return found


def wrapped_layer(kind: type) -> Any:
    class Lora(torch.nn.Module):
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base = base
            torch.manual_seed(9)
            self.more = torch.nn.Parameter(torch.randn(()))

        def forward(self, x: Any) -> Any:
            return self.base(x) * self.more

    model = made(kind)
    first = model(*inputs())
    model.set_submodule(layer_name(), Lora(layer(model)))
    return [first, model(*inputs()), torch.compile(model, **GRAPH)(*inputs())]


def patched_layer(kind: type) -> Any:
    model = made(kind)
    first, one = model(*inputs()), layer(model)
    one.forward = lambda x: type(one).forward(one, x) * 3
    return [first, model(*inputs()), torch.compile(model, **GRAPH)(*inputs())]


def weight_norm(kind: type) -> Any:
    model = made(kind)
    first = model(*inputs())
    parametrizations.weight_norm(layer(model), dim=None)
    return [first, model(*inputs()), torch.compile(model, **GRAPH)(*inputs())]


def pruned(kind: type) -> Any:
    model = made(kind)
    prune.l1_unstructured(layer(model), "weight", 0.5)
    return model(*inputs())


def deep_copied(kind: type) -> Any:
    model = made(kind)
    first, other = model(*inputs()), copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data.mul_(2)
    return [first, other(*inputs()), model(*inputs())]


def shallow_copied(kind: type) -> Any:
    model = made(kind)
    found = [model(*inputs())]
    other = copy.copy(model)
    changed(other)
    return [*found, other(*inputs()), model(*inputs())]


def pickled(kind: type) -> Any:
    model = made(kind)
    first, kept = model(*inputs()), io.BytesIO()
    torch.save(model, kept)
    kept.seek(0)
    return [first, pickle.loads(pickle.dumps(model))(*inputs()), torch.load(kept, weights_only=False)(*inputs())]


def changed_attribute(kind: type) -> Any:
    model = made(kind)
    found = [model(*inputs())]
    changed(model)
    return [*found, model(*inputs()), copy.deepcopy(model)(*inputs())]


def another_dtype(kind: type) -> Any:
    found = []
    for dtype in (torch.float64, torch.bfloat16):
        model = made(kind)
        model(*inputs())
        floating = [one.to(dtype) if torch.is_tensor(one) and one.is_floating_point() else one for one in inputs()]
        found.append(model.to(dtype)(*floating))
    return found


def autocast(kind: type) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return made(kind)(*inputs())


def default_dtype(kind: type) -> Any:
    model = made(kind)
    torch.set_default_dtype(torch.float64)
    try:
        return model(*[one.float() if torch.is_tensor(one) and one.is_floating_point() else one for one in inputs()])
    finally:
        torch.set_default_dtype(torch.float32)


def odd_shapes(kind: type) -> Any:
    found, model = [], made(kind)
    for change in (lambda x: x[:1], lambda x: x[:0], lambda x: x[None], lambda x: x[..., :7], lambda x: x.double()):
        first, *rest = inputs()
        try:
            found.append(model(change(first), *rest))
        except Exception as error:  # noqa: BLE001 - the same error is right
            found.append(f"{type(error).__name__}: {error}")
    return found


def odd_strides(kind: type) -> Any:
    model, (first, *rest) = made(kind), inputs()
    apart = torch.empty(*first.shape[:-1], 2 * first.shape[-1])[..., ::2].copy_(first)
    unaligned = torch.empty(first.numel() + 1)[1:].view(first.shape).copy_(first)
    return [model(one, *rest) for one in (apart, unaligned, first.t().contiguous().t() if first.dim() == 2 else first)]


def keywords(kind: type) -> Any:
    parameters = list(inspect.signature(REFERENCE.Model.forward).parameters.values())[1:]
    if any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters):
        raise NotHere
    return made(kind)(**{one.name: value for one, value in zip(parameters, inputs(), strict=False)})


def wrong_calls(kind: type) -> Any:
    found, model = [], made(kind)
    for args, kwargs in (((), {}), ((*inputs(), 1), {}), (inputs(), {"nothing": 1}), (("text",), {})):
        try:
            found.append(model(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the same error is right
            found.append(type(error).__name__)
    return found


def other_values(kind: type) -> Any:
    return [made(kind)(*(one if torch.is_tensor(one) else number for one in inputs())) for number in (1.5, 2, True)]


def more_threads(kind: type) -> Any:
    torch.set_num_threads(2)
    try:
        return made(kind)(*inputs())
    finally:
        torch.set_num_threads(1)


def moved(kind: type) -> Any:
    model = made(kind)
    found = [model(*inputs())]
    model.to(torch.float64).to(torch.float32).share_memory()
    found.append(model(*inputs()))
    try:
        found.append(model.to("meta")(*inputs()).shape)
    except Exception as error:  # noqa: BLE001 - the same error is right
        found.append(type(error).__name__)
    return found


def state(kind: type) -> Any:
    model = made(kind)
    other = kind(*initial()).eval()
    other.load_state_dict(model.state_dict())
    return [list(model.state_dict()), [name for name, _ in model.named_modules()], other(*inputs())]


def inference(kind: type) -> Any:
    with torch.inference_mode():
        return made(kind)(*inputs()).clone()


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.shape != other.shape or one.dtype != other.dtype:
            return False
        near = 2e-2 if one.dtype is torch.bfloat16 else 1e-4
        return torch.allclose(one.double(), other.double(), near, near, equal_nan=True)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and equal([*one.values()], [*other.values()])
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def outcome(use: Callable[[type], Any], kind: type) -> tuple[Any, str]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    grad = use.__name__ in ("training", "steps")
    try:
        with torch.set_grad_enabled(grad):
            return use(kind), ""
    except Exception as error:  # noqa: BLE001 - the same error is right
        return None, f"{type(error).__name__}: {error}"


def main() -> None:
    global calls
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    told = {}
    for use in map(globals().__getitem__, CASE["uses"]):
        right, raised = outcome(use, REFERENCE.Model)
        calls = 0
        found, fault = outcome(use, LOADED.ModelNew)
        if raised.startswith("NotHere"):
            continue
        if "found no compiled frames" in raised and not fault:  # a reference that is one of torch's containers
            raised = ""
            right = found
        if raised.partition(":")[0] != fault.partition(":")[0]:
            verdict = f"raises {fault}, the reference {raised or 'nothing'}"[:400]
        else:
            verdict = "equal" if raised or equal(right, found) else f"DIFFERS: {right} and {found}"[:2000]
        told[use.__name__] = [verdict, calls, raised[:60]]
    print(json.dumps({"uses": told, "broken": LOADED.ModelNew._ww_parts[1]}))


main()
