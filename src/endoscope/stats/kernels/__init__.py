"""The compiled part: numba functions over raw addresses. Imported only when there is nothing in the cache.

machine     addresses, bits, how a function is compiled
vectors     as many floats at a time as fit into a register: the innermost loops
state       running totals, and how they become statistics
fill        numbers of any type, from any place in memory, as a row of floats
piece       a few thousand numbers: totals and fine histogram in one pass
latest      units of a few rows, before they are added to those of all rows
units       the same numbers, unit by unit
rows        several rows at once, for totals and units
histogram   the fine histogram: read, search, clear
quantiles   numbers by rank
request     one tensor from beginning to end
copy        memory to memory
crc         checksums
entry       the one function that Python calls
build       all of it as machine code

Each imports only those above it. Functions stand below those that they call, because each is compiled where it is
defined.
"""
