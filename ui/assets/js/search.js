// Keys of the search page: j and k go to the next and the previous passage.

import { onKey } from "./app.js";

const hits = [...document.querySelectorAll(".hit h2 a")];

onKey((key) => {
  if ((key !== "j" && key !== "k") || !hits.length) return false;
  const at = hits.indexOf(document.activeElement);
  const to = key === "j" ? Math.min(at + 1, hits.length - 1) : Math.max(at - 1, 0);
  hits[to].focus();
  hits[to].closest(".hit").scrollIntoView({ block: "nearest" });
  return true;
});
