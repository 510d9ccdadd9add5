/**
 * The graph on a canvas: keeps the camera, listens to the pointer, draws at most once per frame.
 *
 *     set(...)  ─► state ─┐
 *     pointer   ─► camera ─┴─► one animation frame ─► paintGraph
 */
import type { Picture } from "../model/scene";
import {
  bringIntoView, entryOf, fitCamera, isSame, itemArea, keepInPlace, pan, toWorld, visibleArea, wholeArea, zoomAt,
  type Camera, type Insets, type Size, type Spot,
} from "./camera";
import { itemsIn } from "./culling";
import { Glide } from "./glide";
import { paintGraph, type Carried } from "./graph_paint";
import { listenToPointer } from "./graph_pointer";
import { Sketch } from "./graph_sketch";
import { graphState, type GraphInput, type GraphState } from "./graph_state";
import { hitTest, type Hit } from "./hit";

export interface GraphEvents {
  /** A click on a node, or on one of its cells (then `record` is that tensor, else -1). */
  readonly select?: (node: number, record: number) => void;
  /** A click that opens or closes a module. */
  readonly fold?: (item: number) => void;
  /** null when the pointer leaves; x and y are in pixels of the canvas. */
  readonly hover?: (hit: Hit | null, x: number, y: number) => void;
  /** The user has moved the camera; null: everything is fitted into view again. */
  readonly moved?: (camera: Camera | null) => void;
  /** A box was dragged somewhere: its new upper left corner. */
  readonly place?: (item: number, x: number, y: number) => void;
  /** How long painting took, for whoever measures. */
  readonly painted?: (milliseconds: number) => void;
}

const MOST_GLIDING = 600; // boxes; more are simply there
const REST_MS = 130; // without a movement, before what was drawn roughly is drawn well

/** What keeps its place when the next picture comes; `spot` if it was carried elsewhere meanwhile. */
interface Anchor {
  readonly key: string;
  readonly spot: Spot | null;
}

export class GraphView {
  private state: GraphState | null = null;
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private viewport = { width: 0, height: 0 };
  private hovered = -1;
  private focused = false;
  private pending = 0;
  private touched = false;
  private awaited = -1; // an item that is to be revealed
  private anchor: Anchor | null = null;
  private carried: Carried | null = null;
  private arranging = false;
  private glide: Glide | null = null;
  private readonly sketch = new Sketch();
  private moving = 0; // a timer that runs until the camera rests
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
    this.show(graphState(input, this.state));
  }

  /** The same, derived already. */
  show(state: GraphState): void {
    const before = this.state;
    if (state === before) return;
    this.state = state;
    if (before && before.picture !== state.picture) this.keepAnchor(before.picture, state.picture);
    if (!this.touched) this.fit();
    this.redraw();
  }

  /** Every drag of a box moves it; otherwise only with the alt key. Tools that come up must not move the picture. */
  arrange(is: boolean): void {
    this.arranging = is;
    if (is) this.touched = true;
  }

  /** The next picture keeps this item in its place on the screen: the group that is being folded. */
  anchorAt(key: string): void {
    this.anchor = { key, spot: null };
  }

  /** What is shown now; for the mini-map and for tests. */
  get current(): GraphState | null {
    return this.state;
  }
  get currentCamera(): Camera {
    return this.camera;
  }
  get size(): Size {
    return this.viewport;
  }

  look(camera: Camera, byHand = false): void {
    this.camera = camera;
    this.touched = true;
    if (byHand) this.events.moved?.(camera);
    this.redraw();
  }

  /** Shows everything, and goes on doing so while the stage changes its size, until the camera is moved. */
  fit(byHand = false): void {
    if (!this.state || this.viewport.width === 0) return;
    const { layout } = this.state.picture;
    this.look(fitCamera(wholeArea(layout), this.viewport, this.insets, layout.entry[0]));
    this.touched = false;
    if (byHand) this.events.moved?.(null);
  }

  zoom(factor: number): void {
    this.look(zoomAt(this.camera, factor, this.viewport.width / 2, this.viewport.height / 2), true);
  }

  /** Moves just enough to show an item; before there is any room, as soon as there is. */
  reveal(item: number): void {
    const { state, camera, viewport, insets } = this;
    this.awaited = viewport.width === 0 ? item : -1;
    if (!state || item < 0 || this.awaited >= 0) return;
    const next = bringIntoView(camera, itemArea(state.picture.layout, item), viewport, insets);
    if (!isSame(next, camera)) this.look(next);
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
    const { camera, viewport, hovered, focused, carried, sketch } = this;
    const state = this.glide?.state(this.state) ?? this.state;
    if (state === this.state) this.glide = null;
    else this.redraw();
    const density = devicePixelRatio;
    const isRough = this.moving !== 0 && sketch.isReady(state, camera, density);
    const rough = isRough ? (context: CanvasRenderingContext2D) => sketch.paint(context) : null;
    paintGraph(this.context, state, { camera, viewport, hovered, focused, carried, density, sketch: rough });
    this.events.painted?.(performance.now() - begin);
  }

  /** By the hand of the user: rough while it lasts, if there is much to draw. */
  private move(camera: Camera): void {
    clearTimeout(this.moving);
    this.moving = window.setTimeout(() => {
      this.moving = 0;
      this.redraw();
    }, REST_MS);
    // Made when a hand begins to move, and kept: most steps and selections are looked at without moving anything.
    if (this.state) this.sketch.prepare(this.state, camera, devicePixelRatio);
    this.look(camera, true);
  }

  close(): void {
    cancelAnimationFrame(this.pending);
    clearTimeout(this.moving);
    this.observer.disconnect();
    this.stop.abort();
  }

  private keepAnchor(before: Picture, after: Picture): void {
    const { anchor } = this;
    this.anchor = null;
    this.hovered = -1;
    this.carried = null;
    const find = ({ scene }: Picture): number => scene.items.findIndex((item) => item.key === anchor?.key);
    const to = anchor ? find(after) : -1;
    const from = anchor && !anchor.spot ? find(before) : -1;
    const was = anchor?.spot ?? (from >= 0 ? entryOf(before.layout, from) : null);
    if (was && to >= 0) {
      const now = entryOf(after.layout, to);
      this.look(keepInPlace(this.camera, was, now));
      const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches || after.scene.items.length > MOST_GLIDING;
      this.glide = isCalm ? null : new Glide(before, after, now.x - was.x, now.y - was.y);
    }
    // Another network may lie somewhere else entirely; an empty stage helps nobody.
    else if (itemsIn(after.scene, after.layout, visibleArea(this.camera, this.viewport)).length === 0) this.fit();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    this.viewport = { width: clientWidth, height: clientHeight };
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    if (!this.touched) this.fit();
    this.reveal(this.awaited);
    this.paint(); // resizing has cleared the canvas: waiting for the next frame would flicker
  }

  private listen(): void {
    const { canvas, stop: { signal } } = this;
    listenToPointer(canvas, signal, {
      grab: (x, y, withKey) => this.grab(x, y, withKey),
      carry: (dx, dy) => this.carry(dx, dy),
      drop: () => this.drop(),
      pan: (dx, dy) => this.move(pan(this.camera, dx, dy)),
      zoom: (factor, x, y) => this.move(zoomAt(this.camera, factor, x, y)),
      click: (x, y) => this.click(x, y),
      doubleClick: (x, y) => this.doubleClick(x, y),
      hover: (x, y) => this.setHover(this.hitAt(x, y), x, y),
      leave: () => this.setHover(null, 0, 0),
    });
    canvas.addEventListener("focus", () => this.setFocus(canvas.matches(":focus-visible")), { signal });
    canvas.addEventListener("blur", () => this.setFocus(false), { signal });
  }

  private grab(x: number, y: number, withKey: boolean): boolean {
    const hit = this.arranging || withKey ? this.hitAt(x, y) : null;
    this.carried = hit && hit.part !== "inside" && this.events.place ? { item: hit.item, dx: 0, dy: 0 } : null;
    return this.carried !== null;
  }

  private carry(dx: number, dy: number): void {
    if (!this.carried) return;
    this.carried = { ...this.carried, dx: dx / this.camera.scale, dy: dy / this.camera.scale };
    this.setHover(null, 0, 0);
    this.redraw();
  }

  private drop(): void {
    const { carried, state } = this;
    this.carried = null;
    this.redraw();
    if (!carried || !state) return;
    const [{ scene, layout }, { item, dx, dy }] = [state.picture, carried];
    const entry = entryOf(layout, item);
    this.anchor = { key: scene.items[item].key, spot: { x: entry.x + dx, y: entry.y + dy } };
    this.touched = true;
    this.events.place?.(item, layout.x[item] + dx, layout.y[item] + dy);
  }

  hitAt(x: number, y: number): Hit | null {
    if (!this.state) return null;
    return hitTest(this.state.picture, this.state.strips, ...toWorld(this.camera, x, y), this.camera.scale);
  }

  private click(x: number, y: number): void {
    const hit = this.hitAt(x, y);
    if (!hit || !this.state) return;
    const { scene } = this.state.picture;
    const { node, address } = scene.items[hit.item];
    if (hit.part === "fold") this.fold(hit.item);
    else if (hit.part === "cell" && hit.record >= 0) {
      this.events.select?.(scene.model.nodeOfRecord[hit.record], address ? -1 : hit.record);
    } else if (hit.part === "box") this.events.select?.(node, -1);
  }

  private doubleClick(x: number, y: number): void {
    const hit = this.hitAt(x, y);
    const item = hit?.part === "box" ? this.state?.picture.scene.items[hit.item] : undefined;
    if (hit && item?.address) this.fold(hit.item);
  }

  private fold(item: number): void {
    if (this.state) this.anchorAt(this.state.picture.scene.items[item].key);
    this.events.fold?.(item);
  }

  private setHover(hit: Hit | null, x: number, y: number): void {
    const item = hit && hit.part !== "inside" ? hit.item : -1;
    this.canvas.style.cursor = item < 0 ? "grab" : this.arranging ? "move" : "pointer";
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
