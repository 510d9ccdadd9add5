/** Colour maps in which equal steps of a number look like equal steps of colour, and ink that is readable on them. */

export type Rgb = readonly [number, number, number];

/** Lightness 0 … 1, chroma, hue in degrees: the polar form of OKLab, in which maps are written down. */
type Stop = readonly [lightness: number, chroma: number, hue: number];

/** Lightness and two opponent colours. Mixed in this form: between blue and orange lies grey, not green. */
type Lab = readonly [lightness: number, a: number, b: number];

const toLab = ([lightness, chroma, hue]: Stop): Lab => {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
};

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

/** A colour that the screen cannot show loses chroma, never lightness: lightness is what carries the number. */
function toRgb([lightness, a, b]: Lab): Rgb {
  let linear = toLinear([lightness, a, b]);
  for (let keep = 0.98; keep > 0 && linear.some((c) => c < -0.001 || c > 1.001); keep -= 0.02) {
    linear = toLinear([lightness, a * keep, b * keep]);
  }
  return linear.map((c) => Math.round(255 * gamma(Math.min(1, Math.max(0, c))))) as unknown as Rgb;
}

const gamma = (c: number): number => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);
const ungamma = (c: number): number => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);

export function luminance([r, g, b]: Rgb): number {
  return 0.2126 * ungamma(r / 255) + 0.7152 * ungamma(g / 255) + 0.0722 * ungamma(b / 255);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

function ramp(written: readonly Stop[], count = 256): Rgb[] {
  const stops = written.map(toLab);
  return Array.from({ length: count }, (_, i) => {
    const t = (i / (count - 1)) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(t));
    const mix = (n: 0 | 1 | 2): number => stops[k][n] + (stops[k + 1][n] - stops[k][n]) * (t - k);
    return toRgb([mix(0), mix(1), mix(2)]);
  });
}

export type Scheme = "light" | "dark";

/** Small to large. The same in both schemes: dark indigo, purple, red, orange, pale yellow. */
export const SEQUENTIAL: readonly Rgb[] = ramp([
  [0.2, 0.09, 283],
  [0.34, 0.16, 303],
  [0.49, 0.19, 345],
  [0.64, 0.19, 32],
  [0.8, 0.155, 72],
  [0.965, 0.09, 106],
]);

/** Negative, zero, positive. Zero is close to the background, so that only what differs stands out. */
export const DIVERGING: Record<Scheme, readonly Rgb[]> = {
  light: ramp([[0.4, 0.16, 262], [0.68, 0.11, 250], [0.955, 0.008, 240], [0.72, 0.13, 50], [0.46, 0.17, 30]]),
  dark: ramp([[0.86, 0.09, 235], [0.6, 0.15, 256], [0.28, 0.012, 260], [0.62, 0.17, 38], [0.88, 0.12, 80]]),
};

/** Outside of every map: nothing recorded has this colour by accident. */
export const NAN_COLOR: Rgb = [0, 229, 255];
export const INF_COLOR: Rgb = [140, 255, 0];
/** Exactly zero on a logarithmic scale: below everything that the map can say. */
export const ZERO_COLOR: Rgb = [10, 10, 14];

export const DARK_INK: Rgb = [4, 4, 6];
export const LIGHT_INK: Rgb = [255, 255, 255];

/** The one of black and white that is easier to read; one of them always has a contrast above 4.5. */
export function inkOn(color: Rgb): Rgb {
  return contrast(color, DARK_INK) >= contrast(color, LIGHT_INK) ? DARK_INK : LIGHT_INK;
}

export const cssColor = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
