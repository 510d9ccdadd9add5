/** The whole graph in a corner, with a frame around what is on the stage. */
import { itemArea, visibleArea, wholeArea, type Camera, type Rect, type Size } from "./camera";
import { looksAlike, tintOf, type GraphState } from "./graph_state";
import { SHADE_ABSENT } from "../model/heat";

const MARGIN = 6;

interface Fit {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

/** How the whole is placed in the map. */
export function minimapFit(whole: Rect, size: Size): Fit {
  const width = size.width - 2 * MARGIN;
  const height = size.height - 2 * MARGIN;
  const scale = Math.min(width / Math.max(1, whole.width), height / Math.max(1, whole.height));
  return {
    scale,
    x: MARGIN + (width - whole.width * scale) / 2,
    y: MARGIN + (height - whole.height * scale) / 2,
  };
}

/** The camera that centres the stage on a point of the map. */
export function cameraFromMinimap(
  layoutSize: Rect,
  size: Size,
  x: number,
  y: number,
  camera: Camera,
  viewport: Size,
): Camera {
  const fit = minimapFit(layoutSize, size);
  const view = visibleArea(camera, viewport);
  return {
    ...camera,
    x: (x - fit.x) / fit.scale - view.width / 2,
    y: (y - fit.y) / fit.scale - view.height / 2,
  };
}

export class Minimap {
  private readonly context: CanvasRenderingContext2D;
  private base: { state: GraphState; image: OffscreenCanvas } | null = null;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d") as CanvasRenderingContext2D;
  }

  private markSelected(state: GraphState, fit: Fit): void {
    const box = itemArea(state.picture.layout, state.selectedItem);
    const [width, height] = [Math.max(4, box.width * fit.scale), Math.max(3, box.height * fit.scale)];
    this.context.fillStyle = state.theme.accent;
    this.context.fillRect(fit.x + box.x * fit.scale, fit.y + box.y * fit.scale, width, height);
  }

  /** The boxes are drawn once for all selections; moving the camera only redraws the frame. */
  paint(state: GraphState, camera: Camera, viewport: Size): void {
    const size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
    if (size.width === 0) return;
    const density = devicePixelRatio;
    const [width, height] = [Math.round(size.width * density), Math.round(size.height * density)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      [this.canvas.width, this.canvas.height] = [width, height];
      this.base = null;
    }
    const fit = minimapFit(wholeArea(state.picture.layout), size);
    if (!this.base || !looksAlike(this.base.state, state)) {
      this.base = { state, image: drawBoxes(state, fit, width, height, density) };
    }
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.drawImage(this.base.image, 0, 0);
    this.context.setTransform(density, 0, 0, density, 0, 0);
    if (state.selectedItem >= 0) this.markSelected(state, fit);
    const view = visibleArea(camera, viewport);
    const left = Math.max(1, fit.x + view.x * fit.scale);
    const top = Math.max(1, fit.y + view.y * fit.scale);
    const right = Math.min(size.width - 1, fit.x + (view.x + view.width) * fit.scale);
    const bottom = Math.min(size.height - 1, fit.y + (view.y + view.height) * fit.scale);
    this.context.strokeStyle = state.theme.accent;
    this.context.lineWidth = 1.5;
    this.context.strokeRect(left, top, Math.max(4, right - left), Math.max(4, bottom - top));
  }
}

function drawBoxes(state: GraphState, fit: Fit, width: number, height: number, density: number): OffscreenCanvas {
  const image = new OffscreenCanvas(width, height);
  const context = image.getContext("2d") as OffscreenCanvasRenderingContext2D;
  const { scene, layout } = state.picture;
  const zoom = fit.scale * density;
  context.setTransform(zoom, 0, 0, zoom, fit.x * density, fit.y * density);
  scene.items.forEach((item, i) => {
    const box = itemArea(layout, i);
    context.fillStyle = item.open ? state.theme.line : boxFill(state, i);
    context.fillRect(box.x, box.y, box.width, box.height);
  });
  return image;
}

function boxFill(state: GraphState, item: number): string {
  const shade = state.shades ? state.shades[tintOf(state, item, state.faces[item])] : SHADE_ABSENT;
  if (shade !== SHADE_ABSENT) return state.table.fill[shade];
  return state.theme.lineStrong;
}
