/** Over a tab that a finding led to: what it is about, and the way back. */
import { sentenceOf } from "../../model/findings";
import { findings, useFindings } from "../../state/findings";
import { act, useMainTrial, usePart } from "../../state/page";
import { Button } from "../../ui/parts";
import "./findings.css";
import { Mark } from "./mark";
import { Sentence } from "./text";

/** Only of findings that are about this tab. */
export function FindingStrip({ tab }: { readonly tab: string }) {
  const trial = useMainTrial();
  const known = useFindings(trial);
  const id = usePart((page) => page.finding);
  const finding = known?.findings.find((each) => each.id === id);
  if (trial === null || !finding || !finding.link.includes(`tab=${tab}&`)) return null;
  return (
    <aside className={`finding-strip ${finding.severity}`} aria-label="Chosen finding">
      <Mark severity={finding.severity} />
      <span>
        <b className="finding-title"><Sentence>{sentenceOf(finding.title)}</Sentence></b>{" "}
        <Sentence>{finding.detail}</Sentence>
      </span>
      <Button onClick={() => act.page({ tab: "findings" })}>all findings</Button>
      <Button plain label="Close finding" onClick={() => findings.open(trial, null)}>×</Button>
    </aside>
  );
}
