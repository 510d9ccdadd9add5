/** The left side: what was searched for, the path, what could not be seen, branches, loops; and the outline. */
import type { ReactNode } from "react";
import type { TraceFacts } from "../../api/types";
import { act, usePart } from "../../state/page";
import { Button } from "../../ui/parts";
import { goTo } from "./go_to";
import { Labels } from "./labels";
import { useAsked, type ShownTrace } from "./use_graph";

interface Props {
  readonly facts: TraceFacts | null;
  readonly shown: ShownTrace;
}

export function Lists({ facts, shown }: Props) {
  return (
    <div className="trace-lists">
      <Found shown={shown} />
      <Path shown={shown} />
      {facts && <Warnings facts={facts} />}
      {facts && facts.decisions.length > 0 && <Branches facts={facts} shown={shown} />}
      {facts && facts.loops.length > 0 && <Loops facts={facts} shown={shown} />}
    </div>
  );
}

function Block({ title, action, children }: {
  readonly title: string; readonly action?: ReactNode; readonly children: ReactNode;
}) {
  return (
    <section className="trace-block" aria-label={title}>
      <header><h3>{title}</h3>{action}</header>
      {children}
    </section>
  );
}

function Found({ shown }: { readonly shown: ShownTrace }) {
  const pattern = usePart((page) => page.trace.pattern);
  const { found } = useAsked();
  if (!pattern) return null;
  const end = <Button plain onClick={() => act.trace({ pattern: "" })}>end search</Button>;
  return (
    <Block title="found" action={end}>
      <p className="trace-said" role="status">{found.problem ?? found.value?.sentence ?? "…"}</p>
      {found.value && <Labels key={pattern} labels={found.value.labels} shown={shown} />}
    </Block>
  );
}

function Path({ shown }: { readonly shown: ShownTrace }) {
  const { from, to } = usePart((page) => page.trace);
  const { path } = useAsked();
  if (!from && !to) return null;
  const end = <Button plain onClick={() => act.trace({ from: "", to: "" })}>end path</Button>;
  const half = from ? `Path from ${from}: choose where it ends.` : `Path to ${to}: choose where it begins.`;
  const said = from && to ? (path.problem ?? path.value?.sentence ?? "…") : half;
  return (
    <Block title="path" action={end}>
      <p className="trace-said" role="status">{said}</p>
      {from && to && path.value && <Labels key={`${from} ${to}`} labels={path.value.labels} shown={shown} />}
    </Block>
  );
}

function Warnings({ facts }: { readonly facts: TraceFacts }) {
  const { warnings, complete, finished, unused } = facts;
  return (
    <Block title="capture">
      {complete && <p className="label">Everything that the code computed was seen.</p>}
      {!finished && (
        <p className="trace-warning">The traced code ended with an exception: later operations are missing.</p>
      )}
      {warnings.map(({ text, source }, i) => (
        <p key={i} className="trace-warning">
          {text}
          {source && <span className="label"> {source}</span>}
        </p>
      ))}
      {unused.length > 0 && (
        <p className="label">
          {unused.length === 1 ? "One parameter or buffer is" : `${unused.length} parameters and buffers are`} never
          read, and not drawn: {unused.slice(0, 8).join(", ")}{unused.length > 8 ? ", …" : ""}
        </p>
      )}
    </Block>
  );
}

function Branches({ facts, shown }: { readonly facts: TraceFacts; readonly shown: ShownTrace }) {
  const branch = usePart((page) => page.trace.branch);
  return (
    <Block
      title="branches"
      action={branch >= 0 && <Button plain onClick={() => act.trace({ branch: -1 })}>show all</Button>}
    >
      <ul className="trace-list">
        {facts.decisions.map((decision, i) => (
          <li key={i}>
            <button
              type="button"
              className="trace-row"
              aria-pressed={branch === i}
              title={`${decision.source} · shows the test and what ran because of it`}
              onClick={() => {
                act.trace({ branch: branch === i ? -1 : i });
                if (branch !== i && decision.steering.length) goTo(shown, decision.steering[0]);
              }}
            >
              <code>{decision.text ? `${decision.kind} ${decision.text}` : decision.unknown}</code>
              <span className="label">
                {decision.value} → {decision.branch}, {several(decision.ops.length, "operation")}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {facts.decisionsLeftOut > 0 && <p className="label">{facts.decisionsLeftOut} more are not listed.</p>}
    </Block>
  );
}

function Loops({ facts, shown }: { readonly facts: TraceFacts; readonly shown: ShownTrace }) {
  const first = (layer: string): string =>
    shown.graph.label.find((label) => label === layer || label.startsWith(`${layer}:`)) ?? layer;
  return (
    <Block title="loops">
      <ul className="trace-list">
        {facts.loops.map(({ passes, depth, source, layers }, i) => (
          <li key={i}>
            <button
              type="button"
              className="trace-row"
              style={{ paddingLeft: 6 + 12 * depth }}
              title={source}
              onClick={() => goTo(shown, first(layers[0]))}
            >
              <code>×{passes}</code> {layers.slice(0, MOST_LAYERS).join(", ")}
              {layers.length > MOST_LAYERS && `, … ${layers.length - MOST_LAYERS} more`}
            </button>
          </li>
        ))}
      </ul>
    </Block>
  );
}

const MOST_LAYERS = 4;
const several = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;
