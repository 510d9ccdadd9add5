/** Mouse, pen, finger and wheel over the graph, told apart: a click, a walk with the camera, a box that is moved. */

export interface PointerActions {
  /** Whether a drag that begins here moves a box instead of the camera. */
  grab(x: number, y: number, withKey: boolean): boolean;
  /** How far from where it was grabbed. */
  carry(dx: number, dy: number): void;
  drop(): void;
  pan(dx: number, dy: number): void;
  zoom(factor: number, x: number, y: number): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
}

const CLICK_SLACK = 4; // pixels a finger may tremble before a click becomes a drag

interface Drag {
  readonly startX: number;
  readonly startY: number;
  readonly carries: boolean;
  x: number;
  y: number;
  moved: boolean;
}

export function listenToPointer(canvas: HTMLCanvasElement, signal: AbortSignal, actions: PointerActions): void {
  let drag: Drag | null = null;
  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const [x, y] = [event.offsetX, event.offsetY];
    drag = { startX: x, startY: y, x, y, moved: false, carries: actions.grab(x, y, event.altKey) };
    canvas.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const [x, y] = [event.offsetX, event.offsetY];
    if (!drag) return actions.hover(x, y);
    if (!drag.moved && Math.hypot(x - drag.startX, y - drag.startY) < CLICK_SLACK) return;
    if (drag.carries) actions.carry(x - drag.startX, y - drag.startY);
    else actions.pan(x - drag.x, y - drag.y);
    Object.assign(drag, { x, y, moved: true });
  };
  const up = (event: PointerEvent): void => {
    if (!drag) return;
    if (!drag.moved) actions.click(event.offsetX, event.offsetY);
    else if (drag.carries) actions.drop();
    drag = null;
  };
  const cancel = (): void => {
    if (drag?.carries) actions.carry(0, 0);
    drag = null;
  };
  canvas.addEventListener("pointerdown", down, { signal });
  canvas.addEventListener("pointermove", move, { signal });
  canvas.addEventListener("pointerup", up, { signal });
  canvas.addEventListener("pointercancel", cancel, { signal });
  canvas.addEventListener("pointerleave", () => actions.leave(), { signal });
  canvas.addEventListener("dblclick", (event) => actions.doubleClick(event.offsetX, event.offsetY), { signal });
  canvas.addEventListener("wheel", (event) => wheel(event, actions), { signal, passive: false });
}

/** A wheel scrolls along the flow, with shift across it; with ctrl, and by pinching a touchpad, it zooms. */
function wheel(event: WheelEvent, actions: PointerActions): void {
  event.preventDefault();
  const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
  if (event.ctrlKey || event.metaKey) {
    actions.zoom(Math.exp(-event.deltaY * lines * 0.01), event.offsetX, event.offsetY);
    return;
  }
  const isAcross = event.shiftKey && event.deltaX === 0;
  const [across, along] = isAcross ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
  actions.pan(-across * lines, -along * lines);
}
