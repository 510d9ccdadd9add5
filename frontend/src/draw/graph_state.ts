/** Everything that the picture of a graph depends on; painters read it and change nothing. */
import type { Picture } from "../model/scene";
import { NO_DEPENDENCIES, dependenciesOf, recordFor, type Dependencies } from "../model/dependencies";
import type { Marks } from "../model/findings";
import { shadesOf, type Heat, type HeatScale } from "../model/heat";
import type { History } from "../model/history";
import { Strips } from "./cells";
import { edgeExtents } from "./culling";
import { itemMarks, type ItemMark } from "./graph_marks";
import { StripImages } from "./graph_strips";
import { shadeTable, type ShadeTable } from "./shades";
import type { Theme } from "./theme";

export interface GraphSelection {
  readonly node: number; // -1: nothing
  readonly role: string | null;
  readonly pass: number | null;
}

export const NOTHING_SELECTED: GraphSelection = { node: -1, role: null, pass: null };

/** What the page says; the rest is derived from it. */
export interface GraphInput {
  readonly picture: Picture;
  readonly theme: Theme;
  readonly heat: Heat | null;
  readonly scale: HeatScale | null;
  readonly selection: GraphSelection;
  readonly allEdges: boolean;
  /** 1 for tensors that the current step has; null if all. What it lacks is drawn faded. */
  readonly present: Uint8Array | null;
  /** Item -> place in `heat` and `present` of what is known of the box as a whole; -1: its tensor stands for it. */
  readonly whole?: Int32Array | null;
  /** Where something looks wrong. */
  readonly marks?: Marks | null;
  /** The numbers of all steps; null: not known, or a sample is looked at. */
  readonly history?: History | null;
  /** 1 for tensors that have a number but no colour: labels, ids, single numbers. */
  readonly apart?: Uint8Array | null;
  /** Of a tensor at the shown step; without it, shapes are those of the first step that had it. */
  readonly shapeAt?: ((record: number) => readonly number[] | null) | null;
}

export interface GraphState extends GraphInput {
  readonly shades: Uint16Array | null;
  readonly table: ShadeTable;
  readonly strips: Strips;
  readonly history: History | null;
  readonly images: StripImages;
  /** Per item the tensor that colours it; -1 for open groups. */
  readonly faces: Int32Array;
  readonly extents: Float32Array;
  readonly record: number;
  readonly selectedItem: number;
  readonly dependencies: Dependencies;
  readonly itemMarks: readonly ItemMark[];
}

/** Derives only what has changed since `before`: moving the scrubber must not touch anything but shades. */
export function graphState(input: GraphInput, before: GraphState | null): GraphState {
  const { picture, selection, heat, scale, theme } = input;
  const { scene, layout } = picture;
  const samePicture = before?.picture === picture;
  const sameChoice = samePicture && sameTensor(before.selection, selection);
  const sameHeat = before?.heat === heat && before?.scale === scale;
  const selected = selection.node >= 0;
  const table = shadeTable(scale?.kind ?? "linear", theme.scheme, theme.panelRgb);
  const history = input.history ?? null;
  const sameImages = before?.images.fits(history, scale, table);
  const record = selected ? recordFor(scene.model, selection.node, selection.role, selection.pass) : -1;
  return {
    ...input,
    shades: sameHeat && before ? before.shades : heat && scale ? shadesOf(heat, scale) : null,
    table,
    history,
    images: sameImages && before ? before.images : new StripImages(history, scale, table),
    strips: sameChoice ? before.strips : new Strips(scene, selection.role, selection.pass),
    faces: sameChoice ? before.faces : facesOf(input),
    extents: samePicture ? before.extents : edgeExtents(layout),
    itemMarks: samePicture && before.marks === input.marks ? before.itemMarks : itemMarks(scene, input.marks ?? NONE),
    record,
    selectedItem: selected ? scene.itemOfTensor[record] : -1,
    dependencies: sameChoice
      ? before.dependencies
      : selected
        ? dependenciesOf(scene, selection.node, record)
        : NO_DEPENDENCIES,
  };
}

const NONE: Marks = new Map();

const sameTensor = (a: GraphSelection, b: GraphSelection): boolean =>
  a.node === b.node && a.role === b.role && a.pass === b.pass;

/** Where in `shades`, `heat` and `present` it is said what a box shows; `record` is the tensor that stands for it. */
export function tintOf({ whole }: GraphState, item: number, record: number): number {
  const place = whole?.[item] ?? -1;
  return place >= 0 ? place : record;
}

function facesOf({ picture, selection }: GraphInput): Int32Array {
  const { items, model, itemOfTensor } = picture.scene;
  return Int32Array.from(items, ({ node, tensor, address, isChip }, i) => {
    if (node < 0) return -1;
    const best = recordFor(model, node, selection.role, selection.pass);
    // Calls of one module at several places are boxes of their own.
    return address || isChip || itemOfTensor[best] === i ? best : tensor;
  });
}

/** From far away: all that boxes, frames and faint edges depend on. The selection is drawn over them. */
export function looksAlike(a: GraphState, b: GraphState): boolean {
  return (
    a.picture === b.picture && a.shades === b.shades && a.table === b.table && a.theme === b.theme &&
    a.allEdges === b.allEdges && a.present === b.present && a.whole === b.whole && a.images === b.images &&
    sameNumbers(a.faces, b.faces)
  );
}

function sameNumbers(a: Int32Array, b: Int32Array): boolean {
  if (a === b) return true;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}
