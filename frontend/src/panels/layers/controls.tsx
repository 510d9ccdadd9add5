/** What is coloured, and by what: one line of choices, and one that says in words what the colours mean now. */
import { useSyncExternalStore } from "react";
import type { Reference } from "../../model/layers/derive";
import { meaningWords, referenceWords } from "../../model/layers/words";
import { onThemeChange, pageTheme } from "../../draw/theme";
import { act, usePart } from "../../state/page";
import type { HeatMode } from "../../state/look";
import { Segments, type Choice } from "../../ui/segments";
import { Select } from "../../ui/select";
import type { LayersData } from "./use_layers";

const NO_UPDATE = "Only parameters are updated.";

export function Controls({ data }: { readonly data: LayersData }) {
  const { statistic, statistics, of, ofs, reference, other, others, hasBlocks } = data;
  const isDark = useSyncExternalStore(onThemeChange, () => pageTheme().scheme === "dark");
  const order = usePart((page) => page.layers.order);
  const filter = usePart((page) => page.layers.filter);
  const choices = statistics.map(({ value, label }) => ({ value, label }));
  return (
    <>
      <div className="layers-controls">
        <Select
          label="show"
          choices={choices}
          value={statistic?.value ?? ""}
          onChange={(value) => chooseStatistic(data, value)}
        />
        {ofs.length > 1 && <Kinds ofs={ofs} of={of} />}
        <Segments
          label="colour"
          choices={references(hasBlocks, other)}
          value={reference}
          onChange={(mode) => act.page({ heat: { mode: mode as HeatMode } })}
        />
        {reference === "trial" && <OtherTrial other={other} others={others} />}
        <span className="grow" />
        <Segments
          label="order"
          choices={[{ value: "network", label: "network" }, { value: "differs", label: "stands out" }]}
          value={order}
          onChange={(next) => act.page({ layers: { order: next } })}
        />
        <input
          type="search"
          className="layers-filter"
          placeholder="Filter rows"
          aria-label="Filter rows by name or class"
          value={filter}
          onChange={(event) => act.page({ layers: { filter: event.target.value } }, { transient: true })}
          onBlur={(event) => act.page({ layers: { filter: event.target.value } })}
        />
      </div>
      <p className="layers-help">
        Rows are layers, from input down to loss; columns are recorded steps.{" "}
        <strong>
          {statistic && meaningWords({
            label: statistic.label, isShare: statistic.isShare, reference, other: other ?? "", isDark,
          })}
        </strong>{" "}
        Look for a row that changes.
      </p>
    </>
  );
}

/** Which trial the colours are held against, where there are several. */
export function OtherTrial({ other, others }: { readonly other: string | null; readonly others: readonly string[] }) {
  if (others.length < 2) return null;
  return (
    <Select
      label="trial"
      quiet
      choices={others.map((name) => ({ value: name, label: name }))}
      value={other ?? ""}
      onChange={(name) => act.page({ layers: { other: name } })}
    />
  );
}

function chooseStatistic({ statistics, of, ofs }: LayersData, value: string): void {
  const wanted = statistics.find((each) => each.value === value);
  act.page({ heat: { statistic: value } });
  if (!wanted?.of || wanted.of.includes(of.split(":")[0])) return;
  const possible = ofs.find((each) => wanted.of?.includes(each.split(":")[0]));
  if (possible) act.choose({ of: possible });
}

function references(hasBlocks: boolean, other: string | null): Choice<Reference>[] {
  const all: readonly Reference[] = [
    "absolute", "past", ...(hasBlocks ? ["blocks" as const] : []), ...(other === null ? [] : ["trial" as const]),
  ];
  return all.map((value) => ({ value, label: referenceWords(value, other ?? "") }));
}

/** Two or three: a switch; of several losses a list. */
function Kinds({ ofs, of }: { readonly ofs: readonly string[]; readonly of: string }) {
  const choices = ofs.map((value) => ({ value, label: kindWords(value, ofs) }));
  const choose = (value: string): void => act.choose({ of: value });
  return ofs.length <= 3
    ? <Segments label="of the" choices={choices} value={of} onChange={choose} />
    : <Select label="of the" choices={choices} value={of} onChange={choose} />;
}

export const kindWords = (of: string, ofs: readonly string[]): string => {
  if (!of.startsWith("gradient:")) return of;
  const isOnly = ofs.filter((each) => each.startsWith("gradient:")).length === 1;
  return isOnly ? "gradient" : `gradient of ${of.slice("gradient:".length)}`;
};

export { NO_UPDATE };
