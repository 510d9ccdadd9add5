/**
 * The whole graph as one image. While the camera moves over thousands of boxes that are specks anyway, this image is
 * moved instead; as soon as it rests, everything is drawn anew.
 */
import { wholeArea, type Camera } from "./camera";
import { paintBase } from "./graph_paint";
import { SPECK_SCALE } from "./graph_specks";
import { looksAlike, type GraphState } from "./graph_state";

const LONGEST = 2400; // pixels of the image, in either direction
const MANY = 600; // boxes; fewer are drawn as fast as an image
const LARGEST_ZOOM = 1.25; // how far the image may be blown up while it moves

interface Made {
  readonly state: GraphState;
  readonly image: OffscreenCanvas;
  /** Pixels per unit of the drawing. */
  readonly zoom: number;
}

export class Sketch {
  private made: Made | null = null;

  /** Whether an image can stand for this view. */
  private static suits(state: GraphState, camera: Camera): boolean {
    return camera.scale < SPECK_SCALE && state.picture.scene.items.length >= MANY;
  }

  isReady(state: GraphState, camera: Camera, density: number): boolean {
    const { made } = this;
    return (
      made !== null && Sketch.suits(state, camera) && looksAlike(made.state, state) &&
      camera.scale * density <= made.zoom * LARGEST_ZOOM
    );
  }

  /** Makes the image unless there is a fitting one, or none is needed. */
  prepare(state: GraphState, camera: Camera, density: number): void {
    if (!Sketch.suits(state, camera) || this.isReady(state, camera, density)) return;
    const { width, height } = wholeArea(state.picture.layout);
    const zoom = Math.min(LONGEST / width, LONGEST / height, SPECK_SCALE * density);
    // Of a graph so large that its image would be blurred at this zoom, only a small part is in view.
    if (camera.scale * density > zoom * LARGEST_ZOOM) return;
    const image = new OffscreenCanvas(Math.max(1, Math.ceil(width * zoom)), Math.max(1, Math.ceil(height * zoom)));
    const context = image.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.setTransform(zoom, 0, 0, zoom, 0, 0);
    paintBase(context as unknown as CanvasRenderingContext2D, state, wholeArea(state.picture.layout), camera.scale);
    this.made = { state, image, zoom };
  }

  /** In units of the drawing, as everything else. */
  paint(context: CanvasRenderingContext2D): void {
    if (!this.made) return;
    const { image, zoom } = this.made;
    context.drawImage(image, 0, 0, image.width / zoom, image.height / zoom);
  }
}
