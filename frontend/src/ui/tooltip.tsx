/** A note that follows the pointer over a canvas, where the browser's own cannot know what it points at. */
import { useLayoutEffect, useRef, type ReactNode } from "react";

interface Props {
  /** Pixels of the page; null hides it. */
  readonly at: { readonly x: number; readonly y: number } | null;
  readonly children: ReactNode;
}

const AWAY = 14;

export function Tooltip({ at, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!at || !box.current) return;
    const { offsetWidth, offsetHeight, style } = box.current;
    // Beside the pointer, on the side where there is room.
    const left = at.x + AWAY + offsetWidth < innerWidth ? at.x + AWAY : at.x - AWAY - offsetWidth;
    const top = at.y + AWAY + offsetHeight < innerHeight ? at.y + AWAY : at.y - AWAY - offsetHeight;
    style.left = `${Math.max(4, left)}px`;
    style.top = `${Math.max(4, top)}px`;
  });
  if (!at) return null;
  return (
    <div className="tooltip" ref={box} aria-hidden="true">
      {children}
    </div>
  );
}
