/** What the words of the page mean: the sentences of docs/glossary.md; a test compares them. */

export const MEANINGS: Readonly<Record<string, string>> = {
  run: "The Python object endoscope.Run, which records one trial.",
  trial: "One training, and the folder that holds what was recorded of it.",
  recording: "What was recorded of a trial, opened for reading with endoscope.open.",
  step: "One update of the parameters, with the forward and backward passes that lead to it.",
  type: "A name that tells kinds of steps apart, such as the steps of a generator and those of its critic.",
  "recorded step": "A step of which statistics of all tensors were kept.",
  "traced step":
    "A recorded step of which every operation was seen. Other steps get the graph of a traced step.",
  gap: "Something that could not be recorded, with the reason and what to type.",
  node: "A place in the graph of a recording: an input, a parameter, the result of a module, a loss.",
  role: "A name that tells several tensors of one node apart.",
  pass: "A module or a layer may run several times in a step: pass 2 is the second time.",
  sample: "One element of the batch.",
  unit:
    "One channel, feature or neuron: all elements of a tensor with the same index, over the"
      + " batch and over all positions.",
  "raw values":
    "The elements of a tensor themselves, which are kept for a few samples of each recorded step.",
  target: "What the result of the model is compared with, such as labels.",
  update: "What the optimizer added to a parameter in a step.",
  heat: "Colours of the nodes by one statistic.",
  check: "A function that looks for one kind of problem in a recording.",
  finding:
    "What a check has found: a problem, the step and the node where it begins, and what it may come from.",
  policy: "A rule that says which steps are recorded.",
  budget: "The largest share of the training time that recording may take.",
  trace: "Everything that one run of a piece of code computed, operation by operation.",
  operation: "One call of a function of torch in a trace, with the tensors that it returned.",
  layer:
    "Operations of a trace that come from the same statement of the code; each time that it runs is a pass.",
  orphan: "An operation that neither depends on an input nor leads to an output.",
};

/** The sentence for a word, also in the plural; nothing if the word means what it always means. */
export function meaning(word: string): string | undefined {
  return MEANINGS[word] ?? MEANINGS[word.replace(/s$/, "")];
}
