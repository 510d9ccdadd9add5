/** Controls of the metrics. */
import { act, usePart } from "../../state/page";
import { wholeNumber } from "../../model/numbers";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { factorOf, positionOf, windowOf } from "./smoothing";

const AXES = [{ value: "linear", label: "linear" }, { value: "log", label: "log" }] as const;
const PLACES = [{ value: "step", label: "step" }, { value: "time", label: "time" }] as const;

interface Props {
  readonly filter: string | null; // null: there are too few to need one
  readonly onFilter: (text: string) => void;
  readonly zoomed: boolean;
  readonly onWhole: () => void;
}

export function MetricsBar({ filter, onFilter, zoomed, onWhole }: Props) {
  const metrics = usePart((page) => page.metrics);
  return (
    <>
      {filter !== null && (
        <input
          type="search"
          className="search-field"
          aria-label="Filter metrics"
          placeholder="filter metrics"
          value={filter}
          onChange={(event) => onFilter(event.target.value)}
        />
      )}
      <Smoothing />
      <Segments
        label="values"
        choices={AXES}
        value={metrics.log ? "log" : "linear"}
        onChange={(axis) => act.page({ metrics: { ...metrics, log: axis === "log" } })}
      />
      <Segments
        label="over"
        choices={PLACES}
        value={metrics.x}
        onChange={(x) => act.page({ metrics: { ...metrics, x, range: null } })}
      />
      {zoomed && <Button onClick={onWhole} title="Double click on a plot does the same">show everything</Button>}
    </>
  );
}

function Smoothing() {
  const metrics = usePart((page) => page.metrics);
  const set = (position: number, transient: boolean): void =>
    act.page({ metrics: { ...metrics, smoothing: factorOf(position) } }, { transient });
  const commit = (): void => act.page({ metrics }, { transient: false });
  const points = Math.round(windowOf(metrics.smoothing));
  return (
    <label className="field">
      <span className="label">smoothing</span>
      <input
        type="range"
        className="metric-smoothing"
        min={0}
        max={100}
        step={1}
        value={positionOf(metrics.smoothing)}
        aria-valuetext={points > 1 ? `over about ${points} points` : "off"}
        onChange={(event) => set(Number(event.target.value), true)}
        onPointerUp={commit}
        onKeyUp={commit}
        onBlur={commit}
      />
      <span className="metric-smoothing-value">{points > 1 ? `≈ ${wholeNumber(points)} points` : "off"}</span>
    </label>
  );
}
