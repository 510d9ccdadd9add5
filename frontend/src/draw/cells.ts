/** The strip in a box that holds several tensors: one cell each, so that twelve passes are seen at a glance. */
import { recordFor } from "../model/dependencies";
import { hasStrip, STRIP, type Layout, type Scene } from "../model/scene";
import type { Rect } from "./camera";

const NARROWEST = 3;
const INSET = 10;

export interface Strip extends Rect {
  /** Tensors from left to right; in a closed group one for each node inside. */
  readonly records: readonly number[];
  readonly cells: number;
}

/** Computed for a box when it is first drawn, kept until another role or pass is chosen. */
export class Strips {
  private readonly known = new Map<number, readonly number[]>();

  constructor(
    private readonly scene: Scene,
    private readonly role: string | null,
    private readonly pass: number | null,
  ) {}

  of(layout: Layout, item: number): Strip | null {
    if (!hasStrip(this.scene.items[item])) return null;
    const records = this.recordsOf(item);
    const width = layout.width[item] - 2 * INSET;
    return {
      x: layout.x[item] + INSET,
      y: layout.y[item] + layout.height[item] - STRIP - 2,
      width,
      height: STRIP - 3,
      records,
      cells: Math.min(records.length, Math.floor(width / NARROWEST)),
    };
  }

  private recordsOf(item: number): readonly number[] {
    let records = this.known.get(item);
    if (!records) this.known.set(item, (records = this.collect(item)));
    return records;
  }

  private collect(item: number): readonly number[] {
    const { model, items, itemOfTensor, itemOfNode } = this.scene;
    const { node, address } = items[item];
    if (!address) return model.nodes[node].records.filter((record) => itemOfTensor[record] === item);
    const nodes = model.nodes.filter(({ id }) => itemOfNode[id] === item).sort((a, b) => a.order - b.order);
    return nodes.map(({ id }) => recordFor(model, id, this.role, this.pass));
  }
}

/** Tensors that share a cell: from (inclusive) and to (exclusive). */
export function cellRange(strip: Strip, cell: number): [number, number] {
  const { records, cells } = strip;
  const from = Math.floor((cell * records.length) / cells);
  return [from, Math.max(from + 1, Math.floor(((cell + 1) * records.length) / cells))];
}

/** The tensor below a point of the strip. */
export function recordAt(strip: Strip, x: number): number {
  const cell = Math.min(strip.cells - 1, Math.max(0, Math.floor(((x - strip.x) / strip.width) * strip.cells)));
  return strip.records[cellRange(strip, cell)[0]];
}
