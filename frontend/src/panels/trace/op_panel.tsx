/** The right side: everything about the selected operation. What is old stays until what is new is there. */
import { useEffect, useRef } from "react";
import { askTraceOp } from "../../api/trace";
import type { TraceFacts, TraceOp } from "../../api/types";
import { asKind } from "../../model/source";
import { bytesText, countText, secondsText } from "../../model/trace";
import { reach } from "../../state/keys";
import { act, usePart } from "../../state/page";
import { useLoaded } from "../../state/resource";
import { Button, Chip, Section } from "../../ui/parts";
import { Select } from "../../ui/select";
import { Tiles } from "../tensor/tiles";
import type { TileFacts } from "../tensor/summary";
import "../tensor/tensor.css";
import { Why } from "../tensor/words";
import { Code } from "./code";
import { goTo } from "./go_to";
import { Labels } from "./labels";
import type { Chosen, ShownTrace } from "./use_graph";
import { ValueOf } from "./value";

interface Props {
  readonly chosen: Chosen;
  readonly shown: ShownTrace;
  readonly facts: TraceFacts | null;
}

export function OpPanel({ chosen: { label, name }, shown, facts }: Props) {
  const { value: op, pending, problem } = useLoaded(label === null ? null : askTraceOp(label));
  return (
    <section className="tensor trace-op" aria-label="Selected operation" data-pending={pending || undefined}>
      {label === null && <Why text={name ? noSuch(name, facts?.passes ?? 1) : NOTHING} />}
      {problem && <Why text={problem} />}
      {op && label !== null && (
        <>
          <Header op={op} shown={shown} />
          <Costs op={op} />
          <Code label={op.label} />
          <ValueOf op={op} hasGradients={facts?.gradients ?? false} />
          <Around op={op} shown={shown} facts={facts} />
        </>
      )}
    </section>
  );
}

const NOTHING = "No operation is selected: click one in the graph, or press `/` to search.";
const noSuch = (name: string, passes: number): string =>
  `No box is called \`${name}\`. ${passes > 1 ? PASSES : ""}Click one in the graph, or press \`/\`.`;
const PASSES = "Unrolled, what runs several times is called by its pass, such as `add_1_2:3`; rolled, by its layer. ";

interface Part {
  readonly op: TraceOp;
  readonly shown: ShownTrace;
}

function Header({ op, shown }: Part) {
  const { from, to } = usePart((page) => page.trace);
  const written = op.function && op.function !== op.type ? `${op.type} (as ${op.function})` : op.type;
  return (
    <header className="section tensor-header">
      <div className="tensor-title">
        <h2>{op.label}</h2>
        <Chip color={`var(--kind-${asKind(op.kind)})`}>{op.kind}</Chip>
        {op.inPlace && <Chip>in place</Chip>}
        {op.edits.length > 0 && <Chip>edited</Chip>}
      </div>
      <div className="tensor-facts">
        {written !== op.kind && <code>{written}</code>}
        {op.outputs.map(({ dtype, shape }, i) => (
          <span key={i} className="number">{dtype} [{shape.join(", ")}]</span>
        ))}
        {op.path && <span className="label">at <code>{op.path}</code></span>}
        {op.modules.length > 0 && <span className="label">in <code>{op.modules[op.modules.length - 1]}</code></span>}
      </div>
      <div className="tensor-choices">
        {op.passes > 1 && <Passes op={op} shown={shown} />}
        <Button
          title="One end of a path; choose the other end, too"
          pressed={from === op.label}
          onClick={() => act.page({ trace: { from: from === op.label ? "" : op.label }, side: "findings" })}
        >
          path from here
        </Button>
        <Button
          title="The other end of the path"
          pressed={to === op.label}
          onClick={() => act.page({ trace: { to: to === op.label ? "" : op.label }, side: "findings" })}
        >
          path to here
        </Button>
      </div>
    </header>
  );
}

function Passes({ op, shown }: Part) {
  const label = (pass: string) => ({ value: pass, label: `${pass} of ${op.passes}` });
  const choices = Array.from({ length: op.passes }, (_, i) => label(`${i + 1}`));
  const choose = (pass: string): void => {
    if (shown.graph.rolled) act.choose({ pass: Number(pass) });
    else goTo(shown, `${op.layer}:${pass}`);
  };
  const next = useRef(() => undefined as void);
  next.current = () => choose(`${(op.passNumber % op.passes) + 1}`);
  useEffect(() => {
    reach.pass = () => next.current();
    return () => void delete reach.pass;
  }, []);
  return <Select label="pass" numeric choices={choices} value={String(op.passNumber)} onChange={choose} />;
}

function Costs({ op }: { readonly op: TraceOp }) {
  const isMade = op.function !== "";
  const flops: TileFacts = {
    name: "FLOPs", value: op.flops, text: op.flops === null ? "unknown" : countText(op.flops), note: "",
    hint: "A multiply-add counts as two.",
  };
  const tiles: TileFacts[] = [
    ...(isMade ? [{ name: "time", value: op.seconds, text: secondsText(op.seconds), note: "" }] : []),
    ...(isMade && op.flops !== null ? [flops] : []),
    { name: "memory", value: op.bytes, text: bytesText(op.bytes), note: "" },
  ];
  return (
    <Section title="cost">
      <Tiles tiles={tiles} />
      {isMade && op.flops === null && <Why text="How many FLOPs this operation takes is not known." />}
    </Section>
  );
}

/** Its neighbours, its call, and every text under which it is found. */
function Around({ op, shown, facts }: Part & { readonly facts: TraceFacts | null }) {
  const decided = facts?.decisions.filter(({ steering }) => steering.includes(op.label)) ?? [];
  const grad = op.gradFn ? ` · grad_fn ${op.gradFn}` : "";
  return (
    <>
      {decided.length > 0 && (
        <Section title="decides">
          <ul className="trace-list">
            {decided.map(({ kind, text, value, branch, nth }) => (
              <li key={`${text} ${nth}`}><code>{kind} {text}</code>: {value} → {branch}</li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="reads">
        <Labels labels={op.parents} shown={shown} none="It reads no tensor." />
      </Section>
      <Section title="read by">
        <Labels labels={op.children} shown={shown} none="Nothing reads it." />
        {op.neighboursLeftOut > 0 && <p className="label">{op.neighboursLeftOut} more neighbours are not listed.</p>}
      </Section>
      <Section title="call">
        <dl className="trace-facts">
          {op.arguments.length > 0 && <Fact name="arguments">{op.arguments.join(", ")}</Fact>}
          {op.modules.length > 0 && <Fact name="modules">{op.modules.join(" › ")}</Fact>}
          {op.functions.length > 0 && <Fact name="functions">{op.functions.join(" › ")}</Fact>}
          {op.left.length > 0 && <Fact name="result of">{op.left.join(", ")}</Fact>}
          {op.outputs.length > 0 && (
            <Fact name="tensor">
              {op.outputs.map((one) => `${one.device}${one.learns ? ", requires a gradient" : ""}`).join("; ") + grad}
            </Fact>
          )}
          {op.edits.length > 0 && <Fact name="edits">{op.edits.join(", ")}</Fact>}
          <Fact name="found as">{op.keys.join(", ")}</Fact>
        </dl>
      </Section>
    </>
  );
}

const Fact = ({ name, children }: { readonly name: string; readonly children: string }) => (
  <div>
    <dt>{name}</dt>
    <dd className="number">{children}</dd>
  </div>
);
