/** What nobody knew to ask: the layers in which A and B differ most at this step, and since when. */
import { useMemo, useRef, useEffect } from "react";
import { shadeTable } from "../../draw/shades";
import { ABSENT, SHADE_ABSENT, VALUE, worstShade } from "../../model/heat";
import { dividedLine, mostDiffering, sinceWhen, type Differing, type Numbers } from "../../model/differing";
import { columnsOf, stripShades, type HistoryLine } from "../../model/history";
import { percent, wholeNumber } from "../../model/numbers";
import { ratioScale } from "../../model/ratio";
import { heatLabel, statisticNamed } from "../../model/statistics";
import {
  useHeat, useStep, useTrial, type HeatTable, type Statistic, type StepTable, type Trial,
} from "../../state/data";
import { act, type Shown } from "../../state/page";
import { NumberText } from "../../ui/number";
import { Section } from "../../ui/parts";
import { isWholeType } from "../tensor/histogram_words";
import { useTheme } from "../tensor/use_theme";
import { Why } from "../tensor/words";
import { dividedText, type Pair } from "./charts";

const MOST = 12;

interface Props {
  readonly shown: Pair<Shown>;
  readonly statistic: string;
  readonly known: readonly Statistic[];
}

export function WhereTheyDiffer({ shown: [a, b], statistic, known }: Props) {
  const described = statisticNamed(statistic, known);
  const [tableA, tableB] = [useStep(a.trial, a.step, a.type).value, useStep(b.trial, b.step, b.type).value];
  const rows = useMemo(() => {
    if (!tableA || !tableB || a.of === null || b.of === null) return [];
    const isParameter = tableA.kind(tableA.find(a.node ?? "", a.of)) === "parameter";
    const numbers = (table: StepTable, of: string): Numbers[] => numbersOf(table, of, described, isParameter);
    return mostDiffering(numbers(tableA, a.of), numbers(tableB, b.of), described.isCount, MOST);
  }, [tableA, tableB, a.of, b.of, a.node, described]);
  const histories = useHistories(a, b, described);
  const word = described.isCount ? "A − B" : "A ÷ B";
  return (
    <Section title="Where A and B differ most at this step" aside={<Scale isShare={described.isCount} />}>
      {rows.length === 0 && <Why text={`A and B have no tensor in common with a known ${heatLabel(described)}.`} />}
      {rows.length > 0 && (
        <div className="compare-table">
          <table>
            <thead>
              <tr>
                <th scope="col">layer</th>
                <th scope="col">A</th>
                <th scope="col">B</th>
                <th scope="col">{word}</th>
                <th scope="col">since</th>
                <th scope="col" className="compare-strip">{heatLabel(described)}, {word}, over steps</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row
                  key={`${row.node} ${row.role} ${row.pass}`}
                  row={row}
                  isSelected={row.node === a.node && row.role === a.role && row.pass === a.pass}
                  isShare={described.isCount}
                  history={histories?.(row) ?? null}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function numbersOf(
  table: StepTable, of: string, { name, isCount }: Statistic, isParameter: boolean,
): Numbers[] {
  const [values, counts] = [table.statistic(name), table.statistic("count")];
  const wanted = of === "value" && isParameter ? ["value", "parameter"] : [of];
  const found: Numbers[] = [];
  for (let row = 0; row < values.length; row++) {
    const kind = table.kind(row);
    if (!wanted.includes(table.of[row]) && table.of[row] !== of) continue;
    if ((kind === "parameter") !== isParameter || kind === "loss" || kind === "target") continue;
    if (counts[row] <= 1 || isWholeType(table.dtype(row))) continue; // labels, ids, single numbers
    const number = isCount ? values[row] / counts[row] : values[row];
    found.push({ node: table.node[row], role: table.role[row], pass: table.pass[row], number });
  }
  return found;
}

interface RowHistory {
  readonly line: HistoryLine;
  readonly edges: Float64Array;
  readonly steps: readonly number[];
  readonly column: number;
}

/** Of each tensor A ÷ B at all steps: at the same step of another trial, else against the step of B. */
function useHistories(a: Shown, b: Shown, statistic: Statistic): ((row: Differing) => RowHistory | null) | null {
  const [tableA, tableB] = [useHeat(a.trial, a.of, statistic.name).value, useHeat(b.trial, b.of, statistic.name).value];
  const [trialA, trialB] = [useTrial(a.trial).value, useTrial(b.trial).value];
  return useMemo(() => {
    if (!tableA || !tableB || !trialA || !trialB) return null;
    const [columns, others] = [stepsOf(trialA, tableA, a.type), stepsOf(trialB, tableB, b.type)];
    const isOtherTrial = a.trial !== b.trial;
    const edges = columnsOf(columns.map(({ number }) => number));
    const placeB = new Map(others.map(({ number, place }) => [number, place]));
    const column = columns.findIndex(({ ordinal }) => ordinal === a.ordinal);
    return (row: Differing): RowHistory | null => {
      const [rowA, rowB] = [find(tableA, row), find(tableB, row)];
      if (rowA < 0 || rowB < 0) return null;
      const [values, reference] = [tableA.values(rowA), tableB.values(rowB)];
      const own = Float64Array.from(columns, ({ place }) => values[place]);
      const states = Uint8Array.from(own, (value) => (Number.isNaN(value) ? ABSENT : VALUE));
      const at = (i: number): number => {
        const place = placeB.get(isOtherTrial ? columns[i].number : (b.step ?? -1));
        return place === undefined ? NaN : reference[place];
      };
      const line = dividedLine({ values: own, states }, at, statistic.isCount);
      return { line, edges, steps: columns.map(({ number }) => number), column };
    };
  }, [tableA, tableB, trialA, trialB, a.type, b.type, a.ordinal, a.trial, b.trial, b.step, statistic.isCount]);
}

function stepsOf({ steps, types }: Trial, table: HeatTable, type: string | null) {
  return steps.ordinal.flatMap((ordinal, i) => {
    const place = type === null || types[steps.type[i]] === type ? table.place(ordinal) : -1;
    return place < 0 ? [] : { ordinal, place, number: steps.number[i] };
  });
}

function find(table: HeatTable, { node, role, pass }: Differing): number {
  for (let row = 0; row < table.rows; row++) {
    if (table.node[row] === node && table.role[row] === role && table.pass[row] === pass) return row;
  }
  return -1;
}

interface RowProps {
  readonly row: Differing;
  readonly isSelected: boolean;
  readonly isShare: boolean;
  readonly history: RowHistory | null;
}

function Row({ row, isSelected, isShare, history }: RowProps) {
  const { node, role, pass, a, b, value } = row;
  const since = history && history.column >= 0 ? sinceWhen(history.line, history.steps, history.column) : undefined;
  const text = (number: number): string | undefined => (isShare ? percent(number) : undefined);
  const name = [node, role, pass > 1 ? `pass ${pass}` : ""].filter(Boolean).join(" · ");
  return (
    <tr aria-selected={isSelected}>
      <th scope="row">
        <button type="button" className="compare-layer" onClick={() => act.choose({ node, role, pass })}>{name}</button>
      </th>
      <td><NumberText value={a} text={text(a)} /></td>
      <td><NumberText value={b} text={text(b)} /></td>
      <td className="number"><b>{dividedText(value, isShare)}</b></td>
      <td className="label">{sinceText(since)}</td>
      <td className="compare-strip">{history && <Strip history={history} isShare={isShare} />}</td>
    </tr>
  );
}

const sinceText = (since: number | null | undefined): string =>
  since === undefined ? "–" : since === null ? "the start" : `step ${wholeNumber(since)}`;

const PIXELS = 480;

function Strip({ history, isShare }: { readonly history: RowHistory; readonly isShare: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const { line, edges, column } = history;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const table = shadeTable("diverging", theme.scheme, theme.panelRgb);
    const scale = ratioScale(isShare);
    const shades = stripShades({ edges, at: 0, column, line: () => line }, line, scale, PIXELS, worstShade);
    const pixels = Uint32Array.from(shades, (shade) => (shade === SHADE_ABSENT ? 0 : table.pixels[shade]));
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), PIXELS, 1), 0, 0);
  }, [line, edges, column, isShare, theme]);
  const at = column < 0 ? null : ((edges[column] + edges[column + 1]) / 2) * 100;
  return (
    <span className="strip">
      <canvas ref={canvas} width={PIXELS} height={1} aria-hidden="true" />
      {at !== null && <i style={{ left: `${at}%` }} />}
    </span>
  );
}

function Scale({ isShare }: { readonly isShare: boolean }) {
  return (
    <span className="compare-scale">
      <span className="number">{isShare ? "−100 points" : "×0.03"}</span>
      <i className="ramp diverging" />
      <span className="number">{isShare ? "+100 points" : "×30"}</span>
    </span>
  );
}
