/** Finds nodes and modules by a few letters. `/` leads here from anywhere; Enter selects and shows what was found. */
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { groupsAround, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { searchGraph, type Found } from "../../model/search";
import { reach } from "../../state/keys";
import { act } from "../../state/page";
import { Key } from "../../ui/parts";
import { wishToSee, wishToWalk } from "./reveal";
import { useShownGraph } from "./use_model";

const MOST = 30;

export function SearchBox() {
  const { model, open } = useShownGraph();
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const [expanded, setExpanded] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  useEffect(() => {
    reach.search = () => {
      input.current?.focus();
      input.current?.select();
    };
    return () => void delete reach.search;
  }, []);
  const found = useMemo(() => (model ? searchGraph(model, query, MOST) : []), [model, query]);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const pick = (entry: Found | undefined): void => {
    if (!entry || !model) return;
    show(model, open, entry);
    setExpanded(false);
    setQuery("");
    input.current?.blur();
  };
  const keys = (event: KeyboardEvent): void => {
    const last = found.length - 1;
    if (event.key === "ArrowDown") setActive(active >= last ? 0 : active + 1);
    else if (event.key === "ArrowUp") setActive(active <= 0 ? last : active - 1);
    else if (event.key === "Enter") pick(found[active]);
    else if (event.key === "Escape") {
      setExpanded(false);
      setQuery("");
      input.current?.blur();
    } else return;
    event.preventDefault();
  };
  const isOpen = expanded && query.trim() !== "";
  return (
    <span className="search" role="search">
      <input
        ref={input}
        className="text-input"
        type="text"
        role="combobox"
        aria-label="Search nodes and modules"
        aria-expanded={isOpen}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && found[active] ? `${id}${active}` : undefined}
        placeholder="Search nodes, modules"
        spellCheck={false}
        autoComplete="off"
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setActive(0);
          setExpanded(true);
        }}
        onFocus={() => setExpanded(true)}
        onBlur={() => setExpanded(false)}
        onKeyDown={keys}
      />
      <Key>/</Key>
      <ul ref={list} id={`${id}list`} role="listbox" aria-label="Found" hidden={!isOpen}>
        {isOpen && found.map((entry, i) => (
          <li
            key={`${entry.group} ${entry.name}`}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === active}
            onPointerDown={(event) => event.preventDefault()}
            onPointerMove={() => setActive(i)}
            onClick={() => pick(entry)}
          >
            {model && <Entry model={model} entry={entry} />}
          </li>
        ))}
        {isOpen && found.length === 0 && (
          <li className="search-none" role="option" aria-selected="false" aria-disabled="true">
            Nothing is called like that.
          </li>
        )}
      </ul>
    </span>
  );
}

function Entry({ model, entry }: { readonly model: GraphModel; readonly entry: Found }) {
  const kind = entry.node >= 0 ? model.nodes[entry.node].kind : null;
  const renamed = entry.node >= 0 ? model.nodes[entry.node].label : model.groups[entry.group].label;
  const own = !entry.name.endsWith(renamed) && renamed !== "output" ? renamed : "";
  const what = kind ?? `module, ${model.groups[entry.group].size} inside`;
  return (
    <>
      <i className="swatch" style={{ background: kind ? `var(--kind-${kind})` : "var(--line-strong)" }} />
      <span className="search-name">{entry.name}</span>
      <span className="label">{[own, what].filter(Boolean).join(" · ")}</span>
    </>
  );
}

/** Opens whatever hides it, selects it, and has the graph move there. */
function show(model: GraphModel, open: OpenGroups, { node, group }: Found): void {
  const target = node >= 0 ? node : model.groups[group].face;
  const around = groupsAround(model, target);
  // A module is shown closed or open as it is; only what is around it has to be open.
  const needed = node >= 0 ? around : around.slice(0, around.indexOf(model.groups[group].address));
  const missing = needed.filter((address) => !open.has(address));
  const { name } = model.nodes[target];
  // One entry of the history for both.
  act.page({ tab: "graph", ...(missing.length ? { open: [...open, ...missing] } : {}) }, { transient: true });
  act.choose({ node: name });
  wishToSee(name);
  wishToWalk();
}
