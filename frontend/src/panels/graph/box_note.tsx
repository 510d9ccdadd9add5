/** What is below the pointer, in full: names that were cut, the exact value behind the colour. */
import { tintOf, type GraphState } from "../../draw/graph_state";
import type { Hit } from "../../draw/hit";
import { ABSENT, HAS_INF, HAS_NAN, heatText } from "../../model/heat";
import { shapeText } from "../../model/names";
import { exactNumber } from "../../model/numbers";
import { Mark } from "../findings/mark";

const MOST_TOLD = 4; // findings

export function BoxNote({ state, hit }: { readonly state: GraphState; readonly hit: Hit }) {
  const { model, items } = state.picture.scene;
  const item = items[hit.item];
  if (!item) return null;
  if (item.open) return <>close {item.address}</>;
  const record = hit.record >= 0 ? hit.record : state.faces[hit.item];
  const { node, role, pass, source } = model.source.nodes[record];
  const { kind, shape: first, passes } = model.nodes[model.nodeOfRecord[record]];
  const shape = state.shapeAt?.(record) ?? first;
  const place = hit.record >= 0 ? record : tintOf(state, hit.item, record); // a cell shows its own tensor
  const mark = state.itemMarks.find((each) => each.item === hit.item);
  return (
    <>
      {item.address && (
        <div>
          {hit.part === "fold" ? "open " : ""}
          <b>{item.address}</b>
          {item.members > 1 && ` and ${item.members - 1} like it`}, {item.size} inside
        </div>
      )}
      <div>
        <b>{node}</b>
        {role && ` · ${role}`}
        {passes > 1 && ` · pass ${pass}`}
      </div>
      <div className="label">
        {[kind, shapeText(shape), source].filter(Boolean).join(" · ")}
      </div>
      {mark?.words.slice(0, MOST_TOLD).map((words) => (
        <div key={words}><Mark severity={mark.severity} /> {words}</div>
      ))}
      {state.heat && <div className="number">{valueWords(state, place)}</div>}
    </>
  );
}

function valueWords(state: GraphState, record: number): string {
  const heat = state.heat;
  if (!heat || heat.states[record] === ABSENT) return "no value";
  if (heat.states[record] === HAS_NAN) return "contains NaN";
  if (heat.states[record] === HAS_INF) return "contains infinity";
  return heat.words ? heatText(heat, record) : exactNumber(heat.values[record]);
}
