// What every page does: times in the reader's zone, and what htmx must not do while somebody is copying text.
// On a narrow page the view that is shown is not to be beyond the edge of its list.
import { showTimes } from "./times.js";

showTimes();
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
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
// Every block of text that scrolls gets a button that copies it.
function offerCopies() {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll("pre[aria-label]:not([data-copied])")) {
    block.dataset.copied = "no";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.before(button);
  }
}
offerCopies();
document.addEventListener("htmx:after:swap", offerCopies);
