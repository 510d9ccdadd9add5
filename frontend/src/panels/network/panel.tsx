/** The modules of what was watched: classes, sizes, what is trained. A click leads to the node in the graph. */
import { useCallback, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import { wholeNumber } from "../../model/numbers";
import { act, useShown } from "../../state/page";
import { useGraph, useModules } from "../../state/data";
import { Button, Empty } from "../../ui/parts";
import { Rows, revealRow, useRowWindow } from "../../ui/rows";
import { TabPanel, Waiting } from "../tab_panel";
import { ModuleTree, nodeFinder, type ModuleRow } from "./module_tree";
import { NetworkRow } from "./row";
import { rowKeyFor, useTree } from "./use_tree";
import "./network.css";

const ROW = 26;
const HEAD = 28;

export function Panel() {
  const { trial } = useShown("a");
  const { value, problem, pending } = useModules(trial);
  const tree = useMemo(() => (value && value.modules.length > 0 ? new ModuleTree(value.modules) : null), [value]);
  if (trial !== null && tree) return <Network key={trial} trial={trial} tree={tree} />;
  return (
    <TabPanel label="Network">
      {problem ? <Empty>{problem}</Empty> : pending ? <Waiting what="the modules" /> : <NoModules trial={trial} />}
    </TabPanel>
  );
}

const NoModules = ({ trial }: { readonly trial: string | null }) =>
  trial === null ? (
    <Empty>There is no trial to show: record one with endoscope.Run.</Empty>
  ) : (
    <Empty>
      No model was watched in trial {trial}, so its modules are not known. Before training, call{" "}
      <code>run.watch(model, optimizer)</code>.
    </Empty>
  );

function Network({ trial, tree }: { readonly trial: string; readonly tree: ModuleTree }) {
  const { node } = useShown("a");
  const graph = useGraph(trial).value?.graph;
  const find = useMemo(() => nodeFinder(graph?.nodes ?? []), [graph]);
  const home = graph?.nodes.find((one) => one.node === node)?.module ?? "";
  const selected = useMemo(() => rowKeyFor(tree, node, home), [tree, node, home]);
  const [query, setQuery] = useState("");
  const onOpen = useCallback(
    (row: ModuleRow) => {
      const to = find(row);
      if (to === null) return;
      act.choose({ node: to });
      act.page({ tab: "graph" });
    },
    [find],
  );
  const state = useTree(tree, trial, query, selected, onOpen);
  const bar = (
    <>
      <input
        type="search"
        className="search-field"
        aria-label="Search modules and parameters"
        placeholder="search modules and parameters"
        size={28}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <Button onClick={() => state.foldAll(true)} disabled={query !== ""}>unfold all</Button>
      <Button onClick={() => state.foldAll(false)} disabled={query !== ""}>fold all</Button>
      <Totals tree={tree} />
    </>
  );
  return (
    <TabPanel label="Network" bar={bar}>
      {state.rows.length === 0 ? (
        <Empty>No module and no parameter is called “{query}”. Type another part of a name or of a class.</Empty>
      ) : (
        <Grid tree={tree} state={state} selected={selected} find={find} onOpen={onOpen} />
      )}
    </TabPanel>
  );
}

function Totals({ tree }: { readonly tree: ModuleTree }) {
  const { parameters, trainable } = tree;
  const count = tree.modules.length;
  return (
    <span className="label end">
      <span className="number">{wholeNumber(count)}</span> {count === 1 ? "module" : "modules"},{" "}
      <span className="number">{wholeNumber(parameters)}</span> parameters,{" "}
      {trainable === parameters ? "all" : <span className="number">{wholeNumber(trainable)}</span>} trained
    </span>
  );
}

interface GridProps {
  readonly tree: ModuleTree;
  readonly state: ReturnType<typeof useTree>;
  readonly selected: string | null;
  readonly find: (row: ModuleRow) => string | null;
  readonly onOpen: (row: ModuleRow) => void;
}

const COLUMNS = ["module", "class", "settings, shape", "parameters", "share", "trained"];

function Grid({ tree, state, selected, find, onOpen }: GridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, current } = state;
  const window = useRowWindow(scroller, rows.length, ROW, HEAD);
  const id = useId();
  const rowId = (place: number): string => `${id}${rows[place]?.key}`;
  useLayoutEffect(() => {
    if (scroller.current) revealRow(scroller.current, current, ROW, HEAD);
  }, [current]);
  const total = tree.parameters;
  return (
    <div
      ref={scroller}
      className="network"
      role="treegrid"
      aria-label="Modules"
      aria-rowcount={rows.length + 1}
      aria-activedescendant={rowId(current)}
      tabIndex={0}
      onKeyDown={state.onKeyDown}
    >
      <div role="row" className="network-head" aria-rowindex={1}>
        {COLUMNS.map((name) => (
          <span key={name} role="columnheader" className={name === "parameters" ? "network-count" : undefined}>
            {name}
          </span>
        ))}
      </div>
      <Rows count={rows.length} rowHeight={ROW} window={window}>
        {(place) => (
          <NetworkRow
            key={rows[place].key}
            id={rowId(place)}
            row={rows[place]}
            index={place + 1}
            total={total}
            current={place === current}
            selected={rows[place].key === selected}
            node={find(rows[place])}
            onFold={state.fold}
            onOpen={onOpen}
          />
        )}
      </Rows>
    </div>
  );
}
