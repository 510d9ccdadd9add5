/** The frame of the page: top bar, selectors, and the panel of the chosen tab. */
import { Suspense, useEffect, useState } from "react";
import { useMainTrial, usePart } from "../state/page";
import { Help } from "./shell/help";
import { Outline } from "./shell/outline";
import { Selectors } from "./shell/selectors";
import "./shell/shell.css";
import { Side } from "./shell/side";
import { GoneBanner, ProblemsBanner, useStateOfPage } from "./shell/states";
import { TopBar } from "./shell/top_bar";
import { GraphPanel } from "./graph/panel";
import { TensorPanel } from "./tensor/panel";
import { PANELS } from "./tabs";

export function App() {
  const state = useStateOfPage();
  const trial = useMainTrial();
  useEffect(() => {
    document.title = trial === null ? "Endoscope" : `${trial} · Endoscope`;
  }, [trial]);
  return (
    <div className="page">
      <TopBar />
      <GoneBanner />
      {state === null ? (
        <>
          <ProblemsBanner />
          <Selectors />
          <Stage />
        </>
      ) : (
        <main className="page-state">{state}</main>
      )}
      <Help />
    </div>
  );
}

/** The graph stays in the background, with its layout and camera; others are made anew when they are chosen. */
function Stage() {
  const tab = usePart((page) => page.tab);
  const [wasGraph, setWasGraph] = useState(tab === "graph");
  useEffect(() => {
    if (tab === "graph") setWasGraph(true);
  }, [tab]);
  return (
    <main className="stage-of-page">
      {(tab === "graph" || wasGraph) && (
        <div className={tab === "graph" ? "layer" : "layer away"} inert={tab !== "graph"}>
          <GraphTab isShown={tab === "graph"} />
        </div>
      )}
      {tab !== "graph" && (
        <div className="layer">
          <Suspense>{PANELS[tab]}</Suspense>
        </div>
      )}
    </main>
  );
}

function GraphTab({ isShown }: { readonly isShown: boolean }) {
  return (
    <div className="graph-tab">
      <Side side="left" title="Outline" heading foldBelow={1400}>
        <Outline />
      </Side>
      <div className="middle"><GraphPanel /></div>
      <Side side="right" title="Tensor" foldBelow={1000}>
        {isShown && <TensorPanel pane="a" />}
      </Side>
    </div>
  );
}
