/** The histogram of a tensor, with that of a sample or of another tensor over it. */
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { HistogramPlot, type SliceHit } from "../../draw/histogram";
import type { Heights } from "../../draw/histogram_axis";
import { rangeOf, type Distribution as Numbers } from "../../model/density";
import { total } from "../../model/histogram";
import { percent, shortNumber } from "../../model/numbers";
import { act, usePart } from "../../state/page";
import { Section } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { useCanvas } from "../../ui/use_canvas";
import { leftOut } from "./histogram_words";
import { useTheme } from "./use_theme";
import { Why } from "./words";

const HEIGHTS = [
  { value: "linear", label: "linear", title: "A bar twice as high holds twice as many elements." },
  { value: "log", label: "log heights", title: "Thin tails are seen: each quarter of the height is a factor of ten." },
] as const;

interface Props {
  readonly title?: string;
  readonly distribution: Numbers;
  readonly other: Numbers | null;
  /** What the two are; the second only if there is one. */
  readonly names: readonly [string, string];
  readonly mean: number;
  /** Elements in no bin: NaN and infinities. */
  readonly left: number;
  readonly otherLeft?: number;
  /** What to say while nothing is pointed at. */
  readonly note?: ReactNode;
  /** Two sides of a comparison are drawn alike, in their own colours. */
  readonly areSides?: boolean;
  readonly height?: number;
}

export function Distribution(props: Props) {
  const { title = "histogram", distribution, other, names, mean, left, note = "" } = props;
  const { areSides = false, otherLeft = 0 } = props;
  const heights = usePart((page) => page.heights);
  const [hit, setHit] = useState<SliceHit | null>(null);
  const range = useMemo(() => rangeOf(other ? [distribution, other] : [distribution]), [distribution, other]);
  const isEmpty = total(distribution.histogram) === 0 && (!other || total(other.histogram) === 0);
  const words = useMemo(() => leftOut(distribution, range, left), [distribution, range, left]);
  const otherWords = useMemo(() => (other && areSides ? leftOut(other, range, otherLeft) : []),
    [other, areSides, range, otherLeft]);
  return (
    <Section title={title} aside={range && <HeightsChoice heights={heights} />}>
      {isEmpty && <Why text="No element is finite: there is nothing to draw a histogram of." />}
      {range && (
        <Plot {...{ distribution, other, heights, mean, names, areSides }} height={props.height} onHover={setHit} />
      )}
      <div className="picture-foot">
        <span className="picture-key">
          <i className="key-fill" /> {names[0]}
          {other && <><i className="key-line" /> {names[1]}</>}
        </span>
        <span className="number" role="status">{hit ? hitText(hit) : note}</span>
      </div>
      {!isEmpty && words.length > 0 && (
        <p className="picture-words">{areSides && <b className="side-a">A</b>} {words.join("; ")}</p>
      )}
      {otherWords.length > 0 && <p className="picture-words"><b className="side-b">B</b> {otherWords.join("; ")}</p>}
    </Section>
  );
}

function HeightsChoice({ heights }: { readonly heights: Heights }) {
  const change = (next: Heights): void => act.page({ heights: next });
  return <Segments quiet label="Heights of bars" value={heights} onChange={change} choices={HEIGHTS} />;
}

interface PlotProps {
  readonly distribution: Numbers;
  readonly other: Numbers | null;
  readonly heights: Heights;
  readonly mean: number;
  readonly names: readonly [string, string];
  readonly areSides: boolean;
  readonly height?: number | undefined;
  readonly onHover: (hit: SliceHit | null) => void;
}

function Plot({ distribution, other, heights, mean, names, areSides, height = 128, onHover }: PlotProps) {
  const theme = useTheme();
  const [canvas, plot] = useCanvas((element) => new HistogramPlot(element, onHover));
  useEffect(() => {
    const marks = Number.isFinite(mean) ? [{ value: mean, label: "mean" }] : [];
    const [color, otherColor] = [theme.sideA, theme.sideB];
    plot.current?.set({ distribution, other, heights, theme, color, otherColor, areSides, marks });
  }, [plot, distribution, other, heights, mean, areSides, theme]);
  return (
    <canvas
      ref={canvas}
      className="canvas histogram"
      style={{ height }}
      role="img"
      aria-label={`Histogram of ${names[0]}${other ? ` and ${names[1]}` : ""}`}
    />
  );
}

function hitText({ low, high, fraction, otherFraction }: SliceHit): string {
  const range = `${shortNumber(low)} … ${shortNumber(high)}`;
  return `${range}: ${percent(fraction)}${otherFraction === null ? "" : ` | ${percent(otherFraction)}`}`;
}
