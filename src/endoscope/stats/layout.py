"""What Python and the compiled code hand to each other: tables of 64-bit integers, by position.

Every field is one int64; addresses are in bytes, strides and offsets in elements. The compiled code trusts
what it is given, so only `plan.py` fills these tables.
"""

from __future__ import annotations

# One request: how the numbers lie, and what is wanted.
(
    NUMBER,  # of the request
    SAMPLE_ROW,  # first row in the table of samples, -1: samples are not wanted
    UNIT_AT,  # first entry in the tables of units
    DIMS_AT,  # where its dimensions begin in the table of dimensions
    # The same for all tensors of this shape and type, from here on.
    CODE,  # type of the elements, see below
    LOOKUP,  # address of the 256 float32 that 8-bit elements stand for
    IS_INTEGER,  # quantiles between two bins are rounded
    SAMPLES,  # number of samples; 1 for a tensor without a batch dimension
    SAMPLE_STRIDE,
    SAMPLE_SIZE,  # elements of one sample
    DIMS,  # 0: a sample is one dense piece of memory; else how many (size, stride) describe it
    UNIT_KIND,
    UNITS,
) = range(13)
REQUEST_FIELDS = 13

# How the units lie in a sample.
NO_UNITS = 0
COLUMNS = 1  # unit after unit, again and again: features come last
RUNS = 2  # all numbers of one unit, then all of the next: features come first

# Where everything is: one table for each thread.
(
    REQUESTS,
    DIMENSIONS,
    REQUEST_COUNT,
    ADDRESSES,  # int64, for each request where its first element is
    MINUS,  # int64, likewise of float32 numbers to subtract, or 0; only of requests that are dense, without units
    NUMBERS,  # float64, one column for each statistic in schema.stats.NUMBERS, then one for each quantile
    COUNTS,  # int64, one column for each statistic in schema.stats.COUNTS
    HISTOGRAMS,  # uint32, 257 for each request
    HISTOGRAM_ENDS,  # int64, for each request the first bin that is not empty, and the one behind the last
    SAMPLE_TABLE,  # float32, one column for each statistic in schema.stats.SAMPLE
    SAMPLE_TOTAL,
    UNIT_TABLE,  # float32, one column for each statistic in schema.stats.UNIT
    UNIT_TOTAL,
    # Scratch memory from here on.
    FINE,  # uint32: fine histogram of float32 numbers; all zero between requests
    FINE_WIDE,  # uint32: fine histogram of float64 numbers; all zero between requests
    COARSE,  # uint32: fine bins added up
    ROWS,  # numbers gathered from elsewhere or converted from another type
    DOUBLES,  # float32 numbers as float64
    UNIT_SUMS,
    UNIT_SQUARES,
    UNIT_LARGEST,
    UNIT_MISSING,
    UNIT_GROUPS,  # int64: for each CHUNK of columns, how many groups of eight rows are in UNIT_LATEST
    UNIT_LATEST,  # float32: three for each column, see kernels/latest.py
    STATE,  # running totals
    CANDIDATES,  # float64: numbers from which exact quantiles are taken
) = range(26)

# What stands in the place of the table of a job where nothing is measured.
COPY, FOLD = 0, 1

# Types of elements. Below FIRST_WIDE everything is exact in float32 and is measured as float32.
FLOAT32, BFLOAT16, FLOAT16, BYTE, INT16, UINT16, COMPLEX64, COMPLEX32 = range(8)
FLOAT64, INT32, UINT32, INT64, UINT64, COMPLEX128 = range(16, 22)
FIRST_WIDE = 16
PIECE = 2048  # elements looked at in one go: they stay in the first-level cache, and float32 sums stay precise
LONG_ROW = 512  # elements; shorter rows of units are joined to about this length
SHORT_RUN = 256  # elements; shorter runs are looked at several at a time
EXACT_UP_TO = 4096  # elements; quantiles of larger tensors are read from the fine histogram
ENOUGH = 32_768  # elements; of much larger tensors about as many are counted in the histogram: counting all is dear
WORTH = 8  # times as many: then counting some is worth the trouble
FEW = 4096  # elements; if so few of those were not zero, all are counted after all
MOST_COLUMNS = 4096  # units of a request of kind COLUMNS
ROWS_TOGETHER = 8
CHUNK = PIECE // ROWS_TOGETHER  # columns of such rows that are added up on their own
ZERO_COUNTERS = 16  # of each fine histogram: as many as numbers that are looked at together

# Sizes of the scratch memory, in elements.
SCRATCH = {
    FINE: ("uint32", (1 << 17) + ZERO_COUNTERS),
    FINE_WIDE: ("uint32", (1 << 20) + ZERO_COUNTERS),
    COARSE: ("uint32", 2 * 4096),
    ROWS: ("float64", ROWS_TOGETHER * MOST_COLUMNS),
    DOUBLES: ("float64", MOST_COLUMNS),
    UNIT_SUMS: ("float64", MOST_COLUMNS),
    UNIT_SQUARES: ("float64", MOST_COLUMNS),
    UNIT_LARGEST: ("float32", MOST_COLUMNS),
    UNIT_MISSING: ("float64", MOST_COLUMNS),
    UNIT_GROUPS: ("int64", MOST_COLUMNS // CHUNK),
    UNIT_LATEST: ("float32", 3 * MOST_COLUMNS),
    STATE: ("float64", 64),
    CANDIDATES: ("float64", 2 * EXACT_UP_TO),  # twice: numbers that are written meanwhile may be looked for behind
}
