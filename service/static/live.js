// Follows a run: every event asks the server for the changing part of the page again, at most once a second.
import { showTimes } from "./times.js";

const live = document.getElementById("live");
const base = `/runs/${live.dataset.run}`;
const kinds = [
  "baseline.timed", "candidate.confirming", "candidate.created", "candidate.duplicate", "champion.promoted",
  "evaluation.settled", "problem.admitted", "problem.refused", "proposal.opened", "proposal.settled", "run.created",
  "run.ended", "run.extended", "run.status",
];
let waiting = false;
let again = false;

function focused() {
  const active = document.activeElement;
  return live.contains(active) ? active.getAttribute("href") : null;
}

async function refresh() {
  const response = await fetch(`${base}/live`, { headers: { accept: "text/html" } });
  if (!response.ok) return;
  const text = await response.text();
  const href = focused();
  const open = window.getSelection()?.toString();
  if (open) return; // somebody is copying something: leave it alone until the next event
  live.innerHTML = text;
  showTimes(live);
  if (href) live.querySelector(`a[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
}

async function changed() {
  if (waiting) {
    again = true;
    return;
  }
  waiting = true;
  do {
    again = false;
    try {
      await refresh();
    } catch {
      // The service is away for a moment; the event stream comes back by itself and asks again.
    }
    await new Promise((done) => setTimeout(done, 1000));
  } while (again);
  waiting = false;
}

function follow() {
  const source = new EventSource(`/api/v1${base}/events?after=${live.dataset.seq}`);
  for (const kind of kinds) source.addEventListener(kind, changed);
  source.addEventListener("run.ended", () => source.close());
}

if (live.dataset.ended === "no") follow();
