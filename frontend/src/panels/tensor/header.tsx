/** Which tensor it is: name, kind, type and shape, module, the line that made it; sample, role and pass. */
import { memo } from "react";
import { asKind } from "../../model/source";
import type { Pane } from "../../state/page";
import { Chip } from "../../ui/parts";
import { TensorChoices } from "./choices";
import { Copy } from "./copy";

export interface HeaderProps {
  readonly node: string;
  readonly kind: string;
  readonly dtype: string;
  readonly shape: readonly number[] | null;
  readonly module: string;
  /** File:line. */
  readonly source: string;
  readonly pane: Pane;
}

export const Header = memo(function Header(props: HeaderProps) {
  const { pane, node, kind, dtype, shape, module, source } = props;
  return (
    <header className="section tensor-header">
      <div className="tensor-title">
        <h2>{node}</h2>
        {kind && <Chip color={`var(--kind-${asKind(kind)})`}>{kind}</Chip>}
      </div>
      <div className="tensor-facts">
        {shape && <span className="number">{dtype} [{shape.join(", ")}]</span>}
        {module && <span className="label">in <code>{module}</code></span>}
        {source && <Copy text={source} label={`Copy ${source}`}>{shortSource(source)}</Copy>}
      </div>
      <TensorChoices pane={pane} />
    </header>
  );
});

/** `nets/model.py:38` -> `model.py:38`; the whole path is copied. */
export const shortSource = (source: string): string => source.split(/[\\/]/).at(-1) ?? source;
