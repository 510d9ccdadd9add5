/** The frame of the page: top bar, selectors, and the panel of the chosen tab. */
import { useRef, type ReactNode } from "react";
import { useCatalog } from "../state/data";
import { usePart, type Tab } from "../state/page";
import { Kept } from "./kept";
import { Guide } from "./shell/guide";
import { Help } from "./shell/help";
import { LeftSide } from "./shell/left_side";
import { Selectors } from "./shell/selectors";
import "./shell/shell.css";
import { Side } from "./shell/side";
import { GoneBanner, ProblemsBanner, useStateOfPage } from "./shell/states";
import { useTitle } from "./shell/title";
import { TopBar } from "./shell/top_bar";
import { GraphPanel } from "./graph/panel";
import { TensorPanel } from "./tensor/panel";
import { PANELS, TracePage } from "./tabs";

/** A trace has no steps and no trials, so nothing around it is that of recordings. */
export function App() {
  const isTrace = useCatalog().value?.trace != null;
  return isTrace ? <TracePage /> : <Recordings />;
}

function Recordings() {
  const state = useStateOfPage();
  useTitle();
  return (
    <div className="page">
      <TopBar />
      <GoneBanner />
      {state === null ? (
        <>
          <ProblemsBanner />
          <SharedSelectors />
          <Stage />
        </>
      ) : (
        <main className="page-state">{state}</main>
      )}
      <Help />
      {state === null && <Guide />}
    </div>
  );
}

/** Views in which steps and kinds of value are chosen in the same way; others need none, or have their own. */
const SELECTED: readonly Tab[] = ["graph", "metrics", "network", "views"];

function SharedSelectors() {
  const tab = usePart((page) => page.tab);
  return SELECTED.includes(tab) ? <Selectors /> : null;
}

/** Tabs that draw much stay in the background once they were seen; others are made anew when they are chosen. */
const KEPT: readonly Exclude<Tab, "graph">[] = ["metrics", "network"];
const TENSOR = <TensorPanel pane="a" />;

function Stage() {
  const tab = usePart((page) => page.tab);
  return (
    <main className="stage-of-page">
      <Layer isShown={tab === "graph"}><GraphTab isShown={tab === "graph"} /></Layer>
      {KEPT.map((each) => (
        <Layer key={each} isShown={tab === each}>
          <Kept isShown={tab === each}>{PANELS[each]}</Kept>
        </Layer>
      ))}
      {tab !== "graph" && !KEPT.includes(tab) && <Layer isShown>{PANELS[tab]}</Layer>}
    </main>
  );
}

/** One tab. What was never shown is not there at all. */
function Layer({ isShown, children }: { readonly isShown: boolean; readonly children: ReactNode }) {
  const wasShown = useRef(false);
  wasShown.current ||= isShown;
  if (!wasShown.current) return null;
  return (
    <div className={isShown ? "layer" : "layer away"} inert={!isShown}>
      {children}
    </div>
  );
}

function GraphTab({ isShown }: { readonly isShown: boolean }) {
  return (
    <div className="graph-tab">
      <LeftSide />
      <div className="middle"><GraphPanel /></div>
      <Side side="right" title="Tensor" foldBelow={0}>
        <Kept isShown={isShown}>{TENSOR}</Kept>
      </Side>
    </div>
  );
}
