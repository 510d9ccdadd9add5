/** A panel that stays in the background while others are shown: coming back to it draws only what has changed. */
import { useLayoutEffect, useMemo, useRef, type ReactNode } from "react";
import { Gate, GateContext } from "../state/gate";

interface Props {
  readonly isShown: boolean;
  /** The same element every time. */
  readonly children: ReactNode;
}

export function Kept({ isShown, children }: Props) {
  const gate = useMemo(() => new Gate(), []);
  const wasShown = useRef(false);
  wasShown.current ||= isShown;
  useLayoutEffect(() => gate.set(isShown), [gate, isShown]);
  return wasShown.current ? <GateContext value={gate}>{children}</GateContext> : null;
}
