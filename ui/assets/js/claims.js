// Claims and their sources: pointing at one shows the other.

import { onKey } from "./app.js";

const wide = matchMedia("(min-width: 64rem)");
let answer = null; // the part of the page with claims and sources
let shown = ""; // what is shown now

// claims connects the claims of a run's page with its sources.
export function claims(root) {
  answer = root.querySelector(".answer-columns");
  shown = "";
  if (!answer) return;
  for (const image of answer.querySelectorAll(".page-image img")) {
    const hide = () => image.closest(".page-image").remove();
    if (image.complete && image.naturalWidth === 0 && image.currentSrc) hide();
    image.addEventListener("error", hide);
  }
  const over = (event) => {
    if (!wide.matches) return;
    const target = event.target.closest("[data-claim], [data-source]");
    if (target && answer.contains(target)) show(target);
  };
  answer.addEventListener("pointerover", over);
  answer.addEventListener("focusin", over);
  answer.addEventListener("click", (event) => {
    const target = event.target.closest("[data-claim], [data-source]");
    if (target) {
      event.preventDefault();
      show(target, true);
    } else if (event.target.closest("[data-close]")) {
      close();
    }
  });
}

// numbersOf returns the sources of an element, the best first.
function numbersOf(target) {
  if (target.dataset.source) return [target.dataset.source];
  const claim = target.dataset.claim;
  return [...answer.querySelectorAll(".source")]
    .filter((s) => s.dataset.claims.split(" ").includes(claim))
    .map((s) => s.dataset.sourceNumber);
}

// show marks a claim or a citation number, and its sources. With move, the first source takes the focus.
function show(target, move) {
  const numbers = numbersOf(target);
  const claim = target.dataset.claim || "";
  const key = `${claim}/${numbers.join()}`;
  if (key !== shown || move) {
    shown = key;
    for (const e of answer.querySelectorAll(".claim.on, .cite.on")) e.classList.remove("on");
    const same = claim ? `[data-claim="${claim}"]` : `[data-source="${numbers[0]}"]`;
    for (const e of answer.querySelectorAll(same)) e.classList.add("on");
    let first = null;
    for (const s of answer.querySelectorAll(".source")) {
      const on = numbers.includes(s.dataset.sourceNumber);
      s.classList.toggle("on", on);
      if (on && !first) first = s;
      for (const q of s.querySelectorAll("mark")) {
        q.classList.toggle("off", on && claim !== "" && !q.dataset.claims.split(" ").includes(claim));
      }
    }
    if (!first) return;
    reveal(first, claim, move);
  }
}

// reveal brings a source into view: in its column, or as a sheet at the bottom of a small screen.
function reveal(source, claim, move) {
  const panel = answer.querySelector(".sources");
  const quote = claim && [...source.querySelectorAll("mark")].find((q) => q.dataset.claims.split(" ").includes(claim));
  if (wide.matches) {
    const top = source.getBoundingClientRect().top - panel.getBoundingClientRect().top + panel.scrollTop;
    panel.scrollTo({ top: Math.max(0, top - 8), behavior: "smooth" });
  } else {
    panel.classList.add("sheet");
    panel.querySelector("[data-close]").hidden = false;
    (quote || source).scrollIntoView({ block: "nearest" });
  }
  if (move) {
    source.returnTo = document.activeElement;
    source.focus({ preventScroll: true });
  }
}

// close ends what is shown, and gives the focus back.
function close() {
  if (!answer) return false;
  const source = answer.querySelector(".source.on");
  const panel = answer.querySelector(".sources");
  if (!source && !panel?.classList.contains("sheet")) return false;
  const inside = panel.contains(document.activeElement);
  panel.classList.remove("sheet");
  panel.querySelector("[data-close]").hidden = true;
  for (const e of answer.querySelectorAll(".on, .off")) e.classList.remove("on", "off");
  shown = "";
  if (inside) (source?.returnTo ?? answer.querySelector(".claim"))?.focus();
  return true;
}

// step moves to the next or previous claim.
function step(by) {
  const all = [...answer.querySelectorAll(".answer .claim[id]")];
  if (all.length === 0) return false;
  const on = document.activeElement.closest?.("[data-claim]") ?? answer.querySelector(".claim.on");
  const at = all.findIndex((c) => c.dataset.claim === on?.dataset.claim);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  if (wide.matches) show(next);
  return true;
}

onKey((key) => {
  if (!answer || !answer.isConnected) return false;
  if (key === "j" || key === "k") return step(key === "j" ? 1 : -1);
  if (key === "Escape") return close();
  if (/^[1-9]$/.test(key)) {
    const mark = answer.querySelector(`.answer [data-source="${key}"], [data-source="${key}"]`);
    const source = document.getElementById(`source-${key}`);
    if (!source) return false;
    if (mark) show(mark, true);
    else source.focus();
    return true;
  }
  return false;
});
