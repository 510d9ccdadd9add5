/**
 * The graph in words, for those who do not see the canvas: a tree with one entry per box, and a sentence about the
 * selected tensor. Plain data; the page turns it into elements.
 */
import { shapeText } from "../model/names";
import type { Scene } from "../model/scene";
import { heatText, SHADE_ABSENT, SHADE_INF, SHADE_NAN } from "../model/heat";
import type { ItemMark } from "./graph_marks";
import { tintOf, type GraphState } from "./graph_state";

export interface TwinItem {
  readonly key: string;
  readonly label: string;
  readonly level: number; // from 1, as aria-level counts
  readonly expanded: boolean | null; // null for what cannot be opened
  readonly selected: boolean;
  readonly item: number;
}

/**
 * A tree of thousands of hidden elements would make every click slow: at most `most` of them, around the selected one.
 * They change only when it comes near their ends.
 */
export function twinItems(state: GraphState, most = 120): TwinItem[] {
  const { scene } = state.picture;
  const marks = new Map(state.itemMarks.map((mark) => [mark.item, markWords(mark)]));
  const part = Math.max(1, Math.floor(most / 2));
  const middle = part * Math.floor(Math.max(0, state.selectedItem) / part) + Math.floor(part / 2);
  const start = Math.max(0, Math.min(middle - Math.floor(most / 2), scene.items.length - most));
  return scene.items.slice(start, start + most).map((item, k) => ({
    key: item.key,
    label: (item.open ? groupWords(scene, start + k) : boxWords(state, start + k)) + (marks.get(start + k) ?? ""),
    level: item.depth + 1,
    expanded: item.address ? item.open : null,
    selected: start + k === state.selectedItem,
    item: start + k,
  }));
}

const markWords = ({ severity, words }: ItemMark): string => `, ${severity}: ${words.join("; ")}`;

function groupWords(scene: Scene, item: number): string {
  const { label, size, members } = scene.items[item];
  const several = members > 1 ? `${members} equal modules, ` : "";
  return `${label}, ${several}${count(size, "tensor")} inside`;
}

function boxWords(state: GraphState, item: number): string {
  const { scene } = state.picture;
  const { node, address, label } = scene.items[item];
  const heat = heatWords(state, tintOf(state, item, state.faces[item]));
  if (address) return [groupWords(scene, item), heat].filter(Boolean).join(", ");
  const { kind, shape } = scene.model.nodes[node];
  const words = shapeWords(state.shapeAt?.(state.faces[item]) ?? shape);
  return [label, kind, words, heat].filter(Boolean).join(", ");
}

function heatWords(state: GraphState, record: number): string {
  if (!state.heat || !state.shades) return "";
  const shade = state.shades[record];
  if (shade === SHADE_ABSENT) return "no value";
  if (shade === SHADE_NAN) return "contains NaN";
  if (shade === SHADE_INF) return "contains infinity";
  return heatText(state.heat, record);
}

/** What a screen reader says when the selection changes. */
export function selectionSentence(state: GraphState): string {
  const { selection, record } = state;
  if (selection.node < 0) return "Nothing is selected.";
  const { model } = state.picture.scene;
  const node = model.nodes[selection.node];
  const { role, pass } = model.source.nodes[record];
  const parts = [
    node.name,
    node.kind,
    shapeWords(state.shapeAt?.(record) ?? node.shape),
    node.roles.length > 1 ? `role ${role}` : "",
    node.passes > 1 ? `pass ${pass} of ${node.passes}` : "",
    heatWords(state, record),
  ].filter(Boolean);
  const from = model.entering[node.id].map((edge) => model.nodes[model.edges[edge].from].name);
  const to = model.leaving[node.id].map((edge) => model.nodes[model.edges[edge].to].name);
  return [
    `${parts.join(", ")}.`,
    listed("Computed from", from, "Depends on nothing."),
    listed("Used by", to, "Used by nothing."),
  ].join(" ");
}

const shapeWords = (shape: readonly number[] | null): string => shapeText(shape).replaceAll("×", " by ");

function listed(words: string, names: readonly string[], none: string): string {
  if (names.length === 0) return none;
  const shown = names.slice(0, 4).join(", ");
  return `${words} ${shown}${names.length > 4 ? ` and ${names.length - 4} more` : ""}.`;
}

const count = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
