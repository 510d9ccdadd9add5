"""Loads compiled kernels without the compiler: its library alone takes fifty megabytes and a tenth of a second.

The kernels are one relocatable ELF object for x86-64 in which every address is a whole 64-bit number, and which calls
nothing but a few functions of the C library. Anything else is `Unsupported`, and LLVM loads it instead.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from typing import NamedTuple

_X86_64, _RELOCATABLE = 62, 1
_ALLOCATED = 0x2
_ADDENDS, _SYMBOLS, _NO_BITS = 4, 2, 8  # types of sections
_ABSOLUTE_64 = 1  # the only kind of relocation that is known here
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_FROM_LIBC = ("memset", "memcpy", "memmove")
_NOT_NEEDED = (".eh_frame", ".note")  # exceptions do not pass through


class Unsupported(Exception):
    """The object file needs more than is known here."""


class Loaded(NamedTuple):
    """Where a function is; `memory` must live as long as it is called."""

    address: int
    memory: object


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def load(code: bytes, function: str) -> Loaded:
    """Put an object file into executable memory; raises Unsupported, and OSError where that is forbidden."""
    if not sys.platform.startswith("linux"):
        raise Unsupported(f"object files are loaded on Linux only, not on {sys.platform}")
    try:
        return _Loader(code).load(function)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as problem:
        raise Unsupported(f"it is no object file: {problem}") from problem


class _Loader:
    def __init__(self, code: bytes) -> None:
        if code[:6] != b"\x7fELF\x02\x01":
            raise Unsupported("it is no 64-bit ELF file")
        kind, machine = struct.unpack_from("<HH", code, 16)
        if (kind, machine) != (_RELOCATABLE, _X86_64):
            raise Unsupported(f"it is of kind {kind} for machine {machine}")
        self._code = code
        (table,) = struct.unpack_from("<Q", code, 40)
        size, count, names = struct.unpack_from("<HHH", code, 58)
        self._sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", code, table + n * size)) for n in range(count)]
        self._names = self._sections[names].offset
        self._libc = ctypes.CDLL(None, use_errno=True)

    def load(self, function: str) -> Loaded:
        places, size = self._places()
        memory = mmap.mmap(-1, size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in places.items():
            section = self._sections[number]
            if section.type != _NO_BITS:
                memory[place : place + section.size] = self._code[section.offset : section.offset + section.size]
        symbols = self._symbols({number: base + place for number, place in places.items()})
        for section in self._sections:
            if section.type == _ADDENDS and section.info in places:
                self._relocate(memory, places[section.info], section, symbols)
        if self._libc.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        found = [address for name, address in symbols if name == function and address]
        if not found:
            raise Unsupported(f"there is no function {function}")
        return Loaded(found[0], memory)

    def _places(self) -> tuple[dict[int, int], int]:
        """Where each section goes, and how much memory all of them take."""
        places, end = {}, 0
        for number, section in enumerate(self._sections):
            if section.flags & _ALLOCATED and not self._text(self._names + section.name).startswith(_NOT_NEEDED):
                end = -(-end // max(section.alignment, 1)) * max(section.alignment, 1)
                places[number] = end
                end += section.size
        return places, max(end, 1)

    def _symbols(self, bases: dict[int, int]) -> list[tuple[str, int]]:
        table = next(section for section in self._sections if section.type == _SYMBOLS)
        names = self._sections[table.link].offset
        found = []
        for offset in range(table.offset, table.offset + table.size, table.entry_size):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self._code, offset)
            text = self._text(names + name)
            if section == _UNDEFINED:
                found.append((text, self._from_libc(text) if text else 0))
            else:
                found.append((text, value + (0 if section == _ABSOLUTE else bases.get(section, 0))))
        return found

    def _from_libc(self, name: str) -> int:
        if name not in _FROM_LIBC:
            raise Unsupported(f"it calls {name}")
        return ctypes.cast(getattr(self._libc, name), ctypes.c_void_p).value or 0

    def _relocate(self, memory: mmap.mmap, base: int, section: _Section, symbols: list[tuple[str, int]]) -> None:
        for offset in range(section.offset, section.offset + section.size, 24):
            place, info, addend = struct.unpack_from("<QQq", self._code, offset)
            if info & 0xFFFFFFFF != _ABSOLUTE_64:
                raise Unsupported(f"it has a relocation of type {info & 0xFFFFFFFF}")
            struct.pack_into("<Q", memory, base + place, (symbols[info >> 32][1] + addend) & 0xFFFFFFFFFFFFFFFF)

    def _text(self, offset: int) -> str:
        return self._code[offset : self._code.index(b"\0", offset)].decode()
