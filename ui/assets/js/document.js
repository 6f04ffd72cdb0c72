// The page of a document: the quoted place comes into view, and the pictures of pages follow the text.

import { onKey } from "./app.js";

const quote = document.getElementById("span");
if (quote && !location.hash) quote.scrollIntoView({ block: "center" });

const strip = document.querySelector(".page-strip");

// show scrolls the strip, and only the strip, to a page.
function show(number) {
  const figure = strip?.querySelector(`figure[data-page="${Number(number)}"]`);
  if (!figure) return;
  strip.querySelector(".here")?.classList.remove("here");
  figure.classList.add("here");
  const row = getComputedStyle(strip).gridAutoFlow === "column";
  if (row) strip.scrollTo({ left: figure.offsetLeft - strip.offsetLeft });
  else strip.scrollTo({ top: figure.offsetTop - strip.offsetTop });
}

if (strip) {
  const start = location.hash.startsWith("#picture-") ? location.hash.slice("#picture-".length) : strip.querySelector("[data-current]")?.dataset.page;
  if (start) show(start);
  const marks = [...document.querySelectorAll(".page-mark")];
  let last = start;
  const follow = () => {
    const above = marks.filter((mark) => mark.getBoundingClientRect().top < innerHeight / 3).at(-1);
    const page = above?.dataset.page;
    if (page && page !== last) {
      last = page;
      show(page);
    }
  };
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      follow();
    });
  }, { passive: true });
  for (const image of strip.querySelectorAll("img")) {
    image.addEventListener("error", () => {
      const text = document.createElement("p");
      text.className = "failed";
      text.textContent = "This page cannot be drawn. Its text is beside.";
      image.closest("a").replaceWith(text);
    });
  }
}

onKey((key) => {
  const link = document.querySelector(key === "k" ? 'a[rel="prev"]' : key === "j" ? 'a[rel="next"]' : "none");
  if (!link) return false;
  link.click();
  return true;
});
