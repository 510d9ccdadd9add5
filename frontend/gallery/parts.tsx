/** Controls and small parts in all their states. */
import { useState } from "react";
import { Button, Chip, Empty, Key, Section } from "../src/ui/parts";
import { NumberText, Tile } from "../src/ui/number";
import { Segments } from "../src/ui/segments";
import { Select } from "../src/ui/select";

export function Parts() {
  const [value, setValue] = useState("gradient");
  const choices = [
    { value: "value", label: "value" },
    { value: "gradient", label: "gradient · total" },
    { value: "update", label: "update", unavailable: "not recorded for this type" },
  ];
  return (
    <>
      <Section title="choices">
        <Segments label="of" value={value} onChange={setValue} choices={choices} />
        <p />
        <Select label="statistic" value={value} onChange={setValue} choices={choices} />
      </Section>
      <Section title="buttons, chips, keys">
        <Button onClick={() => {}}>fit</Button> <Button pressed onClick={() => {}}>follow</Button>{" "}
        <Button disabled onClick={() => {}}>compare</Button> <Chip color="var(--trial-1)">leaky-relu</Chip>{" "}
        <Chip color="var(--trial-2)">fixed</Chip> <Key>[</Key> <Key>]</Key>
      </Section>
      <Section title="numbers">
        {[0, 1, -0.1, 12400, 3.14159, 1.234e-7, -9.87e12, NaN, Infinity].map((number, i) => (
          <span key={i}><NumberText value={number} />{"  ·  "}</span>
        ))}
        <NumberText value={null} />
        <div className="tiles">
          <Tile name="mean" value={-2.1e-4} note="± 9e-5" />
          <Tile name="zeros" value={0.614} text="61.4 %" beyond="threshold 50 %" />
          <Tile name="gradient" value={null} missing="no gradient" />
        </div>
      </Section>
      <Section title="empty">
        <Empty action={<Button onClick={() => {}}>show steps that have some</Button>}>
          No gradients were recorded for this type: pass <code>what=…</code> to <code>run.watch</code>.
        </Empty>
      </Section>
    </>
  );
}
