/** From the overview into a trial: where its worst finding is, or to all of its layers. */
import type { Finding } from "../../api/types";
import { entriesOf } from "../../model/findings";
import { findings, whenFound } from "../../state/findings";
import { act } from "../../state/page";

const AFRESH = { rows: "auto", open: null, filter: "", order: "network" } as const;

/** Layers × steps, or the curve of a metric: whatever the evidence is. */
export function showFinding(trial: string, finding: Finding): void {
  findings.show(trial, finding, { layers: AFRESH });
}

export async function openTrial(trial: string): Promise<void> {
  const known = await whenFound(trial);
  const worst = known && entriesOf(known.findings).find(({ finding }) => finding.severity !== "info")?.finding;
  if (worst) return showFinding(trial, worst);
  act.choose({ trial, node: null, step: null, of: null, role: null, pass: null, type: null });
  act.page({ tab: "layers", finding: null, layers: AFRESH, heat: { mode: "blocks" } });
}

/** The same finding of another trial: with its own steps and numbers. */
export async function showIn(trial: string, like: Finding): Promise<void> {
  const known = await whenFound(trial);
  const same = known?.findings.find(({ check, node, role, of }) =>
    check === like.check && node === like.node && role === like.role && of === like.of);
  if (same) showFinding(trial, same);
  else await openTrial(trial);
}
