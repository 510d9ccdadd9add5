/** A picture of the graph as the server sends it: a head, then plain numbers. See HTTP_API.md. */
import type { Answer, Body } from "./client";
import type { PictureHead } from "./types";

export interface PictureAnswer {
  readonly head: PictureHead;
  readonly parent: Int32Array;
  readonly tensor: Int32Array;
  readonly address: Int32Array;
  readonly flags: Int32Array;
  readonly members: Int32Array;
  readonly size: Int32Array;
  readonly boxOfTensor: Int32Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly back: Int32Array;
  /** Path i is at starts[i] … starts[i + 1] of `points`. */
  readonly starts: Int32Array;
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: Float32Array;
  readonly height: Float32Array;
  readonly entry: Float32Array;
  readonly points: Float32Array;
}

export function readPicture({ data }: Body): Answer<PictureAnswer> {
  const bytes = data.slice().buffer; // numbers begin at multiples of four bytes
  const headBytes = new DataView(bytes).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, headBytes))) as PictureHead;
  let at = 4 + headBytes;
  const whole = (count: number): Int32Array => new Int32Array(bytes, (at += 4 * count) - 4 * count, count);
  const floats = (count: number): Float32Array => new Float32Array(bytes, (at += 4 * count) - 4 * count, count);
  const { boxes, edges } = head;
  const value: PictureAnswer = {
    head,
    parent: whole(boxes), tensor: whole(boxes), address: whole(boxes), flags: whole(boxes), members: whole(boxes),
    size: whole(boxes), boxOfTensor: whole(head.tensors), from: whole(edges), to: whole(edges), back: whole(edges),
    starts: whole(edges + 1), x: floats(boxes), y: floats(boxes), width: floats(boxes), height: floats(boxes),
    entry: floats(boxes), points: floats(head.points),
  };
  return { value, bytes: data.byteLength };
}
