/** One sample among all of the batch: how unusual each of its statistics is. */
import { shortNumber } from "../../model/numbers";
import { statisticName } from "../../model/statistics";
import { NumberText } from "../../ui/number";
import { scoreText, type SampleRow } from "./summary";

/** Standard deviations at the ends of the line. */
const REACH = 3;
/** Beyond this, a number is pointed out. */
export const UNUSUAL = 2;

export function SampleAgainstBatch({ rows }: { readonly rows: readonly SampleRow[] }) {
  return (
    <table className="sample-table">
      <thead>
        <tr>
          <th scope="col">statistic</th>
          <th scope="col">sample</th>
          <th scope="col">batch</th>
          <th scope="col">z</th>
          <th scope="col"><span className="visually-hidden">place in the batch</span></th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} className={Math.abs(row.z) >= UNUSUAL ? "unusual" : undefined}>
            <th scope="row">{statisticName(row.name)}</th>
            <td><NumberText value={row.value} /></td>
            <td className="number">{shortNumber(row.mean, 2)} ± {shortNumber(row.std, 2)}</td>
            <td><NumberText value={row.z} text={scoreText(row.z)} /></td>
            <td><Line row={row} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Line({ row }: { readonly row: SampleRow }) {
  const place = Math.max(-REACH, Math.min(REACH, Number.isNaN(row.z) ? 0 : row.z));
  const above = `higher than ${Math.round(row.rank * 100)} % of the batch`;
  return (
    <span className="z-line" title={above}>
      <i style={{ left: `${50 + (50 * place) / REACH}%` }} />
      <span className="visually-hidden">{above}</span>
    </span>
  );
}
