/** Which trials are looked at, each with its colour; the main one is the one whose numbers are shown. */
import { useEffect, useId, useLayoutEffect, useRef, useState, type ToggleEvent } from "react";
import { meaning } from "../../model/glossary";
import { wholeNumber } from "../../model/numbers";
import { useCatalog, type Catalog } from "../../state/data";
import { reach } from "../../state/keys";
import { act, trialColor, useMainTrial, useTrials } from "../../state/page";
import { dateText } from "../curves/axes";
import "./trials.css";

const MOST_CHIPS = 3;

export function TrialsChooser() {
  const names = useTrials();
  const trial = useMainTrial();
  const catalog = useCatalog().value;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    reach.trials = () => list.current?.togglePopover();
    return () => void delete reach.trials;
  }, []);
  const [isOpen, setOpen] = useState(false);
  const toggled = (event: ToggleEvent): void => setOpen(event.newState === "open");
  useLayoutEffect(() => {
    if (!isOpen) return;
    list.current?.querySelector<HTMLInputElement>("input[type=radio]:checked")?.focus();
    const at = (button.current as HTMLButtonElement).getBoundingClientRect();
    const { style, offsetWidth } = list.current as HTMLDivElement;
    style.top = `${at.bottom + 6}px`;
    style.left = `${Math.max(8, Math.min(at.left, innerWidth - offsetWidth - 8))}px`;
  }, [isOpen, catalog]);
  const shown = names.slice(0, MOST_CHIPS);
  const all = catalog?.trials.length ?? 0;
  return (
    <span className="trials">
      <button
        type="button"
        ref={button}
        className="button plain trials-button"
        popoverTarget={id}
        title="Choose trials (t)"
      >
        <span className="label" title={meaning("trial")}>{names.length > 1 ? "trials" : "trial"}</span>
        {shown.map((name) => (
          <span key={name} className={name === trial ? "chip main" : "chip"}>
            <span className="dot" style={{ background: trialColor(name) }} />
            <span className="chip-name">{name}</span>
          </span>
        ))}
        {names.length > MOST_CHIPS && <span className="label">+{names.length - MOST_CHIPS}</span>}
        {names.length === 0 && <span className="label">none</span>}
        {all > names.length && names.length > 0 && <span className="label">{names.length} of {all}</span>}
        <span className="caret" aria-hidden="true">▾</span>
      </button>
      <div id={id} ref={list} popover="auto" className="popover" aria-label="Trials" onToggle={toggled}>
        {catalog && isOpen && <TrialList catalog={catalog} names={names} main={trial} />}
      </div>
    </span>
  );
}

interface ListProps {
  readonly catalog: Catalog;
  readonly names: readonly string[];
  readonly main: string | null;
}

function TrialList({ catalog, names, main }: ListProps) {
  const newestFirst = [...catalog.trials].sort((a, b) => b.created - a.created);
  const check = (name: string, is: boolean): void => {
    const next = is ? [...names, name] : names.filter((other) => other !== name);
    if (next.length === 0) return;
    const leavesMain = !is && name === main;
    act.page({ trials: next }, { transient: leavesMain }); // one entry of the history for both
    if (leavesMain) act.choose({ trial: next[0] });
  };
  return (
    <table className="trial-list">
      <caption className="visually-hidden">Trials</caption>
      <thead>
        <tr>
          <th scope="col">show</th>
          <th scope="col">main</th>
          <th scope="col">trial</th>
          <th scope="col">recorded</th>
          <th scope="col">begun</th>
        </tr>
      </thead>
      <tbody>
        {newestFirst.map((trial) => {
          const place = names.indexOf(trial.name);
          return (
            <tr key={trial.name} className={trial.readable ? "" : "unreadable"} title={trial.problems.join("\n")}>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Show ${trial.name}`}
                  checked={place >= 0}
                  disabled={!trial.readable || (place >= 0 && names.length === 1)}
                  onChange={(event) => check(trial.name, event.target.checked)}
                />
              </td>
              <td>
                <input
                  type="radio"
                  name="main-trial"
                  aria-label={`Look at ${trial.name}`}
                  checked={trial.name === main}
                  disabled={!trial.readable}
                  onChange={() => act.choose({ trial: trial.name })}
                />
              </td>
              <th scope="row">
                {place >= 0 && <span className="dot" style={{ background: trialColor(trial.name) }} />}
                {trial.name}
              </th>
              <td className="number">{trial.readable ? wholeNumber(trial.steps) : "cannot be read"}</td>
              <td className="number">{trial.live ? "live" : dateText(trial.created)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

