/** One frame of the graph, from back to front. */
import { itemArea, visibleArea, type Camera, type Rect, type Size } from "./camera";
import { itemsIn } from "./culling";
import { paintBox } from "./graph_boxes";
import { paintAllEdges, paintEndMarks, paintOwnEdges } from "./graph_edges";
import { paintFrame, paintTitles } from "./graph_groups";
import { paintMarks } from "./graph_marks";
import { paintSpecks, SPECK_SCALE } from "./graph_specks";
import type { GraphState } from "./graph_state";

/** A box on its way to another place, and how far it has come. */
export interface Carried {
  readonly item: number;
  readonly dx: number;
  readonly dy: number;
}

export interface Frame {
  readonly camera: Camera;
  readonly viewport: Size;
  /** Device pixels per CSS pixel. */
  readonly density: number;
  readonly hovered: number;
  readonly focused: boolean;
  readonly carried?: Carried | null;
  /** Draws an image of frames, edges and boxes in their stead. */
  readonly sketch?: ((context: CanvasRenderingContext2D) => void) | null;
}

export function paintGraph(context: CanvasRenderingContext2D, state: GraphState, frame: Frame): void {
  const { camera, viewport, density } = frame;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.fillStyle = state.theme.background;
  context.fillRect(0, 0, viewport.width, viewport.height);

  const zoom = density * camera.scale;
  const toWorldUnits = (): void => context.setTransform(zoom, 0, 0, zoom, -camera.x * zoom, -camera.y * zoom);
  toWorldUnits();
  const area = visibleArea(camera, viewport);
  if (frame.sketch) frame.sketch(context);
  const frames = frame.sketch ? framesIn(state, area) : paintBase(context, state, area, camera.scale);
  paintOwnEdges(context, state, camera.scale);
  paintEndMarks(context, state, camera.scale);
  if (frame.hovered >= 0) outline(context, state, frame.hovered, state.theme.inkSoft, 1.5 / camera.scale);
  if (state.selectedItem >= 0) {
    outline(context, state, state.selectedItem, state.theme.accent, Math.max(2.6, 2.2 / camera.scale), frame.focused);
  }
  if (frame.carried) paintCarried(context, state, frame.carried, camera.scale);
  context.setTransform(density, 0, 0, density, 0, 0);
  paintTitles(context, state, frames, camera);
  paintMarks(context, state, camera);
}

/** The box itself stays until it is dropped; its shadow follows the pointer. */
function paintCarried(
  context: CanvasRenderingContext2D,
  state: GraphState,
  { item, dx, dy }: Carried,
  scale: number,
): void {
  const box = itemArea(state.picture.layout, item);
  context.beginPath();
  context.roundRect(box.x + dx, box.y + dy, box.width, box.height, 6);
  context.globalAlpha = 0.3;
  context.fillStyle = state.theme.accent;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = state.theme.accent;
  context.lineWidth = Math.max(1.5, 1.5 / scale);
  context.stroke();
}

/** Frames, faint edges, boxes. Returns the frames in view, outer ones first. */
export function paintBase(context: CanvasRenderingContext2D, state: GraphState, area: Rect, scale: number): number[] {
  const { items } = state.picture.scene;
  const visible = itemsIn(state.picture.scene, state.picture.layout, widen(area, 12));
  const frames = visible.filter((item) => items[item].open);
  for (const item of frames) paintFrame(context, state, item, scale);
  if (state.allEdges) paintAllEdges(context, state, area, scale);
  if (scale < SPECK_SCALE) paintSpecks(context, state, visible, scale);
  else for (const item of visible) if (!items[item].open) paintBox(context, state, item, scale);
  return frames;
}

function framesIn({ picture: { scene, layout } }: GraphState, area: Rect): number[] {
  return itemsIn(scene, layout, area).filter((item) => scene.items[item].open);
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
