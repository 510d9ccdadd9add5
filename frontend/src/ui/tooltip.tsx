/** A note that follows the pointer over a canvas, where the browser's own cannot know what it points at. */
import { useLayoutEffect, useRef, type ReactNode } from "react";
import "./tooltip.css";

interface Props {
  /** Pixels of the page; null hides it. */
  readonly at: { readonly x: number; readonly y: number } | null;
  readonly children: ReactNode;
}

const AWAY = 14;
const EDGE = 4;

/** Beside the pointer, on the side where there is room, and never beyond the window. */
export function placed(at: number, size: number, room: number): number {
  const wanted = at + AWAY + size < room ? at + AWAY : at - AWAY - size;
  return Math.max(EDGE, Math.min(wanted, room - size - EDGE));
}

export function Tooltip({ at, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!at || !box.current) return;
    const { style } = box.current;
    style.left = style.top = "0"; // measured where there is room for all of it
    const { offsetWidth, offsetHeight } = box.current;
    style.left = `${placed(at.x, offsetWidth, innerWidth)}px`;
    style.top = `${placed(at.y, offsetHeight, innerHeight)}px`;
  });
  if (!at) return null;
  return (
    <div className="tooltip" ref={box} aria-hidden="true">
      {children}
    </div>
  );
}
