"""The element types of tiles in NumPy: how numbers of each are computed, rounded, converted and stored (docs/numerics.md).

Integers are Python's, in arrays of objects, so nothing wraps by itself. Floats are f64: programs have numbers whose results are exact, and `exact` says so.
"""

import dataclasses
import math
import typing

import numpy as np

Array = typing.Any


class Inexact(Exception):
    """A result depends on the order of sums, or on what is fused."""


@dataclasses.dataclass(frozen=True)
class Elem:
    """An element type. Of a float: the bits of its fraction, its least exponent, its largest number, and whether it saturates."""

    name: str
    bits: int
    integer: bool
    signed: bool = True
    fraction: int = 0
    least: int = 0
    largest: float = 0.0
    saturates: bool = False

    @property
    def register(self) -> int:
        return 64 if self.bits == 64 else 32

    @property
    def register_signed(self) -> bool:
        return self.signed or self.bits < 32

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - self.signed)) - 1


def _integer(name: str) -> Elem:
    return Elem(name, int(name[1:]), True, name[0] == "i")


ELEMS = {e.name: e for e in map(_integer, "i4 u4 i8 u8 i16 u16 i32 u32 i64 u64".split())}
ELEMS |= {
    e.name: e
    for e in (
        Elem("f64", 64, False, fraction=52, least=-1022, largest=1.7976931348623157e308),
        Elem("f32", 32, False, fraction=23, least=-126, largest=3.4028234663852886e38),
        Elem("f16", 16, False, fraction=10, least=-14, largest=65504.0),
        Elem("bf16", 16, False, fraction=7, least=-126, largest=3.3895313892515355e38),
        Elem("e4m3", 8, False, fraction=3, least=-6, largest=448.0, saturates=True),
        Elem("e5m2", 8, False, fraction=2, least=-14, largest=57344.0, saturates=True),
        Elem("e2m1", 4, False, fraction=1, least=0, largest=6.0, saturates=True),
    )
}


def objects(values: Array) -> Array:
    """An array of Python's integers."""
    return np.array(values, dtype=object)


def wrapped(x: Array, bits: int, signed: bool) -> Array:
    """The lower bits, as a number."""
    x = np.asarray(np.asarray(x, dtype=object) & ((1 << bits) - 1), dtype=object)
    negative = np.asarray(x >> (bits - 1), dtype=object) == 1
    return np.where(negative, np.asarray(x - (1 << bits), dtype=object), x) if signed else x


def in_register(elem: Elem, x: Array) -> Array:
    """What the register holds of a result."""
    if elem.integer:
        return wrapped(x, elem.register, elem.register_signed)
    return exact(x)


def exact(x: Array) -> Array:
    """Refuses numbers of more than 2^15, or with more than 8 bits after the point: sums and products of others may round."""
    x = np.asarray(x, np.float64)
    if not np.all(np.isfinite(x)) or np.any(np.abs(x) >= 1 << 15) or np.any(np.rint(x * 256) != x * 256):
        raise Inexact
    return x


def rounded(elem: Elem, x: Array) -> Array:
    """The nearest number of a float type, ties to even."""
    if elem.name == "f64":
        return x
    x = np.asarray(x, np.float64)
    exponent = np.maximum(np.frexp(x)[1] - 1, elem.least)
    unit = np.ldexp(1.0, exponent - elem.fraction)
    x = np.rint(x / unit) * unit
    beyond = np.abs(x) > elem.largest
    return np.where(beyond, np.copysign(elem.largest if elem.saturates else np.inf, x), x)


def kept(elem: Elem, x: Array) -> Array:
    """What a name, a variable or memory holds of a value in a register: narrow integers saturate, and floats are rounded."""
    if not elem.integer:
        return rounded(elem, x)
    return np.minimum(np.maximum(x, elem.low), elem.high) if elem.bits < 32 else x


def _as_double(x: int) -> float:
    """An integer rounded to odd at 53 bits, so that rounding once more is as rounding once."""
    spare = max(abs(x).bit_length() - 53, 0)
    whole = abs(x) >> spare << spare
    if whole != abs(x):
        whole |= 1 << spare
    return math.copysign(float(whole), x)


def converted(to: Elem, of: Elem, x: Array) -> Array:
    """`cast<to>(x)` of a value of the type `of`, as it is in its register."""
    if not to.integer:
        if of.integer:
            x = np.array([float(v) if to.name == "f64" else _as_double(int(v)) for v in x.ravel()], np.float64).reshape(x.shape)
        return rounded(to, x)
    if not of.integer:
        whole = np.array([int(v) for v in np.rint(x).ravel()], dtype=object).reshape(x.shape)
        return np.minimum(np.maximum(whole, to.low), to.high)
    modulo = to.bits == 64 or (to.bits == 32 and of.bits <= 32)
    return wrapped(x, to.bits, to.signed) if modulo else np.minimum(np.maximum(x, to.low), to.high)


def _dtype(elem: Elem) -> typing.Any:
    """NumPy's type of the elements in memory, if there is one."""
    if elem.integer and elem.bits >= 8:
        return np.dtype(f"{'i' if elem.signed else 'u'}{elem.bits // 8}")
    return {"f64": np.float64, "f32": np.float32, "f16": np.float16}.get(elem.name)


def _codes(elem: Elem) -> "dict[float, int]":
    """The bits of each number of a float of 4 or 8 bits."""
    codes: "dict[float, int]" = {}
    for code in range(1 << (elem.bits - 1)):
        exponent, fraction = code >> elem.fraction, code & ((1 << elem.fraction) - 1)
        number = fraction + ((1 << elem.fraction) if exponent else 0)
        codes[math.ldexp(number, max(exponent, 1) - 1 + elem.least - elem.fraction)] = code
    return {number: code for number, code in codes.items() if number <= elem.largest}


def bits(elem: Elem, x: Array) -> Array:
    """The bits of elements, as whole numbers without signs."""
    if elem.integer:
        return x & ((1 << elem.bits) - 1)
    if elem.name == "bf16":
        return np.asarray(x, np.float32).view(np.uint32) >> 16
    if elem.bits >= 16:
        return np.asarray(x, _dtype(elem)).view(f"u{elem.bits // 8}")
    codes = _codes(elem)
    sign = 1 << (elem.bits - 1)
    return np.array([codes[abs(v)] + sign * bool(np.signbit(v)) for v in np.ravel(x)], np.uint8).reshape(np.shape(x))


def numbers(elem: Elem, x: Array) -> Array:
    """The other way: elements of bits."""
    if elem.integer:
        return wrapped(objects(x), elem.bits, elem.signed)
    if elem.name == "bf16":
        return (np.asarray(x, np.uint32) << 16).view(np.float32).astype(np.float64)
    if elem.bits >= 16:
        return np.asarray(x, f"u{elem.bits // 8}").view(_dtype(elem)).astype(np.float64)
    of = {code: number for number, code in _codes(elem).items()}
    sign = 1 << (elem.bits - 1)
    values = [math.copysign(of.get(int(v) & (sign - 1), math.nan), -1 if int(v) & sign else 1) for v in np.ravel(x)]
    return np.array(values, np.float64).reshape(np.shape(x))


def stored(elem: Elem, x: Array) -> Array:
    """The array that is passed to a kernel."""
    dtype = _dtype(elem)
    if dtype is not None:
        return np.ascontiguousarray(x.astype(dtype))
    raw = np.asarray(bits(elem, x)).astype(np.uint16 if elem.bits == 16 else np.uint8)
    return np.ascontiguousarray(raw[..., 0::2] | raw[..., 1::2] << 4) if elem.bits == 4 else np.ascontiguousarray(raw)


def loaded(elem: Elem, array: Array) -> Array:
    """What an array that was passed to a kernel holds."""
    if elem.integer and elem.bits >= 8:
        return objects(array.tolist()).reshape(array.shape)
    if _dtype(elem) is not None:
        return array.astype(np.float64)
    if elem.bits == 4:
        array = np.stack([array & 15, array >> 4], axis=-1).reshape(*array.shape[:-1], 2 * array.shape[-1])
    return numbers(elem, array.tolist() if elem.integer else array)
