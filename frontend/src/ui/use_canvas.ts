import { useEffect, useRef, type RefObject } from "react";

/**
 * A picture that is made when its canvas appears and closed when it goes. `make` is called once: callbacks that it
 * passes on should be stable, as those of `useState` are.
 */
export function useCanvas<T extends { close(): void }>(
  make: (canvas: HTMLCanvasElement) => T,
): [RefObject<HTMLCanvasElement | null>, RefObject<T | null>] {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<T>(null);
  const first = useRef(make);
  useEffect(() => {
    const made = first.current(canvas.current as HTMLCanvasElement);
    picture.current = made;
    return () => made.close();
  }, []);
  return [canvas, picture];
}
