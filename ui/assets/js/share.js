// Feedback and links without leaving the page: forms of the part [data-actions] are sent, and the part that
// comes back takes its place.

import { announce } from "./app.js";
import { parse } from "./html.js";

// send sends a form and returns the part of the page that the server answers with.
async function send(form, button) {
  const body = new URLSearchParams(new FormData(form, button));
  const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html", "Assay-Part": "actions" } });
  const part = parse(await response.text()).querySelector("[data-actions]");
  if (!part) throw new Error(`status ${response.status}`);
  return part;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const actions = form.closest?.("[data-actions]");
  if (!actions || form.method !== "post" || form.dataset.plain) return;
  event.preventDefault();
  const button = event.submitter;
  actions.setAttribute("aria-busy", "true");
  try {
    show(actions, await send(form, button), button);
  } catch {
    form.dataset.plain = "yes"; // the page that the form leads to says what is wrong
    actions.removeAttribute("aria-busy");
    form.requestSubmit(button);
  }
});

// show puts the new part in the place of the old one and keeps the focus near the button that was used.
function show(old, part, button) {
  const same = button?.value ? `button[value="${CSS.escape(button.value)}"]` : null;
  old.replaceWith(part);
  const target = part.querySelector("[aria-invalid]") ?? part.querySelector("[data-link]") ?? (same && part.querySelector(same)) ?? part.querySelector("button, summary");
  target?.focus();
  if (target?.matches("[data-link]")) target.select();
  if (part.dataset.done) announce(part.dataset.done);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    announce("The link is copied.");
    button.lastChild.textContent = "Copied";
  } catch {
    announce("The link is selected. Copy it with the keyboard.");
  }
});
