/** The next of the choices there are, for keys. */
import { AGGREGATES, act, choicesNow, type Field } from "./page";
import { getState } from "./store";
import { shownNow } from "./shown";

export function cycle(field: Field): void {
  const options = optionsOf(field);
  if (options.length < 2) return;
  const now = field === "type" ? getState().page.look.type : shownNow("a")[field];
  const at = options.findIndex((option) => option === now);
  act.choose({ [field]: options[(at + 1) % options.length] });
}

function optionsOf(field: Field): readonly (string | number | null)[] {
  const choices = choicesNow("a");
  if (field === "of") return choices.ofs;
  if (field === "sample") return [null, ...choices.samples.map(({ sample }) => sample)];
  if (field === "role") return choices.roles;
  if (field === "pass") return choices.passes;
  if (field === "type") return choices.types.length > 1 ? [null, ...choices.types] : [];
  return field === "aggregate" ? AGGREGATES : [];
}
