/**
 * One plot. `set` says what to draw; a new uPlot is made only if the structure has changed. Points are thinned to the
 * window in view, again after each zoom and resize. The vertical mark is an element: moving it draws nothing anew.
 */
import uPlot from "uplot";
import { onThemeChange, pageTheme, parseRgb } from "../../draw/theme";
import { resolvedColor } from "./colors";
import { columns, extent } from "./data";
import { alphaOf, optionsFor, structureKey, type Paints, type Structure } from "./options";
import type { Range } from "./value_range";

/** The plotting area in pixels of the page, relative to the canvas, and where values are in it. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Pixels from the left of the canvas. */
  at(x: number): number;
  /** Pixels from the top of the canvas. */
  level(y: number): number;
}

export type Background = (context: CanvasRenderingContext2D, area: Area) => void;

export interface Settings extends Structure {
  readonly height: number;
  readonly mark: number | null;
  readonly range: Range | null;
  readonly background: Background | null;
  /** Of the axis of values; null: all of them. */
  readonly limits: Range | null;
  /** Owner of the curves that stand out. */
  readonly highlight: string | null;
}

export interface Heard {
  /** The pointer is over a place, or has gone. */
  hover(x: number | null, at: { x: number; y: number }): void;
  /** A part was chosen by dragging; null: double click, back to everything. */
  zoom(range: Range | null): void;
}

export class CurvePlot {
  private plot: uPlot | null = null;
  private settings: Settings | null = null;
  private key = "";
  private readonly mark = document.createElement("div");
  private readonly stopTheme: () => void;
  private readonly observer: ResizeObserver;

  constructor(private readonly host: HTMLElement, private readonly heard: Heard) {
    this.mark.className = "curves-mark";
    pageTheme(); // listens for changes first, so that redrawing finds the new colours
    this.stopTheme = onThemeChange(() => this.plot?.redraw(false, true));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
  }

  set(settings: Settings): void {
    const before = this.settings;
    this.settings = settings;
    const key = structureKey(settings);
    if (!this.plot || key !== this.key) this.build(key);
    else if (before?.curves !== settings.curves || !sameRange(before?.range, settings.range)) this.refresh();
    else if (!sameRange(before.limits, settings.limits)) this.refresh();
    else if (before.highlight !== settings.highlight) this.applyHighlight(true);
    else if (before.background !== settings.background) this.plot.redraw(false, false);
    if (before && before.height !== settings.height) this.resize();
    this.placeMark();
  }

  /** Pixels from the left of the plotting area -> x. */
  valueAt(left: number): number {
    return this.plot ? this.plot.posToVal(left, "x") : NaN;
  }

  /** Puts the hairline at a place, or takes it away. */
  point(x: number | null): { x: number; y: number } {
    const { plot } = this;
    if (!plot) return { x: 0, y: 0 };
    const { min, max } = plot.scales.x;
    const outside = x === null || x < (min ?? -Infinity) || x > (max ?? Infinity);
    const left = outside ? -10 : plot.valToPos(x, "x");
    plot.setCursor({ left, top: outside ? -10 : plot.over.clientHeight / 2 }, false);
    const box = plot.over.getBoundingClientRect();
    return { x: box.left + left, y: box.top + box.height / 2 };
  }

  /** Where the plotting area is on the page. */
  box(): DOMRect | null {
    return this.plot?.over.getBoundingClientRect() ?? null;
  }

  close(): void {
    this.stopTheme();
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private build(key: string): void {
    const settings = this.settings as Settings;
    this.plot?.destroy();
    this.key = key;
    const size = { width: Math.max(40, this.host.clientWidth), height: settings.height };
    const options = optionsFor(settings, this.paints(), size);
    options.hooks = {
      drawClear: [(plot) => this.paintBackground(plot)],
      setSelect: [(plot) => this.selected(plot)],
    };
    this.plot = new uPlot(options, undefined, this.host);
    const { over } = this.plot;
    over.append(this.mark);
    over.addEventListener("pointermove", (event) => this.heard.hover(this.pointed(event), at(event)));
    over.addEventListener("pointerleave", (event) => this.heard.hover(null, at(event)));
    over.addEventListener("dblclick", () => settings.zoomable && this.heard.zoom(null));
    this.refresh();
  }

  private pointed(event: PointerEvent): number {
    return this.valueAt(event.clientX - (this.box()?.left ?? 0));
  }

  /** New points, or another window on them. */
  private refresh(): void {
    const { plot, settings } = this;
    if (!plot || !settings) return;
    const [from, to] = wide(settings.range ?? extent(settings.curves) ?? [0, 1]);
    const window = { from, to, columns: plot.width, log: settings.log };
    this.applyHighlight(false);
    plot.batch(() => {
      plot.setData(columns(settings.curves, window), false);
      plot.setScale("x", { min: from, max: to });
    });
    this.placeMark();
  }

  private applyHighlight(redraw: boolean): void {
    const { plot, settings } = this;
    if (!plot || !settings) return;
    const lines = plot.series.slice(plot.series.length - settings.curves.length);
    settings.curves.forEach((curve, i) => (lines[i].alpha = alphaOf(curve, settings.highlight)));
    if (redraw) plot.redraw(false, false);
  }

  private resize(): void {
    const { plot, settings } = this;
    const width = this.host.clientWidth;
    if (!plot || !settings || width === 0) return;
    if (plot.width === width && plot.height === settings.height) return;
    plot.setSize({ width, height: settings.height });
    this.refresh();
  }

  private placeMark(): void {
    const { plot, settings } = this;
    if (!plot || !settings) return;
    const { min, max } = plot.scales.x;
    const inside = settings.mark !== null && settings.mark >= (min ?? NaN) && settings.mark <= (max ?? NaN);
    this.mark.hidden = !inside;
    if (inside) this.mark.style.transform = `translateX(${plot.valToPos(settings.mark as number, "x")}px)`;
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.heard.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
  }

  private paintBackground(plot: uPlot): void {
    const draw = this.settings?.background;
    if (!draw) return;
    const scale = uPlot.pxRatio;
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.setTransform(scale, 0, 0, scale, 0, 0);
    draw(plot.ctx, {
      left: left / scale,
      top: top / scale,
      width: width / scale,
      height: height / scale,
      at: (x) => plot.valToPos(x, "x", true) / scale,
      level: (y) => plot.valToPos(y, "y", true) / scale,
    });
    plot.ctx.restore();
  }

  private paints(): Paints {
    const color = (curve: number): string => resolvedColor(this.settings?.curves[curve]?.color ?? "gray");
    return {
      limits: () => this.settings?.limits ?? null,
      line: color,
      fill: (curve) => `rgba(${parseRgb(color(curve)).join()}, 0.16)`,
      grid: () => pageTheme().line,
      ink: () => pageTheme().inkFaint,
      font: `11px ${pageTheme().numberFont}`,
    };
  }
}

const at = (event: PointerEvent): { x: number; y: number } => ({ x: event.clientX, y: event.clientY });

const sameRange = (a: Range | null | undefined, b: Range | null): boolean => a?.[0] === b?.[0] && a?.[1] === b?.[1];

/** A single point needs some room on both sides. */
const wide = ([from, to]: Range): Range => (to > from ? [from, to] : [from - 0.5, to + 0.5]);
