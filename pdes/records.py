"""NamedTuples of arrays, passed to kernels as the address of one block of memory.

The compiler passes a tuple as all that is in it: five to eleven words for every array, five hundred
for the state of a network. Every kernel took these apart and put them together again, whatever it
used of them, and that was half of the time that a network took to compile. A class that is marked
(`pdes.jit.record`) is a block of memory instead, from which a kernel loads the arrays that it
names. A function that Python calls copies the block first: once its kernels are inlined, LLVM sees
the words as variables of that function, so the code that comes out is as fast.

In a kernel a record has attributes, and nothing else of a tuple. Classes that are not marked are
passed as ever.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

WORD, ADDRESS = ir.IntType(64), ir.IntType(8).as_pointer()
ITEM_SIZE = 24
"""The byte at which the size of an item is, in what the compiler keeps of an array."""


class RecordType(types.Type):  # type: ignore[misc]
    """The compiler's type of a record. Its name is short, because the name of a compiled function
    contains those of its arguments' types."""

    def __init__(self, made_of: Any, members: tuple[Any, ...]) -> None:
        self.members = dict(zip(made_of._fields, members, strict=True))
        described = repr((made_of.__module__, made_of.__qualname__, self.members))
        digest = hashlib.sha256(described.encode()).hexdigest()[:16]
        super().__init__(f"{made_of.__name__}<{digest}>")


def mark(made_of: type) -> None:
    """Have kernels be passed the address of such a NamedTuple."""

    @cache
    def known(*members: Any) -> RecordType:
        return RecordType(made_of, members)

    @typeof_impl.register(made_of)  # type: ignore[untyped-decorator]
    def typed(value: Any, context: Any) -> RecordType:
        return known(*(typeof_impl(each, context) for each in value))


@register_model(RecordType)
class RecordModel(models.OpaqueModel):  # type: ignore[misc]
    """An address of words that do not change. A record within a record is part of its block."""

    def __init__(self, manager: Any, record: RecordType) -> None:
        super().__init__(manager, record)
        self.offsets, self.words = {}, 0
        for name, member in record.members.items():
            self.offsets[name] = 8 * self.words
            model = manager.lookup(member)
            nested = isinstance(model, RecordModel)
            self.words += model.words if nested else _words(model.get_value_type())

    def block(self, builder: Any) -> Any:
        """Returns the address of a block of its own for the function that is being compiled."""
        block = cgutils.alloca_once(builder, ir.ArrayType(WORD, self.words))
        return builder.bitcast(block, ADDRESS)

    def from_argument(self, builder: Any, value: Any) -> Any:
        if "alwaysinline" in builder.function.attributes:
            return value
        mine = self.block(builder)
        cgutils.raw_memcpy(builder, mine, value, WORD(self.words), 8, align=8)
        return mine


def _words(kind: Any) -> int:
    """Returns in how many words of eight bytes there is room for a value."""
    if isinstance(kind, ir.LiteralStructType):
        return sum(map(_words, kind.elements))
    if isinstance(kind, ir.ArrayType):
        return kind.count * _words(kind.element)  # type: ignore[no-any-return]
    return -(-kind.width // 64) if isinstance(kind, ir.IntType) else 1


@infer_getattr
class RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        return record.members.get(name)


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def load_attribute(context: Any, builder: Any, record: Any, address: Any, name: str) -> Any:
    member = record.members[name]
    there = _place(context, builder, record, address, name)
    if isinstance(member, RecordType):
        return there
    value = builder.load(builder.bitcast(there, context.get_value_type(member).as_pointer()))
    return impl_ret_borrowed(context, builder, member, value)


def _place(context: Any, builder: Any, record: Any, address: Any, name: str) -> Any:
    offset = context.data_model_manager[record].offsets[name]
    return builder.gep(address, [WORD(offset)], inbounds=True)


@unbox(RecordType)  # type: ignore[untyped-decorator]
def unbox_record(record: Any, obj: Any, c: Any) -> Any:
    """Fill a block of the caller with what a tuple holds."""
    block = c.context.data_model_manager[record].block(c.builder)
    failed, other = (cgutils.alloca_once_value(c.builder, cgutils.false_bit) for _ in range(2))
    _fill(record, obj, c, block, failed, other)
    with c.builder.if_then(c.builder.load(other), likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"an array of {record} has another type")
        c.builder.store(cgutils.true_bit, failed)
    return NativeValue(block, is_error=c.builder.load(failed))


def _fill(record: Any, obj: Any, c: Any, block: Any, failed: Any, other: Any) -> None:
    builder = c.builder
    for index, (name, member) in enumerate(record.members.items()):
        there = _place(c.context, builder, record, block, name)
        item = c.pyapi.tuple_getitem(obj, index)
        if isinstance(member, RecordType):
            _fill(member, item, c, there, failed, other)
        elif isinstance(member, types.Array):
            kind = ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, ADDRESS])
            adapt = cgutils.get_or_insert_function(builder.module, kind, "numba_adapt_ndarray")
            error = builder.call(adapt, [item, there])
            _note(builder, other, cgutils.is_not_null(builder, error))
            size = builder.gep(there, [WORD(ITEM_SIZE)], inbounds=True)
            size = builder.load(builder.bitcast(size, WORD.as_pointer()))
            expected = c.context.get_abi_sizeof(c.context.get_data_type(member.dtype))
            _note(builder, other, builder.icmp_unsigned("!=", size, WORD(expected)))
        else:
            native = c.unbox(member, item)
            if native.cleanup is not None:
                raise NumbaTypeError(f"{name} of {record} is neither an array nor a number")
            builder.store(native.value, builder.bitcast(there, native.value.type.as_pointer()))
            _note(builder, failed, native.is_error)


def _note(builder: Any, flag: Any, error: Any) -> None:
    builder.store(builder.or_(builder.load(flag), error), flag)
