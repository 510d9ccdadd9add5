/** Below the name of a tensor: which sample, role and pass of it. Only where the shown step has several. */
import { useMemo } from "react";
import { act, useChoices, usePart, useShown, type Pane } from "../../state/page";
import { Select } from "../../ui/select";
import { Relaxed } from "../shell/relaxed";

const WHOLE = "whole";

export function TensorChoices({ pane }: { readonly pane: Pane }) {
  const { samples, roles, passes } = useChoices(pane);
  if (samples.length < 2 && roles.length < 2 && passes.length < 2) return null;
  return (
    <div className="tensor-choices">
      {samples.length > 1 && <SampleChoice pane={pane} />}
      {roles.length > 1 && <RoleChoice pane={pane} />}
      {passes.length > 1 && <PassChoice pane={pane} />}
    </div>
  );
}

function SampleChoice({ pane }: { readonly pane: Pane }) {
  const { samples } = useChoices(pane);
  const { sample, relaxed } = useShown(pane);
  const wanted = usePart((page) => page.look.sample);
  const choices = useMemo(
    () => [
      { value: WHOLE, label: "whole batch" },
      ...samples.map(({ sample: n, category }) => ({ value: `${n}`, label: category ? `${n} · ${category}` : `${n}` })),
    ],
    [samples],
  );
  return (
    <Relaxed fields={["sample"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="numbers of"
        choices={choices}
        value={sample === null ? WHOLE : String(sample)}
        onChange={(value) => act.choose({ sample: value === WHOLE ? null : Number(value) }, { pane })}
      />
    </Relaxed>
  );
}

function RoleChoice({ pane }: { readonly pane: Pane }) {
  const { roles } = useChoices(pane);
  const { role, relaxed } = useShown(pane);
  const wanted = usePart((page) => page.look.role);
  return (
    <Relaxed fields={["role"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="role"
        choices={roles.map((name, i) => ({ value: name, label: `${name || "(none)"} · ${i + 1} of ${roles.length}` }))}
        value={role ?? roles[0]}
        onChange={(value) => act.choose({ role: value }, { pane })}
      />
    </Relaxed>
  );
}

function PassChoice({ pane }: { readonly pane: Pane }) {
  const { passes } = useChoices(pane);
  const { pass, relaxed } = useShown(pane);
  const wanted = usePart((page) => page.look.pass);
  return (
    <Relaxed fields={["pass"]} relaxed={relaxed} wanted={wanted}>
      <Select
        label="pass"
        numeric
        choices={passes.map((number) => ({ value: String(number), label: `${number} of ${passes.length}` }))}
        value={String(pass ?? passes[0])}
        onChange={(value) => act.choose({ pass: Number(value) }, { pane })}
      />
    </Relaxed>
  );
}
