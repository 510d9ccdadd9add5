/** From one picture to the next: what both have glides to its new place, everything else is there at once. */
import { NO_DEPENDENCIES } from "../model/dependencies";
import type { Layout, Picture } from "../model/scene";
import type { GraphState } from "./graph_state";

export const GLIDE_MS = 150;

const FIELDS = ["x", "y", "width", "height"] as const;

export class Glide {
  private readonly began = performance.now();
  private readonly from: Layout;

  /** `dx`, `dy`: how far the camera has moved with what stays in its place. */
  constructor(before: Picture, private readonly after: Picture, dx: number, dy: number) {
    const places = new Map(before.scene.items.map(({ key }, i) => [key, i]));
    const { layout } = after;
    const from = { ...layout, x: layout.x.slice(), y: layout.y.slice() };
    Object.assign(from, { width: layout.width.slice(), height: layout.height.slice() });
    after.scene.items.forEach(({ key, parent }, i) => {
      const was = places.get(key);
      if (was !== undefined) {
        from.x[i] = before.layout.x[was] + dx;
        from.y[i] = before.layout.y[was] + dy;
        from.width[i] = before.layout.width[was];
        from.height[i] = before.layout.height[was];
      } else if (parent >= 0) {
        // New inside of what is opened: it comes along with what is around it.
        from.x[i] = from.x[parent] + layout.x[i] - layout.x[parent];
        from.y[i] = from.y[parent] + layout.y[i] - layout.y[parent];
      }
    });
    this.from = from;
  }

  /** What is drawn now; null once everything has arrived. Edges wait: they would run through boxes. */
  state(state: GraphState): GraphState | null {
    const share = (performance.now() - this.began) / GLIDE_MS;
    if (share >= 1 || state.picture !== this.after) return null;
    const eased = 1 - (1 - share) ** 3;
    const { layout, scene } = this.after;
    const between = { ...layout };
    for (const field of FIELDS) {
      between[field] = layout[field].map((value, i) => this.from[field][i] + (value - this.from[field][i]) * eased);
    }
    return { ...state, picture: { scene, layout: between }, allEdges: false, dependencies: NO_DEPENDENCIES };
  }
}
