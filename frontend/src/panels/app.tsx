/** The frame of the page: top bar, selectors, and the panel of the chosen tab. */
import { Suspense, useRef, type ReactNode } from "react";
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
import { useWork } from "./tab_panel";
import { TensorPanel } from "./tensor/panel";
import { PANELS } from "./tabs";

export function App() {
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
      <Suspense fallback={<Coming />}>{children}</Suspense>
    </div>
  );
}

/** React may wait before it shows code that has come; until then the page is not settled. */
function Coming() {
  useWork(true);
  return null;
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
