// Follows a run: events refresh the parts of the page marked data-live, at most once a second.
// All pages of a browser share one stream per run (stream-worker.js); a browser without shared workers opens its own.
import { kinds } from "./kinds.js";

const place = document.querySelector("[data-follow]");

function refresh() {
  for (const part of document.querySelectorAll("[data-live]")) part.dispatchEvent(new CustomEvent("refresh"));
  document.dispatchEvent(new CustomEvent("run:changed"));
}

let timer = 0;
let last = 0;
function changed() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    last = Date.now();
    refresh();
  }, Math.max(0, last + 1000 - Date.now()));
}

function alone(run, after) {
  const source = new EventSource(`/api/v1/runs/${run}/events?after=${after}`);
  for (const kind of kinds) source.addEventListener(kind, changed);
}

function shared(run, after) {
  const worker = new SharedWorker(place.dataset.worker, { type: "module", name: "warpwright-events" });
  worker.port.onmessage = changed;
  worker.port.postMessage({ follow: run, after: Number(after) });
  window.addEventListener("pagehide", () => worker.port.postMessage({ leave: true }));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) worker.port.postMessage({ follow: run, after: Number(after) });
  });
}

if (place && place.dataset.ended === "no") {
  (window.SharedWorker ? shared : alone)(place.dataset.follow, place.dataset.seq);
}
