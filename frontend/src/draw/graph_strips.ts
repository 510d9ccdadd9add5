/** The history of a tensor as a strip of colours: an image for each, made when it is first drawn. */
import { SHADE_ABSENT, worstShade, type HeatScale } from "../model/heat";
import { stripShades, type History, type HistoryLine } from "../model/history";
import type { Rect } from "./camera";
import { stripes, type ShadeTable } from "./shades";

/** Of the strip in a wide box, in pixels at zoom 1. */
export const STRIP_WIDTH = 118;
const PIXELS = 2 * STRIP_WIDTH; // enough for screens with fine pixels
const FURTHEST_MIDDLE = 127.5;

export class StripImages {
  private readonly known = new Map<number, OffscreenCanvas | null>();

  constructor(
    private readonly history: History | null,
    private readonly scale: HeatScale | null,
    private readonly table: ShadeTable,
  ) {}

  /** The step that is shown is drawn over the images: they stay while only that changes. */
  fits(history: History | null, scale: HeatScale | null, table: ShadeTable): boolean {
    return this.history?.line === history?.line && this.scale === scale && this.table === table;
  }

  of(record: number): OffscreenCanvas | null {
    let image = this.known.get(record);
    if (image === undefined) this.known.set(record, (image = this.make(record)));
    return image;
  }

  private make(record: number): OffscreenCanvas | null {
    const line = this.history?.line(record) ?? null;
    return line && this.history && this.scale ? this.draw(this.history, line, this.scale) : null;
  }

  private draw(history: History, line: HistoryLine, scale: HeatScale): OffscreenCanvas {
    const worst = scale.kind === "diverging" ? furthest : worstShade;
    const shades = stripShades(history, line, scale, PIXELS, worst);
    const pixels = Uint32Array.from(shades, (shade) => (shade === SHADE_ABSENT ? 0 : this.table.pixels[shade]));
    const image = new OffscreenCanvas(PIXELS, 1);
    const context = image.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), PIXELS, 1), 0, 0);
    return image;
  }
}

/** Around a neutral middle both ends count alike. */
function furthest(a: number, b: number): number {
  if (a > 255 || b > 255) return worstShade(a, b);
  return Math.abs(a - FURTHEST_MIDDLE) >= Math.abs(b - FURTHEST_MIDDLE) ? a : b;
}

/** What was not recorded is hatched: the image lies over the hatching. */
export function paintStripImage(
  context: CanvasRenderingContext2D, image: OffscreenCanvas | null, area: Rect, panel: string, hatch: string,
): void {
  context.fillStyle = panel;
  context.fillRect(area.x, area.y, area.width, area.height);
  context.fillStyle = stripes(context, hatch, true) ?? panel;
  context.fillRect(area.x, area.y, area.width, area.height);
  if (!image) return;
  context.imageSmoothingEnabled = false;
  context.drawImage(image, area.x, area.y, area.width, area.height);
}
