/** All statistics of A and B, their difference and their ratio. */
import type { Compared } from "../../model/differences";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { statisticName, statisticNamed } from "../../model/statistics";
import type { Statistic } from "../../state/data";
import { NumberText } from "../../ui/number";

interface Props {
  readonly rows: readonly Compared[];
  readonly known: readonly Statistic[];
}

export function NumbersTable({ rows, known }: Props) {
  return (
    <table className="difference-table">
      <thead>
        <tr>
          <th scope="col">statistic</th>
          <th scope="col"><b className="side-a">A</b></th>
          <th scope="col"><b className="side-b">B</b></th>
          <th scope="col">A − B</th>
          <th scope="col" title="how much larger A is than B">A vs. B</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} className={row.difference === 0 ? "same" : undefined}>
            <th scope="row">{statisticName(row.name, known)}</th>
            <td><NumberText value={row.a} text={textOf(row.name, row.a)} /></td>
            <td><NumberText value={row.b} text={textOf(row.name, row.b)} /></td>
            <td><NumberText value={row.difference} text={row.difference === 0 ? "0" : undefined} /></td>
            <td><NumberText value={row.ratio} text={ratioText(row.ratio)} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const textOf = (name: string, value: number | null): string | undefined =>
  value !== null && statisticNamed(name).isCount ? wholeNumber(value) : undefined;

/** Near one, percents say more: +3.2 %. Far from it, factors: × 12. */
function ratioText(ratio: number | null): string | undefined {
  if (ratio === null) return undefined;
  if (ratio === 1) return "0 %";
  if (Math.abs(ratio - 1) < 1e-3) return "< 0.1 %";
  if (ratio > 2 || ratio < 0.5) return `× ${shortNumber(ratio, 2)}`;
  return `${ratio >= 1 ? "+" : ""}${percent(Number((ratio - 1).toPrecision(2)))}`;
}
