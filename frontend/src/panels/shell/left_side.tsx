/** Left of the graph: what deserves attention. Findings, and the outline of all nodes. */
import { act, usePart, type Page } from "../../state/page";
import { FindingsCount } from "../findings/count";
import { FindingsList } from "../findings/list";
import { Outline } from "./outline";
import { SideTabs } from "./side_tabs";

const WORDS: Readonly<Record<Page["side"], string>> = { findings: "Findings", outline: "Outline" };

export function LeftSide() {
  const side = usePart((page) => page.side);
  return (
    <SideTabs
      label="Beside the graph"
      words={WORDS}
      chosen={side}
      onChoose={(name) => act.page({ side: name })}
      mark={(name) => name === "findings" && <FindingsCount />}
      aside={<FindingsCount />}
      foldBelow={1400}
    >
      {side === "findings" ? <FindingsList leads /> : <Outline />}
    </SideTabs>
  );
}
