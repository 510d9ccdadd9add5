/** Pictures that the user's own functions make of what is looked at. */
import { useMemo } from "react";
import { wholeNumber } from "../../model/numbers";
import { act, usePart, useShown, useTrials } from "../../state/page";
import { useViews, type ViewResult, type ViewSelection } from "../../state/data";
import { Empty } from "../../ui/parts";
import { Segments } from "../../ui/segments";
import { Select } from "../../ui/select";
import { durationText } from "../curves/axes";
import { ofWords } from "../shell/facts";
import { TabPanel, Waiting } from "../tab_panel";
import { useResult } from "./use_result";
import "./views.css";

const IN_SIGHT = 90; // so many letters of titles; more go into a list

export function Panel() {
  const { value, problem, pending } = useViews();
  const chosen = usePart((page) => page.view);
  const views = value?.views ?? [];
  const view = views.find(({ name }) => name === chosen) ?? views[0] ?? null;
  if (!view) {
    return (
      <TabPanel label="Views">
        {problem ? <Empty>{problem}</Empty> : null}
        {!problem && !value && pending && <Waiting what="views" />}
        {value && (value.problem ? <Trouble text={value.problem} /> : <NoViews file={value.file} />)}
      </TabPanel>
    );
  }
  const choices = views.map(({ name, title }) => ({ value: name, label: title || name }));
  const choose = (name: string): void => act.page({ view: name });
  const bar = (
    <>
      {choices.reduce((sum, { label }) => sum + label.length, 0) <= IN_SIGHT ? (
        <Segments label="view" choices={choices} value={view.name} onChange={choose} />
      ) : (
        <Select label="view" choices={choices} value={view.name} onChange={choose} />
      )}
      <span className="label end" title={`${value?.file}: read again whenever it changes`}>
        {value?.file?.split(/[\\/]/).at(-1)}
      </span>
    </>
  );
  return (
    <TabPanel label="Views" bar={bar}>
      <View name={view.name} title={view.title || view.name} problem={value?.problem ?? null} />
    </TabPanel>
  );
}

function useSelection(): ViewSelection {
  const trials = useTrials();
  const { trial, step, type, of, sample, node, role, pass } = useShown("a");
  return useMemo(() => {
    // The main trial is the one that the function gets as `recording`.
    const ordered = trial === null ? trials : [trial, ...trials.filter((name) => name !== trial)];
    return { trials: ordered, step, type, of, sample, node, role, pass };
  }, [trials, trial, step, type, of, sample, node, role, pass]);
}

interface ViewProps {
  readonly name: string;
  readonly title: string;
  readonly problem: string | null;
}

function View({ name, title, problem }: ViewProps) {
  const selection = useSelection();
  const { value, old, problem: failed } = useResult(name, selection);
  return (
    <div className="views">
      {problem && <div className="view-problem" role="alert">{problem}</div>}
      <div className={old && value ? "view-result old" : "view-result"} aria-busy={old}>
        {failed ? <Empty>{failed}</Empty> : value ? <Result result={value} title={title} /> : <Waiting what={title} />}
      </div>
      <p className="view-foot" role="status" style={{ margin: 0 }}>
        {value ? <Made result={value} old={old} selection={selection} /> : `${title} is being made.`}
      </p>
    </div>
  );
}

function Made({ result, old, selection }: { result: ViewResult; old: boolean; selection: ViewSelection }) {
  const { trials, step, node, of } = selection;
  const words = [trials[0], step !== null && `step ${wholeNumber(step)}`, node, of && ofWords(of)];
  const whom = words.filter(Boolean).join(" · ");
  if (old) return <>Being made anew for {whom}.</>;
  if (result.kind === "error") return <>It failed for {whom}. Correct the file and save it: it is read again.</>;
  return <>Made for {whom}, in {durationText(Math.max(result.seconds, 0.001))}.</>;
}

/** Nothing of it becomes part of the page: pictures, text, or a frame with an origin of its own. */
function Result({ result, title }: { readonly result: ViewResult; readonly title: string }) {
  const url = result.url.replace(/^\//, "./"); // the page may be served below a path
  switch (result.kind) {
    case "image":
      return <img src={url} alt={title} />;
    case "frame":
      return <iframe src={url} title={title} sandbox="allow-scripts" />;
    case "text":
      return <pre className="view-text" tabIndex={0} aria-label={title}>{result.text || "(empty text)"}</pre>;
    case "error":
      return <Trouble text={result.text} />;
  }
}

const Trouble = ({ text }: { readonly text: string }) => (
  <pre className="view-text error" role="alert" tabIndex={0}>{text}</pre>
);

const EXAMPLE = `def spread(selection, recording):
    """How the spread of the selected tensor develops."""
    import matplotlib.pyplot as plt

    series = recording.series(selection.node, "std", **selection.which)
    figure, axes = plt.subplots()
    axes.plot(series.steps, series.values)
    return figure`;

const NoViews = ({ file }: { readonly file: string | null }) => (
  <div className="empty views-empty" role="note">
    {file === null ? (
      <span>
        The server was started without views of your own. Write functions like this one into a file and start it again
        with <code>endoscope show DIR --views my_views.py</code>:
      </span>
    ) : (
      <span>
        {file} has no views yet. A view is a function of a selection and a recording; save the file and it appears here:
      </span>
    )}
    <pre>{EXAMPLE}</pre>
  </div>
);
