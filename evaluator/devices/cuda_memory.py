"""Device memory that the judge owns and shows to children, and children's memory that the judge opens.

Private data (expected values, snapshots) lies in the judge's ordinary torch tensors: no handle of theirs is ever made,
and exported blocks are whole 2 MiB blocks of their own, so a handle never shows a neighbour.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.chain import Link
from evaluator.child.protocol.cuda_driver import ALIGNMENT, DeviceBytes, Driver, DriverError, round_to_blocks
from evaluator.child.protocol.layout import WORDS, LayoutError, TensorSpec, overwrite, pack
from evaluator.errors import CageError
from evaluator.sandbox.process import ChildProcess

_RETIRED_LIMIT_BYTES = 4 * 1024**3
_SPARE_BLOCKS, _SPARE_BYTES = 4, 2 * 1024**3


class Block:
    """One allocation of whole 2 MiB blocks that holds equal sets of tensors, `pitch` bytes apart, and after them the
    coefficients of a chain."""

    def __init__(self, driver: Driver, calls: Sequence[Sequence[torch.Tensor]], link: Link | None = None) -> None:
        self._driver = driver
        self.handle = ""  # once it was shown
        self.specs, size = pack(calls[0] if calls else [], ALIGNMENT)
        self.pitch = -(-size // ALIGNMENT) * ALIGNMENT
        self.count = len(calls)
        end = self.pitch * max(1, self.count)
        self.linked = None if link is None else link.captured
        self.link_layout = None if link is None else TensorSpec.of(link.coefficients, end)
        self.size = round_to_blocks(end + (self.link_layout.span_bytes if self.link_layout else 0))
        try:
            self.address = driver.allocate(self.size)
        except DriverError as error:
            raise CageError(f"{self.size} bytes of device memory cannot be had: {error}") from error
        self.raw = torch.as_tensor(DeviceBytes(self.address, self.size), device=torch.device("cuda", driver.ordinal))
        self.calls = self.views(self.raw)

    def views(self, raw: torch.Tensor) -> list[list[torch.Tensor]]:
        """Return the sets of tensors in `raw`, which is laid out like this block."""
        return [[spec.view(raw[i * self.pitch :]) for spec in self.specs] for i in range(self.count)]

    def has_chain_of(self, link: Link | None) -> bool:
        """Return whether the block fits these coefficients and chains the same tensors: a captured step is fixed."""
        return self.linked == (None if link is None else link.captured)

    def put_link(self, raw: torch.Tensor, link: Link | None) -> None:
        """Write a chain's coefficients into `raw`, which is laid out like this block."""
        if self.link_layout is not None and link is not None:
            self.link_layout.view(raw).copy_(link.coefficients)

    def fields(self) -> dict[str, Any]:
        """Return the request fields with which a child opens the block: sending them makes it visible."""
        layouts = [spec.to_json() for spec in self.specs]
        self.handle = self._driver.export(self.address)
        return {"handle": self.handle, "layouts": layouts, "pitch": self.pitch, "count": self.count}

    def is_like(self, other: Block) -> bool:
        """Return whether both lay the same sets of tensors out alike; their chains may differ."""
        return (self.specs, self.pitch, self.count) == (other.specs, other.pitch, other.count)

    def holds(self, calls: Sequence[Sequence[torch.Tensor]]) -> bool:
        """Return whether the block was made for such sets of tensors, without a chain."""
        alike = self.linked is None and self.count == len(calls)
        return alike and self.specs == pack(calls[0] if calls else [], ALIGNMENT)[0]

    def close(self) -> None:
        """Free it; its tensors must not be used again."""
        if self.address:
            self._driver.free(self.address)
            self.address = 0


def fill(targets: Sequence[Sequence[torch.Tensor]], sources: Sequence[Sequence[torch.Tensor]]) -> None:
    """Copy contents (asynchronously, on the current stream). Raises LayoutError where the sets are not alike."""
    plain: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for ours, theirs in zip(targets, sources, strict=True):
        for target, source in zip(ours, theirs, strict=True):
            if target.shape != source.shape or target.dtype != source.dtype:
                raise LayoutError("the calls of a round have equal layouts")
            word = WORDS.get(target.element_size())
            if word and target.is_contiguous() and source.is_contiguous() and target.device == source.device:
                some, others = plain.setdefault(word, ([], []))
                some.append(target.view(word))
                others.append(source.view(word))
            else:
                overwrite(target, source)
    # In a few launches: one for each takes longer than a small tensor's copy. As integers, since this operation gives
    # NaN of 16 bits other bits.
    for some, others in plain.values():
        torch._foreach_copy_(some, others)


def copies(calls: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Return private copies of sets of tensors with the same strides (asynchronously, on the current stream)."""
    made = [
        [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in tensors] for tensors in calls
    ]
    fill(made, calls)
    return made


class RetiredBlocks:
    """Blocks that are no longer needed but that a child may still map. The oldest are freed first, once there are many.

    CUDA leaves it undefined to free memory that another process has open. By the time a block's turn comes, the child
    has long dropped it or has ended.
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    def add(self, block: Block) -> None:
        self._blocks.append(block)
        while len(self._blocks) > 1 and sum(b.size for b in self._blocks) > _RETIRED_LIMIT_BYTES:
            self._blocks.pop(0).close()

    def close(self) -> None:
        while self._blocks:
            self._blocks.pop().close()


class SpareBlocks:
    """Blocks that only children of ours were shown, kept for other contents, because the driver takes a millisecond to
    make one. The least recently used are retired."""

    def __init__(self, retired: RetiredBlocks) -> None:
        self._retired = retired
        self._blocks: list[Block] = []

    def take(self, calls: Sequence[Sequence[torch.Tensor]]) -> Block | None:
        """Return a block for such sets of tensors, or None."""
        for index, block in enumerate(self._blocks):
            if block.holds(calls):
                return self._blocks.pop(index)
        return None

    def add(self, block: Block) -> None:
        self._blocks.append(block)
        while len(self._blocks) > _SPARE_BLOCKS or sum(b.size for b in self._blocks) > _SPARE_BYTES:
            self._retired.add(self._blocks.pop(0))

    def close(self) -> None:
        while self._blocks:
            self._retired.add(self._blocks.pop())


class ShownBlocks:
    """The blocks that each child was shown. An output that is an input lies there, and a driver opens no handle in the
    process that made it. A block that another child was shown is never given."""

    def __init__(self) -> None:
        self._blocks: weakref.WeakKeyDictionary[ChildProcess, MutableMapping[str, Block]] = weakref.WeakKeyDictionary()

    def add(self, child: ChildProcess, block: Block) -> None:
        self._blocks.setdefault(child, weakref.WeakValueDictionary())[block.handle] = block

    def to(self, child: ChildProcess) -> Mapping[str, Block]:
        """Return the blocks that a child was shown, by handle; some may be freed."""
        return self._blocks.get(child, {})


class Peer:
    """One child's memory, opened by the handles that it claims. Each handle is opened once, and we only read. Our own
    blocks that the child was `shown` are read in place."""

    def __init__(self, driver: Driver, shown: Mapping[str, Block] | None = None) -> None:
        self._driver, self._shown = driver, shown or {}
        self._blocks: dict[str, tuple[int, torch.Tensor]] = {}

    def raw(self, handle: object) -> torch.Tensor:
        """Return the whole block as uint8, of the size that the driver reports. Raise LayoutError for an invalid
        handle."""
        if not isinstance(handle, str):
            raise LayoutError("a tensor without a handle")
        own = self._shown.get(handle)
        if own is not None and own.address:
            return own.raw
        if handle not in self._blocks:
            try:
                address = self._driver.open(handle)
                _, size = self._driver.address_range(address)
            except (DriverError, ValueError) as error:
                raise LayoutError(f"a handle that opens nothing: {error}") from error
            raw = torch.as_tensor(DeviceBytes(address, size), device=torch.device("cuda", self._driver.ordinal))
            self._blocks[handle] = address, raw
        return self._blocks[handle][1]

    def tensor(self, claim: Mapping[str, Any]) -> torch.Tensor:
        """Return the tensor that a child claims to have, in place. Raise LayoutError for a false claim."""
        spec = TensorSpec.from_json(claim)
        if spec.numel == 0:
            return torch.empty(spec.shape, dtype=spec.torch_dtype, device=torch.device("cuda", self._driver.ordinal))
        return spec.view(self.raw(claim.get("handle")))

    def close(self) -> None:
        """Unmap everything."""
        for address, _ in self._blocks.values():
            self._driver.close(address)
        self._blocks.clear()


class Snapshot:
    """Private copies of many claimed tensors, taken with as few device copies as possible.

    Each claimed block is copied once, over the range of its tensors, so K outputs of one segment cost one launch. Where
    tensors lie further apart than they are large, each group of neighbours is copied by itself.
    """

    def __init__(self, peer: Peer, claims: Sequence[Mapping[str, Any]]) -> None:
        self.live = [peer.tensor(claim) for claim in claims]
        specs = [TensorSpec.from_json(claim) for claim in claims]
        self._copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.tensors: list[torch.Tensor] = list(self.live)
        members: dict[str, list[int]] = {}
        for index, (claim, spec) in enumerate(zip(claims, specs, strict=True)):
            if spec.numel:
                members.setdefault(str(claim["handle"]), []).append(index)
        for handle, indices in members.items():
            for group in copy_groups([(specs[i].offset, specs[i].span_bytes) for i in indices]):
                self._plan(peer.raw(handle), [(indices[i], specs[indices[i]]) for i in group])

    def _plan(self, raw: torch.Tensor, group: list[tuple[int, TensorSpec]]) -> None:
        start = min(spec.offset for _, spec in group) // ALIGNMENT * ALIGNMENT
        end = max(spec.offset + spec.span_bytes for _, spec in group)
        copy = torch.empty(end - start, dtype=torch.uint8, device=raw.device)
        self._copies.append((copy, raw[start:end]))
        for index, spec in group:
            self.tensors[index] = TensorSpec(spec.shape, spec.stride, spec.dtype, spec.offset - start).view(copy)

    def take(self) -> None:
        """Copy now (asynchronously, on the current stream)."""
        for copy, source in self._copies:
            copy.copy_(source)

    def poison(self) -> None:
        """Overwrite the child's live outputs: NaN in every floating dtype, -1 in integers, true in booleans."""
        for tensor in self.live:
            if tensor.is_contiguous():
                tensor.fill_(_poison(tensor.dtype))
            else:
                overwrite(tensor, tensor.new_full((), _poison(tensor.dtype)))


def _poison(dtype: torch.dtype) -> float | int | bool:
    if dtype is torch.bool:
        return True
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    return -1 if dtype.is_signed else int(torch.iinfo(dtype).max)


def copy_groups(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Group indices of (offset, size) ranges to copy together: neighbours with gaps smaller than their bytes."""
    groups: list[list[int]] = []
    end = own = 0
    for index in sorted(range(len(ranges)), key=lambda i: ranges[i]):
        offset, size = ranges[index]
        if groups and offset - end <= own:
            groups[-1].append(index)
            end, own = max(end, offset + size), own + size
        else:
            groups.append([index])
            end, own = offset + size, size
    return groups


class CudaGrant:
    """A block with copies of some tensors; sending `fields` shows it to a child."""

    fds: Sequence[int] = ()

    def __init__(self, block: Block, shown: ShownBlocks, give_back: Callable[[Block], None]) -> None:
        self.fields: Mapping[str, Any] = block.fields()
        self._block: Block | None = block
        self._shown, self._give_back = shown, give_back

    def read_back(self) -> list[list[torch.Tensor]]:
        """Return the granted tensors as they are now: a child writes to the judge's own block."""
        if self._block is None:
            raise ValueError("a grant that was closed")
        found = copies(self._block.calls)
        torch.cuda.synchronize(self._block.raw.device)
        return found

    def mark_aliases(self, child: ChildProcess, claims: Sequence[dict[str, Any]]) -> None:
        if self._block is not None:
            self._shown.add(child, self._block)
            mark_aliases(self._block, claims)

    def close(self) -> None:
        """Give the block up; a second call does nothing."""
        if self._block is not None:
            self._give_back(self._block)
            self._block = None


def mark_aliases(block: Block, claims: Sequence[dict[str, Any]]) -> None:
    """Set "alias" in each claim to whether its tensor lies in a block that the child was shown."""
    for claim in claims:
        claim["alias"] = claim.get("handle") == block.handle


def clone(tensor: torch.Tensor) -> torch.Tensor:
    """Return a private copy with the same strides."""
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return overwrite(copy, tensor)
