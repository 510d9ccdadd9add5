/** One module or parameter. */
import { memo } from "react";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { shapeText } from "../../model/names";
import { sizeOf, type ModuleRow } from "./module_tree";

interface Props {
  readonly id: string;
  readonly row: ModuleRow;
  /** Place among all rows, from 1. */
  readonly index: number;
  /** Parameters of the whole network. */
  readonly total: number;
  readonly current: boolean;
  readonly selected: boolean;
  /** The node it leads to. */
  readonly node: string | null;
  readonly onFold: (row: ModuleRow) => void;
  readonly onOpen: (row: ModuleRow) => void;
}

const INDENT = 16;

export const NetworkRow = memo(function NetworkRow(props: Props) {
  const { row, total, current, selected, node } = props;
  const { module, parameter } = row;
  const name = parameter?.name ?? (module.address || module.type);
  const hint = node === null ? `${name}: nothing of it was recorded` : `${name}: show ${node} in the graph`;
  const count = parameter ? sizeOf(parameter) : module.parameters;
  const trained = !parameter ? module.trainable : parameter.trainable ? (count ?? 0) : 0;
  const look = [parameter ? "parameter" : "", current ? "current" : "", node === null ? "lost" : ""].join(" ");
  return (
    <div
      id={props.id}
      role="row"
      className={`network-row ${look}`}
      aria-level={row.level + 1}
      aria-expanded={row.expanded ?? undefined}
      aria-posinset={row.place}
      aria-setsize={row.of}
      aria-rowindex={props.index + 1}
      aria-selected={selected}
      title={hint}
      onClick={() => props.onOpen(row)}
    >
      <span role="gridcell" className="network-name" style={{ paddingLeft: row.level * INDENT }}>
        <Twisty row={row} onFold={props.onFold} />
        <b>{row.label}</b>
      </span>
      <span role="gridcell" className="network-soft">{parameter ? parameter.dtype : module.type}</span>
      <span role="gridcell" className="network-soft number" title={parameter ? undefined : module.settings}>
        {parameter ? shapeText(parameter.shape) || "not known before its first use" : module.settings}
      </span>
      <span role="gridcell" className="network-count number">{count === null ? "–" : wholeNumber(count)}</span>
      <Share count={count ?? 0} trainable={trained} total={total} />
      <span role="gridcell" className="network-soft">
        {parameter ? trainableText(parameter.trainable ? 1 : 0, 1) : trainableText(module.trainable, module.parameters)}
      </span>
    </div>
  );
});

/** A mouse folds here; keys fold from anywhere in the row. */
function Twisty({ row, onFold }: { readonly row: ModuleRow; readonly onFold: (row: ModuleRow) => void }) {
  if (row.expanded === null) return <span className="network-twisty" />;
  return (
    <button
      type="button"
      className="network-twisty"
      tabIndex={-1}
      aria-label={`${row.expanded ? "Fold" : "Unfold"} ${row.label}`}
      onClick={(event) => {
        event.stopPropagation();
        onFold(row);
      }}
    >
      {row.expanded ? "▾" : "▸"}
    </button>
  );
}

/** Of all numbers of the network; what is not trained is hatched. */
function Share({ count, trainable, total }: { count: number; trainable: number; total: number }) {
  const share = total > 0 ? count / total : 0;
  return (
    <span role="gridcell" className="network-share">
      {share > 0 && (
        <>
          <span className="network-bar">
            <i className="frozen" style={{ width: `${share * 100}%` }} />
            <i style={{ width: `${(100 * trainable) / total}%` }} />
          </span>
          <span className="number">{share < 0.001 ? "< 0.1 %" : percent(share)}</span>
        </>
      )}
    </span>
  );
}

function trainableText(trainable: number, all: number): string {
  if (all === 0) return "";
  if (trainable === all) return "trained";
  return trainable === 0 ? "frozen" : `${shortNumber((100 * trainable) / all, 2)} % trained`;
}
