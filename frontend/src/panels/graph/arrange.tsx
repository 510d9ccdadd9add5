/** The user's own arrangement: boxes moved, renamed, grouped by a prefix. Kept beside the recording. */
import { useId, useState, type FormEvent, type ReactNode } from "react";
import type { Layout } from "../../api/types";
import { EMPTY_LAYOUT, isArranged, withGroup, withName, withoutGroup, withoutPin } from "../../model/arranging";
import type { GraphModel } from "../../model/graph";
import { groupKey, nodeKey } from "../../model/scene";
import { keptHere, saveAsFile } from "../../state/kept_layout";
import { useMainTrial } from "../../state/page";
import { Button } from "../../ui/parts";

interface Props {
  readonly model: GraphModel;
  readonly layout: Layout;
  readonly save: (layout: Layout) => Promise<string | null>;
  /** The selected node, -1 for none. */
  readonly node: number;
  readonly arranging: boolean;
  readonly onArranging: (is: boolean) => void;
  /** Other buttons about boxes. */
  readonly children: ReactNode;
}

export function Arrange({ arranging, onArranging, children, ...props }: Props) {
  return (
    <span className="card arrange">
      {children}
      <Button
        pressed={arranging}
        title="Move boxes by dragging, rename and group them (Alt and drag moves a box at any time)"
        onClick={() => onArranging(!arranging)}
      >
        arrange
      </Button>
      {arranging && <Tools {...props} />}
    </span>
  );
}

function Tools({ model, layout, save, node }: Omit<Props, "arranging" | "onArranging" | "children">) {
  const [problem, setProblem] = useState<string | null>(null);
  const trial = useMainTrial() ?? "";
  const change = (next: Layout): void => {
    if (next !== layout) void save(next).then(setProblem);
  };
  const name = node >= 0 ? model.nodes[node].name : null;
  const module = node >= 0 ? model.groups[model.nodes[node].group] : null;
  const pinned = name === null ? [] : [nodeKey(name), groupKey(name)].filter((key) => key in layout.pins);
  return (
    <>
      {name === null ? (
        <span className="label">drag boxes; select one to rename it</span>
      ) : (
        <NameField
          key={`n ${name} ${layout.renames[name] ?? ""}`}
          label="rename"
          of={name}
          layout={layout}
          onChange={change}
        />
      )}
      {module && module.address !== "" && module.address !== name && (
        <NameField
          key={`g ${module.address} ${layout.renames[module.address] ?? ""}`}
          label="its module"
          of={module.address}
          layout={layout}
          onChange={change}
        />
      )}
      {pinned.length > 0 && (
        <Button onClick={() => change(pinned.reduce(withoutPin, layout))} title="Put it back where it would be">
          unpin
        </Button>
      )}
      <GroupField model={model} layout={layout} onChange={change} />
      {layout.groups.map((prefix) => (
        <span className="chip" key={prefix}>
          {prefix}…
          <Button plain label={`Ungroup ${prefix}`} onClick={() => change(withoutGroup(layout, prefix))}>×</Button>
        </span>
      ))}
      {isArranged(layout) && (
        <Button onClick={() => change(EMPTY_LAYOUT)} title="Forget all places, names and groups">reset</Button>
      )}
      {keptHere(trial) && (
        <span className="label" role="status">
          The recording cannot be written: this is kept in your browser.{" "}
          <Button title="page.json, to be put into the folder of the trial" onClick={() => saveAsFile(layout)}>
            save as file
          </Button>
        </span>
      )}
      {problem && <span className="arrange-problem" role="alert">{problem}</span>}
    </>
  );
}

interface FieldProps {
  readonly layout: Layout;
  readonly onChange: (layout: Layout) => void;
}

function NameField({ label, of, layout, onChange }: FieldProps & { readonly label: string; readonly of: string }) {
  const [typed, setTyped] = useState(layout.renames[of] ?? "");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChange(withName(layout, of, typed));
  };
  return <Field label={label} value={typed} placeholder={of} onChange={setTyped} onSubmit={submit} button="set" />;
}

function GroupField({ model, layout, onChange }: FieldProps & { readonly model: GraphModel }) {
  const [typed, setTyped] = useState("");
  const count = typed.trim() ? model.nodes.filter(({ name }) => name.startsWith(typed.trim())).length : 0;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChange(withGroup(layout, typed));
    setTyped("");
  };
  return (
    <Field
      label="group by prefix"
      value={typed}
      placeholder="loss_"
      onChange={setTyped}
      onSubmit={submit}
      button={typed.trim() ? `group ${count}` : "group"}
      disabled={count < 2}
    />
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly button: string;
  readonly disabled?: boolean;
  readonly onChange: (value: string) => void;
  readonly onSubmit: (event: FormEvent) => void;
}

function Field({ label, value, placeholder, button, disabled, onChange, onSubmit }: TextFieldProps) {
  const id = useId();
  return (
    <form className="field" onSubmit={onSubmit}>
      <label className="label" htmlFor={id}>{label}</label>
      <input
        id={id}
        className="text-input"
        value={value}
        placeholder={placeholder}
        size={Math.min(22, Math.max(8, (value || placeholder).length))}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
      <button type="submit" className="button" disabled={disabled}>{button}</button>
    </form>
  );
}
