/* Statistics of tensors on the CPU: of the whole, of each sample, of each unit over the batch, histogram, quantiles.

   measure ─► samples ─► pieces of about 2,048 numbers, which stay in the first-level cache
                           ├─ sweep: sums, extremes, zeros and the fine histogram, in one pass over float32 numbers
                           │    ├─ tiny numbers ─► once more, multiplied by a power of two
                           │    └─ NaN, Inf, huge numbers ─► once more, in float64 and one at a time
                           └─ units: sums of each column
   pieces ─► totals of the sample ─► totals of the tensor ─► STATISTICS: one line for each
   fine histogram ─► stored histogram, quantiles

   build.py compiles this file several times, with wider registers each time (VARIANT); kernels.py loads the result
   and takes the widest that the processor can do. Everything here trusts what kernels.py hands over. The structures up
   to `Job` and the constants above them stand in kernels.py and schema/stats.py as well (a test compares them). */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef VARIANT
#define VARIANT portable
#endif
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define EXPORT(name) __attribute__((visibility("default"))) JOIN(name, VARIANT)

#define HISTOGRAM_BINS 257
#define ZERO_BIN 128
#define BINS_PER_SIGN 128
#define LOWEST_EXPONENT -32
#define UNIT_CAP 4096
#define EXACT_UP_TO 4096 /* elements; quantiles of larger tensors are read from the fine histogram */
#define ENOUGH 32768     /* elements; of much larger tensors about as many are counted in the histogram */

#define PIECE 2048    /* elements looked at in one go */
#define LONG_ROW 512  /* elements; shorter rows of units are joined to about this length */
#define SHORT_RUN 256 /* elements; shorter runs of one unit are looked at several at a time */
#define WORTH 8       /* times ENOUGH: in tensors from this size on only some elements are counted */
#define FEW 4096      /* elements; if so few of those were not zero, all are counted after all */
#define ROWS 8        /* rows of units that are read together */
#define CHUNK (PIECE / ROWS) /* columns of such rows that are added up on their own */
#define BLOCK 256     /* numbers that are added up on their own: a long sum of equal numbers rounds in one direction */
#define RUN 64        /* numbers that are counted together, where not all are */
#define MOST_LEVELS 32
#define AHEAD 2048    /* bytes to fetch ahead: processors do so on their own, but stop at the end of every page */
#define LINE 64       /* bytes that come from memory at once */

/* Types of elements. Below FLOAT64 everything is exact in float32 and is measured as float32. */
enum { FLOAT32, BFLOAT16, FLOAT16, BYTE, INT16, UINT16, COMPLEX64, COMPLEX32,
       FLOAT64, INT32, UINT32, INT64, UINT64, COMPLEX128 };
/* How the units lie in a sample: unit after unit, again and again; or all numbers of one unit, then of the next. */
enum { NO_UNITS, COLUMNS, RUNS };

/* Which statistics are asked for: numbers of lines in STATISTICS and UNIT_STATISTICS, in the order of the tables. */
typedef struct {
    const int64_t *whole, *sample, *unit;
    int64_t wholes, samples, units;
    const double *levels; /* of the quantiles; they are numbered on behind STATISTICS */
    int64_t level_count;
} Columns;

/* How a tensor is read, and where its answers go. Strides and sizes are in elements. */
typedef struct {
    int64_t first_sample, first_unit; /* rows of the tables below; first_sample is -1 if samples are not wanted */
    int64_t code;
    const float *lookup; /* what the 256 values of 8-bit elements stand for */
    int64_t is_integer;  /* quantiles between two bins are rounded */
    int64_t samples, sample_stride, sample_size; /* one sample if there is no batch dimension */
    const int64_t *dims; /* size, stride, size, stride … of a sample; the last one is read first */
    int64_t dim_count;   /* 0: a sample is one dense piece of memory */
    int64_t unit_kind, units;
} Source;

typedef struct Scratch Scratch;

typedef struct {
    const Source *sources;
    const char *const *addresses; /* of the first element of each tensor */
    const float *const *minus;    /* float32 numbers to subtract, or NULL; only from dense float32 without units */
    const Columns *columns;
    int64_t requests;
    double *whole; /* as many rows as `requests`, column by column; counts are int64 */
    uint32_t *histograms;
    int64_t *histogram_ends; /* of each histogram the first bin in use, and the one behind the last */
    float *samples;
    int64_t sample_rows;
    float *units;
    int64_t unit_rows;
    Scratch *scratch;
} Job;

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/* What is known about the finite numbers of a sample or a tensor, and how many are not finite. All sums are of numbers
   times a scale, nearly always 1; `sum` and `squares` are of distances from the first mean, the origin, so that a small
   spread around a large mean survives. */
typedef struct {
    double finite, sum, squares, absolute, low, high, zeros, nans, infs, neg_infs, origin;
} Totals;

/* One line for each statistic: its name in schema/stats.py and what it is. A NUMBER is NaN if no number is finite.
   `mean` and `around`, the sum of squares around it, are scaled like the totals `t`; `back` undoes that. `each` is
   1 ÷ how many numbers are finite. */
#define STATISTICS(COUNT, NUMBER)                               \
    COUNT(count, t->finite + t->nans + t->infs)                 \
    COUNT(zeros, t->zeros)                                      \
    COUNT(nans, t->nans)                                        \
    COUNT(infs, t->infs)                                        \
    COUNT(neg_infs, t->neg_infs)                                \
    NUMBER(mean, lesser(greater(mean * back, t->low), t->high)) \
    NUMBER(std, sqrt(around * each) * back)                     \
    NUMBER(abs_mean, t->absolute * each * back)                 \
    NUMBER(min, t->low)                                         \
    NUMBER(max, t->high)                                        \
    NUMBER(abs_max, greater(-t->low, t->high))                  \
    NUMBER(norm, sqrt(around + t->finite * mean * mean) * back)

/* The same of a unit, from the mean and the variance of its finite numbers and the largest magnitude. */
#define UNIT_STATISTICS(NUMBER)     \
    NUMBER(mean, mean * back)       \
    NUMBER(std, sqrt(variance) * back) \
    NUMBER(abs_max, largest)

#define NUMBERED(name, value) STATISTIC_##name,
enum { STATISTICS(NUMBERED, NUMBERED) STATISTIC_TOTAL };
#define NAMED(name, value) #name,
static const char *const NAMES[] = {STATISTICS(NAMED, NAMED) NULL};
static const char *const UNIT_NAMES[] = {UNIT_STATISTICS(NAMED) NULL};
#define IS_COUNT(name, value) true,
#define IS_NUMBER(name, value) false,
static const bool COUNTED[STATISTIC_TOTAL + MOST_LEVELS] = {STATISTICS(IS_COUNT, IS_NUMBER)};

static inline double lesser(double a, double b) { return a < b ? a : b; }
static inline double greater(double a, double b) { return a > b ? a : b; }
static inline int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

static const Totals NOTHING = {.low = INFINITY, .high = -INFINITY};

/* What else is known about the finite numbers of some totals, NaN if there are none. */
typedef struct {
    double each, mean, around; /* 1 ÷ how many; the sum of squares is around the mean */
} Centre;

static inline Centre centre_of(const Totals *t) {
    double each = 1.0 / t->finite, offset = t->sum * each;
    return (Centre){each, t->origin + offset, greater(t->squares - t->finite * offset * offset, 0.0)};
}

/* All statistics of some totals; `back` undoes the scale. */
static inline void describe(const Totals *t, Centre centre, double scale, double back, double *values) {
    bool any = t->finite > 0.0, equal = t->low == t->high; /* equal numbers have no spread, whatever rounding says */
    double each = centre.each, mean = equal ? t->low * scale : centre.mean, around = equal ? 0.0 : centre.around;
#define WRITE_COUNT(name, value) values[STATISTIC_##name] = value;
#define WRITE_NUMBER(name, value) values[STATISTIC_##name] = any ? value : NAN;
    STATISTICS(WRITE_COUNT, WRITE_NUMBER)
}

/* Add what is known about some finite numbers. */
static void add_numbers(Totals *t, double finite, double mean, double around, double absolute, double low, double high,
                        double zeros) {
    if (t->finite == 0.0) t->origin = mean;
    double offset = mean - t->origin;
    t->finite += finite;
    t->sum += finite * offset;
    t->squares += around + finite * offset * offset;
    t->absolute += absolute;
    t->zeros += zeros;
    t->low = lesser(low, t->low);
    t->high = greater(high, t->high);
}

static void add_odd(Totals *t, double nans, double infs, double neg_infs) {
    t->nans += nans, t->infs += infs, t->neg_infs += neg_infs;
}

/* ---- One tensor at work ---------------------------------------------------------------------------------------- */

/* Fine histograms count numbers by key: the upper bits of a number, down to 8 bits of mantissa. Keys of negative
   numbers come behind those of positive ones, counters for zeros behind both. */
#define FINE_SHIFT 15
#define SIGN_KEYS (1 << 16)
#define WIDE_SHIFT 44
#define WIDE_SIGN_KEYS (1 << 19)
#define ZERO_COUNTERS 16
#define PER_COARSE 128   /* fine bins in a coarse one, which is half an octave wide */
#define MOST_COARSE 4096 /* of each sign */

struct Scratch {
    uint32_t fine[2 * SIGN_KEYS + ZERO_COUNTERS];           /* of float32 numbers; all zero between requests */
    uint32_t fine_wide[2 * WIDE_SIGN_KEYS + ZERO_COUNTERS]; /* of float64 numbers; likewise */
    uint32_t coarse[2 * MOST_COARSE];                       /* fine bins added up: positive, then negative */
    double rows[ROWS * UNIT_CAP];                           /* numbers from elsewhere or of another type */
    double doubles[UNIT_CAP];
    double unit_sums[UNIT_CAP], unit_squares[UNIT_CAP], unit_missing[UNIT_CAP];
    float unit_largest[UNIT_CAP];
    float means[CHUNK], arounds[CHUNK], peaks[CHUNK]; /* of ROWS numbers of each column */
    double candidates[2 * EXACT_UP_TO]; /* twice: a tensor may be written to while it is read */
};

typedef struct {
    const Job *job;
    const Source *source;
    Scratch *scratch;
    int64_t number, count; /* of the request, and of its elements */
    bool wide;
    double scale, back; /* what numbers are multiplied by before they are added up, and what undoes that */
    Totals sample, whole;
    float shift;        /* the mean of the piece before */
    bool many_zeros;    /* were there many in the piece before? Then they are counted apart. */
    int64_t fine_zeros; /* zeros that were counted in the fine bins themselves */
    int64_t every;      /* one number of so many, a power of two, is counted in the histogram */
    int64_t seen;       /* numbers so far, if not all are counted */
    int64_t counted;    /* numbers in the histogram, if not all are counted */
} Work;

/* Write the statistics of the current sample, and add it to the tensor. */
static void close_sample(Work *w, int64_t sample) {
    Totals *t = &w->sample;
    double values[STATISTIC_TOTAL];
    Centre centre = centre_of(t);
    if (t->finite > 0.0)
        add_numbers(&w->whole, t->finite, centre.mean, centre.around, t->absolute, t->low, t->high, t->zeros);
    add_odd(&w->whole, t->nans, t->infs, t->neg_infs);
    if (w->source->first_sample >= 0) {
        const Columns *columns = w->job->columns;
        float *row = w->job->samples + w->source->first_sample + sample;
        describe(t, centre, w->scale, w->back, values);
        for (int64_t i = 0; i < columns->samples; i++) row[i * w->job->sample_rows] = (float)values[columns->sample[i]];
    }
    *t = NOTHING;
}

/* ---- Many numbers at a time ------------------------------------------------------------------------------------ */

/* Compilers vectorise simple loops by themselves, but none that also counts into a histogram. */
#if defined(__AVX512F__)
#define LANES 16
#else
#define LANES 8
#endif
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef float FloatsAnywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
static const Ints LANE = {0, 1, 2, 3, 4, 5, 6, 7,
#if LANES == 16
                          8, 9, 10, 11, 12, 13, 14, 15
#endif
};
typedef double Doubles __attribute__((vector_size(64)));
typedef double DoublesAnywhere __attribute__((vector_size(64), aligned(8), may_alias));

static inline Floats pick(Ints mask, Floats a, Floats b) { return (Floats)(((Ints)a & mask) | ((Ints)b & ~mask)); }

/* Whoever asks for a minimum looks at it only after having made sure that there was no NaN. */
#if defined(__AVX512F__)
static inline Floats smaller(Floats a, Floats b) { return (Floats)_mm512_min_ps((__m512)a, (__m512)b); }
static inline Floats larger(Floats a, Floats b) { return (Floats)_mm512_max_ps((__m512)a, (__m512)b); }
static inline Floats add_square(Floats t, Floats x) { return (Floats)_mm512_fmadd_ps((__m512)x, (__m512)x, (__m512)t); }
static inline bool any_zero(Floats x) { return _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_EQ_OQ) != 0; }
static inline bool any_from(Floats x, float limit) {
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(limit), _CMP_GE_OQ) != 0;
}
static inline Floats load_some(const float *x, Ints inside) {
    return (Floats)_mm512_maskz_loadu_ps(_mm512_movepi32_mask((__m512i)inside), x);
}
#elif defined(__AVX2__)
static inline Floats smaller(Floats a, Floats b) { return (Floats)_mm256_min_ps((__m256)a, (__m256)b); }
static inline Floats larger(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }
static inline Floats add_square(Floats t, Floats x) { return (Floats)_mm256_fmadd_ps((__m256)x, (__m256)x, (__m256)t); }
static inline bool any_zero(Floats x) { return _mm256_movemask_ps((__m256)(x == 0.0f)) != 0; }
static inline bool any_from(Floats x, float limit) { return _mm256_movemask_ps((__m256)(x >= limit)) != 0; }
static inline Floats load_some(const float *x, Ints inside) { return (Floats)_mm256_maskload_ps(x, (__m256i)inside); }
#else
static inline Floats smaller(Floats a, Floats b) { return pick(a < b, a, b); }
static inline Floats larger(Floats a, Floats b) { return pick(a > b, a, b); }
static inline Floats add_square(Floats t, Floats x) { return t + x * x; }
static inline bool any(Ints mask) {
    uint64_t pairs[LANES / 2];
    memcpy(pairs, &mask, sizeof pairs);
    return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) != 0;
}
static inline bool any_zero(Floats x) { return any(x == 0.0f); }
static inline bool any_from(Floats x, float limit) { return any(x >= limit); }
static inline Floats load_some(const float *x, Ints inside) {
    Floats some = {0};
    for (int lane = 0; lane < LANES; lane++)
        if (inside[lane]) some[lane] = x[lane];
    return some;
}
#endif

static inline Floats all(float number) { return (Floats){0} + number; }
static inline Floats load(const float *x) { return *(const FloatsAnywhere *)x; }
static inline void store(float *x, Floats values) { *(FloatsAnywhere *)x = values; }
static inline Floats magnitude(Floats x) { return (Floats)((Ints)x & 0x7FFFFFFF); }
static inline void prefetch(const void *x, int64_t offset) { __builtin_prefetch((const char *)x + offset, 0, 3); }

/* Halves are put together until one number is left. */
#if defined(__AVX512F__)
static inline float total(Floats x) { return _mm512_reduce_add_ps((__m512)x); }
static inline float lowest(Floats x) { return _mm512_reduce_min_ps((__m512)x); }
static inline float highest(Floats x) { return _mm512_reduce_max_ps((__m512)x); }
static inline int32_t total_count(Ints x) { return _mm512_reduce_add_epi32((__m512i)x); }
#else
#define FOLD(type, values, combined)                   \
    type part[LANES];                                  \
    memcpy(part, &(values), sizeof part);              \
    for (int half = LANES / 2; half > 0; half /= 2)    \
        for (int i = 0; i < half; i++) {               \
            type a = part[i], b = part[i + half];      \
            part[i] = combined;                        \
        }                                              \
    return part[0];
static inline float total(Floats values) { FOLD(float, values, a + b) }
static inline float lowest(Floats values) { FOLD(float, values, a < b ? a : b) }
static inline float highest(Floats values) { FOLD(float, values, a > b ? a : b) }
static inline int32_t total_count(Ints values) { FOLD(int32_t, values, a + b) }
#endif

static inline uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
static inline float float_of(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint64_t wide_bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
static inline double double_of(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }

/* ---- Numbers of any type, from any place ----------------------------------------------------------------------- */

/* A dense sample of float32 or float64 numbers is read where it is. All others are copied first. */
static const int64_t ITEM_SIZE[] = {4, 2, 2, 1, 2, 2, 8, 4, 8, 4, 4, 8, 8, 16};

/* The magnitude of a complex number, without overflow on the way; infinite as soon as one part is. */
static double length_of(double real, double imaginary) {
    double a = fabs(real), b = fabs(imaginary);
    if (a == INFINITY || b == INFINITY) return INFINITY;
    double large = a < b ? b : a, small = a < b ? a : b;
    if (large == 0.0 || a != a || b != b) return a + b;
    return large * sqrt(1.0 + (small / large) * (small / large));
}

/* A 16-bit float: exponent and mantissa are moved into place, then a multiplication corrects the exponent, which also
   makes subnormal numbers right. */
static inline float from_half(uint16_t half) {
    uint32_t moved = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t finite = bits_of(float_of(moved) * 0x1p112f);
    return float_of((moved >= 0x0F800000 ? moved | 0x7F800000 : finite) | sign);
}

#define EACH_APART(type, target, value, stride)          \
    for (int64_t i = 0; i < count; i++) {                \
        const type *x = (const type *)source + i * (stride); \
        target[i] = value;                               \
    }
#define EACH(type, target, value)                        \
    if (stride == 1)                                     \
        EACH_APART(type, target, value, 1)               \
    else                                                 \
        EACH_APART(type, target, value, stride)          \
    break;

/* Copy elements that are a stride apart, as float32 or float64, next to each other. */
static void convert(const Source *s, const char *source, int64_t stride, int64_t count, void *target) {
    float *floats = target;
    double *doubles = target;
    if (s->code == COMPLEX64 || s->code == COMPLEX32 || s->code == COMPLEX128) stride *= 2;
    switch (s->code) {
    case FLOAT32: EACH(float, floats, x[0])
    case BFLOAT16: EACH(uint16_t, floats, float_of((uint32_t)x[0] << 16))
    case FLOAT16: EACH(uint16_t, floats, from_half(x[0]))
    case BYTE: EACH(uint8_t, floats, s->lookup[x[0]])
    case INT16: EACH(int16_t, floats, x[0])
    case UINT16: EACH(uint16_t, floats, x[0])
    case COMPLEX64: EACH(float, floats, (float)length_of(x[0], x[1]))
    case COMPLEX32: EACH(uint16_t, floats, (float)length_of(from_half(x[0]), from_half(x[1])))
    case FLOAT64: EACH(double, doubles, x[0])
    case INT32: EACH(int32_t, doubles, x[0])
    case UINT32: EACH(uint32_t, doubles, x[0])
    case INT64: EACH(int64_t, doubles, (double)x[0])
    case UINT64: EACH(uint64_t, doubles, (double)x[0])
    case COMPLEX128: EACH(double, doubles, length_of(x[0], x[1]))
    }
}

/* Copy some elements of a sample, in the order of its dimensions. */
static void gather(const Work *w, const char *source, int64_t start, int64_t length, char *target) {
    const Source *s = w->source;
    const int64_t *inner = s->dims + 2 * (s->dim_count - 1);
    for (int64_t done = 0, count; done < length; done += count) {
        int64_t first = (start + done) % inner[0], outer = (start + done) / inner[0], offset = first * inner[1];
        for (const int64_t *dim = inner - 2; dim >= s->dims; dim -= 2) {
            offset += outer % dim[0] * dim[1];
            outer /= dim[0];
        }
        count = fewer(inner[0] - first, length - done);
        convert(s, source + ITEM_SIZE[s->code] * offset, inner[1], count, target + (w->wide ? 8 : 4) * done);
    }
}

static void subtract(const float *from, const float *other, int64_t count, float *target) {
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t end = fewer(start + BLOCK, count);
        for (int64_t line = 0; line < 4 * BLOCK; line += LINE) {
            prefetch(from + start, line + AHEAD);
            prefetch(other + start, line + AHEAD);
        }
        for (int64_t i = start; i < end; i++) target[i] = from[i] - other[i];
    }
}

/* Where some numbers of a sample are, as float32 or float64; they are copied to `room` only if they must be. */
static const void *numbers_at(const Work *w, int64_t sample, int64_t start, int64_t length, void *room) {
    const Source *s = w->source;
    const char *source = w->job->addresses[w->number] + ITEM_SIZE[s->code] * sample * s->sample_stride;
    if (s->dim_count > 0) {
        gather(w, source, start, length, room);
        return room;
    }
    source += start * ITEM_SIZE[s->code];
    const float *minus = w->job->minus[w->number];
    if (minus != NULL) {
        subtract((const float *)source, minus + start, length, room);
        return room;
    }
    if (s->code == FLOAT32 || s->code == FLOAT64) return source;
    convert(s, source, 1, length, room);
    return room;
}

/* All numbers of a tensor, one piece after the other: `numbers` and `count` in each round. */
#define EACH_PIECE(w, type, numbers, count)                                                          \
    for (int64_t sample_ = 0; sample_ < (w)->source->samples; sample_++)                             \
        for (int64_t start_ = 0, count; start_ < (w)->source->sample_size; start_ += PIECE)          \
            for (const type *numbers = (count = fewer(PIECE, (w)->source->sample_size - start_),     \
                                        numbers_at(w, sample_, start_, count, (w)->scratch->rows)); \
                 numbers != NULL; numbers = NULL)

/* ---- One piece of float32 numbers ------------------------------------------------------------------------------ */

/* Within these bounds squares neither overflow nor underflow in float32. */
#define LARGE 0x1p90f
#define TINY 0x1p-48

/* What a piece is like: its units are added up in float32, in float64, or one number at a time. */
enum { ORDINARY, SMALL, ODD };

typedef struct {
    int kind;
    double finite, mean, around, largest;
} Found;

/* What one pass finds: `sum` and `squares` are of distances from a shift. */
typedef struct {
    float sum, squares, magnitudes, low, high;
    int32_t zeros;
} Sweep;

/* Count floats into their fine bins: two at a time from one load, which is fewer instructions. */
static inline void tally(uint32_t *table, const float *x) {
    for (int pair = 0; pair < LANES / 2; pair++) {
        uint64_t both;
        memcpy(&both, x + 2 * pair, 8);
        table[(uint32_t)both >> FINE_SHIFT]++;
        table[both >> (32 + FINE_SHIFT)]++;
    }
}

/* The same, but each lane has its own counter for zeros: after a ReLU every second number is zero, and each addition to
   one counter would wait for the one before. */
static inline void tally_zeros_apart(uint32_t *table, Floats numbers) {
    Ints keys = ((Ints)numbers >> FINE_SHIFT) & (2 * SIGN_KEYS - 1), is_zero = numbers == 0.0f;
    uint64_t pairs[LANES / 2];
    keys = ((LANE + 2 * SIGN_KEYS) & is_zero) | (keys & ~is_zero);
    memcpy(pairs, &keys, sizeof pairs);
    for (int pair = 0; pair < LANES / 2; pair++) {
        table[(uint32_t)pairs[pair]]++;
        table[pairs[pair] >> 32]++;
    }
}

typedef struct {
    Floats sums, squares, magnitudes, low, high;
} Sums;

static inline void add_lanes(Sums *s, Floats numbers, Floats shifted) {
    s->sums += shifted;
    s->squares = add_square(s->squares, shifted);
    s->magnitudes += magnitude(numbers);
    s->low = smaller(s->low, numbers);
    s->high = larger(s->high, numbers);
}

enum { UNCOUNTED, TOGETHER, APART }; /* whether numbers are counted in the histogram, and zeros apart from others */

/* One pass; two registers at a time, because additions take their time. Made once for each of the three ways. */
static inline __attribute__((always_inline)) Sweep sweep(const float *x, int64_t length, float shift, uint32_t *table,
                                                         const int way) {
    const Sums nothing = {.low = all(INFINITY), .high = all(-INFINITY)};
    Sums whole = nothing, a = nothing, b = nothing;
    Ints zeros = {0};
    int64_t i = 0, last = length - length % (2 * LANES);
    while (i < last) {
        int64_t start = i, end = fewer(start + BLOCK, last);
        Floats nearest = nothing.low;
        a.sums = a.squares = a.magnitudes = b.sums = b.squares = b.magnitudes = nothing.sums;
        for (; i < end; i += 2 * LANES) {
            prefetch(x + i, AHEAD);
            if (8 * LANES > LINE) prefetch(x + i, AHEAD + LINE);
            Floats numbers = load(x + i), others = load(x + i + LANES);
            add_lanes(&a, numbers, numbers - shift);
            add_lanes(&b, others, others - shift);
            if (way == APART) {
                zeros -= (numbers == 0.0f) + (others == 0.0f);
                tally_zeros_apart(table, numbers);
                tally_zeros_apart(table, others);
            } else {
                nearest = smaller(nearest, smaller(magnitude(numbers), magnitude(others)));
            }
            if (way == TOGETHER) {
                tally(table, x + i);
                tally(table, x + i + LANES);
            }
        }
        if (way != APART && any_zero(nearest)) /* most are not, and counting takes long */
            for (int64_t again = start; again < end; again += LANES) zeros -= load(x + again) == 0.0f;
        whole.sums += a.sums + b.sums, whole.squares += a.squares + b.squares;
        whole.magnitudes += a.magnitudes + b.magnitudes;
    }
    whole.low = smaller(a.low, b.low), whole.high = larger(a.high, b.high);
    for (; i < length; i += LANES) {
        Ints inside = LANE < (int32_t)(length - i);
        Floats numbers = load_some(x + i, inside);
        zeros -= (numbers == 0.0f) & inside;
        Floats low = smaller(whole.low, numbers), high = larger(whole.high, numbers);
        low = pick(inside, low, whole.low), high = pick(inside, high, whole.high);
        add_lanes(&whole, numbers, (Floats)((Ints)(numbers - shift) & inside));
        whole.low = low, whole.high = high;
    }
    for (i = last; way != UNCOUNTED && i < length; i++)
        table[way == APART && x[i] == 0.0f ? 2 * SIGN_KEYS : bits_of(x[i]) >> FINE_SHIFT]++;
    return (Sweep){total(whole.sums), total(whole.squares), total(whole.magnitudes), lowest(whole.low),
                   highest(whole.high), total_count(zeros)};
}

static Sweep sweep_uncounted(const float *x, int64_t length, float shift) {
    return sweep(x, length, shift, NULL, UNCOUNTED);
}

typedef struct {
    float sum, squares;
} Around;

/* Of the distances from a shift. */
static inline __attribute__((always_inline)) Around sums_around(const float *x, int64_t length, float shift) {
    Floats s = {0}, q = {0};
    int64_t i = 0;
    for (; i + LANES <= length; i += LANES) {
        Floats distances = load(x + i) - shift;
        s += distances;
        q = add_square(q, distances);
    }
    Ints inside = LANE < (int32_t)(length - i);
    Floats distances = (Floats)((Ints)(load_some(x + i, inside) - shift) & inside);
    return (Around){total(s + distances), total(add_square(q, distances))};
}

/* Count one run of numbers of `every`; `first` is the place of these numbers in the tensor. Not the same run of each
   group: rows have a length, and the same columns would be counted again and again. */
static void count_some(Work *w, const float *x, int64_t length) {
    uint32_t *table = w->scratch->fine;
    int64_t first = w->seen, group_size = RUN * w->every;
    Ints zeros = {0};
    for (int64_t group = first & -group_size; group < first + length; group += group_size) {
        uint64_t mixed = (uint64_t)(group + 1) * 0x9E3779B97F4A7C15u;
        int64_t start = group + RUN * ((int64_t)(mixed >> 40) & (w->every - 1)) - first;
        int64_t end = fewer(start + RUN, length), i = start > 0 ? start : 0;
        if (i < end) w->counted += end - i;
        for (; i + LANES <= end; i += LANES) {
            zeros -= load(x + i) == 0.0f;
            tally(table, x + i);
        }
        for (; i < end; i++) {
            w->fine_zeros += x[i] == 0.0f;
            table[bits_of(x[i]) >> FINE_SHIFT]++;
        }
    }
    w->fine_zeros += total_count(zeros);
    w->seen += length;
}

/* Add float64 numbers of any size and kind to totals. */
static Found look_carefully(Totals *t, const double *x, int64_t length, double scale) {
    double finite = 0, zeros = 0, nans = 0, infs = 0, neg_infs = 0;
    double sum = 0.0, magnitudes = 0.0, low = INFINITY, high = -INFINITY, around = 0.0;
    for (int64_t i = 0; i < length; i++) {
        if (fabs(x[i]) < INFINITY) {
            finite++;
            zeros += x[i] == 0.0;
            sum += x[i] * scale;
            magnitudes += fabs(x[i]) * scale;
            low = lesser(low, x[i]);
            high = greater(high, x[i]);
        } else if (x[i] != x[i]) {
            nans++;
        } else {
            infs++;
            neg_infs += x[i] < 0.0;
        }
    }
    add_odd(t, nans, infs, neg_infs);
    if (finite == 0) return (Found){.kind = ODD};
    double mean = low < high ? sum / finite : low * scale;
    for (int64_t i = 0; i < length; i++)
        if (fabs(x[i]) < INFINITY) around += (x[i] * scale - mean) * (x[i] * scale - mean);
    add_numbers(t, finite, mean, around, magnitudes, low, high, zeros);
    return (Found){ODD, finite, mean, around, greater(high, -low)};
}

static const double *as_doubles(Work *w, const float *x, int64_t length) {
    for (int64_t i = 0; i < length; i++) w->scratch->doubles[i] = x[i];
    return w->scratch->doubles;
}

/* Mean of some rows and squares around it, from the sum and the squares around a shift. If the shift was far off,
   little is left of the precision, and they are added up once more. */
static void centre_piece(const float *x, int64_t rows, int64_t stride, int64_t length, float shift, double sum,
                         double squares, double *mean, double *around) {
    double count = (double)(rows * length), offset = sum / count;
    *around = squares - count * offset * offset;
    if (count * offset * offset > 4.0 * *around) {
        double once_more = 0.0;
        for (int64_t row = 0; row < rows; row++) once_more += sums_around(x + row * stride, length, 0.0f).sum;
        shift = (float)(once_more / count), sum = squares = 0.0;
        for (int64_t row = 0; row < rows; row++) {
            Around found = sums_around(x + row * stride, length, shift);
            sum += found.sum, squares += found.squares;
        }
        offset = sum / count;
        *around = squares - count * offset * offset;
    }
    *mean = shift + offset;
}

/* The same and the sum of magnitudes of tiny numbers: they are multiplied by a power of two first. */
static void magnify_piece(Work *w, const float *x, int64_t length, double largest, double *mean, double *around,
                          double *magnitudes) {
    float factor = largest >= 0x1p-108 ? 0x1p60f : 0x1p120f, *scaled = (float *)w->scratch->doubles;
    for (int64_t i = 0; i < length; i++) scaled[i] = x[i] * factor;
    Sweep found = sweep_uncounted(scaled, length, 0.0f);
    centre_piece(scaled, 1, 0, length, 0.0f, found.sum, found.squares, mean, around);
    *mean /= factor, *around /= (double)factor * factor, *magnitudes = found.magnitudes / (double)factor;
}

/* Add what a pass over some rows found to the totals. Only single rows can have odd or tiny numbers. */
static Found conclude(Work *w, const float *x, int64_t rows, int64_t stride, int64_t length, const Sweep *found) {
    if (rows == 1 && !(found->magnitudes < LARGE && found->squares < LARGE)) /* a NaN makes both comparisons false */
        return look_carefully(&w->sample, as_doubles(w, x, length), length, 1.0);
    double largest = greater(found->high, -found->low), count = (double)(rows * length);
    double mean = found->low, around = 0.0, magnitudes = found->magnitudes;
    bool tiny = rows == 1 && largest < TINY;
    if (found->low == found->high)
        magnitudes = fabs(mean) * count;
    else if (tiny)
        magnify_piece(w, x, length, largest, &mean, &around, &magnitudes);
    else
        centre_piece(x, rows, stride, length, w->shift, found->sum, found->squares, &mean, &around);
    add_numbers(&w->sample, count, mean, greater(around, 0.0), magnitudes, found->low, found->high, found->zeros);
    w->shift = (float)mean;
    return (Found){tiny && largest > 0.0 ? SMALL : ORDINARY, count, mean, around, largest};
}

static Found look_uncounted(Work *w, const float *x, int64_t length) {
    Sweep found = sweep_uncounted(x, length, w->shift);
    return conclude(w, x, 1, 0, length, &found);
}

/* Add float32 numbers to the totals and to the fine histogram. */
static Found look(Work *w, const float *x, int64_t length) {
    if (w->every > 1) {
        Found result = look_uncounted(w, x, length);
        count_some(w, x, length); /* afterwards: then the numbers are in the cache */
        return result;
    }
    float shift = w->shift;
    uint32_t *table = w->scratch->fine;
    Sweep found = w->many_zeros ? sweep(x, length, shift, table, APART) : sweep(x, length, shift, table, TOGETHER);
    if (!w->many_zeros) w->fine_zeros += found.zeros;
    w->many_zeros = 16 * (int64_t)found.zeros > length;
    return conclude(w, x, 1, 0, length, &found);
}

/* ---- One piece of float64 numbers ------------------------------------------------------------------------------ */

/* Add a number, and what is lost by that to the error. */
#define ADD_EXACTLY(type, total, error, number)                          \
    do {                                                                 \
        type more_ = (number), after_ = (total) + more_, added_ = after_ - (total); \
        (error) += ((total) - (after_ - added_)) + (more_ - added_);     \
        (total) = after_;                                                \
    } while (0)

/* The sum as if it were rounded only once: large numbers of both signs may leave a small one. */
static double exact_sum(const double *x, int64_t length, double scale) {
    Doubles sums = {0}, errors = {0};
    double sum = 0.0, error = 0.0;
    int64_t whole = length - length % 8;
    for (int64_t i = 0; i < whole; i += 8)
        ADD_EXACTLY(Doubles, sums, errors, *(const DoublesAnywhere *)(x + i) * scale);
    for (int lane = 0; lane < 8; lane++) {
        ADD_EXACTLY(double, sum, error, sums[lane]);
        error += errors[lane];
    }
    for (int64_t i = whole; i < length; i++) ADD_EXACTLY(double, sum, error, x[i] * scale);
    return sum + error;
}

/* Add float64 numbers to the totals and to the fine histogram. */
static Found look_at_doubles(Work *w, const double *x, int64_t length) {
    uint32_t *table = w->scratch->fine_wide;
    double scale = w->scale, count = (double)length;
    double magnitudes = 0.0, low = INFINITY, high = -INFINITY, zeros = 0.0, around = 0.0;
    for (int64_t i = 0; i < length; i++) table[x[i] != 0.0 ? wide_bits_of(x[i]) >> WIDE_SHIFT : 2 * WIDE_SIGN_KEYS]++;
#pragma omp simd reduction(+ : magnitudes, zeros) reduction(min : low) reduction(max : high)
    for (int64_t i = 0; i < length; i++) {
        magnitudes += fabs(x[i]) * scale;
        zeros += x[i] == 0.0;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (!(magnitudes < INFINITY)) return look_carefully(&w->sample, x, length, scale);
    double mean = low < high ? exact_sum(x, length, scale) / count : low * scale;
#pragma omp simd reduction(+ : around)
    for (int64_t i = 0; i < length; i++) around += (x[i] * scale - mean) * (x[i] * scale - mean);
    if (low == high) around = 0.0;
    add_numbers(&w->sample, count, mean, around, magnitudes, low, high, zeros);
    return (Found){ORDINARY, count, mean, around, greater(high, -low)};
}

static Found look_at(Work *w, const void *x, int64_t length) {
    return w->wide ? look_at_doubles(w, x, length) : look(w, x, length);
}

/* ---- Units ----------------------------------------------------------------------------------------------------- */

/* Of ROWS magnitudes of a column, added up: within these bounds squares are precise in float32. */
#define COLUMN_TOO_LARGE 0x1p45f
#define COLUMN_TOO_SMALL 0x1p-48f

/* Below this part of the squared mean a variance is rounding: float32 numbers cannot differ by less. */
#define ROUNDING 1e-14

static void open_units(Scratch *s, int64_t columns) {
    memset(s->unit_sums, 0, (size_t)columns * sizeof(double));
    memset(s->unit_squares, 0, (size_t)columns * sizeof(double));
    memset(s->unit_missing, 0, (size_t)columns * sizeof(double));
    memset(s->unit_largest, 0, (size_t)columns * sizeof(float));
}

/* Add ROWS numbers of each of some columns, of which mean, squares around it and the largest magnitude are known. */
static void add_columns(Scratch *s, int64_t first, int64_t end) {
    double *restrict sums = s->unit_sums + first, *restrict squares = s->unit_squares + first;
    float *restrict largest = s->unit_largest + first;
    const float *restrict means = s->means, *restrict arounds = s->arounds, *restrict peaks = s->peaks;
    for (int64_t i = 0; i < end - first; i++) {
        double mean = means[i], sum = ROWS * mean;
        sums[i] += sum;
        squares[i] += arounds[i] + sum * mean;
    }
    for (int64_t i = 0; i < end - first; i++) largest[i] = peaks[i] > largest[i] ? peaks[i] : largest[i];
}

#define EIGHT(combined, x) \
    combined(combined(combined(x[0], x[1]), combined(x[2], x[3])), combined(combined(x[4], x[5]), combined(x[6], x[7])))
static inline Floats plus(Floats a, Floats b) { return a + b; }

/* One pass over columns `first` to `end` of ROWS rows, for their units and, if `found` is given, for the totals. That
   fails if some numbers cannot be squared in float32: huge ones, NaN, or columns that are tiny; then nothing is added.
   `ahead` is how many bytes behind these numbers those of the next pass are. */
static inline __attribute__((always_inline)) bool sweep_rows(Scratch *scratch, const float *rows, int64_t stride,
                                                             int64_t first, int64_t end, float shift, int64_t ahead,
                                                             Sweep *found) {
    Floats s = {0}, q = {0}, r = {0}, m = {0}, low = all(INFINITY), high = all(-INFINITY);
    Ints zeros = {0};
    for (int64_t i = first; i < end; i += LANES) {
        Floats x[ROWS], size[ROWS], around = {0}, other = {0};
        for (int row = 0; row < ROWS; row++) {
            if (found) prefetch(rows + row * stride + i, ahead);
            x[row] = load_some(rows + row * stride + i, LANE < (int32_t)(end - i));
            size[row] = magnitude(x[row]);
        }
        Floats magnitudes = EIGHT(plus, size);
        if (found && !any_from(magnitudes, COLUMN_TOO_SMALL) && any_from(magnitudes, 0x1p-126f)) return false;
        if (found && any_zero(EIGHT(smaller, size))) /* most numbers are not, and counting takes long */
            for (int row = 0; row < ROWS; row++) zeros -= x[row] == 0.0f;
        Floats mean = EIGHT(plus, x) * (1.0f / ROWS), lowest_of = EIGHT(smaller, x), highest_of = EIGHT(larger, x);
        for (int row = 0; row < ROWS / 2; row++) {
            around = add_square(around, x[row] - mean);
            other = add_square(other, x[row + ROWS / 2] - mean);
        }
        around += other;
        m += magnitudes;
        low = smaller(low, lowest_of), high = larger(high, highest_of);
        s += mean - shift;
        r = add_square(r, mean - shift);
        q += around;
        store(scratch->means + i - first, mean);
        store(scratch->arounds + i - first, around);
        store(scratch->peaks + i - first, larger(magnitude(lowest_of), magnitude(highest_of)));
    }
    if (found) {
        *found = (Sweep){ROWS * total(s), total(q) + ROWS * total(r), total(m), lowest(low), highest(high),
                         total_count(zeros)};
        if (!(found->magnitudes < COLUMN_TOO_LARGE)) return false;
    }
    add_columns(scratch, first, end);
    return true;
}

/* Add one number of each of some columns. */
#define ADD_ROW(type, all_finite)                                                       \
    for (int64_t i = first; i < end; i++) {                                             \
        double number = ((const type *)row)[i], scaled = number * scale;                \
        if (all_finite || fabs(number) < INFINITY) {                                    \
            s->unit_sums[i] += scaled;                                                  \
            s->unit_squares[i] += scaled * scaled;                                      \
            s->unit_largest[i] = (float)greater(s->unit_largest[i], fabs(number));      \
        } else {                                                                        \
            s->unit_missing[i] += 1.0;                                                  \
        }                                                                               \
    }
static void add_row(Work *w, const void *row, int64_t first, int64_t end, int kind) {
    Scratch *s = w->scratch;
    double scale = w->scale;
    if (w->wide && kind == ORDINARY) ADD_ROW(double, true)
    else if (w->wide) ADD_ROW(double, false)
    else if (kind == ODD) ADD_ROW(float, false)
    else ADD_ROW(float, true)
}

/* Add rows that have one number for each unit. */
static void add_rows(Work *w, const char *rows, int64_t stride, int64_t count, int64_t length, int kind) {
    if (count == ROWS && kind == ORDINARY && !w->wide) {
        for (int64_t first = 0; first < length; first += CHUNK)
            sweep_rows(w->scratch, (const float *)rows, stride, first, fewer(first + CHUNK, length), 0.0f, 0, NULL);
        return;
    }
    for (int64_t row = 0; row < count; row++) add_row(w, rows + (w->wide ? 8 : 4) * row * stride, 0, length, kind);
}

/* Add a piece that belongs to one unit as a whole. */
static void add_run(Scratch *s, int64_t unit, int64_t length, const Found *found) {
    s->unit_sums[unit] += found->finite * found->mean;
    s->unit_squares[unit] += found->around + found->finite * found->mean * found->mean;
    s->unit_largest[unit] = (float)greater(s->unit_largest[unit], found->largest);
    s->unit_missing[unit] += (double)length - found->finite;
}

/* Add a few numbers that belong to one unit. */
static void add_short_run(Work *w, int64_t unit, const void *numbers, int64_t length, int kind) {
    const float *x = numbers;
    Found found;
    if (kind == ORDINARY && !w->wide) {
        Floats sums = {0}, peaks = {0};
        for (int64_t i = 0; i < length; i += LANES) {
            Floats some = load_some(x + i, LANE < (int32_t)(length - i));
            sums += some;
            peaks = larger(peaks, magnitude(some));
        }
        float shift = total(sums) / (float)length;
        Around around = sums_around(x, length, shift);
        double count = (double)length, offset = around.sum / count;
        double squares = greater(around.squares - count * offset * offset, 0.0);
        found = (Found){ORDINARY, count, shift + offset, squares, highest(peaks)};
    } else {
        Totals ignored = NOTHING;
        found = look_carefully(&ignored, w->wide ? numbers : as_doubles(w, x, length), length, w->scale);
    }
    add_run(w->scratch, unit, length, &found);
}

/* In a long row every unit occurs several times: add them up. */
static void fold_row(Scratch *s, int64_t units, int64_t row) {
    for (int64_t place = units, unit = 0; place < row; place++, unit = unit + 1 < units ? unit + 1 : 0) {
        s->unit_sums[unit] += s->unit_sums[place];
        s->unit_squares[unit] += s->unit_squares[place];
        s->unit_largest[unit] = (float)greater(s->unit_largest[unit], s->unit_largest[place]);
        s->unit_missing[unit] += s->unit_missing[place];
    }
}

#define UNIT_COLUMN(name, value)                                                                                 \
    static void write_unit_##name(const Scratch *s, int64_t units, double total, double back, float *column) {  \
        for (int64_t unit = 0; unit < units; unit++) {                                                           \
            double finite = total - s->unit_missing[unit], each = 1.0 / finite, largest = s->unit_largest[unit]; \
            double mean = s->unit_sums[unit] * each, variance = s->unit_squares[unit] * each - mean * mean;      \
            variance = variance > ROUNDING * mean * mean ? variance : 0.0;                                       \
            column[unit] = finite > 0.0 ? (float)(value) : NAN;                                                  \
            (void)largest, (void)variance, (void)back;                                                           \
        }                                                                                                        \
    }
UNIT_STATISTICS(UNIT_COLUMN)
#define WRITER(name, value) write_unit_##name,
static void (*const UNIT_WRITERS[])(const Scratch *, int64_t, double, double, float *) = {UNIT_STATISTICS(WRITER)};

static void close_units(const Work *w) {
    const Columns *columns = w->job->columns;
    double total = (double)(w->count / w->source->units);
    for (int64_t i = 0; i < columns->units; i++) {
        float *column = w->job->units + i * w->job->unit_rows + w->source->first_unit;
        UNIT_WRITERS[columns->unit[i]](w->scratch, w->source->units, total, w->back, column);
    }
}

/* Look at ROWS rows of float32 numbers of one sample, of which only some are counted, and add them to the units; the
   length is a multiple of lanes. */
static void look_at_rows(Work *w, const float *rows, int64_t length) {
    for (int64_t first = 0, end; first < length; first = end) {
        end = fewer(first + CHUNK, length);
        int64_t ahead = 4 * (end < length ? CHUNK : ROWS * length - first); /* here, or in the next rows */
        Sweep found;
        if (sweep_rows(w->scratch, rows, length, first, end, w->shift, ahead, &found)) {
            conclude(w, rows + first, ROWS, length, end - first, &found);
            continue;
        }
        for (int row = 0; row < ROWS; row++) {
            int kind = look_uncounted(w, rows + row * length + first, end - first).kind;
            add_row(w, rows + row * length, first, end, kind);
        }
    }
    for (int row = 0; row < ROWS; row++) count_some(w, rows + row * length, length);
}

/* ---- Fine histogram -------------------------------------------------------------------------------------------- */

#define MARK 0x80000000u /* of a fine bin whose numbers are looked for */

static inline int64_t sign_keys(bool wide) { return wide ? WIDE_SIGN_KEYS : SIGN_KEYS; }

/* The key of a number that is not zero. */
static inline int64_t key_of(double number, bool wide) {
    return wide ? (int64_t)(wide_bits_of(number) >> WIDE_SHIFT) : (int64_t)(bits_of((float)number) >> FINE_SHIFT);
}

/* The smallest magnitude with this key; infinite behind the last one. */
static double lower_edge(int64_t key, bool wide) {
    return wide ? double_of((uint64_t)key << WIDE_SHIFT) : float_of((uint32_t)key << FINE_SHIFT);
}

/* How far from zero the stored bin of a coarse bin is. */
static int64_t rank_of(int64_t coarse, bool wide) {
    int64_t offset = 2 * ((wide ? 1023 : 127) + LOWEST_EXPONENT);
    return fewer(coarse > offset ? coarse - offset : 0, BINS_PER_SIGN - 1);
}

/* A fine histogram, and what was found when it was read. */
typedef struct {
    uint32_t *table, *coarse;
    bool wide;
    int64_t bottom, top; /* the coarse bins in use */
    int64_t zeros;
} Histogram;

/* Add up fine bins to coarse ones and to stored ones, from the largest magnitude down until all numbers are found. */
static void read_histogram(Histogram *h, double largest, int64_t nonzero, uint32_t *stored) {
    int64_t sign = sign_keys(h->wide), bin = h->top = nonzero > 0 ? key_of(largest, h->wide) / PER_COARSE : 0;
    for (; nonzero > 0 && bin >= 0; bin--) {
        uint32_t positive = 0, negative = 0;
        for (int64_t i = 0; i < PER_COARSE; i++) positive += h->table[bin * PER_COARSE + i];
        for (int64_t i = 0; i < PER_COARSE; i++) negative += h->table[sign + bin * PER_COARSE + i];
        h->coarse[bin] = positive, h->coarse[MOST_COARSE + bin] = negative;
        stored[ZERO_BIN + 1 + rank_of(bin, h->wide)] += positive;
        stored[ZERO_BIN - 1 - rank_of(bin, h->wide)] += negative;
        nonzero -= (int64_t)positive + negative;
    }
    h->bottom = bin + 1;
}

/* A float32 number was seen: its stored bin is not empty. */
static void not_empty(uint32_t *stored, double number) {
    int64_t rank = rank_of(key_of(fabs(number), false) / PER_COARSE, false);
    uint32_t *bin = stored + (number > 0.0 ? ZERO_BIN + 1 + rank : ZERO_BIN - 1 - rank);
    if (number != 0.0 && *bin == 0) *bin = 1;
}

/* From the counts of some numbers to those of all; the bins of the lowest and the highest are never empty. */
static void scale_up(uint32_t *stored, int64_t found, int64_t wanted, double low, double high) {
    int64_t sum = 0, fullest = 0;
    for (int64_t i = 0; i < HISTOGRAM_BINS; i++)
        stored[i] = (uint32_t)(stored[i] * ((double)wanted / (double)found) + 0.5);
    not_empty(stored, low);
    not_empty(stored, high);
    for (int64_t i = 0; i < HISTOGRAM_BINS; i++) {
        sum += stored[i];
        fullest = stored[i] > stored[fullest] ? i : fullest;
    }
    stored[fullest] = (uint32_t)(stored[fullest] + wanted - sum);
}

/* Where the number of a rank is: its key, -1 for zero; how many numbers in its bin are smaller, how many there are. */
typedef struct {
    int64_t key, before, inside;
} Place;

/* The smallest number has rank 0. Bins of one sign are searched from `bin` to `last`, away from it with each step. */
static bool find_in(const Histogram *h, int64_t *rank, int64_t bin, int64_t last, int64_t step, Place *place) {
    const uint32_t *coarse = step > 0 ? h->coarse : h->coarse + MOST_COARSE;
    int64_t first_key = step > 0 ? 0 : sign_keys(h->wide);
    for (; bin != last + step; bin += step) {
        if (*rank >= coarse[bin]) {
            *rank -= coarse[bin];
            continue;
        }
        int64_t key = first_key + bin * PER_COARSE + (step > 0 ? 0 : PER_COARSE - 1);
        for (int64_t i = 0; i < PER_COARSE; i++, key += step) {
            int64_t count = h->table[key];
            if (*rank < count) {
                *place = (Place){key, *rank, count};
                return true;
            }
            *rank -= count;
        }
    }
    return false;
}

static Place find(const Histogram *h, int64_t rank) {
    Place place = {-1, 0, 1};
    if (h->top >= h->bottom && find_in(h, &rank, h->top, h->bottom, -1, &place)) return place;
    if (rank < h->zeros) return (Place){-1, rank, h->zeros};
    rank -= h->zeros;
    if (h->top >= h->bottom) find_in(h, &rank, h->bottom, h->top, 1, &place);
    return place;
}

/* Set some counters to zero; returns how many numbers were counted in them. */
static int64_t take_out(uint32_t *counters, int64_t count) {
    uint32_t counted = 0;
    for (int64_t i = 0; i < count; i++) counted += counters[i] & ~MARK;
    memset(counters, 0, (size_t)count * sizeof *counters);
    return counted;
}

/* Forget all numbers; `odd` is how many were not finite, `counted` how many are in the table. Only counters in use are
   looked at. If numbers are left then, somebody wrote to the tensor meanwhile, and the rest can be anywhere. */
static void clear_histogram(const Histogram *h, int64_t odd, int64_t counted) {
    int64_t sign = sign_keys(h->wide), last = sign - 2 * PER_COARSE;
    uint32_t *table = h->table;
    for (int64_t bin = h->bottom; bin <= h->top; bin++) {
        if (h->coarse[bin]) counted -= take_out(table + bin * PER_COARSE, PER_COARSE);
        if (h->coarse[MOST_COARSE + bin]) counted -= take_out(table + sign + bin * PER_COARSE, PER_COARSE);
    }
    counted -= take_out(table, 1) + take_out(table + sign, 1) + take_out(table + 2 * sign, ZERO_COUNTERS);
    if (odd > 0) counted -= take_out(table + last, 2 * PER_COARSE) + take_out(table + sign + last, 2 * PER_COARSE);
    if (counted != 0) take_out(table, 2 * sign);
}

/* Zeros share their fine bins with numbers below 1e-40. If there are any of those, they are counted again. If there are
   too few of both, the processor takes all subnormal numbers for zeros (torch.set_flush_denormal). Returns by how much
   the table then counts fewer numbers. */
static int64_t take_zeros_out(Work *w) {
    uint32_t *table = w->scratch->fine;
    int64_t both = take_out(table, 1) + take_out(table + SIGN_KEYS, 1), again = 0;
    if (both == w->fine_zeros) return both;
    if (both < w->fine_zeros)
        return both + take_out(table, 2 * PER_COARSE) + take_out(table + SIGN_KEYS, 2 * PER_COARSE);
    EACH_PIECE(w, float, x, count)
        for (int64_t i = 0; i < count; i++) {
            uint32_t key = bits_of(x[i]) >> FINE_SHIFT;
            if (x[i] != 0.0f && (key == 0 || key == SIGN_KEYS)) table[key]++, again++;
        }
    return both - again;
}

/* Take zeros out of a table of some float32 numbers; numbers below 1e-40, which are in the same fine bins, stay. */
static int64_t take_some_zeros_out(Work *w) {
    uint32_t *table = w->scratch->fine;
    int64_t plus = fewer(table[0], w->fine_zeros), minus = fewer(table[SIGN_KEYS], w->fine_zeros - plus);
    table[0] -= (uint32_t)plus, table[SIGN_KEYS] -= (uint32_t)minus;
    return plus + minus;
}

/* Take float32 zeros out of the table. Returns how many numbers are left in it; `nonzero`, how many finite numbers of
   the tensor are not zero, becomes how many of those are in the table. */
static int64_t settle(Work *w, int64_t odd, int64_t *nonzero) {
    uint32_t *table = w->scratch->fine;
    if (w->every == 1) return w->count - take_zeros_out(w);
    int64_t counted = w->counted - take_some_zeros_out(w), found = counted;
    for (int64_t key = SIGN_KEYS - 2 * PER_COARSE; odd > 0 && key < SIGN_KEYS; key++)
        found -= (int64_t)table[key] + table[SIGN_KEYS + key];
    if (found < FEW && found < *nonzero) { /* nearly all are zero: count every number */
        take_out(table, 2 * SIGN_KEYS + ZERO_COUNTERS);
        EACH_PIECE(w, float, x, count)
            for (int64_t i = 0; i < count; i++) table[x[i] != 0.0f ? bits_of(x[i]) >> FINE_SHIFT : 2 * SIGN_KEYS]++;
        return w->count;
    }
    *nonzero = found;
    return counted;
}

/* ---- Quantiles ------------------------------------------------------------------------------------------------- */

/* Exact for small tensors, whose numbers are looked for once more; within a fine bin (0.4 %) for large ones. */

/* Sort by insertion with shrinking gaps: there are few, and often many equal ones. */
static void sort(double *numbers, int64_t count) {
    static const int64_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (int64_t g = 0; g < 9; g++)
        for (int64_t i = gaps[g], gap = gaps[g]; i < count; i++) {
            double number = numbers[i];
            int64_t place = i;
            for (; place >= gap && numbers[place - gap] > number; place -= gap) numbers[place] = numbers[place - gap];
            numbers[place] = number;
        }
}

/* Copy all numbers from the bins at these places, sorted; returns how many there are. */
static int64_t collect(const Work *w, const Histogram *h, const Place *places, int64_t count_of_places) {
    double *candidates = w->scratch->candidates;
    uint32_t *table = h->table;
    int64_t found = 0;
    for (int64_t i = 0; i < count_of_places; i++)
        if (places[i].key >= 0) table[places[i].key] |= MARK;
#define COLLECT(type, key)                                                               \
    EACH_PIECE(w, type, x, count)                                                        \
        for (int64_t i = 0; i < count; i++)                                              \
            if (x[i] != 0 && (table[key] & MARK)) candidates[found++] = x[i];
    if (w->wide) {
        COLLECT(double, wide_bits_of(x[i]) >> WIDE_SHIFT)
    } else {
        COLLECT(float, bits_of(x[i]) >> FINE_SHIFT)
    }
    sort(candidates, found);
    return found;
}

/* The candidate that has so many smaller ones in its own bin, which begins at the first number that is not below it. */
static double candidate(const Work *w, const Histogram *h, int64_t found, const Place *place) {
    const double *numbers = w->scratch->candidates;
    int64_t first = 0, last = found;
    bool is_negative = place->key >= sign_keys(h->wide);
    while (first < last) {
        int64_t middle = (first + last) / 2, key = key_of(numbers[middle], h->wide);
        bool below = numbers[middle] < 0.0 && (!is_negative || key > place->key);
        if (below || (!is_negative && key < place->key))
            first = middle + 1;
        else
            last = middle;
    }
    return numbers[first + place->before];
}

/* The number at a place in a bin; `found` is how many candidates there are, -1 if they were not collected. */
static double number_at(const Work *w, const Histogram *h, int64_t found, const Place *place, double low, double high) {
    int64_t sign = sign_keys(h->wide), key = place->key % sign;
    if (place->key < 0) return 0.0;
    if (found >= 0) return candidate(w, h, found, place);
    double start = lower_edge(key, h->wide), end = lesser(lower_edge(key + 1, h->wide), greater(high, -low));
    double part = ((double)place->before + 0.5) / (double)place->inside;
    double number = place->key < sign ? start + part * (end - start) : part * (end - start) - end;
    if (w->source->is_integer) number = floor(number + 0.5);
    return lesser(greater(number, low), high);
}

/* A quantile lies between the numbers of two ranks. */
static void find_quantiles(const Work *w, const Histogram *h, int64_t finite, double *values) {
    const Columns *columns = w->job->columns;
    double parts[MOST_LEVELS], low = w->whole.low, high = w->whole.high;
    Place places[2 * MOST_LEVELS];
    for (int64_t level = 0; level < columns->level_count; level++) {
        double position = columns->levels[level] * (double)(finite - 1);
        int64_t rank = (int64_t)position;
        Place *below = places + 2 * level, *above = below + 1;
        values[level] = NAN;
        if (finite <= 0) continue;
        parts[level] = position - (double)rank;
        *above = *below = find(h, rank);
        if (above->before + 1 < above->inside)
            above->before++;
        else if (rank + 1 < finite)
            *above = find(h, rank + 1);
    }
    if (finite <= 0) return;
    int64_t found = w->count <= EXACT_UP_TO ? collect(w, h, places, 2 * columns->level_count) : -1;
    for (int64_t level = 0; level < columns->level_count; level++) {
        double below = number_at(w, h, found, places + 2 * level, low, high), above = below, part = parts[level];
        if (part > 0.0) above = number_at(w, h, found, places + 2 * level + 1, low, high);
        values[level] = below != above ? below * (1.0 - part) + above * part : below;
    }
}

/* ---- One request ----------------------------------------------------------------------------------------------- */

/* Elements of a row: every unit once or, if there are few units, several times. */
static int64_t row_length(const Source *s) {
    int64_t times = s->sample_size / s->units, most = fewer(times, LONG_ROW / s->units);
    for (int64_t repeat = most; repeat > most / 2; repeat--)
        if (times % repeat == 0) return repeat * s->units;
    return s->units * (most > 0 ? most : 1);
}

/* Samples whose units come one after the other: some rows are looked at, then added to the units at once. */
static void walk_rows(Work *w) {
    const Source *s = w->source;
    int64_t row = row_length(s), size = s->sample_size, item = w->wide ? 8 : 4, sample = 0, start = 0;
    char *room = (char *)w->scratch->rows;
    bool in_place = s->dim_count == 0 && (s->code == FLOAT32 || s->code == FLOAT64);
    int64_t stride = in_place && row == size ? s->sample_stride : row; /* from row to row */
    /* Whether rows may be of several samples. */
    bool across = row == size || (size % row == 0 && (!in_place || s->sample_stride == size));
    bool at_once = in_place && !w->wide && row % LANES == 0 && w->every > 1;
    while (sample < s->samples) {
        if (at_once && size - start >= ROWS * row) {
            look_at_rows(w, numbers_at(w, sample, start, 0, room), row);
            start += ROWS * row;
            if (start == size) close_sample(w, sample++), start = 0;
            continue;
        }
        int kind = ORDINARY;
        int64_t together = 0, length = row;
        const char *first = room;
        while (sample < s->samples && together < ROWS) {
            if (size - start < row && together > 0) break; /* the short row at the end of a sample stands alone */
            length = fewer(row, size - start);
            const char *x = numbers_at(w, sample, start, length, room + item * row * together);
            if (together++ == 0) first = x;
            int of_row = look_at(w, x, length).kind;
            kind = of_row > kind ? of_row : kind;
            start += length;
            if (start == size) close_sample(w, sample++), start = 0;
            if (length < row || (start == 0 && !across)) break;
        }
        add_rows(w, first, stride, together, length, kind);
    }
}

/* Samples without units, or with all numbers of a unit together. */
static void walk_runs(Work *w) {
    const Source *s = w->source;
    int64_t runs = s->unit_kind == RUNS ? s->units : 1, length = s->sample_size / runs;
    for (int64_t sample = 0; sample < s->samples; sample++) {
        for (int64_t run = 0; run < runs; run++)
            for (int64_t start = 0; start < length; start += PIECE) {
                int64_t count = fewer(PIECE, length - start);
                const void *x = numbers_at(w, sample, run * length + start, count, w->scratch->rows);
                Found found = look_at(w, x, count);
                if (s->unit_kind == RUNS) add_run(w->scratch, run, count, &found);
            }
        close_sample(w, sample);
    }
}

/* The same for units that have few numbers in a sample: one look at several units. */
static void walk_short_runs(Work *w) {
    const Source *s = w->source;
    int64_t length = s->sample_size / s->units, at_once = PIECE / length, item = w->wide ? 8 : 4;
    for (int64_t sample = 0; sample < s->samples; sample++) {
        for (int64_t first = 0; first < s->units; first += at_once) {
            int64_t together = fewer(at_once, s->units - first);
            const char *x = numbers_at(w, sample, first * length, together * length, w->scratch->rows);
            int kind = look_at(w, x, together * length).kind;
            for (int64_t run = 0; run < together; run++)
                add_short_run(w, first + run, x + item * run * length, length, kind);
        }
        close_sample(w, sample);
    }
}

/* A power of two that keeps squares of float64 numbers within bounds, nearly always 1. */
static double scale_of(const Work *w) {
    if (w->source->code != FLOAT64 && w->source->code != COMPLEX128) return 1.0; /* integers are never that large */
    int64_t infinite = (int64_t)0x7FF << 52, largest_bits = 0; /* magnitudes compare like integers */
    EACH_PIECE(w, double, x, count)
        for (int64_t i = 0; i < count; i++) {
            int64_t bits = (int64_t)wide_bits_of(x[i]) & INT64_MAX;
            bits = bits < infinite ? bits : 0;
            largest_bits = bits > largest_bits ? bits : largest_bits;
        }
    double largest = double_of((uint64_t)largest_bits);
    return largest > 1e145 ? 0x1p-600 : 0.0 < largest && largest < 1e-145 ? 0x1p600 : 1.0;
}

/* Store the histogram, find the quantiles, and leave all counters at zero. */
static void finish_histogram(Work *w, double *quantiles) {
    const Totals *t = &w->whole;
    int64_t finite = (int64_t)t->finite, zeros = (int64_t)t->zeros, odd = (int64_t)(t->nans + t->infs);
    int64_t nonzero = finite - zeros, found = nonzero, counted = w->wide ? w->count : settle(w, odd, &found);
    uint32_t *stored = memset(w->job->histograms + HISTOGRAM_BINS * w->number, 0, HISTOGRAM_BINS * sizeof(uint32_t));
    Histogram h = {w->wide ? w->scratch->fine_wide : w->scratch->fine, w->scratch->coarse, w->wide, 0, 0, zeros};
    read_histogram(&h, greater(t->high, -t->low), found, stored);
    if (found < nonzero) {
        scale_up(stored, found, nonzero, t->low, t->high);
        h.zeros = (int64_t)((double)zeros * ((double)found / (double)nonzero) + 0.5);
    }
    stored[ZERO_BIN] = (uint32_t)zeros;
    int64_t first = 0, end = HISTOGRAM_BINS, *ends = w->job->histogram_ends + 2 * w->number;
    while (first < end && stored[first] == 0) first++;
    while (end > first && stored[end - 1] == 0) end--;
    ends[0] = first < end ? first : 0, ends[1] = first < end ? end : 0;
    find_quantiles(w, &h, found + h.zeros, quantiles);
    clear_histogram(&h, odd, counted);
}

static void measure_one(const Job *job, int64_t number) {
    const Source *s = job->sources + number;
    Work work = {.job = job, .source = s, .scratch = job->scratch, .number = number, .scale = 1.0,
                 .count = s->samples * s->sample_size, .wide = s->code >= FLOAT64, .sample = NOTHING, .whole = NOTHING};
    Work *w = &work;
    for (w->every = 1; !w->wide && w->count >= (w->every > 1 ? 2 * w->every : WORTH) * ENOUGH;) {
        w->every = w->every > 1 ? 2 * w->every : WORTH;
    }
    if (w->wide) w->scale = scale_of(w);
    w->back = 1.0 / w->scale;
    if (s->unit_kind != NO_UNITS) open_units(w->scratch, s->unit_kind == COLUMNS ? row_length(s) : s->units);
    if (s->unit_kind == COLUMNS)
        walk_rows(w);
    else if (s->unit_kind == RUNS && s->sample_size < SHORT_RUN * s->units)
        walk_short_runs(w);
    else
        walk_runs(w);
    if (s->unit_kind == COLUMNS) fold_row(w->scratch, s->units, row_length(s));
    if (s->unit_kind != NO_UNITS) close_units(w);
    double values[STATISTIC_TOTAL + MOST_LEVELS];
    describe(&w->whole, centre_of(&w->whole), w->scale, w->back, values);
    finish_histogram(w, values + STATISTIC_TOTAL);
    for (int64_t i = 0; i < job->columns->wholes; i++) {
        double *place = job->whole + i * job->requests + number;
        int64_t statistic = job->columns->whole[i], integer = (int64_t)values[statistic];
        if (COUNTED[statistic])
            memcpy(place, &integer, sizeof integer);
        else
            *place = values[statistic];
    }
}

/* ---- What Python calls ----------------------------------------------------------------------------------------- */

/* Measure the requests whose numbers are listed. */
void EXPORT(measure)(const Job *job, const int64_t *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) measure_one(job, numbers[i]);
}

/* The number of a statistic, -1 if it has no line above. Quantiles are numbered on from the number of "". */
int64_t EXPORT(statistic)(const char *name, int64_t of_unit) {
    const char *const *names = of_unit ? UNIT_NAMES : NAMES;
    for (int64_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return *name == 0 ? STATISTIC_TOTAL : -1;
}

/* Bytes of the memory that a running job needs, which begins with zeros, and of the counters at its beginning. */
int64_t EXPORT(scratch_bytes)(void) { return sizeof(Scratch); }
int64_t EXPORT(counter_bytes)(void) { return offsetof(Scratch, coarse); }

#ifdef STAMP
const char EXPORT(stamp)[] = STAMP; /* of the source, for build.py */
#endif

/* Whether this processor can do what this variant was compiled for. */
int64_t EXPORT(runs_here)(void) {
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return 1;
#endif
}
