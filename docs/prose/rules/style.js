// The rule of textlint that asks write-good about each piece of text, with the exceptions of style.json.
const writeGood = require("write-good");
const { checks, words } = require("../style.json");

const isReadme = process.env.PROSE === "README";
const off = Object.keys(checks).filter((name) => !(isReadme && name === "passive"));
const options = Object.fromEntries(off.map((name) => [name, false]));
const allowed = Object.keys(words).map((pattern) => new RegExp(`^(${pattern})$`));

module.exports = ({ Syntax, RuleError, report, getSource }) => ({
  [Syntax.Str](node) {
    const text = getSource(node);
    for (const { index, offset, reason } of writeGood(text, options)) {
      const found = text.slice(index, index + offset).toLowerCase().replace(/\s+/g, " ");
      if (!allowed.some((pattern) => pattern.test(found))) report(node, new RuleError(reason, { index }));
    }
  },
});
