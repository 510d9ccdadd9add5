/** Surfaces that draw one picture, anew when another is set and when the theme changes. */
import { Surface } from "./surface";
import { onThemeChange } from "./theme";

export abstract class ThemedSurface extends Surface {
  constructor(canvas: HTMLCanvasElement) {
    super(canvas);
    const stop = onThemeChange(() => this.redraw());
    this.stop.signal.addEventListener("abort", stop);
  }
}

export abstract class PictureView<Picture> extends ThemedSurface {
  protected picture: Picture | null = null;

  set(picture: Picture | null): void {
    this.picture = picture;
    this.paint();
  }
}

/** Rows below each other, of which those in view are drawn. */
export abstract class RowsView<Picture> extends PictureView<Picture> {
  protected top = 0;

  scroll(top: number): void {
    if (top === this.top) return;
    this.top = top;
    this.paint();
  }
}
