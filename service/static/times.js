// Times in the reader's own zone: near ones as "5 minutes ago", with the exact moment as the tooltip.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const steps = [["day", 86400], ["hour", 3600], ["minute", 60]];

function words(moment) {
  const seconds = (moment.getTime() - Date.now()) / 1000;
  if (Math.abs(seconds) > 30 * 86400) return exact.format(moment);
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

export function showTimes(root = document) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    element.title = exact.format(moment);
    element.textContent = words(moment);
  }
}
