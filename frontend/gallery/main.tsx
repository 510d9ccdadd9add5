/** The parts of the page, one beside the other, without a server. For looking at them, and for measuring. */
import { useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { GraphStage } from "../src/panels/graph/stage";
import { NOTHING_SELECTED, type GraphSelection } from "../src/draw/graph_state";
import { defaultOpen, openAll } from "../src/model/folding";
import { buildGraph } from "../src/model/graph";
import { fitScale } from "../src/model/heat";
import { Segments } from "../src/ui/segments";
import { Select } from "../src/ui/select";
import "../src/ui/base.css";
import { madeUpHeat, NETWORKS, type HeatName, type NetworkName } from "./data";
import "./gallery.css";
import { startMeasuring } from "./measure";
import { TensorSide } from "./tensor_side";
import { Parts } from "./parts";

const query = new URLSearchParams(location.search);
if (query.has("theme")) document.documentElement.dataset.theme = query.get("theme") ?? "";

const paints: number[] = [];
const asChoice = <T extends string>(value: string) => ({ value: value as T, label: value });
const NAMES = Object.keys(NETWORKS).map(asChoice<NetworkName>);
const HEATS = ["gradient", "mean", "none"].map(asChoice<HeatName>);

function Gallery() {
  const [name, setName] = useState((query.get("network") ?? "recurrent") as NetworkName);
  const [what, setWhat] = useState((query.get("heat") ?? "gradient") as HeatName);
  const [edges, setEdges] = useState(query.get("edges") ?? "selected");
  const [shift, setShift] = useState(0);
  const model = useMemo(() => buildGraph(NETWORKS[name]()), [name]);
  const [open, setOpen] = useState(() => (query.get("open") === "all" ? openAll(model) : defaultOpen(model)));
  const first = model.byName.get(query.get("node") ?? "") ?? -1;
  const [selection, setSelection] = useState<GraphSelection>({ ...NOTHING_SELECTED, node: first });
  const heat = useMemo(() => madeUpHeat(model.source, what, shift), [model, what, shift]);
  const scale = useMemo(() => heat && fitScale([heat]), [heat]);

  const change = (next: NetworkName): void => {
    const other = buildGraph(NETWORKS[next]());
    setName(next);
    setOpen(defaultOpen(other));
    setSelection(NOTHING_SELECTED);
  };
  const select = (node: number, record: number): void => {
    const described = record >= 0 ? model.source.nodes[record] : null;
    setSelection(described ? { node, role: described.role, pass: described.pass } : { ...selection, node });
  };
  return (
    <div className="gallery">
      <GraphStage
        key={name}
        model={model}
        open={open}
        onOpen={setOpen}
        selection={selection}
        onSelect={select}
        heat={heat}
        scale={scale}
        allEdges={edges === "all"}
        onPaint={(milliseconds) => paints.push(milliseconds)}
      >
        <span className="card">
          <Select label="network" value={name} onChange={change} choices={NAMES} />
        </span>
        <span className="card">
          <Segments label="heat" value={what} onChange={setWhat} choices={HEATS} />
        </span>
        <span className="card">
          <Segments label="edges" value={edges} onChange={setEdges} choices={["selected", "all"].map(asChoice)} />
        </span>
        <span className="card">
          <label className="label" htmlFor="shift">step</label>
          <input
            id="shift"
            type="range"
            min={0}
            max={10}
            step={0.1}
            value={shift}
            onChange={(event) => setShift(event.target.valueAsNumber)}
          />
        </span>
        <span className="card">
          <button type="button" className="button" onClick={() => setOpen(openAll(model))}>open all</button>
          <button type="button" className="button" onClick={() => setOpen(defaultOpen(model))}>default</button>
        </span>
      </GraphStage>
      <aside>{query.get("side") === "parts" ? <Parts /> : <TensorSide />}</aside>
    </div>
  );
}

createRoot(document.getElementById("page") as HTMLElement).render(<Gallery />);
startMeasuring(paints);
