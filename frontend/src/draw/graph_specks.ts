/** Boxes from far away: flat patches of colour, thousands of them in a few milliseconds. */
import { tintOf, type GraphState } from "./graph_state";

/** Zoom below which boxes are too small for anything but their colour. */
export const SPECK_SCALE = 0.2;
const BAR_WIDTH = 8; // of the kind, at the left
const FADED = 0.35;

/**
 * Sorted by colour first: changing the colour of a canvas costs more than filling a rectangle.
 */
export function paintSpecks(
  context: CanvasRenderingContext2D,
  state: GraphState,
  visible: readonly number[],
  scale: number,
): void {
  const { scene, layout } = state.picture;
  const { shades, table, theme, present } = state;
  const byColor = new Map<string, number[]>();
  const byKind = new Map<string, number[]>();
  for (const item of visible) {
    const { node, open } = scene.items[item];
    if (open) continue;
    const kind = theme.kinds[scene.model.nodes[node].kind];
    const shade = shades ? shades[tintOf(state, item, state.faces[item])] : -1;
    push(byColor, shade < 0 ? kind : table.fill[shade], item);
    if (shade >= 0 && BAR_WIDTH * scale >= 1) push(byKind, kind, item);
  }
  const fill = (groups: ReadonlyMap<string, number[]>, width: number | null): void => {
    for (const [color, items] of groups) {
      context.fillStyle = color;
      for (const i of items) {
        if (present) context.globalAlpha = present[tintOf(state, i, state.faces[i])] ? 1 : FADED;
        context.fillRect(layout.x[i], layout.y[i], width ?? layout.width[i], layout.height[i]);
      }
    }
  };
  fill(byColor, null);
  fill(byKind, BAR_WIDTH);
  context.globalAlpha = 1;
}

function push(groups: Map<string, number[]>, color: string, item: number): void {
  const known = groups.get(color);
  if (known) known.push(item);
  else groups.set(color, [item]);
}
