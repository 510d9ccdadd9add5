/** Shades (see model/heat) as colours that a canvas can use. */
import { SHADE_ABSENT, SHADE_INF, SHADE_NAN, SHADE_ZERO, SHADES, type ScaleKind } from "../model/heat";
import { cssColor, INF_COLOR, inkOn, mapOf, NAN_COLOR, ZERO_COLOR, type Rgb, type Scheme } from "./color";

export interface ShadeTable {
  readonly fill: readonly string[];
  readonly ink: readonly string[];
  /** The same as 32-bit pixels, for images. */
  readonly pixels: Uint32Array;
}

const tables = new Map<string, ShadeTable>();

export function shadeTable(kind: ScaleKind, scheme: Scheme, absent: Rgb): ShadeTable {
  const key = `${kind} ${scheme} ${absent.join()}`;
  let table = tables.get(key);
  if (!table) tables.set(key, (table = makeTable(kind, scheme, absent)));
  return table;
}

function makeTable(kind: ScaleKind, scheme: Scheme, absent: Rgb): ShadeTable {
  const colors = new Array<Rgb>(SHADES);
  mapOf(kind, scheme).forEach((color, i) => (colors[i] = color));
  colors[SHADE_ABSENT] = absent;
  colors[SHADE_NAN] = NAN_COLOR[scheme];
  colors[SHADE_INF] = INF_COLOR;
  colors[SHADE_ZERO] = ZERO_COLOR[scheme];
  return {
    fill: colors.map(cssColor),
    ink: colors.map((color) => cssColor(inkOn(color))),
    pixels: Uint32Array.from(colors, pixel),
  };
}

/** Red, green, blue, opaque, in the byte order of image data on every machine that runs a browser. */
const pixel = ([r, g, b]: Rgb): number => (255 << 24) | (b << 16) | (g << 8) | r;

/** Diagonal stripes: the second sign, beside colour, of what is not a number, and the only one of no value at all. */
export function stripes(context: CanvasRenderingContext2D, color: string, falling: boolean): CanvasPattern | null {
  const key = `${color} ${falling}`;
  const known = patterns.get(key);
  if (known !== undefined) return known;
  const size = 7;
  const tile = new OffscreenCanvas(size, size);
  const draw = tile.getContext("2d") as OffscreenCanvasRenderingContext2D;
  draw.strokeStyle = color;
  draw.lineWidth = 1.6;
  draw.beginPath();
  for (const shift of [-size, 0, size]) {
    draw.moveTo(shift - 1, falling ? -1 : size + 1);
    draw.lineTo(shift + size + 1, falling ? size + 1 : -1);
  }
  draw.stroke();
  const pattern = context.createPattern(tile, "repeat");
  patterns.set(key, pattern);
  return pattern;
}

const patterns = new Map<string, CanvasPattern | null>();
