/** Arrows: those of the selected tensor, or all. */
import type { Picture } from "../model/scene";
import { itemArea, type Rect } from "./camera";
import { edgesIn } from "./culling";
import type { GraphState } from "./graph_state";

const ARROW = 7;
const STRAIGHT = 0.5; // pixels
const FINE_SCALE = 0.3; // below that arrow heads are specks

/** Faint, below the boxes. One path for all of them: stroking once is much faster than stroking each. */
export function paintAllEdges(context: CanvasRenderingContext2D, state: GraphState, area: Rect, scale: number): void {
  const { picture } = state;
  const visible = edgesIn(state.extents, area);
  context.beginPath();
  for (const edge of visible) trace(context, picture, edge, scale < 0.12);
  context.strokeStyle = state.theme.inkFaint;
  context.lineWidth = Math.max(1, 0.8 / scale);
  context.stroke();
  if (scale < FINE_SCALE) return;
  context.fillStyle = state.theme.inkFaint;
  context.beginPath();
  for (const edge of visible) arrowHead(context, picture, edge, ARROW * 0.85);
  context.fill();
}

/** Strong where the selected tensor has the edge, thin where only another role or pass of its node has. */
export function paintOwnEdges(context: CanvasRenderingContext2D, state: GraphState, scale: number): void {
  const { picture } = state;
  const { arrows } = state.dependencies;
  context.strokeStyle = context.fillStyle = state.theme.accent;
  for (const own of [false, true]) {
    const edges = [...arrows].filter(([, isOwn]) => isOwn === own).map(([edge]) => edge);
    if (edges.length === 0) continue;
    context.lineWidth = Math.max(own ? 2 : 1, (own ? 1.6 : 0.8) / scale);
    context.beginPath();
    for (const edge of edges) trace(context, picture, edge, false);
    context.stroke();
    context.beginPath();
    for (const edge of edges) arrowHead(context, picture, edge, Math.max(own ? ARROW : ARROW * 0.8, 3 / scale));
    context.fill();
  }
}

/** Straight where x or y stays the same, otherwise a curve with vertical ends; edges of chips are straight. */
function trace(context: CanvasRenderingContext2D, { scene, layout }: Picture, edge: number, isFar: boolean): void {
  const { points, starts } = layout;
  const isChip = scene.items[scene.edges[edge].from].isChip;
  let [x, y] = [points[starts[edge]], points[starts[edge] + 1]];
  context.moveTo(x, y);
  for (let i = starts[edge] + 2; i < starts[edge + 1]; i += 2) {
    const [toX, toY] = [points[i], points[i + 1]];
    const middle = (y + toY) / 2;
    if (isFar || isChip || Math.abs(toX - x) < STRAIGHT || Math.abs(toY - y) < STRAIGHT) context.lineTo(toX, toY);
    else context.bezierCurveTo(x, middle, toX, middle, toX, toY);
    [x, y] = [toX, toY];
  }
}

/** Edges reach boxes from above, those of chips from the left. */
function arrowHead(context: CanvasRenderingContext2D, { scene, layout }: Picture, edge: number, size: number): void {
  const end = layout.starts[edge + 1];
  const [x, y] = [layout.points[end - 2], layout.points[end - 1]];
  context.moveTo(x, y);
  if (scene.items[scene.edges[edge].from].isChip) {
    context.lineTo(x - size, y - size / 2);
    context.lineTo(x - size, y + size / 2);
  } else {
    context.lineTo(x - size / 2, y - size);
    context.lineTo(x + size / 2, y - size);
  }
  context.closePath();
}

/** Nothing comes in, or nothing goes out: a bar before that border says that the edge is not merely out of sight. */
export function paintEndMarks(context: CanvasRenderingContext2D, state: GraphState, scale: number): void {
  if (state.selectedItem < 0) return;
  const { startsHere, endsHere } = state.dependencies;
  const box = itemArea(state.picture.layout, state.selectedItem);
  const thick = Math.max(3, 2 / scale);
  context.fillStyle = state.theme.accent;
  for (const [shown, y] of [[startsHere, box.y - 5 - thick], [endsHere, box.y + box.height + 5]] as const) {
    if (shown) context.fillRect(box.x + box.width * 0.2, y, box.width * 0.6, thick);
  }
}
