/** A question to the server, and how several of them are asked at once. */
import { RequestFailed, type Answer, type Body, type BodyOrFailure } from "./client";

export interface Request<T> {
  /** Two requests with one key are the same. */
  readonly key: string;
  readonly load: (signal: AbortSignal) => Promise<Answer<T>>;
  /** Where it is asked for, if it may travel together with others. */
  readonly url?: string;
  /** How the answer is read. */
  readonly read?: (body: Body) => Answer<T>;
}

export type Outcome = Answer<unknown> | RequestFailed;
export type Together = (urls: readonly string[], signal: AbortSignal) => Promise<BodyOrFailure[]>;

export const canTravel = (request: Request<unknown> | null): boolean => Boolean(request?.url && request.read);

/** Never rejects: what fails is an outcome, too. Several must be able to travel. */
export async function askAll(
  requests: readonly Request<unknown>[], signal: AbortSignal, together: Together,
): Promise<Outcome[]> {
  if (requests.length === 1) return [await requests[0].load(signal).catch(failed)];
  try {
    const bodies = await together(requests.map(({ url }) => url as string), signal);
    return requests.map(({ read }, i) => outcomeOf(bodies[i], read as (body: Body) => Answer<unknown>));
  } catch (error) {
    return requests.map(() => failed(error));
  }
}

function outcomeOf(body: BodyOrFailure, read: (body: Body) => Answer<unknown>): Outcome {
  try {
    return body instanceof RequestFailed ? body : read(body);
  } catch (error) {
    return failed(error);
  }
}

const failed = (error: unknown): RequestFailed =>
  error instanceof RequestFailed ? error : new RequestFailed(String(error), -1, "Broken");
