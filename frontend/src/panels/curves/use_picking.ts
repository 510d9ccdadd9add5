/** Clicks and drags on a plot. */
import { useEffect, useRef, type RefObject } from "react";
import type { CurvePlot } from "./plot";

const SLACK = 4; // pixels between press and release that still count as a click

export function usePicking(
  host: RefObject<HTMLDivElement | null>,
  plot: RefObject<CurvePlot | null>,
  drag: "zoom" | "pick",
  onPick: ((x: number, dragging: boolean) => void) | undefined,
): void {
  const pick = useRef(onPick);
  pick.current = onPick;
  const enabled = onPick !== undefined;
  useEffect(() => {
    const element = host.current;
    if (!element || !enabled) return;
    const stop = new AbortController();
    const { signal } = stop;
    let pressed: number | null = null;
    const at = (event: PointerEvent): number => {
      const box = plot.current?.box();
      if (!box) return NaN;
      return plot.current?.valueAt(Math.min(Math.max(event.clientX - box.left, 0), box.width)) ?? NaN;
    };
    const down = (event: PointerEvent): void => {
      if (event.button !== 0 || !isOver(event.target)) return;
      pressed = event.clientX;
      if (drag !== "pick") return;
      element.setPointerCapture(event.pointerId);
      pick.current?.(at(event), true);
    };
    const move = (event: PointerEvent): void => {
      if (pressed !== null && drag === "pick") pick.current?.(at(event), true);
    };
    const up = (event: PointerEvent): void => {
      if (pressed === null) return;
      const clicked = Math.abs(event.clientX - pressed) < SLACK;
      pressed = null;
      if (drag === "pick" || clicked) pick.current?.(at(event), false);
    };
    element.addEventListener("pointerdown", down, { signal });
    element.addEventListener("pointermove", move, { signal });
    element.addEventListener("pointerup", up, { signal });
    element.addEventListener("pointercancel", () => (pressed = null), { signal });
    return () => stop.abort();
  }, [host, plot, drag, enabled]);
}

/** Presses on axes are not meant for the plot. */
const isOver = (target: EventTarget | null): boolean => target instanceof Element && target.closest(".u-over") !== null;
