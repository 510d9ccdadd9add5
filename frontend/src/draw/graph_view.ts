/**
 * The graph on a canvas: keeps the camera, listens to the pointer, draws at most once per frame.
 *
 *     set(...)  ─► state ─┐
 *     pointer   ─► camera ─┴─► one animation frame ─► paintGraph
 */
import type { Picture } from "../layout/client";
import {
  bringIntoView, fitCamera, itemArea, keepInPlace, pan, toWorld, wholeArea, zoomAt, type Camera, type Insets,
} from "./camera";
import { paintGraph } from "./graph_paint";
import { graphState, type GraphInput, type GraphState } from "./graph_state";
import { hitTest, type Hit } from "./hit";

export interface GraphEvents {
  /** A click on a node, or on one of its cells (then `record` is that tensor, else -1). */
  readonly select?: (node: number, record: number) => void;
  /** A click that opens or closes a group; `address` is the group's. */
  readonly fold?: (address: string) => void;
  /** null when the pointer leaves; x and y are in pixels of the canvas. */
  readonly hover?: (hit: Hit | null, x: number, y: number) => void;
  readonly moved?: (camera: Camera) => void;
  /** How long painting took, for whoever measures. */
  readonly painted?: (milliseconds: number) => void;
}

const CLICK_SLACK = 4; // pixels a finger may tremble before a click becomes a drag

export class GraphView {
  private state: GraphState | null = null;
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private viewport = { width: 0, height: 0 };
  private hovered = -1;
  private focused = false;
  private pending = 0;
  private touched = false;
  private anchor: string | null = null;
  private readonly context: CanvasRenderingContext2D;
  private readonly observer: ResizeObserver;
  private readonly stop = new AbortController();

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly events: GraphEvents = {},
    private insets: Insets = { top: 64, right: 24, bottom: 64, left: 24 },
  ) {
    this.context = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    this.listen();
  }

  /** Shows something else. The camera stays where the user has put it. */
  set(input: GraphInput): void {
    const before = this.state;
    this.state = graphState(input, before);
    if (before && before.picture !== input.picture) this.keepAnchor(before.picture, input.picture);
    if (!this.touched) this.fit();
    this.redraw();
  }

  /** The next picture keeps this item in its place on the screen: the group that is being folded. */
  anchorAt(key: string): void {
    this.anchor = key;
  }

  /** What is shown now; for the mini-map and for tests. */
  get current(): GraphState | null {
    return this.state;
  }

  get currentCamera(): Camera {
    return this.camera;
  }

  get size(): { readonly width: number; readonly height: number } {
    return this.viewport;
  }

  look(camera: Camera): void {
    this.camera = camera;
    this.touched = true;
    this.events.moved?.(camera);
    this.redraw();
  }

  /** Shows everything, and goes on doing so while the stage changes its size, until the camera is moved. */
  fit(): void {
    if (!this.state || this.viewport.width === 0) return;
    this.look(fitCamera(wholeArea(this.state.picture.layout), this.viewport, this.insets));
    this.touched = false;
  }

  zoom(factor: number): void {
    this.look(zoomAt(this.camera, factor, this.viewport.width / 2, this.viewport.height / 2));
  }

  /** Moves just enough to show an item. */
  reveal(item: number): void {
    if (!this.state || item < 0) return;
    const { camera, viewport, insets } = this;
    const next = bringIntoView(camera, itemArea(this.state.picture.layout, item), viewport, insets);
    const stays = next.x === camera.x && next.y === camera.y && next.scale === camera.scale;
    if (!stays) this.look(next);
  }

  /** Until the user has moved the camera, the whole graph stays fitted into what is left free. */
  setInsets(insets: Insets): void {
    this.insets = insets;
    if (!this.touched) this.fit();
  }

  redraw(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  /** At once: for whoever has to see the result in this very frame. */
  paint(): void {
    if (!this.state || this.viewport.width === 0) return;
    const begin = performance.now();
    const { camera, viewport, hovered, focused } = this;
    paintGraph(this.context, this.state, { camera, viewport, hovered, focused, density: devicePixelRatio });
    this.events.painted?.(performance.now() - begin);
  }

  close(): void {
    cancelAnimationFrame(this.pending);
    this.observer.disconnect();
    this.stop.abort();
  }

  private keepAnchor(before: Picture, after: Picture): void {
    const find = ({ scene }: Picture): number => scene.items.findIndex((item) => item.key === this.anchor);
    const [from, to] = this.anchor ? [find(before), find(after)] : [-1, -1];
    this.anchor = null;
    this.hovered = -1;
    if (from < 0 || to < 0) return;
    this.look(keepInPlace(this.camera, itemArea(before.layout, from), itemArea(after.layout, to)));
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    this.viewport = { width: clientWidth, height: clientHeight };
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    if (!this.touched) this.fit();
    this.paint(); // resizing has cleared the canvas: waiting for the next frame would flicker
  }

  private listen(): void {
    const { canvas } = this;
    const { signal } = this.stop;
    let drag: { x: number; y: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    }, { signal });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return this.hover(event.offsetX, event.offsetY);
      const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < CLICK_SLACK) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: true };
      this.look(pan(this.camera, dx, dy));
    }, { signal });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.click(event.offsetX, event.offsetY);
      drag = null;
    }, { signal });
    canvas.addEventListener("pointercancel", () => (drag = null), { signal });
    canvas.addEventListener("pointerleave", () => this.setHover(null, 0, 0), { signal });
    canvas.addEventListener("dblclick", (event) => this.doubleClick(event.offsetX, event.offsetY), { signal });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    canvas.addEventListener("focus", () => this.setFocus(canvas.matches(":focus-visible")), { signal });
    canvas.addEventListener("blur", () => this.setFocus(false), { signal });
  }

  hitAt(x: number, y: number): Hit | null {
    if (!this.state) return null;
    return hitTest(this.state.picture, this.state.strips, ...toWorld(this.camera, x, y), this.camera.scale);
  }

  private click(x: number, y: number): void {
    const hit = this.hitAt(x, y);
    if (!hit || !this.state) return;
    const { scene } = this.state.picture;
    const { node, group } = scene.items[hit.item];
    if (hit.part === "fold") this.fold(hit.item);
    else if (hit.part === "cell" && hit.record >= 0) {
      this.events.select?.(scene.model.nodeOfRecord[hit.record], group >= 0 ? -1 : hit.record);
    } else if (hit.part === "box") this.events.select?.(node, -1);
  }

  private doubleClick(x: number, y: number): void {
    const hit = this.hitAt(x, y);
    const item = hit?.part === "box" ? this.state?.picture.scene.items[hit.item] : undefined;
    if (hit && item && item.group >= 0) this.fold(hit.item);
  }

  private fold(item: number): void {
    if (!this.state) return;
    const { items, model } = this.state.picture.scene;
    this.anchorAt(items[item].key);
    this.events.fold?.(model.groups[items[item].group].address);
  }

  /** A wheel zooms; with shift, or on a touchpad that moves sideways too, it scrolls. */
  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const scrolls = event.shiftKey || (!event.ctrlKey && event.deltaX !== 0);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (scrolls) {
      const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      this.look(pan(this.camera, -across * lines, event.shiftKey ? 0 : -event.deltaY * lines));
      return;
    }
    const speed = event.ctrlKey ? 0.01 : 0.0016;
    this.look(zoomAt(this.camera, Math.exp(-event.deltaY * lines * speed), event.offsetX, event.offsetY));
  }

  private hover(x: number, y: number): void {
    this.setHover(this.hitAt(x, y), x, y);
  }

  private setHover(hit: Hit | null, x: number, y: number): void {
    const item = hit && hit.part !== "inside" ? hit.item : -1;
    this.canvas.style.cursor = item >= 0 ? "pointer" : "grab";
    this.events.hover?.(hit, x, y);
    if (item === this.hovered) return;
    this.hovered = item;
    this.redraw();
  }

  private setFocus(focused: boolean): void {
    this.focused = focused;
    this.redraw();
  }
}
