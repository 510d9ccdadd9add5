/** Left of the graph: what deserves attention. Findings, and the outline of all nodes. */
import { useId, type KeyboardEvent } from "react";
import { act, usePart, type Page } from "../../state/page";
import { FindingsCount } from "../findings/count";
import { FindingsList } from "../findings/list";
import { Outline } from "./outline";
import { Side } from "./side";

const WORDS: Readonly<Record<Page["side"], string>> = { findings: "Findings", outline: "Outline" };
const NAMES = Object.keys(WORDS) as Page["side"][];

export function LeftSide() {
  const side = usePart((page) => page.side);
  const id = useId();
  const choose = (name: Page["side"]): void => act.page({ side: name });
  const keys = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    choose(NAMES[(NAMES.indexOf(side) + 1) % NAMES.length]);
    const tabs = event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]");
    tabs[(NAMES.indexOf(side) + 1) % NAMES.length].focus();
    event.preventDefault();
  };
  const tabs = (
    <div className="side-tabs" role="tablist" aria-label="Beside the graph" onKeyDown={keys}>
      {NAMES.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`${id}${name}`}
          aria-selected={name === side}
          aria-controls={`${id}panel`}
          tabIndex={name === side ? 0 : -1}
          onClick={() => choose(name)}
        >
          {WORDS[name]}
          {name === "findings" && <FindingsCount />}
        </button>
      ))}
    </div>
  );
  return (
    <Side side="left" title={WORDS[side]} head={tabs} aside={<FindingsCount />} foldBelow={1400}>
      <div className="side-panel" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${side}`}>
        {side === "findings" ? <FindingsList leads /> : <Outline />}
      </div>
    </Side>
  );
}
