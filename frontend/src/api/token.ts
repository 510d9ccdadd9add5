/** The token of this tab: see public/token.js, which runs before anything else. */

declare global {
  interface Window {
    __endoscopeToken?: string;
    /** The answer to the first question, if it was asked. */
    __endoscopeStart?: Promise<Response> | undefined;
  }
}

const here = typeof window === "undefined" ? undefined : window;

export const tokenHeaders = (): Record<string, string> => ({ Authorization: `Bearer ${here?.__endoscopeToken ?? ""}` });

/** The answer that was asked for before this code came; once. */
export function takeFirstAnswer(): Promise<Response> | null {
  const found = here?.__endoscopeStart ?? null;
  if (here) here.__endoscopeStart = undefined;
  return found;
}

/** From a printed address, or the token alone; the page is loaded again with it. */
export function giveToken(text: string): void {
  const token = /[?&]token=([^&#]+)/.exec(text)?.[1] ?? text.trim();
  sessionStorage.setItem("endoscope-token", token);
  location.reload();
}
