/** A canvas that follows the size of its element and the pixels of the screen; base of all small pictures. */

export abstract class Surface {
  protected readonly context: CanvasRenderingContext2D;
  protected width = 0;
  protected height = 0;
  private readonly observer: ResizeObserver;
  private pending = 0;
  protected readonly stop = new AbortController();

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d") as CanvasRenderingContext2D;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
  }

  /** Draws in pixels of the page; the transform is set and the canvas is empty. */
  protected abstract draw(): void;

  redraw(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint(): void {
    if (this.width === 0 || this.height === 0) return;
    const { context } = this;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.draw();
  }

  close(): void {
    cancelAnimationFrame(this.pending);
    this.observer.disconnect();
    this.stop.abort();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === this.width && clientHeight === this.height && this.canvas.width > 0) return;
    [this.width, this.height] = [clientWidth, clientHeight];
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    this.paint();
  }
}
