/** Colour maps in which equal steps of a number look like equal steps of colour, and ink that is readable on them. */

export type Rgb = readonly [number, number, number];

/** Lightness and two opponent colours (OKLab). Mixed in this form: between blue and orange lies grey, not green. */
type Lab = readonly [lightness: number, a: number, b: number];

function toLab(hex: string): Lab {
  const [r, g, b] = [1, 3, 5].map((at) => ungamma(parseInt(hex.slice(at, at + 2), 16) / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function toLinear([lightness, a, b]: Lab): number[] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

const toRgb = (lab: Lab): Rgb =>
  toLinear(lab).map((c) => Math.round(255 * gamma(Math.min(1, Math.max(0, c))))) as unknown as Rgb;

const gamma = (c: number): number => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);
const ungamma = (c: number): number => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);

export function luminance([r, g, b]: Rgb): number {
  return 0.2126 * ungamma(r / 255) + 0.7152 * ungamma(g / 255) + 0.0722 * ungamma(b / 255);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

/** 256 colours through colours that are written as CSS writes them. */
function ramp(written: string, count = 256): Rgb[] {
  const stops = written.split(" ").map(toLab);
  return Array.from({ length: count }, (_, i) => {
    const t = (i / (count - 1)) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(t));
    const mix = (n: 0 | 1 | 2): number => stops[k][n] + (stops[k + 1][n] - stops[k][n]) * (t - k);
    return toRgb([mix(0), mix(1), mix(2)]);
  });
}

export type Scheme = "light" | "dark";

/** Numbers without a natural zero, from small to large: viridis, the same in both schemes. */
export const SEQUENTIAL: readonly Rgb[] = ramp(
  "#440154 #482475 #414487 #355f8d #2a788e #21918c #22a884 #44bf70 #7ad151 #bddf26 #fde725",
);

/** Shares and counts: from the panel upwards, but never the panel itself, so that nothing recorded looks blank. */
export const SHARES: Record<Scheme, readonly Rgb[]> = {
  light: ramp("#eef1f4 #d3e6e3 #93cfc6 #4aa7b5 #2a74a4 #27427f #1d1a4d"),
  dark: ramp("#1b2027 #1f3a47 #22647a #2f93a0 #6bc2ae #b9e3b0 #fbf7c4"),
};

/** Ratios and differences: blue, neutral, orange. The middle is close to the panel: only what differs stands out. */
export const DIVERGING: Record<Scheme, readonly Rgb[]> = {
  light: ramp("#0b3c7d #2a6db8 #74a9d8 #c3d8ea #f1f2f3 #f1d9bf #dfa25e #b9680f #713c00"),
  dark: ramp("#a9d3ff #5aa2ea #2f6fb0 #234564 #232a32 #4f3c22 #96631c #d9923a #ffd59a"),
};

const fromHex = (hex: string): Rgb => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb;

/** What no map says. Stripes are the second sign of both. */
export const NAN_COLOR: Record<Scheme, Rgb> = { light: fromHex("#d1006c"), dark: fromHex("#ff4fa3") };
export const INF_COLOR: Rgb = fromHex("#ff7a00");
/** Exactly zero on a logarithmic scale: below everything that the map can say. */
export const ZERO_COLOR: Record<Scheme, Rgb> = { light: fromHex("#22262c"), dark: fromHex("#000000") };

/** The map of a kind of scale. */
export function mapOf(kind: "linear" | "log" | "diverging", scheme: Scheme): readonly Rgb[] {
  if (kind === "diverging") return DIVERGING[scheme];
  return kind === "log" ? SEQUENTIAL : SHARES[scheme];
}

export const DARK_INK: Rgb = [4, 4, 6];
export const LIGHT_INK: Rgb = [255, 255, 255];

/** The one of black and white that is easier to read; one of them always has a contrast above 4.5. */
export function inkOn(color: Rgb): Rgb {
  return contrast(color, DARK_INK) >= contrast(color, LIGHT_INK) ? DARK_INK : LIGHT_INK;
}

export const cssColor = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
