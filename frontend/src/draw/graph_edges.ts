/** Arrows: those of the selected tensor, or all. */
import type { LayoutResult } from "../layout/types";
import { itemArea, type Rect } from "./camera";
import { edgesIn } from "./culling";
import type { GraphState } from "./graph_state";

const ARROW = 7;
const FINE_SCALE = 0.3; // below that arrow heads are specks

/** Faint, below the boxes. One path for all of them: stroking once is much faster than stroking each. */
export function paintAllEdges(context: CanvasRenderingContext2D, state: GraphState, area: Rect, scale: number): void {
  const { layout } = state.picture;
  const visible = edgesIn(state.extents, area);
  context.beginPath();
  for (const edge of visible) trace(context, layout, edge, scale < 0.12);
  context.strokeStyle = state.theme.lineStrong;
  context.lineWidth = Math.max(1, 0.8 / scale);
  context.stroke();
  if (scale < FINE_SCALE) return;
  context.fillStyle = state.theme.lineStrong;
  context.beginPath();
  for (const edge of visible) arrowHead(context, layout, edge, ARROW * 0.85);
  context.fill();
}

/** Strong where the selected tensor has the edge, thin where only another role or pass of its node has. */
export function paintOwnEdges(context: CanvasRenderingContext2D, state: GraphState, scale: number): void {
  const { layout } = state.picture;
  const { arrows } = state.dependencies;
  context.strokeStyle = context.fillStyle = state.theme.accent;
  for (const own of [false, true]) {
    const edges = [...arrows].filter(([, isOwn]) => isOwn === own).map(([edge]) => edge);
    if (edges.length === 0) continue;
    context.lineWidth = Math.max(own ? 2 : 1, (own ? 1.6 : 0.8) / scale);
    context.beginPath();
    for (const edge of edges) trace(context, layout, edge, false);
    context.stroke();
    context.beginPath();
    for (const edge of edges) arrowHead(context, layout, edge, Math.max(own ? ARROW : ARROW * 0.8, 3 / scale));
    context.fill();
  }
}

function trace(context: CanvasRenderingContext2D, layout: LayoutResult, edge: number, straight: boolean): void {
  const { curves, curveStart } = layout;
  const start = curveStart[edge];
  const end = curveStart[edge + 1];
  context.moveTo(curves[start], curves[start + 1]);
  for (let i = start + 2; i < end; i += 6) {
    if (straight) context.lineTo(curves[i + 4], curves[i + 5]);
    else context.bezierCurveTo(curves[i], curves[i + 1], curves[i + 2], curves[i + 3], curves[i + 4], curves[i + 5]);
  }
}

function arrowHead(context: CanvasRenderingContext2D, layout: LayoutResult, edge: number, size: number): void {
  const { curves, curveStart, back } = layout;
  const end = curveStart[edge + 1];
  const [x, y] = [curves[end - 2], curves[end - 1]];
  // Edges reach boxes horizontally, from the left with the flow and from the right against it.
  const toLeft = back[edge] ? size : -size;
  context.moveTo(x, y);
  context.lineTo(x + toLeft, y - size / 2);
  context.lineTo(x + toLeft, y + size / 2);
  context.closePath();
}

/** Nothing comes in, or nothing goes out: a bar before that border says that the edge is not merely out of sight. */
export function paintEndMarks(context: CanvasRenderingContext2D, state: GraphState, scale: number): void {
  if (state.selectedItem < 0) return;
  const { startsHere, endsHere } = state.dependencies;
  const box = itemArea(state.picture.layout, state.selectedItem);
  const thick = Math.max(3, 2 / scale);
  context.fillStyle = state.theme.accent;
  for (const [shown, x] of [[startsHere, box.x - 5 - thick], [endsHere, box.x + box.width + 5]] as const) {
    if (shown) context.fillRect(x, box.y + box.height * 0.2, thick, box.height * 0.6);
  }
}
