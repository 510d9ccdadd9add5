/** Light, dark, or as the system says. Kept in this browser, not in the address: it is about the reader. */
import { useState } from "react";
import { Select } from "../../ui/select";

type Wish = "system" | "light" | "dark";

const KEY = "endoscope-theme";
const CHOICES = [
  { value: "system", label: "auto" }, { value: "light", label: "light" }, { value: "dark", label: "dark" },
] as const;

function read(): Wish {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

function show(wish: Wish): void {
  if (wish === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wish;
}

/** To be called before the first picture is drawn. */
export const showTheme = (): void => show(read());

export function ThemeSwitch() {
  const [wish, setWish] = useState(read);
  const choose = (next: Wish): void => {
    setWish(next);
    show(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // it holds until the page is closed
    }
  };
  return (
    <span className="theme-switch" title="Light or dark; auto is what your system says.">
      <Select quiet label="Theme" value={wish} choices={CHOICES} onChange={choose} />
    </span>
  );
}
