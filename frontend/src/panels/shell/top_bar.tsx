/** Top: where am I. Tabs, trials, search, whether it runs and what recording costs. */
import { percent } from "../../model/numbers";
import { useCatalog, useTrial } from "../../state/data";
import { reach } from "../../state/keys";
import { useConnection } from "../../state/live";
import { TABS, act, useMainTrial, usePart } from "../../state/page";
import { Button, Key } from "../../ui/parts";
import { FindingKeys, FindingsCount } from "../findings/count";
import { SearchBox } from "../graph/search_box";
import { readReport } from "../run/facts";
import { costOf } from "./facts";
import { TrialsChooser } from "./trials";

export function TopBar() {
  return (
    <header className="top-bar">
      <h1 className="logo">
        <i aria-hidden="true" />
        endoscope
      </h1>
      <Tabs />
      <span className="grow" />
      <TrialsChooser />
      <SearchBox />
      <LiveState />
      <FindingKeys />
      <Button plain label="Keys and help (?)" onClick={() => reach.help?.()}>
        <Key>?</Key>
      </Button>
    </header>
  );
}

function Tabs() {
  const tab = usePart((page) => page.tab);
  return (
    <nav className="tabs" aria-label="Tabs">
      {TABS.map((name) => (
        <button
          key={name}
          type="button"
          aria-current={name === tab ? "page" : undefined}
          onClick={() => act.page({ tab: name })}
        >
          {name[0].toUpperCase() + name.slice(1)}
          {name === "findings" && <FindingsCount />}
        </button>
      ))}
    </nav>
  );
}

/** Whether the training runs, whether the page follows it, and how much of its time recording takes. */
function LiveState() {
  const trial = useMainTrial();
  const described = useTrial(trial).value;
  const { reachable } = useConnection();
  const follow = usePart((page) => page.follow);
  const summary = useCatalog().value?.trials.find(({ name }) => name === trial);
  const isLive = Boolean(summary?.live ?? described?.live);
  const cost = described && costOf(described);
  const limit = (described && readReport(described)?.budget?.fraction) ?? null;
  const [word, look] = !reachable ? ["server gone", "gone"] : isLive ? ["live", "live"] : endWords(described?.closed);
  return (
    <span className="live" role="status">
      <i className={`dot ${look}`} />
      <span title={word === "interrupted" ? "It did not end properly: the process may have been killed." : undefined}>
        {word}
      </span>
      {isLive && (
        <Button label="Follow the newest step" pressed={follow} onClick={() => act.follow(!follow)}>
          follow
        </Button>
      )}
      {cost !== null && cost !== undefined && (
        <span className="live-cost" title="Share of the training's time that recording took">
          cost <span className="number">{percent(cost)}</span>
          {limit !== null && <> of <span className="number">{percent(limit)}</span></>}
        </span>
      )}
    </span>
  );
}

const endWords = (closed: boolean | undefined): readonly [string, string] =>
  closed === undefined ? ["", "ended"] : closed ? ["ended", "ended"] : ["interrupted", "paused"];
