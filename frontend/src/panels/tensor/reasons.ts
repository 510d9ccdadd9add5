/**
 * Why something is not there, and what to type to have it next time. Code stands between backticks. "No gradient" is
 * never confused with a gradient of zero: the one is nothing, the other a number.
 */

/** What is known about the wanted tensor at the wanted step. */
export interface Wanted {
  readonly node: string;
  readonly of: string;
  readonly step: number;
  readonly type: string;
  readonly role: string | null;
  readonly pass: number | null;
  /** Of the node, if any tensor of it is in the step. */
  readonly kind: string | null;
  /** What of this node was recorded in the step: value, gradient:loss, … */
  readonly recorded: readonly string[];
  /** What of anything was recorded in the step. */
  readonly anywhere: readonly string[];
  /** Parameters that could learn and got nothing. */
  readonly noGradient: readonly string[];
}

export const isGradient = (of: string): boolean => of.startsWith("gradient");

/** `gradient:total` -> `gradient · total`; the values of parameters and buffers are values like all others. */
export function ofText(of: string): string {
  if (of === "parameter" || of === "buffer") return "value";
  return of.startsWith("gradient:") ? `gradient · ${of.slice("gradient:".length)}` : of;
}

const NOT_ZERO = "That is not a gradient of zero.";

const lossOf = (of: string): string => of.slice("gradient:".length) || "the loss";

export function whyNoTensor(wanted: Wanted): string {
  const { node, of, step, type, recorded, anywhere } = wanted;
  const when = `step ${step}${type ? ` (${type})` : ""}`;
  if (recorded.length === 0) {
    return (
      `\`${node}\` was not recorded in ${when}: this type of step does not compute it, or ` +
      "`run.watch(model, what=[…])` leaves it out."
    );
  }
  if (isGradient(of)) return whyNoGradient(wanted, when);
  if (of === "update") {
    if (wanted.kind !== "parameter") return `Only parameters have updates; \`${node}\` is none.`;
    if (!anywhere.includes("update")) {
      return `No updates were recorded in ${when}: hand the optimizer over, \`run.watch(model, optimizer)\`.`;
    }
    return `The optimizer did not change \`${node}\` in ${when}. No update is not an update of zero.`;
  }
  const place = [wanted.role && `role ${wanted.role}`, wanted.pass !== null && `pass ${wanted.pass}`].filter(Boolean);
  return `\`${node}\` has no ${ofText(of)}${place.length ? ` in ${place.join(", ")}` : ""} in ${when}.`;
}

/** Of a step without any. */
export const whyNoTensors = (step: number, type: string): string =>
  `No tensor was recorded in step ${step}${type ? ` (${type})` : ""}: \`run.watch(model, optimizer)\` before ` +
  "training has tensors recorded, and `step.tag(name, tensor)` inside of a step adds one.";

function whyNoGradient({ node, of, anywhere, noGradient, kind }: Wanted, when: string): string {
  if (!anywhere.some(isGradient)) {
    return (
      `No gradients were recorded in ${when}: they are, when \`backward()\` runs before the step ends; ` +
      '`with step.gradients("name"):` around it keeps several losses apart.'
    );
  }
  if (!anywhere.includes(of)) return `No gradient of ${lossOf(of)} was recorded in ${when}; other losses were.`;
  if (noGradient.includes(node)) {
    return `\`${node}\` got no gradient from any loss: \`backward()\` never reached it. ${NOT_ZERO}`;
  }
  if (kind === "input" || kind === "target" || kind === "buffer") {
    return `\`${node}\` asks for no gradient (\`requires_grad\` is False). ${NOT_ZERO}`;
  }
  return `No gradient of ${lossOf(of)} reached \`${node}\`. ${NOT_ZERO}`;
}

/** What is known about raw values that are not there. */
export interface RawWanted {
  readonly step: number;
  /** Whether any raw values of the step are there. */
  readonly stepHasRaw: boolean;
  readonly sample: number | null;
  readonly rawSamples: readonly number[];
  readonly hasSamples: boolean;
  /** What the recording itself says about this tensor and step; empty if nothing. */
  readonly gap: string;
}

export function whyNoRaw({ step, stepHasRaw, sample, rawSamples, hasSamples, gap }: RawWanted): string {
  if (gap) return `Raw values were not kept: ${limitText(gap, hasSamples)}`;
  if (!stepHasRaw) {
    return (
      `Raw values of step ${step} were not kept: \`endoscope.Run(…, keep=4)\` keeps those of four samples, and ` +
      "`max_bytes` thins old ones out."
    );
  }
  if (sample !== null && hasSamples && !rawSamples.includes(sample)) return whyNotThisSample(sample, rawSamples);
  return "Raw values of this tensor were not kept in this step, those of others were: the Run tab says which.";
}

export const whyNotThisSample = (sample: number, kept: readonly number[]): string =>
  `Raw values of sample ${sample} were not kept, those of ${list(kept)} were. \`step.decide(samples=[${sample}])\` ` +
  "chooses them.";

/** The recorded reason, with the argument that changes it. */
function limitText(gap: string, hasSamples: boolean): string {
  const reason = gap.replace(/^raw values: /, "");
  if (reason.includes("for one tensor")) {
    const name = hasSamples ? "tensor_bytes" : "parameter_bytes";
    return `${reason}. \`keep={"${name}": …}\` in \`endoscope.Run\` raises it.`;
  }
  if (reason.includes("step's limit")) return `${reason}. \`keep={"step_bytes": …}\` in \`endoscope.Run\` raises it.`;
  if (reason.includes("trial's limit")) return `${reason}. \`keep={"trial_bytes": …}\` in \`endoscope.Run\` raises it.`;
  return `${reason}.`;
}

export function whyNoUnits(hasSamples: boolean): string {
  return hasSamples
    ? "There are no statistics per unit: the tensor has more than 4096 features."
    : "There are no statistics per unit: the tensor has no samples to measure them over.";
}

export function whyNoSamples(hasSamples: boolean, kind: string): string {
  if (hasSamples) return "There are no statistics per sample: the batch has more than 65 536 of them.";
  if (kind === "parameter" || kind === "buffer") return `A ${kind} belongs to all samples alike: none is its own.`;
  return "No dimension of this tensor is the batch: `run.watch(…, batch_dim=…)` or `step.tag(…, batch_dim=…)` tells.";
}

/** 0, 3, 17 … and how many more. */
export function list(numbers: readonly number[], most = 8): string {
  if (numbers.length === 0) return "none";
  const more = numbers.length - most;
  return numbers.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
