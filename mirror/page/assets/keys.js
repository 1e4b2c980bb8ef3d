// What the keyboard does. The list of keys that people see is in mirror/page/skeleton.py.
"use strict";

const keys = document.getElementById("keys");
const help = document.getElementById("help");

help.hidden = false;
help.addEventListener("click", () => keys.showModal());

function stepRow(by) {
  const links = [...document.querySelectorAll("#rows th a")];
  const row = document.activeElement.closest?.("#rows tr");
  const here = row ? links.findIndex((link) => row.contains(link)) : -1;
  const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
  links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
}

const click = (selector) => () => document.querySelector(selector)?.click();

const LIST_KEYS = {
  "/": () => document.getElementById("filter").elements.text.focus(),
  j: () => stepRow(1),
  k: () => stepRow(-1),
  n: click("#found a[rel=next]"),
  p: click("#found a[rel=prev]"),
  f: click(".state.failed"),
  u: click(".state.unknown"),
  w: click(".state.waiting"),
  a: () => go(""),
};

const JOB_KEYS = {
  b: click(".back a"),
  c: click(".commands button"),
};
for (let number = 1; number <= 6; number += 1) JOB_KEYS[number] = click(`[role=tab]:nth-of-type(${number})`);

const ALL_KEYS = { x: click("#pause"), "?": () => keys.showModal() };

document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape" && isTyping) event.target.blur();
  if (isTyping || keys.open || event.ctrlKey || event.metaKey || event.altKey) return;
  const own = document.body.dataset.kind === "jobs" ? LIST_KEYS : JOB_KEYS;
  const act = own[event.key] || ALL_KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
