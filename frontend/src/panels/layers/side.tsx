/** The selected layer: what was found in it, its numbers, its course over training beside the same layer of others. */
import { useEffect, useMemo } from "react";
import type { Finding } from "../../api/types";
import { LinesView } from "../../draw/lines_view";
import { entriesOf, sentenceOf, sourceName, timeWords, type Entry } from "../../model/findings";
import { VALUE } from "../../model/layers/derive";
import { cellText } from "../../model/layers/scale";
import { referenceWords } from "../../model/layers/words";
import { pointsText, ratioText } from "../../model/ratio";
import { useFindings } from "../../state/findings";
import { act, useShownPart } from "../../state/page";
import { Button } from "../../ui/parts";
import { useCanvas } from "../../ui/use_canvas";
import { Mark } from "../findings/mark";
import { Sentence } from "../findings/text";
import { kindWords } from "./controls";
import { standsOut, type Standing } from "./stands_out";
import type { LayersData } from "./use_layers";

export function Side({ data }: { readonly data: LayersData }) {
  const { trial, table } = data;
  const node = useShownPart("a", (shown) => shown.node);
  const role = useShownPart("a", (shown) => shown.role);
  const pass = useShownPart("a", (shown) => shown.pass);
  const ordinal = useShownPart("a", (shown) => shown.ordinal);
  const known = useFindings(trial);
  const entries = useMemo(() => (known ? entriesOf(known.findings) : []), [known]);
  const record = useMemo(() => (table ? table.node.findIndex((each, i) =>
    each === node && (role === null || table.role[i] === role) && (pass === null || table.pass[i] === pass)) : -1),
  [table, node, role, pass]);
  const column = data.steps.findIndex((step) => step.ordinal === ordinal);
  const own = entries.filter(({ finding, followers }) => [finding, ...followers].some((each) => each.node === node));
  const others = useMemo(() => standsOut(data), [data.derived, data.hasBlocks, data.rowsShown]);
  return (
    <aside className="layers-side" aria-label="Selected layer">
      {node === null ? (
        <section>
          <p className="layers-title">No layer selected</p>
          <p>Click a cell: its numbers appear here.</p>
        </section>
      ) : (
        <Title data={data} node={node} record={record} />
      )}
      {own.length > 0 && (
        <section>
          {own.map((entry) => <Note key={entry.finding.id} entry={entry} node={node} last={known?.lastStep ?? null} />)}
        </section>
      )}
      {own.length === 0 && known?.checked && (
        <section>
          <p className="layers-quiet">{nothingIn(node, entries, known.checks, known.lastStep)}</p>
        </section>
      )}
      {record >= 0 && column >= 0 && <Numbers data={data} record={record} column={column} />}
      {record >= 0 && <Course data={data} record={record} column={column} findings={own.map((each) => each.finding)} />}
      {others.length > 0 && <Others others={others.filter((each) => each.node !== node).slice(0, 4)} data={data} />}
    </aside>
  );
}

function nothingIn(node: string | null, entries: readonly Entry[], checks: number, last: number | null): string {
  const until = last === null ? "" : ` up to step ${last}`;
  if (entries.length === 0) return `${checks} checks, nothing found in this trial${until}.`;
  return node === null ? "" : `Nothing found in this layer${until}; ${entries.length} elsewhere in this trial.`;
}

function Title({ data, node, record }: { readonly data: LayersData; readonly node: string; readonly record: number }) {
  const { shape, source, kind } = data.facts(record);
  const words = [
    kind, shape ? (shape.length ? shape.join(" × ") : "single number") : "", source && sourceName(source),
  ].filter(Boolean);
  return (
    <section>
      <h2 className="layers-title">{node}</h2>
      <p className="layers-facts">{words.join(" · ")}</p>
      <p className="layers-buttons">
        <Button onClick={() => act.page({ tab: "graph" })}>Look at the tensor</Button>
        {data.other && (
          <Button
            onClick={() => {
              act.compare({ trial: data.other });
              act.page({ tab: "compare" });
            }}
          >
            Compare with {data.other}
          </Button>
        )}
      </p>
    </section>
  );
}

interface NoteProps {
  readonly entry: Entry;
  readonly node: string | null;
  readonly last: number | null;
}

function Note({ entry, node, last }: NoteProps) {
  const { finding, followers } = entry;
  const all: readonly Finding[] = finding.node === node ? [finding, ...followers.filter((each) => each.node === node)]
    : followers.filter((each) => each.node === node);
  const elsewhere = followers.filter((each) => !all.includes(each));
  return all.map((each, i) => (
    <div key={each.id} className={`layers-note ${each.severity}`}>
      <p>
        <Mark severity={each.severity} /> <b><Sentence>{sentenceOf(each.title)}</Sentence></b>,{" "}
        <b>{timeWords(each, last)}</b>
      </p>
      <p><Sentence>{each.detail}</Sentence></p>
      {each.remedies.length > 0 && <p><span>Try:</span> <Sentence>{each.remedies.slice(0, 2).join(" ")}</Sentence></p>}
      {each.source && <p><code>{sourceName(each.source)}</code></p>}
      {each !== finding && <p>It probably follows from: <Sentence>{finding.title}</Sentence>.</p>}
      {i === 0 && elsewhere.length > 0 && (
        <p>
          Probably follows from it: <Sentence>{elsewhere.slice(0, 3).map((more) => more.title).join("; ")}</Sentence>
          {elsewhere.length > 3 && ` and ${elsewhere.length - 3} more`}.
        </p>
      )}
    </div>
  ));
}

interface NumbersProps {
  readonly data: LayersData;
  readonly record: number;
  readonly column: number;
}

function Numbers({ data, record, column }: NumbersProps) {
  const { statistic, of, ofs, derived, hasBlocks, other, reference, steps } = data;
  if (!statistic) return null;
  const own = derived("absolute").line(record);
  const references = (["past", "blocks", "trial"] as const).filter((each) =>
    each === "blocks" ? hasBlocks : each === "trial" ? reference === "trial" && other !== null : true);
  return (
    <section aria-label="Numbers">
      <h3>{statistic.label}{of === "value" ? "" : ` of the ${kindWords(of, ofs)}`} at step {steps[column].number}</h3>
      <dl className="layers-numbers">
        <dt>as it is</dt>
        <dd className="number">
          {cellText(own.values[column], own.states[column], { what: statistic.isShare ? "share" : "number" })}
        </dd>
        {references.map((each) => {
          const line = derived(each).line(record);
          const value = line.values[column];
          const text = line.states[column] !== VALUE ? "–" : statistic.isShare ? pointsText(value) : ratioText(value);
          return [<dt key={each}>{referenceWords(each, other ?? "")}</dt>,
            <dd key={`${each} number`} className="number">{text}</dd>];
        })}
      </dl>
    </section>
  );
}

interface CourseProps {
  readonly data: LayersData;
  readonly record: number;
  readonly column: number;
  readonly findings: readonly Finding[];
}

function Course({ data, record, column, findings }: CourseProps) {
  const { steps, derived, group, statistic, cells } = data;
  const [canvas, paint] = useCanvas((element) => new LinesView(element));
  const alike = group(record);
  useEffect(() => {
    const absolute = derived("absolute");
    const lines = [record, ...alike.filter((each) => each !== record)].map((each) => absolute.line(each));
    const numbers = Float64Array.from(steps, ({ number }) => number);
    paint.current?.set({
      steps: numbers, lines, isShare: statistic?.isShare ?? false, isLog: statistic?.scale === "log",
      last: numbers[numbers.length - 1] ?? 0, step: column >= 0 ? steps[column].number : null,
      onsets: findings.map(({ firstStep, severity }) => ({ step: firstStep, severity })),
    });
  }, [steps, derived, record, alike, statistic, column, findings, cells, paint]);
  return (
    <section aria-label="Over training">
      <h3>
        Over training{alike.length > 1 && <span> – <em>this layer</em>, the same in other blocks grey</span>}
      </h3>
      <canvas ref={canvas} className="canvas layers-course" role="img" aria-label="The layer over training" />
    </section>
  );
}

function Others({ others, data }: { readonly others: readonly Standing[]; readonly data: LayersData }) {
  if (others.length === 0) return null;
  return (
    <section aria-label="Stands out">
      <h3>Also stands out from the other blocks</h3>
      <ul className="layers-others">
        {others.map(({ node, value, since }) => (
          <li key={node}>
            <button type="button" onClick={() => act.choose({ node, role: null, pass: null, step: since })}>
              <code>{node}</code>
              <span className="number">{data.statistic?.isShare ? pointsText(value) : ratioText(value)}</span>
              <small>since step {since}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

