/** Lets a script ask the gallery how fast it is: `await window.measure.frames()`. */
import { pictureNow, startLayout } from "../src/layout/client";
import { openAll } from "../src/model/folding";
import { buildGraph } from "../src/model/graph";
import { buildScene } from "../src/model/scene";
import { NETWORKS, type NetworkName } from "./data";

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const quantile = (values: readonly number[], q: number): number => sorted(values)[Math.floor(q * (values.length - 1))];
const summary = (values: readonly number[]) => ({
  median: quantile(values, 0.5), p95: quantile(values, 0.95), most: quantile(values, 1), count: values.length,
});

export function startMeasuring(paints: number[]): void {
  /** Moves the pointer as a hand would, and notes the time between frames and the time spent painting. */
  const frames = async (count = 120, kind: "pan" | "zoom" = "pan") => {
    const canvas = document.querySelector(".stage-canvas") as HTMLCanvasElement;
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [left + canvas.clientWidth / 2, top + canvas.clientHeight / 2];
    const point = (type: string, dx: number): void => {
      const where = { clientX: x + dx, clientY: y };
      canvas.dispatchEvent(new PointerEvent(type, { ...where, button: 0, buttons: 1, pointerId: 1 }));
    };
    const wheel = (deltaY: number): void => {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, cancelable: true }));
    };
    const gaps: number[] = [];
    paints.length = 0;
    canvas.setPointerCapture = () => {}; // made-up pointers cannot be captured
    if (kind === "pan") point("pointerdown", 0);
    let last = performance.now();
    for (let i = 1; i <= count; i++) {
      if (kind === "pan") point("pointermove", 150 * Math.sin(i / 12));
      else wheel(40 * Math.cos(i / 15));
      await new Promise(requestAnimationFrame);
      gaps.push(performance.now() - last);
      last = performance.now();
    }
    if (kind === "pan") point("pointerup", 0);
    return { between: summary(gaps.slice(2)), painting: summary(paints) };
  };
  const layout = async (name: NetworkName, times = 5) => {
    const model = buildGraph(NETWORKS[name]());
    const scene = buildScene(model, openAll(model));
    const cold: number[] = [];
    for (let i = 0; i < times; i++) {
      const service = startLayout(); // a new thread: nothing is remembered, little is compiled
      await service.picture(buildScene(buildGraph(NETWORKS.tiny()), new Set()));
      const picture = await service.picture(scene);
      cold.push(picture?.milliseconds ?? NaN);
      service.close();
    }
    const warm = Array.from({ length: times }, () => pictureNow(scene).milliseconds);
    const build = Array.from({ length: times }, () => {
      const begin = performance.now();
      buildScene(buildGraph(NETWORKS[name]()), openAll(model));
      return performance.now() - begin;
    });
    return { nodes: model.nodes.length, boxes: scene.items.length, edges: scene.edges.length, cold, warm, build };
  };
  Object.assign(window, { measure: { frames, layout } });
}
