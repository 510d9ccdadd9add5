/** The page of a trace: its graph in the middle, what is worth knowing beside it. */
import { useEffect } from "react";
import type { TraceFacts } from "../../api/types";
import { bytesText, countText, secondsText } from "../../model/trace";
import { wholeNumber } from "../../model/numbers";
import { reach, TRACE_KEYS, takeTraceKeys } from "../../state/keys";
import { act, usePart } from "../../state/page";
import { Button, Empty, Key } from "../../ui/parts";
import { Help } from "../shell/help";
import { OutlineTree } from "../shell/outline";
import { Side } from "../shell/side";
import { SideTabs } from "../shell/side_tabs";
import { GoneBanner } from "../shell/states";
import { ThemeSwitch } from "../shell/theme_switch";
import "../shell/shell.css";
import "../shell/top_bar.css";
import { goTo } from "./go_to";
import { TraceStage } from "./graph";
import { Lists } from "./lists";
import { OpPanel } from "./op_panel";
import { PatternSearch } from "./search";
import "./trace.css";
import { useAhead } from "./use_ahead";
import { useChosen, useShownTrace, useTrace, type Chosen, type ShownTrace } from "./use_graph";

export function Panel() {
  const facts = useTrace().value;
  const { shown, problem } = useShownTrace();
  const chosen = useChosen(shown);
  useAhead(shown);
  useEffect(takeTraceKeys, []);
  useEffect(() => {
    if (facts) document.title = `${facts.name} · trace · Endoscope`;
  }, [facts]);
  return (
    <div className="page">
      <Top facts={facts} />
      <GoneBanner>
        the program that showed this trace has ended, or is busy. Another <code>show()</code> has another address.
      </GoneBanner>
      {problem && <main className="page-state"><Empty>{problem}</Empty></main>}
      {!problem && (
        <main className="stage-of-page">
          {shown && (
            <div className="graph-tab">
              <Left facts={facts} shown={shown} chosen={chosen} />
              <div className="middle"><TraceStage facts={facts} shown={shown} chosen={chosen} /></div>
              <Side side="right" title="Operation" foldBelow={0}>
                <OpPanel chosen={chosen} shown={shown} facts={facts} />
              </Side>
            </div>
          )}
        </main>
      )}
      <Help keys={TRACE_KEYS}><Reading /></Help>
    </div>
  );
}

const WORDS = { findings: "Notes", outline: "Modules" } as const;

interface LeftProps {
  readonly facts: TraceFacts | null;
  readonly shown: ShownTrace;
  readonly chosen: Chosen;
}

function Left({ facts, shown, chosen }: LeftProps) {
  const side = usePart((page) => page.side);
  const { graph, model, open } = shown;
  const selected = chosen.node === null ? null : model.nodes[chosen.node].name;
  return (
    <SideTabs
      label="Beside the graph"
      words={WORDS}
      chosen={side}
      onChoose={(name) => act.page({ side: name })}
      foldBelow={1100}
    >
      {side === "findings" && <Lists facts={facts} shown={shown} />}
      {side === "outline" && (
        <OutlineTree
          key={String(graph.rolled)}
          model={model}
          selected={selected}
          firstOpen={open}
          onSelect={(node) => goTo(shown, graph.label[model.nodes[node].records[0]])}
        />
      )}
    </SideTabs>
  );
}

const Reading = () => (
  <>
    <h2>Reading the page</h2>
    <ul>
      <li>
        A box with a number and ▸ is a closed module. A click on ▸, or a double click, opens it; a click on the title of
        an open one closes it.
      </li>
      <li>×N stands on equal modules that are one box, or on the passes of a layer that runs in a loop.</li>
      <li>
        Time, memory and FLOPs of a closed module are sums of what is inside; mean and std are those of its result.
      </li>
      <li>What a search, a path or a branch does not concern is pale.</li>
      <li>The address of the page holds everything that you see.</li>
    </ul>
  </>
);

function Top({ facts }: { readonly facts: TraceFacts | null }) {
  return (
    <header className="top-bar">
      <h1 className="logo"><span><i aria-hidden="true" />endoscope</span></h1>
      {facts && <span className="trace-name">trace of <b>{facts.name}</b></span>}
      {facts && <span className="label trace-totals">{totals(facts)}</span>}
      <span className="grow" />
      <PatternSearch />
      <ThemeSwitch />
      <Button plain label="Keys and help (?)" onClick={() => reach.help?.()}><Key>?</Key></Button>
    </header>
  );
}

const totals = ({ operations, parameters, bytes, flops, seconds, complete }: TraceFacts): string =>
  [
    `${wholeNumber(operations)} operations`, `${countText(parameters)} parameters`, `${countText(flops)} FLOPs`,
    `${bytesText(bytes)} of values`, secondsText(seconds), ...(complete ? [] : ["not complete"]),
  ].join(" · ");
