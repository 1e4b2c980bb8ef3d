// Keeps a page live: the server sends elements that changed (mirror/page/view.py), this puts them into place.
// Without it everything works, only not by itself.
"use strict";

const live = document.getElementById("live");
const pause = document.getElementById("pause");
const filter = document.getElementById("filter");
const AGAIN_MS = [1000, 2000, 5000, 15000, 30000];

let source = null;
let failures = 0;
let timer = 0;
let isPaused = false;

// -- times: as mirror/model/durations.py (human_duration) prints them ----------------------------------------------

function two(large, largeUnit, small, smallUnit) {
  return small ? `${large}${largeUnit}${small}${smallUnit}` : `${large}${largeUnit}`;
}

function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(whole / unit));
  if (whole < 120) return `${whole}s`;
  if (minutes < 10) return two(minutes, "m", whole % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 730) return `${days}d`;
  return two(Math.floor(days / 365), "y", days < 2920 ? days % 365 : 0, "d");
}

// How much this machine's clock is ahead; a second or two is how long the page was on its way.
const ahead = Date.now() - Date.parse(document.body.dataset.now);
const AHEAD_MS = Math.abs(ahead) < 5000 ? 0 : ahead;

function shown(time, now) {
  const seconds = (now - Date.parse(time.dateTime)) / 1000;
  if (time.dataset.as === "for") return age(seconds);
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${age(seconds)} ago` : `in ${age(-seconds)}`;
}

function tick() {
  const now = Date.now() - AHEAD_MS;
  for (const time of document.querySelectorAll("time[data-as]")) {
    const text = shown(time, now);
    if (time.firstChild && time.firstChild.data !== text) time.firstChild.data = text;
  }
}

// -- putting parts into place -------------------------------------------------------------------------------------

const FOCUSABLE = "a[href], button, input, select";

function made(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // the server's own markup: every text in it is escaped there
  return template.content.firstElementChild;
}

// Put a new element where the old one is; who was there with the keyboard stays there.
function replace(old, fresh) {
  const active = document.activeElement;
  const place = old.contains(active) ? [...old.querySelectorAll(FOCUSABLE)].indexOf(active) : -1;
  const isChoosing = active && active.tagName === "SELECT" && (old === active || old.contains(active));
  if (isChoosing) return; // an open list would close; it comes with the next change
  old.replaceWith(fresh);
  if (place >= 0) fresh.querySelectorAll(FOCUSABLE)[place]?.focus({ preventScroll: true });
}

function arrange(list, order, fresh) {
  let here = list.firstElementChild;
  const wanted = new Set(order);
  for (const id of order) {
    while (here && !wanted.has(here.id)) {
      const gone = here;
      here = here.nextElementSibling;
      gone.remove();
    }
    if (here && here.id === id) {
      here = here.nextElementSibling;
      continue;
    }
    const element = document.getElementById(id) || fresh.get(id);
    if (element) list.insertBefore(element, here);
  }
  while (here) {
    const gone = here;
    here = here.nextElementSibling;
    gone.remove();
  }
}

function show(news) {
  const fresh = new Map();
  for (const [id, html] of Object.entries(news.parts || {})) {
    const element = made(html);
    const old = document.getElementById(id);
    if (!news.whole) element.classList.add("changed");
    if (old) replace(old, element);
    else fresh.set(id, element);
  }
  for (const [id, order] of Object.entries(news.lists || {})) {
    const list = document.getElementById(id);
    if (list) arrange(list, order, fresh);
  }
  tick();
}

// -- the stream ---------------------------------------------------------------------------------------------------

function say(text, kind) {
  if (live.textContent !== text) live.textContent = text;
  live.className = `live ${kind}`;
}

function address() {
  const base = document.body.dataset.events;
  if (document.body.dataset.kind === "job") {
    const [namespace, name] = location.pathname.split("/").slice(-2);
    const kind = new URLSearchParams(location.search).get("kind");
    return `${base}?job=${namespace}/${name}${kind ? `&kind=${encodeURIComponent(kind)}` : ""}`;
  }
  return base + location.search;
}

function disconnect() {
  clearTimeout(timer);
  if (source) source.close();
  source = null;
}

// Where the page asks who looks: a login that has ended leads to the form, a manager that is away does not.
function isLoggedOut() {
  return fetch(location.href, { cache: "no-store" }).then((answer) => answer.status === 401, () => false);
}

function connect() {
  disconnect();
  if (isPaused || document.hidden) return;
  source = new EventSource(address());
  source.onmessage = (event) => {
    failures = 0;
    say("Live", "on");
    show(JSON.parse(event.data));
  };
  source.addEventListener("login", () => location.reload()); // the right to look has ended
  source.onerror = () => {
    const isRefused = source && source.readyState === EventSource.CLOSED;
    disconnect();
    if (isRefused) isLoggedOut().then((is) => is && location.reload());
    say("Not live: reconnecting", "off");
    timer = setTimeout(connect, AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]);
    failures += 1;
  };
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) {
    disconnect();
    say("Paused", "off");
  } else {
    say("Connecting", "off");
    connect();
  }
});

// A hidden page costs nobody anything. (Browsers allow six streams to one server, over all tabs.)
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => event.persisted && connect());

// -- what to look at ----------------------------------------------------------------------------------------------

function go(search) {
  if (search === location.search) return;
  history.replaceState(null, "", search || location.pathname);
  inform();
  if (isPaused) location.reload();
  else connect();
}

const FIELDS = ["text", "namespace", "worker", "label", "kind", "sort"];

// What a link has chosen stands in the fields, too; not in the one that somebody is typing in.
function inform() {
  const wanted = new URLSearchParams(location.search);
  for (const name of FIELDS) {
    const field = filter.elements[name];
    if (field !== document.activeElement) field.value = wanted.get(name) || "";
  }
}

function fromForm() {
  const wanted = new URLSearchParams(location.search);
  wanted.delete("page");
  for (const name of FIELDS) {
    const value = filter.elements[name].value.trim();
    if (value) wanted.set(name, value);
    else wanted.delete(name);
  }
  const search = wanted.toString();
  go(search ? `?${search}` : "");
}

if (filter) {
  let soon = 0;
  filter.classList.add("is-live"); // no button is needed
  filter.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(fromForm, 250);
  });
  filter.addEventListener("submit", (event) => {
    event.preventDefault();
    fromForm();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-live]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(new URL(link.href).search);
  });
}

say("Connecting", "off");
setInterval(tick, 1000);
connect();
