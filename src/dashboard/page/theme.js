// Light and dark: as the system says, or as the person chose, which this browser remembers.
// @ts-check
import { h } from "./dom.js";

const key = "whetstone-theme";

function chosen() {
  try {
    return localStorage.getItem(key) ?? "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme = chosen()) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("theme"));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("theme")));

/** A button that goes round: system, light, dark. */
export function themeButton() {
  const button = h("button.icon", { type: "button" });
  const draw = () => {
    const theme = chosen();
    button.textContent = { system: "◐", light: "☀", dark: "☾" }[theme] ?? "◐";
    button.title = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Theme: ${theme}. Change it.`);
  };
  button.addEventListener("click", () => {
    const next = { system: "dark", dark: "light", light: "system" }[chosen()] ?? "system";
    try {
      localStorage.setItem(key, next);
    } catch {}
    applyTheme(next);
    draw();
  });
  draw();
  return button;
}
