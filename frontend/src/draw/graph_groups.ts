/** Open groups: quiet frames with a title that stays readable from far away. */
import { HEADER } from "../model/scene";
import { itemArea, toScreen, type Camera, type Rect } from "./camera";
import type { GraphState } from "./graph_state";
import { fitText, textWidth } from "./text";

const ROUND_FROM = 0.2;

export function paintFrame(context: CanvasRenderingContext2D, state: GraphState, item: number, scale: number): void {
  const { theme, picture } = state;
  const box = itemArea(picture.layout, item);
  // Every second depth is a shade darker, so that frames in frames stay apart.
  context.fillStyle = picture.scene.items[item].depth % 2 ? theme.panel : theme.raised;
  context.strokeStyle = theme.lineStrong;
  context.lineWidth = Math.max(1, 0.8 / scale);
  if (scale < ROUND_FROM) {
    // Rectangles without a path are much faster, and nobody sees such small corners.
    context.fillRect(box.x, box.y, box.width, box.height);
    context.strokeRect(box.x, box.y, box.width, box.height);
    return;
  }
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, 10);
  context.fill();
  context.stroke();
}

/** Titles are drawn last and in pixels of the screen; outer ones come first and inner ones give way to them. */
export function paintTitles(
  context: CanvasRenderingContext2D,
  state: GraphState,
  frames: readonly number[],
  camera: Camera,
): void {
  const taken: Rect[] = [];
  for (const item of frames) {
    const box = itemArea(state.picture.layout, item);
    const [x, y] = toScreen(camera, box.x, box.y);
    const room = box.width * camera.scale - 14;
    const header = HEADER * camera.scale;
    const inHeader = header >= 15;
    const size = inHeader ? 11.5 * Math.min(1.25, Math.max(1, camera.scale)) : 10;
    // Too small for its header, a title sits on the upper edge of the frame, where it hides least; small frames do
    // without.
    if (room < (inHeader ? 30 : 44) || box.height * camera.scale < (inHeader ? 34 : 64)) continue;
    const at = inHeader ? { x, y, width: room, height: header } : { x, y: y + header / 2 - 9, width: room, height: 0 };
    paintTitle(context, state, item, at, size, taken);
  }
}

function paintTitle(
  context: CanvasRenderingContext2D,
  state: GraphState,
  item: number,
  at: Rect,
  size: number,
  taken: Rect[],
): void {
  const { theme } = state;
  const { model, items } = state.picture.scene;
  const { label: name, address } = items[item];
  const type = model.groups.find((group) => group.address === address)?.type ?? "";
  const font = `600 ${size}px ${theme.font}`;
  context.font = font;
  const label = fitText(context, `▾ ${name}`, at.width, font);
  if (!label) return;
  const width = textWidth(context, label, font);
  const height = Math.min(at.height || 15, size * 2.2);
  const spot = { x: at.x + 4, y: at.y + 1, width: width + 10, height: height - 1 };
  if (taken.some((other) => overlap(spot, other))) return;
  taken.push(spot);
  const middle = at.y + height / 2 + size * 0.36;
  const small = `${size - 1}px ${theme.font}`;
  const detail = type && !name.includes(type) ? type : "";
  const aside = detail && at.width - width > textWidth(context, detail, small) + 10 ? detail : "";
  // On a plate of its own, because lines run below it.
  context.fillStyle = items[item].depth % 2 ? theme.panel : theme.raised;
  context.globalAlpha = at.height === 0 ? 0.86 : 1;
  const asideWidth = aside ? textWidth(context, aside, small) + 8 : 0;
  context.fillRect(spot.x, spot.y + 2, spot.width + asideWidth, spot.height - 3);
  context.globalAlpha = 1;
  context.font = font;
  context.fillStyle = theme.inkSoft;
  context.fillText(label, at.x + 9, middle);
  if (!aside) return;
  context.font = small;
  context.fillStyle = theme.inkFaint;
  context.fillText(aside, at.x + 9 + width + 8, middle);
}

const overlap = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
