/** What the words of the page mean: the sentences of docs/glossary.md; a test compares them. */

export const MEANINGS: Readonly<Record<string, string>> = {
  run: "The Python object endoscope.Run, which records one trial.",
  trial: "One recorded training, kept in one folder.",
  recording: "A trial that you open for reading, with endoscope.open.",
  step: "One round of the training loop: forward pass, backward pass, and the update that follows.",
  type: "The name of a kind of step, such as the steps of a generator and those of its critic.",
  "recorded step": "A step for which Endoscope kept statistics of all tensors.",
  "traced step":
    "A recorded step of which Endoscope saw every operation, and so knows the graph. Other "
      + "steps show the graph of a traced step.",
  gap: "Something that Endoscope could not record, with the reason.",
  node: "A box in the graph of a recording: an input, a parameter, the result of a module, a loss.",
  role: "A name that distinguishes several tensors of one node, such as after number 1 and after number 2.",
  pass: "One call of a module or layer: pass 2 is the second time that it runs in a step.",
  sample: "One element of the batch.",
  unit: "One channel, feature or neuron, over the whole batch and all positions.",
  "raw values":
    "All elements of a tensor, not only its statistics. Endoscope keeps them for a few samples "
      + "of each recorded step.",
  target: "What the loss compares the result of the model with, such as labels.",
  update: "The change that the optimizer made to a parameter in a step.",
  check: "A function that looks for one kind of problem in a recording.",
  finding: "A problem that a check found: where it begins, since which step, and what probably causes it.",
  anomaly: "A rule or a function of your own that says what is unusual.",
  policy: "A rule that says which steps Endoscope records.",
  budget: "The largest share of the training time that recording may take.",
  rank: "The number of a process, in a training of several processes.",
  trace: "All operations of one execution of your code, with their values and the graph.",
  operation:
    "In a trace: one call of a torch function, and what it returned. Inputs, outputs and "
      + "parameters are in the list of operations, too.",
  layer:
    "On the page: a module. In a trace: an operation, or several that repeat the same code; "
      + "each of these is one pass.",
};

/** The sentence for a word, also in the plural; nothing if the word means what it always means. */
export function meaning(word: string): string | undefined {
  return MEANINGS[word] ?? MEANINGS[word.replace(/s$/, "")];
}
