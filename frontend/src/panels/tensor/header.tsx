/** Which tensor it is: name, kind, type and shape, role and pass, module, the line that made it. */
import { memo } from "react";
import { asKind } from "../../model/source";
import { act, type Pane } from "../../state/page";
import { Chip } from "../../ui/parts";
import { Select } from "../../ui/select";
import { Copy } from "./copy";

export interface HeaderProps {
  readonly node: string;
  readonly kind: string;
  readonly dtype: string;
  readonly shape: readonly number[] | null;
  readonly module: string;
  /** File:line. */
  readonly source: string;
  readonly role: string | null;
  readonly roles: readonly string[];
  readonly pass: number | null;
  readonly passes: readonly number[];
  readonly pane: Pane;
}

export const Header = memo(function Header(props: HeaderProps) {
  const { pane, node, kind, dtype, shape, module, source, role, roles, pass, passes } = props;
  const place = (i: number): string => `${i + 1} of ${roles.length}`;
  const roleNames = roles.map((name, i) => ({ value: name, label: `${name || "(none)"} · ${place(i)}` }));
  const passNames = passes.map((number) => ({ value: String(number), label: `${number} of ${passes.length}` }));
  return (
    <header className="section tensor-header">
      <div className="tensor-title">
        <h2>{node}</h2>
        {kind && <Chip color={`var(--kind-${asKind(kind)})`}>{kind}</Chip>}
      </div>
      <div className="tensor-facts">
        {shape && <span className="number">{dtype} [{shape.join(", ")}]</span>}
        {roles.length > 1 && (
          <Select
            label="role"
            value={role ?? roles[0]}
            choices={roleNames}
            onChange={(value) => act.choose({ role: value }, { pane })}
          />
        )}
        {passes.length > 1 && (
          <Select
            label="pass"
            value={String(pass ?? passes[0])}
            choices={passNames}
            onChange={(value) => act.choose({ pass: Number(value) }, { pane })}
          />
        )}
        {module && <span className="label">in <code>{module}</code></span>}
        {source && <Copy text={source} label={`Copy ${source}`}>{shortSource(source)}</Copy>}
      </div>
    </header>
  );
});

/** `nets/model.py:38` -> `model.py:38`; the whole path is copied. */
export const shortSource = (source: string): string => source.split(/[\\/]/).at(-1) ?? source;
