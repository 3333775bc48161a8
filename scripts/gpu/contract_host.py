"""A host for what tilec writes: PTX and its launch contract, and nothing else of the compiler.

It follows docs/launch-contract.md and shares no code with the compiler's own host, so that what it measures and checks holds for
anyone who launches from the document. A tensor is an address, a shape, strides in elements and an element type; who owns the memory
does not matter. The CUDA driver is called through `ctypes`; `Driver(library)` takes any object with its functions, as the tests do.

    kernels = compile_file("tilec", "examples/gemm.tile", ["--target", "sm_90a"])
    contract = kernels.choose({"A": a, "B": b, "C": c}, {}, {})
    loaded = LoadedKernel(Driver(), kernels.ptx, contract)
    loaded.bind({"A": a, "B": b, "C": c}).launch(stream)
"""

import ctypes
import json
import math
import pathlib
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .expressions import ExpressionError, evaluate

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "e2m1": 4, "ue8m0": 8, "i4": 4, "u4": 4, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "bool": 8}
# CUtensorMapDataType and CUtensorMapSwizzle. A tf32 travels as an f32, which the copy does not round.
# Where elements share a byte a map counts bytes.
_MAP_TYPES = {"i4": 0, "u4": 0, "u8": 0, "i8": 0, "e4m3": 0, "e5m2": 0, "e2m1": 0, "ue8m0": 0, "u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6, "f32": 7, "tf32": 7, "f64": 8, "bf16": 9}
_MAP_SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
_L2_PROMOTION_128B = 2
_CLUSTER_DIMENSION, _PROGRAMMATIC_SERIALIZATION = 4, 6
_NUM_REGS, _MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 4, 8, 14
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_UNRAISED_SHARED_BYTES = 49152


class ContractError(ValueError):
    """The contract forbids this launch, or the arguments do not fit it."""


class CudaError(RuntimeError):
    """The driver refused a call."""


@dataclass(frozen=True)
class Tensor:
    """Memory of a device: element `(i, ..)` is at `address + (i * strides[0] + ..) * size of elem`."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elem: str

    @property
    def end(self) -> int:
        """The address behind the last element."""
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        return self.address + (last + 1) * BITS[self.elem] // 8


@dataclass(frozen=True)
class PixelPlan:
    """What `cuTensorMapEncodeIm2col` is asked for beside."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class MapPlan:
    """What `cuTensorMapEncodeTiled` is asked for; dimensions from the contiguous one on, strides in bytes without the first."""

    data_type: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    # Of a map in im2col mode: corners of the box of pixels, the steps between them, and how many. Its box has channels alone.
    pixels: "PixelPlan | None" = None


@dataclass(frozen=True)
class Launch:
    """One launch, worked out: `arguments` are the bytes of each parameter, or the plan of a tensor map."""

    grid: tuple[int, int, int]
    arguments: tuple[bytes | MapPlan, ...]


@dataclass(frozen=True)
class Contract:
    """The contract of one kernel, `data` as in the file."""

    data: Mapping[str, Any]

    @property
    def entry(self) -> str:
        return str(self.data["entry"])

    @property
    def params(self) -> list[Mapping[str, Any]]:
        return list(self.data["params"])

    @property
    def block(self) -> tuple[int, int, int]:
        return _three(self.data["block"])

    @property
    def cluster(self) -> tuple[int, int, int]:
        return _three(self.data.get("cluster", 1))

    @property
    def dynamic_smem(self) -> int:
        return int(self.data.get("dynamic_smem_bytes", 0))

    @property
    def programmatic(self) -> bool:
        return bool(self.data.get("programmatic", False))

    def of_kind(self, *kinds: str) -> list[Mapping[str, Any]]:
        """The parameters of these kinds, in order."""
        return [param for param in self.params if param["kind"] in kinds]

    def values(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int], scalars: Mapping[str, float]) -> dict[str, int]:
        """Every size, stride and integer scalar: given, read off the tensors' shapes and strides, or by default."""
        self._check_names(tensors, sizes, scalars)
        values = dict(sizes)
        for param in self.of_kind("tensor"):
            if param["name"] in tensors:
                _infer(param, tensors[param["name"]], values)
        for param in self.of_kind("scalar"):
            if param["type"] in ("i32", "u32", "i64", "u64", "i8", "u8", "i16", "u16", "bool"):
                values[param["name"]] = int(_scalar(param, scalars))
        missing = [param["name"] for param in self.of_kind("size") if param["name"] not in values]
        if missing:
            raise ContractError(f"`{self.entry}`: no value for the sizes {', '.join(missing)}")
        for param in self.of_kind("stride"):
            if param["name"] not in values:
                if "packed" not in param:
                    raise ContractError(f"`{self.entry}`: no value for the stride `{param['name']}`")
                values[param["name"]] = evaluate(param["packed"], values)
        return values

    def shape_of(self, name: str, values: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides of a tensor, a dimension of several modes as several."""
        param = next(param for param in self.of_kind("tensor") if param["name"] == name)
        return tuple(evaluate(e, values) for e in modes(param["shape"])), tuple(evaluate(e, values) for e in modes(param["strides"]))

    def scratch(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int] | None = None) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
        """Tensors that the host makes room for, zero before the first launch: name, element type, shape and strides."""
        params = [param for param in self.of_kind("tensor") if param.get("scratch")]
        known = {name: tensor for name, tensor in tensors.items() if name in {param["name"] for param in self.params}}
        values = self.values(known, sizes or {}, {}) if params else {}
        return [(param["name"], str(param["type"]), *self.shape_of(param["name"], values)) for param in params]

    def failing(self, values: Mapping[str, int]) -> str | None:
        """The first condition of `requires` that does not hold."""
        return next((text for text in self.data.get("requires", []) if not evaluate(text, values)), None)

    def plan(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int], scalars: Mapping[str, float]) -> Launch:
        """The launch with these arguments: the steps 1 to 4 of the document, and what step 5 encodes."""
        values = self.values(tensors, sizes, scalars)
        failing = self.failing(values)
        if failing is not None:
            raise ContractError(f"`{self.entry}` requires `{failing}`, which does not hold for {values}")
        grid = _three([evaluate(str(axis), values) for axis in _list(self.data["grid"])])
        if any(not 1 <= extent <= limit for extent, limit in zip(grid, _GRID_LIMITS, strict=True)):
            raise ContractError(f"`{self.entry}`: the grid would be {grid}")
        self._check_tensors(tensors, values)
        return Launch(grid, tuple(self._argument(param, tensors, values, scalars) for param in self.params))

    def _argument(self, param: Mapping[str, Any], tensors: Mapping[str, Tensor], values: Mapping[str, int], scalars: Mapping[str, float]) -> bytes | MapPlan:
        name = param["name"]
        match param["kind"]:
            case "tensor":
                return struct.pack("<Q", tensors[name].address)
            case "size":
                return struct.pack("<I", values[name])
            case "stride":
                return struct.pack("<q", values[name])
            case "scalar":
                return pack_scalar(param["type"], _scalar(param, scalars))
            case "tensor_map":
                return _map_plan(param, tensors[param["tensor"]], values)
            case kind:
                raise ContractError(f"`{self.entry}`: this host passes no parameters of kind `{kind}` (`{name}`)")

    def _check_names(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int], scalars: Mapping[str, float]) -> None:
        given = [(tensors, ("tensor",)), (sizes, ("size", "stride")), (scalars, ("scalar",))]
        for arguments, kinds in given:
            known = {param["name"] for param in self.of_kind(*kinds)}
            unknown = sorted(set(arguments) - known)
            if unknown:
                raise ContractError(f"`{self.entry}` has no {kinds[0]} {', '.join(unknown)}; it has {', '.join(sorted(known)) or 'none'}")

    def _check_tensors(self, tensors: Mapping[str, Tensor], values: Mapping[str, int]) -> None:
        params = self.of_kind("tensor")
        for param in params:
            name = param["name"]
            if name not in tensors:
                raise ContractError(f"`{self.entry}`: no tensor `{name}`")
            tensor = tensors[name]
            if tensor.elem != param["type"]:
                raise ContractError(f"`{name}` has elements {param['type']}, found {tensor.elem}")
            if tensor.address % int(param.get("align", 256)):
                raise ContractError(f"the address of `{name}` is no multiple of {param['align']}")
            shape, strides = self.shape_of(name, values)
            if shape != tensor.shape or any(s != t for s, t, n in zip(strides, tensor.strides, shape, strict=True) if n > 1):
                raise ContractError(f"`{name}` has shape {shape} and strides {strides}, found {tensor.shape} and {tensor.strides}")
        for written in (param for param in params if param.get("access", "read_write") != "read"):
            for other in params:
                _check_overlap(written, other, tensors)


def _check_overlap(written: Mapping[str, Any], other: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    a, b = tensors[written["name"]], tensors[other["name"]]
    if written is other or a.end <= b.address or b.end <= a.address:
        return
    same = a.address == b.address and a.strides == b.strides
    allowed = other["name"] in written.get("may_alias", []) or written["name"] in other.get("may_alias", [])
    if not (same and allowed):
        raise ContractError(f"`{written['name']}` is written and overlaps `{other['name']}`")


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _three(value: Any) -> tuple[int, int, int]:
    numbers = [int(x) for x in _list(value)] + [1, 1]
    return numbers[0], numbers[1], numbers[2]


def modes(expressions: Any) -> list[str]:
    """Expressions of all modes of all dimensions, in row-major order."""
    return [str(mode) for dimension in _list(expressions) for mode in _list(dimension)]


def _infer(param: Mapping[str, Any], tensor: Tensor, values: dict[str, int]) -> None:
    """Gives names that stand alone as an extent or stride their value, if they have none. What does not fit is found later."""
    shape, strides = modes(param["shape"]), modes(param["strides"])
    if len(shape) != len(tensor.shape):
        raise ContractError(f"`{param['name']}` has {len(shape)} dimensions ({', '.join(shape)}), found {len(tensor.shape)}")
    for expression, value in [*zip(shape, tensor.shape, strict=True), *zip(strides, tensor.strides, strict=True)]:
        if expression.isidentifier():
            values.setdefault(expression, value)


def _scalar(param: Mapping[str, Any], scalars: Mapping[str, float]) -> float:
    value = scalars.get(param["name"], param.get("default"))
    if value is None:
        raise ContractError(f"no value for the scalar `{param['name']}`")
    return float(value) if isinstance(value, str) else value


def pack_scalar(elem: str, value: float) -> bytes:
    """The bytes of a scalar parameter."""
    if elem == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        rounded = bits + 0x7FFF + (bits >> 16 & 1) if math.isfinite(value) else bits
        return struct.pack("<H", rounded >> 16 & 0xFFFF)
    formats = {"f16": "<e", "f32": "<f", "tf32": "<f", "f64": "<d", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q", "bool": "<?"}
    if elem not in formats:
        raise ContractError(f"this host passes no scalars of type `{elem}`")
    return struct.pack(formats[elem], value if elem in ("f16", "f32", "tf32", "f64") else int(value))


def _map_plan(param: Mapping[str, Any], tensor: Tensor, values: Mapping[str, int]) -> MapPlan:
    """The recipe of a contract applied to a tensor."""
    dims = [int(dim) for dim in param["dims"]]
    bits = BITS[tensor.elem]
    strides = tuple(tensor.strides[dim] * bits // 8 for dim in dims[1:])
    if tensor.address % 16 or any(stride % 16 for stride in strides):
        raise ContractError(f"`{param['name']}`: address and strides must be multiples of 16 bytes, found {tensor.address:#x} and {strides}")
    extents, box = [tensor.shape[dim] for dim in dims], [int(n) for n in param["box"]]
    address = tensor.address
    if ended := param.get("ended"):
        # A dimension that is there twice, for windows with an end of their own.
        address -= box[ended] * strides[ended - 1]
        extents, strides, box = [*extents, extents[ended] + 1], (*strides, strides[ended - 1]), [*box, 1]
        extents[ended] = box[ended]
    if bits < 8:
        extents[0], box[0] = -(-extents[0] * bits // 8), box[0] * bits // 8
    pixels = None
    if im2col := param.get("im2col"):
        lower, upper = (tuple(evaluate(e, values) for e in im2col[end]) for end in ("lower", "upper"))
        pixels = PixelPlan(lower, upper, (1, *im2col["steps"], 1), box[1])
        box = box[:1]
    return MapPlan(_MAP_TYPES[tensor.elem], address, tuple(extents), strides, tuple(box), _MAP_SWIZZLES[param["swizzle"]], pixels)


@dataclass(frozen=True)
class LaunchFile:
    """What tilec wrote for one source file."""

    ptx: str
    kernels: dict[str, Contract]
    dispatch: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    sequences: dict[str, list[str]] = field(default_factory=dict)
    temporaries: set[str] = field(default_factory=set)

    @classmethod
    def parse(cls, ptx: str, text: str) -> "LaunchFile":
        """Reads the JSON of `--emit launch`, of one kernel or of several."""
        data = json.loads(text)
        if data.get("schema") not in ("tilec.launch/1", "tilec.launch/2", "tilec.launch/3"):
            raise ContractError(f"the schema `{data.get('schema')}` is not known")
        kernels = {k["entry"]: Contract(k) for k in data.get("kernels", [data])}
        dispatch = {d["kernel"]: d["cases"] for d in data.get("dispatch", [])}
        programs = data.get("programs", [])
        temporaries = {t["name"] for p in programs for t in p.get("temporaries", [])}
        return cls(ptx, kernels, dispatch, tuple(p["name"] for p in programs), {p["name"]: list(p["launches"]) for p in programs}, temporaries)

    def choose(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int], scalars: Mapping[str, float], name: str | None = None) -> Contract:
        """The kernel to launch: `name`, or the only one; of variants the first case that holds."""
        if self.programs and (name is None or name in self.programs):
            raise ContractError(f"this host launches single kernels, and `{', '.join(self.programs)}` is a sequence")
        in_cases = {case["entry"] for cases in self.dispatch.values() for case in cases}
        candidates = [name] if name else [*self.dispatch, *(k for k in self.kernels if k not in in_cases)]
        if len(candidates) != 1 or candidates[0] not in {**self.kernels, **self.dispatch}:
            raise ContractError(f"name one of the kernels {', '.join([*self.dispatch, *self.kernels])}")
        if candidates[0] not in self.dispatch:
            return self.kernels[candidates[0]]
        for case in self.dispatch[candidates[0]]:
            contract = self.kernels[case["entry"]]
            values = contract.values(tensors, sizes, scalars)
            aligned = all(tensors[p["name"]].address % p["align"] == 0 for p in contract.of_kind("tensor") if p["name"] in tensors)
            if aligned and all(evaluate(text, values) for text in case["when"]) and contract.failing(values) is None:
                return contract
        raise ContractError(f"no case of `{candidates[0]}` holds")


class CompileError(RuntimeError):
    """tilec did not compile the file; the text is what it said."""


def compile_file(tilec: str, source: str, options: Sequence[str]) -> LaunchFile:
    """Compiles a file with these options of tilec's command line."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, launch = pathlib.Path(folder, "out.ptx"), pathlib.Path(folder, "out.json")
        for path in (ptx, launch):
            done = subprocess.run([tilec, source, *options, "-o", str(path)], capture_output=True, text=True, check=False, timeout=120)
            if done.returncode:
                raise CompileError(done.stderr.strip() or f"{tilec} ended with status {done.returncode}")
        return LaunchFile.parse(ptx.read_text(), launch.read_text())


class _ClusterOrFlag(ctypes.Union):
    _fields_ = [("cluster", ctypes.c_uint * 3), ("flag", ctypes.c_int), ("pad", ctypes.c_char * 64)]


class LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute`."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", _ClusterOrFlag)]


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_smem", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("n_attributes", ctypes.c_uint),
    ]


class Driver:
    """The functions of the CUDA driver that a launch needs. The context is that of the caller's thread."""

    def __init__(self, library: Any = None) -> None:
        self.library = library if library is not None else ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function and raises what it says."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()} ({status})")

    def encode(self, plan: MapPlan) -> ctypes.Array[ctypes.c_char]:
        """A `CUtensorMap`, in the middle of memory that aligns it to 64 bytes."""
        memory = ctypes.create_string_buffer(192)
        start = -ctypes.addressof(memory) % 64
        map_bytes = (ctypes.c_char * 128).from_buffer(memory, start)
        rank = len(plan.extents)
        u64, u32, i32 = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32
        if (pixels := plan.pixels) is not None:
            self.call(
                "cuTensorMapEncodeIm2col", map_bytes, plan.data_type, u32(rank), ctypes.c_void_p(plan.address), (u64 * rank)(*plan.extents),
                (u64 * max(rank - 1, 1))(*plan.strides), (i32 * (rank - 2))(*pixels.lower), (i32 * (rank - 2))(*pixels.upper), u32(plan.box[0]),
                u32(pixels.count), (u32 * rank)(*pixels.steps), 0, plan.swizzle, _L2_PROMOTION_128B, 0,
            )  # fmt: skip
            return map_bytes
        self.call(
            "cuTensorMapEncodeTiled", map_bytes, plan.data_type, u32(rank), ctypes.c_void_p(plan.address), (u64 * rank)(*plan.extents),
            (u64 * max(rank - 1, 1))(*plan.strides), (u32 * rank)(*plan.box), (u32 * rank)(*[1] * rank), 0, plan.swizzle, _L2_PROMOTION_128B, 0,
        )  # fmt: skip
        return map_bytes


class LoadedKernel:
    """A kernel in the driver, ready for launches: of PTX, or of what the assembler made of it (bytes)."""

    def __init__(self, driver: Driver, ptx: str | bytes, contract: Contract) -> None:
        self.driver, self.contract = driver, contract
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        image = ptx if isinstance(ptx, bytes) else ptx.encode() + b"\0"
        driver.call("cuModuleLoadData", ctypes.byref(self.module), image)
        driver.call("cuModuleGetFunction", ctypes.byref(self.function), self.module, contract.entry.encode())
        if contract.dynamic_smem > _UNRAISED_SHARED_BYTES:
            driver.call("cuFuncSetAttribute", self.function, _MAX_DYNAMIC_SHARED, contract.dynamic_smem)
        if math.prod(contract.cluster) > 8:
            driver.call("cuFuncSetAttribute", self.function, _NON_PORTABLE_CLUSTER, 1)

    def registers(self) -> int:
        """Registers of a thread at launch."""
        value = ctypes.c_int()
        self.driver.call("cuFuncGetAttribute", ctypes.byref(value), _NUM_REGS, self.function)
        return value.value

    def clusters_at_once(self, multiprocessors: int) -> int:
        """Blocks that a device runs at the same time, or clusters of them. A cluster is in one GPC, so fewer run than the multiprocessors have room for."""
        value, threads = ctypes.c_int(), math.prod(self.contract.block)
        if math.prod(self.contract.cluster) == 1:
            self.driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value), self.function, threads, ctypes.c_size_t(self.contract.dynamic_smem))
            return max(1, value.value * multiprocessors)
        attributes = (LaunchAttribute * 1)()
        attributes[0].id, attributes[0].value.cluster[:] = _CLUSTER_DIMENSION, self.contract.cluster
        config = LaunchConfig(dynamic_smem=self.contract.dynamic_smem, attributes=attributes, n_attributes=1)
        config.grid[:], config.block[:] = self.contract.cluster, self.contract.block
        self.driver.call("cuOccupancyMaxActiveClusters", ctypes.byref(value), self.function, ctypes.byref(config))
        return max(1, value.value)

    def bind(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int] | None = None, scalars: Mapping[str, float] | None = None, overlap: bool = True) -> "BoundLaunch":
        """Checks and fixes the arguments. `overlap`: whether launches may overlap, where the contract allows it."""
        plan = self.contract.plan(tensors, sizes or {}, scalars or {})
        return BoundLaunch(self, plan, overlap and self.contract.programmatic)


class BoundLaunch:
    """A kernel with its arguments. Memory that the driver reads lives as long as this does."""

    def __init__(self, kernel: LoadedKernel, plan: Launch, programmatic: bool) -> None:
        self.kernel, self.plan = kernel, plan
        self._memory = [self._place(kernel.driver, argument) for argument in plan.arguments]
        self._pointers = (ctypes.c_void_p * max(len(self._memory), 1))(*[ctypes.addressof(m) for m in self._memory])
        self._attributes = (LaunchAttribute * 2)()
        contract, n = kernel.contract, 0
        if contract.cluster != (1, 1, 1):
            self._attributes[n].id = _CLUSTER_DIMENSION
            self._attributes[n].value.cluster[:] = contract.cluster
            n += 1
        if programmatic:
            self._attributes[n].id = _PROGRAMMATIC_SERIALIZATION
            self._attributes[n].value.flag = 1
            n += 1
        self.config = LaunchConfig(dynamic_smem=contract.dynamic_smem, attributes=self._attributes, n_attributes=n)
        self.config.grid[:], self.config.block[:] = plan.grid, contract.block

    @staticmethod
    def _place(driver: Driver, argument: bytes | MapPlan) -> ctypes.Array[ctypes.c_char]:
        if isinstance(argument, MapPlan):
            return driver.encode(argument)
        return ctypes.create_string_buffer(argument, max(len(argument), 8))

    def launch(self, stream: int) -> None:
        """Queues the launch on a stream, given by its handle."""
        self.config.stream = stream
        self.kernel.driver.call("cuLaunchKernelEx", ctypes.byref(self.config), self.kernel.function, self._pointers, None)


__all__ = ["BITS", "BoundLaunch", "CompileError", "Contract", "ContractError", "CudaError", "Driver", "ExpressionError", "Launch", "LaunchFile", "LoadedKernel", "MapPlan", "Tensor", "compile_file", "modes", "pack_scalar"]
