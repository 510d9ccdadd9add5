/** One frame of the graph, from back to front. */
import { itemArea, visibleArea, type Camera, type Rect, type Size } from "./camera";
import { itemsIn } from "./culling";
import { paintBox } from "./graph_boxes";
import { paintAllEdges, paintEndMarks, paintOwnEdges } from "./graph_edges";
import { paintFrame, paintTitles } from "./graph_groups";
import { paintSpecks, SPECK_SCALE } from "./graph_specks";
import type { GraphState } from "./graph_state";

export interface Frame {
  readonly camera: Camera;
  readonly viewport: Size;
  /** Device pixels per CSS pixel. */
  readonly density: number;
  readonly hovered: number;
  readonly focused: boolean;
}

export function paintGraph(context: CanvasRenderingContext2D, state: GraphState, frame: Frame): void {
  const { camera, viewport, density } = frame;
  const { items } = state.picture.scene;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.fillStyle = state.theme.background;
  context.fillRect(0, 0, viewport.width, viewport.height);

  const zoom = density * camera.scale;
  const toWorldUnits = (): void => context.setTransform(zoom, 0, 0, zoom, -camera.x * zoom, -camera.y * zoom);
  toWorldUnits();
  const area = visibleArea(camera, viewport);
  const visible = itemsIn(state.picture.scene, state.picture.layout, widen(area, 12));
  const frames = visible.filter((item) => items[item].open);
  for (const item of frames) paintFrame(context, state, item, camera.scale);
  if (state.allEdges) paintAllEdges(context, state, area, camera.scale);
  if (camera.scale < SPECK_SCALE) paintSpecks(context, state, visible, camera.scale);
  else for (const item of visible) if (!items[item].open) paintBox(context, state, item, camera.scale);
  paintOwnEdges(context, state, camera.scale);
  paintEndMarks(context, state, camera.scale);
  if (frame.hovered >= 0) outline(context, state, frame.hovered, state.theme.inkSoft, 1.5 / camera.scale);
  if (state.selectedItem >= 0) {
    outline(context, state, state.selectedItem, state.theme.accent, Math.max(2.6, 2.2 / camera.scale), frame.focused);
  }
  context.setTransform(density, 0, 0, density, 0, 0);
  paintTitles(context, state, frames, camera);
}

const widen = (area: Rect, by: number): Rect => ({
  x: area.x - by, y: area.y - by, width: area.width + 2 * by, height: area.height + 2 * by,
});

function outline(
  context: CanvasRenderingContext2D,
  state: GraphState,
  item: number,
  color: string,
  width: number,
  halo = false,
): void {
  const box = itemArea(state.picture.layout, item);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, state.picture.scene.items[item].open ? 10 : 6);
  context.stroke();
  if (!halo) return;
  context.globalAlpha = 0.35;
  context.lineWidth = 3 * width;
  context.stroke();
  context.globalAlpha = 1;
}
