/** Controls of the metrics. */
import { useEffect, useState } from "react";
import { act, usePart } from "../../state/page";
import { wholeNumber } from "../../model/numbers";
import { Button } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { FEW } from "./groups";
import { factorOf, positionOf, windowOf } from "./smoothing";

const AXES = [{ value: "linear", label: "linear" }, { value: "log", label: "log" }] as const;
const PLACES = [{ value: "step", label: "step" }, { value: "time", label: "time" }] as const;

interface Props {
  readonly count: number;
  readonly problem: string; // of the expression that groups
  readonly zoomed: boolean;
  readonly onWhole: () => void;
}

export function MetricsBar({ count, problem, zoomed, onWhole }: Props) {
  const metrics = usePart((page) => page.metrics);
  return (
    <>
      {(count > FEW || metrics.filter !== "") && (
        <Typed label="Filter metrics" placeholder="filter metrics" part="filter" />
      )}
      {(count > 1 || metrics.group !== "") && (
        <Typed
          label="Group metrics by a regular expression"
          placeholder="group by, such as ^(\w+)"
          part="group"
          title="A regular expression: its first group names the group of a metric. Empty: what stands before the /"
          invalid={problem !== ""}
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
      <Button
        pressed={!metrics.outliers}
        title="The axis of values goes from the 2nd to the 98th percentile of the values in view"
        onClick={() => act.metrics({ outliers: !metrics.outliers })}
      >
        ignore outliers
      </Button>
      {zoomed && <Button onClick={onWhole} title="Double click on a plot does the same">show everything</Button>}
      {problem && <span className="metric-problem" role="status">{problem}</span>}
    </>
  );
}

interface TypedProps {
  readonly label: string;
  readonly placeholder: string;
  readonly part: "filter" | "group";
  readonly title?: string;
  readonly invalid?: boolean;
}

/** While somebody types, the address waits. */
function Typed({ label, placeholder, part, title, invalid }: TypedProps) {
  const text = usePart((page) => page.metrics[part]);
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const type = (next: string): void => {
    setTyped(next);
    act.page({ metrics: { [part]: next } }, { transient: true });
  };
  const commit = (): void => act.metrics({ [part]: typed });
  return (
    <input
      type="search"
      className="search-field"
      aria-label={label}
      title={title}
      placeholder={placeholder}
      aria-invalid={invalid}
      value={typed}
      onChange={(event) => type(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && commit()}
      onBlur={commit}
    />
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
