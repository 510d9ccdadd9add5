/** What the page says when there is nothing to look at: one sentence, and what can be done about it. */
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { giveToken } from "../../api/token";
import { useCatalog, useTrial, type Catalog, type Trial } from "../../state/data";
import { reach } from "../../state/keys";
import { useConnection } from "../../state/live";
import { useMainTrial, usePart } from "../../state/page";
import { Button, Empty } from "../../ui/parts";
import "./states.css";

/** Null: there is something to look at. */
export function useStateOfPage(): ReactNode {
  const catalog = useCatalog();
  const trial = useTrial(useMainTrial());
  const isOverview = usePart((page) => page.tab === "overview");
  if (!catalog.value) return catalog.problem ? <Unreachable sentence={catalog.problem} /> : <Opening />;
  const { trials } = catalog.value;
  if (trials.length === 0) return <NoTrials catalog={catalog.value} />;
  if (!trials.some((each) => each.readable)) return <Unreadable catalog={catalog.value} />;
  if (isOverview) return null; // it tells of every trial, whatever is the matter with one
  if (trial.problem) return <Empty action={<Again />}>{trial.problem}</Empty>;
  if (!trial.value) return <Opening />;
  const { steps, metrics } = trial.value;
  if (steps.number.length === 0 && metrics.length === 0) return <NoSteps trial={trial.value} />;
  return null;
}

const Again = () => <Button onClick={() => location.reload()}>Try again</Button>;

/** Blank for a moment, then a sentence: see the style sheet. */
const Opening = () => (
  <Empty>
    <span className="later">Opening the recording …</span>
  </Empty>
);

function Unreachable({ sentence }: { readonly sentence: string }) {
  if (/token/i.test(sentence)) return <TokenWanted />;
  return <Empty action={<Again />}>{sentence}</Empty>;
}

/** A link that somebody has copied has no token: each tab gets it from the address that was printed. */
function TokenWanted() {
  const [text, setText] = useState("");
  const id = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim()) giveToken(text);
  };
  return (
    <Empty>
      <p>
        This tab has no token, or an old one. Open the address that <code>endoscope show</code> printed, or paste it:
      </p>
      <form className="field" onSubmit={submit}>
        <label className="label" htmlFor={id}>printed address</label>
        <input
          id={id}
          className="input"
          value={text}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="button">open</button>
      </form>
    </Empty>
  );
}

function NoTrials({ catalog }: { readonly catalog: Catalog }) {
  return (
    <Empty>
      <p>
        There is no recording in <code>{catalog.root}</code> yet. Trials appear here as soon as one begins:
      </p>
      <pre className="snippet">
        {`with endoscope.Run(${JSON.stringify(catalog.root)}) as run:\n    run.watch(model, optimizer)\n    …  # train`}
      </pre>
      <p>
        If you meant another folder, stop the server and type <code>endoscope show FOLDER</code>.
      </p>
    </Empty>
  );
}

function Unreadable({ catalog }: { readonly catalog: Catalog }) {
  return (
    <Empty action={<Again />}>
      <p>
        Nothing in <code>{catalog.root}</code> can be read:
      </p>
      <ul className="problems">
        {catalog.trials.map(({ name, problems }) => (
          <li key={name}>
            <b>{name}</b>: {problems.join(" ")}
          </li>
        ))}
      </ul>
    </Empty>
  );
}

function NoSteps({ trial: { name, live, closed, problems } }: { readonly trial: Trial }) {
  const choose = <Button onClick={() => reach.trials?.()}>Choose another trial</Button>;
  if (problems.length > 0) {
    return (
      <Empty action={choose}>
        <p>
          Nothing in <b>{name}</b> can be shown:
        </p>
        <Problems list={problems} />
      </Empty>
    );
  }
  if (live) {
    return (
      <Empty>
        Nothing has been recorded in <b>{name}</b> yet. This page shows the first step as soon as it is written.
      </Empty>
    );
  }
  return (
    <Empty action={choose}>
      Nothing was recorded in <b>{name}</b>: it {closed ? "ended" : "was interrupted"} before its first step.
    </Empty>
  );
}

const START_AGAIN = <>start it again with <code>endoscope show</code> and this page goes on by itself.</>;

/** Over everything, while what is shown may be old. */
export function GoneBanner({ children = START_AGAIN }: { readonly children?: ReactNode }) {
  const { reachable } = useConnection();
  if (reachable) return null;
  return (
    <div className="banner" role="alert">
      The server does not answer. What you see stays; {children}
    </div>
  );
}

/** Damage of the main trial, said once and in words. */
export function ProblemsBanner() {
  const trial = useMainTrial();
  const problems = useTrial(trial).value?.problems ?? [];
  if (problems.length === 0) return null;
  return (
    <details className="banner warning">
      <summary>
        Parts of <b>{trial}</b> cannot be read ({problems.length}). Everything else is shown.
      </summary>
      <Problems list={problems} />
    </details>
  );
}

const Problems = ({ list }: { readonly list: readonly string[] }) => (
  <ul className="problems">
    {list.map((problem, i) => (
      <li key={i}>{problem}</li>
    ))}
  </ul>
);
