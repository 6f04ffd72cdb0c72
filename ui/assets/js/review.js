// Reviews: the statement under the pointer or the focus and its evidence go together, and keys lead
// through the statements and to the decisions.

import { onKey } from "./app.js";

const claims = [...document.querySelectorAll("[data-claim]")];
const cards = new Map([...document.querySelectorAll("[data-card]")].map((card) => [card.dataset.card, card]));
let current = -1;

// mark shows which statement is the current one.
function mark(number) {
  for (const claim of claims) claim.classList.toggle("current", claim.dataset.claim === number);
  for (const [of, card] of cards) card.classList.toggle("current", of === number);
}

for (const [i, claim] of claims.entries()) {
  const choose = () => {
    current = i;
    mark(claim.dataset.claim);
  };
  claim.addEventListener("mouseenter", choose);
  claim.addEventListener("focus", choose);
}

// go moves to another statement and brings its evidence into view.
function go(step) {
  if (claims.length === 0) return false;
  current = current < 0 && step < 0 ? claims.length - 1 : Math.min(Math.max(current + step, 0), claims.length - 1);
  const claim = claims[current];
  claim.focus({ preventScroll: true });
  mark(claim.dataset.claim);
  claim.scrollIntoView({ block: "nearest" });
  cards.get(claim.dataset.claim)?.scrollIntoView({ block: "nearest" });
  return true;
}

// act opens the form of a decision, which still has to be confirmed, or follows its link.
function act(name) {
  const target = document.querySelector(`[data-act="${name}"]`);
  if (!target) return false;
  if (target instanceof HTMLAnchorElement) {
    target.click();
    return true;
  }
  target.open = true;
  target.querySelector("textarea, button")?.focus();
  return true;
}

onKey((key) => {
  switch (key) {
    case "j": return go(1);
    case "k": return go(-1);
    case "a": return act("approve");
    case "e": return act("edit");
  }
  return false;
});

// Of the forms for decisions one is open.
const acts = [...document.querySelectorAll("details[data-act]")];
for (const one of acts) {
  one.addEventListener("toggle", () => {
    if (one.open) for (const other of acts) if (other !== one) other.open = false;
  });
}

// A text that was typed is not lost by leaving the page unnoticed.
const text = document.querySelector("textarea#text");
if (text) {
  let sent = false;
  text.form.addEventListener("submit", () => { sent = true; });
  document.querySelector("form.save")?.addEventListener("submit", () => { sent = true; });
  window.addEventListener("beforeunload", (event) => {
    if (!sent && text.value !== text.defaultValue) event.preventDefault();
  });
}
