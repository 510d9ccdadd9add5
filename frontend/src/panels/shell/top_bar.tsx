/** Top: where am I. Views, trials, search, and whether the training runs. */
import { useId, useRef } from "react";
import { wholeNumber } from "../../model/numbers";
import { summaryOf } from "../../model/ranks";
import { useCatalog, useTrial } from "../../state/data";
import { reach } from "../../state/keys";
import { useConnection } from "../../state/live";
import { TABS, act, useMainTrial, usePart, type Tab } from "../../state/page";
import { Button, Key } from "../../ui/parts";
import { FindingKeys, FindingsCount } from "../findings/count";
import { SearchBox } from "../graph/search_box";
import { RankChooser } from "./ranks";
import { ThemeSwitch } from "./theme_switch";
import "./top_bar.css";
import { TrialsChooser } from "./trials";

/** What is needed every day; everything else is one click further. */
const MAIN: readonly string[] = ["overview", "layers", "graph", "compare"];
const isMain = (name: Tab): boolean => MAIN.includes(name);

export function TopBar() {
  return (
    <header className="top-bar">
      <h1 className="logo">
        <button type="button" onClick={() => act.page({ tab: TABS[0] })} aria-label={`Endoscope: ${titleOf(TABS[0])}`}>
          <i aria-hidden="true" />
          endoscope
        </button>
      </h1>
      <Tabs />
      <span className="grow" />
      <TrialsChooser />
      <RankChooser />
      <LiveState />
      <button
        type="button"
        className="button plain findings-link"
        title="What looks wrong in the chosen trials; n shows the next one"
        onClick={() => act.page({ tab: "findings" })}
      >
        <span className="visually-hidden">Findings</span>
        <FindingsCount />
      </button>
      <FindingKeys />
      <SearchBox />
      <ThemeSwitch />
      <Button plain label="Keys and help (?)" onClick={() => reach.help?.()}>
        <Key>?</Key>
      </Button>
    </header>
  );
}

const SENTENCES: Readonly<Partial<Record<string, string>>> = {
  overview: "What is wrong, in which trial and layer, since when; and all trials as a table.",
  layers: "Every layer at every recorded step, as colours.",
  graph: "How the network is wired, and everything about one tensor.",
  compare: "Two trials, steps, layers or samples on one scale.",
  metrics: "Curves of what the training logged.",
  network: "Modules and parameters as a table.",
  notes: "What was written down during the training.",
  views: "Functions of your own that draw what is selected.",
  run: "Configuration, versions, what recording cost, what was left out.",
  findings: "Everything that the checks say, with reasons.",
};

const titleOf = (name: string): string => name[0].toUpperCase() + name.slice(1);

function Tabs() {
  const tab = usePart((page) => page.tab);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const choose = (name: Tab): void => {
    list.current?.hidePopover();
    act.page({ tab: name });
  };
  const button = (name: Tab) => (
    <button
      key={name}
      type="button"
      title={SENTENCES[name]}
      aria-current={name === tab ? "page" : undefined}
      onClick={() => choose(name)}
    >
      {titleOf(name)}
    </button>
  );
  const place = (): void => {
    const at = document.getElementById(`${id}more`)?.getBoundingClientRect();
    if (!at || !list.current) return;
    list.current.style.top = `${at.bottom + 6}px`;
    list.current.style.left = `${Math.max(8, Math.min(at.left, innerWidth - list.current.offsetWidth - 8))}px`;
  };
  return (
    <nav className="tabs" aria-label="Tabs">
      {TABS.filter(isMain).map(button)}
      <button
        type="button"
        id={`${id}more`}
        aria-current={isMain(tab) ? undefined : "page"}
        aria-haspopup="true"
        popoverTarget={`${id}list`}
        title="Metrics, network, notes, your own views, the run, all findings"
      >
        {isMain(tab) ? "More" : titleOf(tab)} <span aria-hidden="true">▾</span>
      </button>
      <div
        id={`${id}list`}
        ref={list}
        popover="auto"
        className="popover tabs-more"
        aria-label="More views"
        onToggle={(event) => event.newState === "open" && place()}
      >
        {TABS.filter((name) => !isMain(name)).map(button)}
      </div>
    </nav>
  );
}

/** Whether the training runs, how far it has come, and whether the page follows it. */
function LiveState() {
  const trial = useMainTrial();
  const described = useTrial(trial).value;
  const { reachable } = useConnection();
  const follow = usePart((page) => page.follow);
  const summary = summaryOf(trial ?? "", useCatalog().value?.trials ?? []);
  const isLive = Boolean(summary?.live ?? described?.live);
  const last = described?.steps.number.reduce((most, step) => Math.max(most, step), -1) ?? -1;
  const [word, look] = !reachable ? ["server gone", "gone"] : isLive ? ["live", "live"] : endWords(described?.closed);
  return (
    <span className="live" role="status">
      <i className={`dot ${look}`} />
      <span title={word === "interrupted" ? "It did not end properly: the process may have been killed." : undefined}>
        {word}
        {last >= 0 && reachable && <span className="live-last">, last recorded step {wholeNumber(last)}</span>}
      </span>
      {isLive && (
        <Button label="Follow the newest step" pressed={follow} onClick={() => act.follow(!follow)}>
          follow
        </Button>
      )}
    </span>
  );
}

const endWords = (closed: boolean | undefined): readonly [string, string] =>
  closed === undefined ? ["", "ended"] : closed ? ["ended", "ended"] : ["interrupted", "paused"];
