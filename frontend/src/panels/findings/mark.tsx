/** How bad it is, by shape and by colour: a disc, a triangle, a square. The graph draws the same. */
import { memo } from "react";
import type { Severity } from "../../model/findings";

export const Mark = memo(function Mark({ severity, told = true }: {
  readonly severity: Severity;
  /** Screen readers hear it. */
  readonly told?: boolean;
}) {
  return (
    <svg
      className={`mark ${severity}`}
      viewBox="0 0 16 16"
      role={told ? "img" : undefined}
      aria-label={told ? severity : undefined}
      aria-hidden={told ? undefined : true}
    >
      {severity === "warning" && <path d="M8 1.2 15.4 14.4H.6Z" strokeLinejoin="round" />}
      {severity === "error" && <circle cx="8" cy="8" r="7" />}
      {severity === "info" && <rect x="1.5" y="1.5" width="13" height="13" rx="2" />}
      {severity === "info" ? (
        <path className="glyph" d="M8 7v5M8 4.2v.6" />
      ) : (
        <path className="glyph" d={severity === "warning" ? "M8 5.6v4M8 11.6v.6" : "M8 4v5M8 11.4v.6"} />
      )}
    </svg>
  );
});
