/** Where one looks: the world point in the upper left corner, and how large a unit of the world is on screen. */
import type { Layout } from "../model/scene";

export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export const isSame = (a: Camera, b: Camera): boolean => a.x === b.x && a.y === b.y && a.scale === b.scale;

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Parts of the viewport that are covered by controls; what is fitted stays clear of them. */
export interface Insets {
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly left: number;
}

export const SMALLEST_SCALE = 0.01;
export const LARGEST_SCALE = 4;
const READABLE_SCALE = 0.7; // never smaller by itself
const COMFORTABLE_SCALE = 1.25; // five boxes are not blown up to fill the screen
const NO_INSETS: Insets = { top: 24, right: 24, bottom: 24, left: 24 };

const limit = (scale: number): number => Math.min(LARGEST_SCALE, Math.max(SMALLEST_SCALE, scale));

/**
 * All of it if that can be read; else all of its width if that can, from the top: the rest is scrolled along the flow.
 * `middle` is the x around which a picture that is too wide is shown.
 */
export function fitCamera(area: Rect, viewport: Size, insets: Insets = NO_INSETS, middle?: number): Camera {
  const width = Math.max(1, viewport.width - insets.left - insets.right);
  const height = Math.max(1, viewport.height - insets.top - insets.bottom);
  const wide = width / Math.max(1, area.width);
  const high = height / Math.max(1, area.height);
  const scale = limit(Math.max(READABLE_SCALE, Math.min(wide, high, COMFORTABLE_SCALE)));
  const isHigh = area.height * scale > height;
  const isWide = area.width * scale > width;
  const centre = isWide && middle !== undefined ? middle : area.x + area.width / 2;
  return {
    scale,
    x: centre - (insets.left + width / 2) / scale,
    y: isHigh ? area.y - insets.top / scale : area.y + area.height / 2 - (insets.top + height / 2) / scale,
  };
}

export const wholeArea = (layout: Layout): Rect => ({
  x: 0, y: 0, width: layout.totalWidth, height: layout.totalHeight,
});

export const itemArea = (layout: Layout, item: number): Rect => ({
  x: layout.x[item], y: layout.y[item], width: layout.width[item], height: layout.height[item],
});

export function toWorld(camera: Camera, screenX: number, screenY: number): [number, number] {
  return [camera.x + screenX / camera.scale, camera.y + screenY / camera.scale];
}

export function toScreen(camera: Camera, x: number, y: number): [number, number] {
  return [(x - camera.x) * camera.scale, (y - camera.y) * camera.scale];
}

export function pan(camera: Camera, screenDx: number, screenDy: number): Camera {
  return { ...camera, x: camera.x - screenDx / camera.scale, y: camera.y - screenDy / camera.scale };
}

/** The point below the pointer stays below the pointer. */
export function zoomAt(camera: Camera, factor: number, screenX: number, screenY: number): Camera {
  const [x, y] = toWorld(camera, screenX, screenY);
  const scale = limit(camera.scale * factor);
  return { scale, x: x - screenX / scale, y: y - screenY / scale };
}

export function visibleArea(camera: Camera, viewport: Size): Rect {
  return { x: camera.x, y: camera.y, width: viewport.width / camera.scale, height: viewport.height / camera.scale };
}

/** Moves only as far as needed to show an area; does not move at all if it is in view already. */
export function bringIntoView(camera: Camera, area: Rect, viewport: Size, insets: Insets = NO_INSETS): Camera {
  const readable = camera.scale < 0.45 ? { ...camera, scale: 0.8 } : camera;
  const view = visibleArea(readable, viewport);
  const [left, right] = [insets.left / readable.scale, insets.right / readable.scale];
  const [top, bottom] = [insets.top / readable.scale, insets.bottom / readable.scale];
  if (readable !== camera) {
    const x = area.x + area.width / 2 - view.width / 2;
    return { scale: readable.scale, x, y: area.y + area.height / 2 - view.height / 2 };
  }
  const x = shiftInto(view.x + left, view.width - left - right, area.x, area.width) - left;
  const y = shiftInto(view.y + top, view.height - top - bottom, area.y, area.height) - top;
  return { ...camera, x, y };
}

function shiftInto(from: number, room: number, start: number, size: number): number {
  if (start < from) return start;
  if (start + size > from + room) return Math.min(start, start + size - room);
  return from;
}

/** Where one looks for a box: its top, where edges enter it. */
export interface Spot {
  readonly x: number;
  readonly y: number;
}

/** The same screen place for a box before and after the rest was laid out anew: what one clicks does not run away. */
export function keepInPlace(camera: Camera, before: Spot, after: Spot): Camera {
  return { ...camera, x: camera.x + after.x - before.x, y: camera.y + after.y - before.y };
}

export const entryOf = (layout: Layout, item: number): Spot => ({ x: layout.entry[item], y: layout.y[item] });
