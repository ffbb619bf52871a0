// Keys on a page of rows: j and k move, Enter opens, n and p turn pages. Every page works without this script.
"use strict";

const rows = Array.from(document.querySelectorAll("[data-row]"));
let current = -1;

function move(step) {
  if (!rows.length) {
    turn(step > 0 ? "next" : "prev");
    return;
  }
  if (current >= 0) {
    rows[current].classList.remove("current");
  }
  current = Math.min(Math.max(current + step, 0), rows.length - 1);
  rows[current].classList.add("current");
  const link = rows[current].querySelector("[data-open]");
  if (link) {
    link.focus({ preventScroll: true });
  }
  rows[current].scrollIntoView({ block: "nearest" });
}

function turn(relation) {
  const link = document.querySelector(`a[rel="${relation}"]`);
  if (link) {
    link.click();
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) {
    return;
  }
  const actions = { j: () => move(1), k: () => move(-1), n: () => turn("next"), p: () => turn("prev") };
  if (event.key in actions) {
    event.preventDefault();
    actions[event.key]();
  }
});
