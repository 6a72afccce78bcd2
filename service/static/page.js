// What every page does: times in the reader's zone, and what htmx must not do while somebody is copying text.
import { showTimes } from "./times.js";

showTimes();
setInterval(() => showTimes(), 30000);
document.addEventListener("htmx:after:swap", () => showTimes());
// A part that is refreshed in the background leaves a selection alone; the next event refreshes it again.
document.addEventListener("htmx:before:swap", (event) => {
  const selection = window.getSelection();
  const background = event.target?.closest?.("[data-live]");
  if (background && selection && !selection.isCollapsed && background.contains(selection.anchorNode)) event.preventDefault();
});
// What htmx changes carries the session's token, where there is a session.
document.addEventListener("htmx:config:request", (event) => {
  const token = document.querySelector('meta[name="csrf-token"]')?.content;
  if (token) event.detail.ctx.request.headers["X-CSRF-Token"] = token;
});
