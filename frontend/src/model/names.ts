/** How boxes are called: names relative to the box around them. */

/** `a.b.c` -> `a`, `a.b`, `a.b.c`. */
export function prefixes(address: string): string[] {
  if (!address) return [];
  const parts = address.split(".");
  return parts.map((_, i) => parts.slice(0, i + 1).join("."));
}

/** The deepest address that contains both. */
export function commonAddress(a: string, b: string): string {
  const left = a.split(".");
  const right = b.split(".");
  let n = 0;
  while (n < left.length && n < right.length && left[n] === right[n]) n++;
  return left.slice(0, n).join(".");
}

/** A name as it reads inside a module: `encoder.0.weight` in `encoder` is `0.weight`. */
export function relativeName(name: string, module: string): string {
  if (!module) return name;
  return name.startsWith(`${module}.`) ? name.slice(module.length + 1) : name;
}

/** A bare number says nothing: the seventh child of a Sequential becomes `6 · relu`. */
export function withType(label: string, type: string): string {
  return /^\d+$/.test(label) && type ? `${label} · ${type}` : label;
}

/** Cuts in the middle: the beginning says which module, the end says which tensor. */
export function shorten(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const head = Math.ceil((longest - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (longest - 1 - head))}`;
}

export function shapeText(shape: readonly number[] | null | undefined): string {
  if (!shape) return "";
  return shape.length === 0 ? "scalar" : shape.join("×");
}
