/** Marks of findings on boxes: the same shapes as in the list, readable from far away. */
import { merged, type Marks, type NodeMark, type Severity } from "../model/findings";
import type { Scene } from "../model/scene";
import { itemArea, type Camera, toScreen } from "./camera";
import type { GraphState } from "./graph_state";
import type { Theme } from "./theme";

export interface ItemMark extends NodeMark {
  readonly item: number;
}

/** A closed group has the marks of everything inside. Harmless ones come first, so that others are drawn over them. */
export function itemMarks(scene: Scene, marks: Marks): ItemMark[] {
  const found = new Map<number, NodeMark>();
  for (const [name, mark] of marks) {
    const node = scene.model.byName.get(name);
    const item = node === undefined ? -1 : scene.itemOfNode[node];
    if (item >= 0) found.set(item, merged(found.get(item), mark));
  }
  return [...found]
    .map(([item, mark]) => ({ ...mark, item }))
    .sort((a, b) => Number(a.begins) - Number(b.begins) || (a.severity < b.severity ? 1 : -1));
}

const LARGE = 7.5; // pixels of the screen, half the width
const SMALL = 4;
const FAR = 0.34; // zoom below which boxes have no text

/** In pixels of the screen, at the upper right corners of boxes. */
export function paintMarks(context: CanvasRenderingContext2D, state: GraphState, camera: Camera): void {
  for (const { item, severity, begins } of state.itemMarks) {
    const box = itemArea(state.picture.layout, item);
    const [x, y] = toScreen(camera, box.x + box.width, box.y);
    const radius = begins ? (camera.scale < FAR ? 5.5 : LARGE) : SMALL;
    // Outside rather than inside: what stands in the corner of a closed group must stay readable.
    paintMark(context, state.theme, severity, begins, x + radius * 0.4, y - radius * 0.2, radius);
  }
}

export const severityColor = (theme: Theme, severity: Severity): string =>
  severity === "error" ? theme.error : severity === "warning" ? theme.warning : theme.notice;

/** A disc for errors, a triangle for warnings, a square for the rest; only outlined where it does not begin. */
export function paintMark(
  context: CanvasRenderingContext2D, theme: Theme, severity: Severity, begins: boolean, x: number, y: number,
  radius: number,
): void {
  const color = severityColor(theme, severity);
  context.beginPath();
  if (severity === "warning") triangle(context, x, y, radius * 1.15);
  else if (severity === "error") context.arc(x, y, radius, 0, 2 * Math.PI);
  else context.rect(x - radius * 0.85, y - radius * 0.85, radius * 1.7, radius * 1.7);
  context.lineJoin = "round";
  context.strokeStyle = theme.panel;
  context.lineWidth = begins ? 3 : 4.5; // a rim, as boxes have all colours
  context.stroke();
  context.fillStyle = begins ? color : theme.panel;
  context.fill();
  if (!begins) {
    context.strokeStyle = color;
    context.lineWidth = 1.6;
    context.stroke();
    return;
  }
  if (radius < LARGE) return;
  context.fillStyle = theme.panel;
  context.font = `700 10.5px ${theme.font}`;
  context.textAlign = "center";
  context.fillText(severity === "info" ? "i" : "!", x, y + 3.8);
  context.textAlign = "start";
}

function triangle(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y + radius * 0.8);
  context.lineTo(x - radius, y + radius * 0.8);
  context.closePath();
}
