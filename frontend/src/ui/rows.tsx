/** A long list of rows of the same height: only those in view are elements. */
import { useLayoutEffect, useState, type ReactNode, type RefObject } from "react";

const BEYOND = 12; // rows above and below the view, so that fast scrolling shows no holes

export interface RowWindow {
  readonly first: number;
  /** Not included. */
  readonly end: number;
}

/** Which rows to make for a scroller, whose content begins `offset` pixels down. */
export function useRowWindow(
  scroller: RefObject<HTMLElement | null>, count: number, rowHeight: number, offset = 0,
): RowWindow {
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const read = (): void => {
      const [top, height] = [element.scrollTop, element.clientHeight];
      // Within half of what is made beyond the view nothing needs to be made anew.
      setView((before) =>
        Math.abs(before.top - top) < (BEYOND / 2) * rowHeight && before.height === height ? before : { top, height },
      );
    };
    read();
    element.addEventListener("scroll", read, { passive: true });
    const observer = new ResizeObserver(read);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", read);
      observer.disconnect();
    };
  }, [scroller, rowHeight]);
  const first = Math.max(0, Math.floor((view.top - offset) / rowHeight) - BEYOND);
  const end = Math.min(count, Math.ceil((view.top - offset + view.height) / rowHeight) + BEYOND);
  return { first: Math.min(first, Math.max(0, count - 1)), end: Math.max(end, 0) };
}

/** Scrolls as little as needed for a row to be in view. */
export function revealRow(element: HTMLElement, row: number, rowHeight: number, offset = 0): void {
  const top = offset + row * rowHeight;
  if (top - offset < element.scrollTop) element.scrollTop = top - offset;
  else if (top + rowHeight > element.scrollTop + element.clientHeight) {
    element.scrollTop = top + rowHeight - element.clientHeight;
  }
}

interface Props {
  readonly count: number;
  readonly rowHeight: number;
  readonly window: RowWindow;
  readonly children: (row: number) => ReactNode;
}

/** Room for all rows; those in the window are made. */
export function Rows({ count, rowHeight, window, children }: Props) {
  const made = Array.from({ length: Math.max(0, window.end - window.first) }, (_, i) => children(window.first + i));
  return (
    <div role="presentation" style={{ height: count * rowHeight, position: "relative" }}>
      <div role="presentation" style={{ transform: `translateY(${window.first * rowHeight}px)` }}>
        {made}
      </div>
    </div>
  );
}
