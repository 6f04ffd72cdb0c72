// Comfort for the trace: the keys j and k, all steps at once, long steps on demand.

import { announce, onKey } from "./app.js";
import { load } from "./html.js";

const steps = [...document.querySelectorAll("details.trace-step")];

// reveal opens the step that the address names.
function reveal() {
  const step = document.getElementById(location.hash.slice(1));
  if (!step?.matches("details.trace-step")) return;
  step.open = true;
  step.scrollIntoView({ block: "start" });
  step.querySelector("summary").focus({ preventScroll: true });
}
addEventListener("hashchange", reveal);
if (document.readyState === "complete") reveal();
else addEventListener("load", reveal, { once: true }); // the browser moves the focus to the fragment before

// move focuses the next step in a direction.
function move(by) {
  const at = steps.findIndex((step) => step.contains(document.activeElement));
  const next = steps[at < 0 ? (by > 0 ? 0 : steps.length - 1) : at + by];
  next?.querySelector("summary").focus();
  return next !== undefined;
}

onKey((key) => {
  if (key === "j") return move(1);
  if (key === "k") return move(-1);
  return false;
});

const all = document.querySelector("[data-open-all]");
all?.addEventListener("click", () => {
  const open = all.getAttribute("aria-pressed") !== "true";
  all.setAttribute("aria-pressed", String(open));
  for (const step of steps) step.open = open;
});

// A step that is long is loaded when the reader asks for all of it. Without this, the link leads to
// its own page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-load]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const body = link.closest("[data-body]");
  body.setAttribute("aria-busy", "true");
  try {
    body.replaceChildren(await load(`${link.pathname}?part=1`));
    body.tabIndex = -1;
    body.focus();
    announce("All of the step is shown.");
  } catch {
    location.assign(link.href);
  } finally {
    body.removeAttribute("aria-busy");
  }
});
