// Tabs of a Job's page, what is inside its mirror, and commands to copy (mirror/page/tabs.py).
// The server's own markup comes for pods, events and manifests; a log is text, and is put in as text.
"use strict";

const tabs = [...document.querySelectorAll("[role=tab]")];
const AGAIN_INSIDE_MS = 5000;
const MOST_LOG = 1_000_000; // characters; the oldest go
let reading = null; // what is fetched for the tab that is looked at
let again = 0;
let log = { pod: "", container: "" };

const nameOf = (tab) => tab.id.slice("tab-".length);
const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));

function complain(name, text) {
  const problem = document.getElementById(`${name}-problem`);
  if (!problem) return;
  problem.hidden = !text;
  if (problem.textContent !== text) problem.textContent = text;
}

function inside(part, wanted = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
  return fetch(`${location.pathname}/${part}?${query}`, { signal: reading.signal });
}

async function problemOf(answer) {
  if (answer.status === 401) location.reload();
  return (await answer.text()).trim() || `The manager answers ${answer.status}.`;
}

async function showPart(name, holder, part) {
  const answer = await inside(part);
  if (!answer.ok) return complain(name, await problemOf(answer));
  complain(name, "");
  const html = await answer.text();
  const place = holder.firstElementChild;
  if (place.dataset.shown !== html && !place.contains(document.activeElement)) {
    place.dataset.shown = html;
    place.innerHTML = html; // the server's own markup: every text in it is escaped there
    tick();
  }
}

async function showLog(holder) {
  const place = holder.firstElementChild;
  place.textContent = "";
  const answer = await inside("log", { follow: "true", tailLines: "1000", ...log });
  if (!answer.ok) return complain("logs", await problemOf(answer));
  complain("logs", "");
  const pod = answer.headers.get("X-Jobmirror-Pod");
  const worker = answer.headers.get("X-Jobmirror-Worker");
  if (pod) document.getElementById("log-of").textContent = `${pod}${log.container ? ` · ${log.container}` : ""} on ${worker}`;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return complain("logs", place.textContent ? "The log has ended." : "The log is empty.");
    place.append(value);
    if (place.textContent.length > MOST_LOG) place.textContent = place.textContent.slice(-MOST_LOG / 2);
    if (document.getElementById("log-follow").checked) place.scrollTop = place.scrollHeight;
  }
}

async function look(tab) {
  clearTimeout(again);
  if (reading) reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  const holder = panelOf(tab).querySelector("[data-part]");
  if (!holder || document.hidden) return;
  const [name, part] = [nameOf(tab), holder.dataset.part];
  try {
    await (part === "log" ? showLog(holder) : showPart(name, holder, part));
  } catch (error) {
    if (!signal.aborted) complain(name, part === "log" ? "The log broke off." : "The manager does not answer.");
  }
  if (!signal.aborted && part !== "log") again = setTimeout(() => look(tab), AGAIN_INSIDE_MS);
}

function choose(tab, isFirst) {
  document.documentElement.dataset.tab = nameOf(tab);
  for (const one of tabs) {
    const isIt = one === tab;
    one.setAttribute("aria-selected", String(isIt));
    one.tabIndex = isIt ? 0 : -1;
    panelOf(one).hidden = !isIt;
  }
  if (!isFirst) history.replaceState(null, "", `${location.pathname}${location.search}#${nameOf(tab)}`);
  look(tab);
}

document.getElementById("tabs").hidden = false;
for (const tab of tabs) {
  const panel = panelOf(tab);
  panel.setAttribute("role", "tabpanel");
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    next.focus();
    choose(next);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-container]");
  if (!button) return;
  log = { pod: button.dataset.pod, container: button.dataset.container };
  choose(document.getElementById("tab-logs"));
});

async function copy(button) {
  const text = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch (error) {
    // Without TLS browsers give pages no clipboard: it is selected, to be copied by hand.
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

const wanted = document.getElementById(`tab-${location.hash.slice(1)}`);
choose(tabs.includes(wanted) ? wanted : tabs[0], true);
document.addEventListener("visibilitychange", () => look(tabs.find((tab) => tab.ariaSelected === "true")));
