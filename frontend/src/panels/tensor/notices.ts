/** What is shown is not what was chosen: one sentence for each choice that had to give way. Pure. */
import type { Look, Shown } from "../../state/page";
import { ofText, whyNoSamples, whyNoTensor, type Wanted } from "./reasons";

/** `recorded` tells what the shown step knows of a node. */
export function relaxedSentences(
  wanted: Look,
  shown: Shown,
  recorded: (node: string) => Pick<Wanted, "kind" | "recorded" | "anywhere" | "noGradient">,
): string[] {
  const { relaxed } = shown;
  const sentences: string[] = [];
  const lacks = (node: string, of: string): string =>
    whyNoTensor({
      node, of, step: shown.step ?? 0, type: shown.type ?? "", role: wanted.role, pass: wanted.pass, ...recorded(node),
    });
  if (relaxed.includes("trial")) sentences.push(`Trial ${wanted.trial} has no such tensor: ${shown.trial} is shown.`);
  if (relaxed.includes("step")) sentences.push(`Step ${wanted.step} does not have this: step ${shown.step} is shown.`);
  if (relaxed.includes("type") && wanted.type) {
    sentences.push(`No step of type ${wanted.type} has this: one of type ${shown.type} is shown.`);
  }
  if (relaxed.includes("node") && wanted.node && shown.node) {
    sentences.push(`${lacks(wanted.node, shown.of ?? "value")} \`${shown.node}\` is shown instead.`);
  } else if (relaxed.includes("of") && wanted.of && shown.node) {
    sentences.push(`${lacks(shown.node, wanted.of)} Its ${ofText(shown.of ?? "value")} is shown instead.`);
  }
  if (relaxed.includes("role") && !relaxed.includes("node")) {
    sentences.push(`There is no role ${wanted.role} here: ${shown.role || "the only one"} is shown.`);
  }
  if (relaxed.includes("pass")) sentences.push(`There is no pass ${wanted.pass} here: pass ${shown.pass} is shown.`);
  if (relaxed.includes("sample") && shown.node) {
    const kind = recorded(shown.node).kind ?? "";
    const isShared = kind === "parameter" || kind === "buffer";
    const missing = `There is no sample ${wanted.sample} here: all of it is shown.`;
    sentences.push(isShared ? whyNoSamples(false, kind) : missing);
  }
  return sentences;
}
