/** Asks for what a choice will show at once, so that it is drawn once, with all of it. */
import { useEffect, useRef } from "react";
import {
  askTraceCode, askTraceHeat, askTraceNumbers, askTraceOp, askTracePicture, askTraceValue,
} from "../../api/trace";
import { addAsker } from "../../state/hold";
import { cache } from "../../state/resource";
import { getState } from "../../state/store";
import type { Page } from "../../state/page";
import { chosenIn, heatKind, type ShownTrace } from "./use_graph";

export function useAhead(shown: ShownTrace | null): void {
  const latest = useRef(shown);
  latest.current = shown;
  useEffect(() => addAsker(() => {
    const asked = latest.current ? wantedBy(latest.current, getState().page) : [];
    for (const request of asked) cache.want<unknown>(request);
    return asked;
  }), []);
}

function wantedBy(shown: ShownTrace, { look, trace, heat, open }: Page) {
  const kind = heatKind(heat.statistic);
  const around = [
    askTracePicture(trace.rolled, open), ...(kind ? [askTraceHeat(kind.name, kind.isSum ? "value" : trace.of)] : []),
  ];
  const { label } = chosenIn(shown, look.node, look.pass);
  if (label === null || trace.rolled !== shown.graph.rolled) return around;
  const tensor = { label, output: trace.output, of: trace.of };
  const ofIt = [askTraceOp(label), askTraceCode(label), askTraceValue(tensor), askTraceNumbers(tensor)];
  return [...around, ...ofIt];
}
