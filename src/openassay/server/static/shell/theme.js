// Light or dark: as the system says, unless the person has chosen. `data-theme` on the root is what the styles go by.
import { effect, signal } from "../core/html.js";

const KEPT = "openassay.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = signal(system.matches);
system.addEventListener("change", () => (isDark.value = system.matches));

export const theme = signal(localStorage.getItem(KEPT) || "auto"); // auto, light, dark

effect(() => {
  const dark = theme.value === "dark" || (theme.value === "auto" && isDark.value);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
});

export function choose(name) {
  theme.value = name;
  localStorage.setItem(KEPT, name);
}
