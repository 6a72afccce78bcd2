// The best so far of a run, drawn with uPlot over evaluations, seconds or dollars. The page has a drawing of the same
// size already; this one is for reading values off, and is brought up to date as events arrive.
const place = document.getElementById("progress");
const near = (x) => Number(x.toPrecision(3));
const WHOLE = [1, 2, 5].flatMap((digit) => [0, 1, 2, 3, 4, 5].map((power) => digit * 10 ** power)).sort((a, b) => a - b);
let chart = null;
let axis = place.dataset.x;
let data = null;

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function columns() {
  const judged = data.points.filter((point) => !point.confirmed);
  const end = Math.max(data.ends[axis], ...data.points.map((point) => point[axis]));
  const rows = judged.map((point) => [point[axis], point.speedup, point.low, point.high]);
  if (rows.length) rows.push([Math.max(end, rows.at(-1)[0]), ...rows.at(-1).slice(1)]);
  return [0, 1, 2, 3].map((column) => rows.map((row) => row[column]));
}

function drawMarks(u) {
  const ctx = u.ctx;
  ctx.save();
  const one = u.valToPos(1, "y", true);
  ctx.strokeStyle = token("--soft");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(u.bbox.left, one);
  ctx.lineTo(u.bbox.left + u.bbox.width, one);
  ctx.stroke();
  ctx.setLineDash([]);
  for (const point of data.points.filter((point) => point.confirmed)) {
    const x = u.valToPos(point[axis], "x", true);
    const y = u.valToPos(point.speedup, "y", true);
    const clamp = (value) => u.valToPos(Math.min(Math.max(value, data.bottom), data.top), "y", true);
    ctx.strokeStyle = ctx.fillStyle = token("--accent");
    ctx.lineWidth = 2.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, clamp(point.low));
    ctx.lineTo(x, clamp(point.high));
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, y, 5 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.restore();
}

function showValue(u) {
  const tip = place.querySelector(".tip");
  const index = u.cursor.idx;
  const value = index == null ? null : u.data[1][index];
  tip.hidden = value == null || u.cursor.left < 0;
  if (tip.hidden) return;
  tip.textContent = `~${near(value)}× (${near(u.data[2][index])} to ${near(u.data[3][index])}), not confirmed`;
  const left = Math.min(u.cursor.left + u.over.offsetLeft + 8, place.clientWidth - tip.offsetWidth);
  tip.style.transform = `translate(${Math.max(0, left)}px, 2px)`;
}

function build() {
  const line = { stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: `11px ${token("--sans")}` };
  const stepped = uPlot.paths.stepped({ align: 1 });
  const hidden = { stroke: "transparent", paths: stepped, points: { show: false } };
  const unit = { evaluations: (v) => `${v}`, seconds: (v) => (v >= 600 ? `${Math.round(v / 60)} min` : `${v} s`), dollars: (v) => `$${v}` };
  const fill = `color-mix(in srgb, ${token("--plain")} 16%, transparent)`;
  const options = {
    width: place.clientWidth,
    height: place.clientHeight,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: (_, low, high) => [0, Math.max(high, axis === "evaluations" ? 1 : high || 1e-6)] },
      y: { range: () => [data.bottom, data.top] },
    },
    axes: [
      { ...line, size: 26, space: 60, incrs: axis === "evaluations" ? WHOLE : undefined, values: (_, ticks) => ticks.map(unit[axis]) },
      { ...line, size: 44, space: 34, values: (_, ticks) => ticks.map((value) => `${near(value)}×`) },
    ],
    series: [{}, { stroke: token("--plain"), width: 2, paths: stepped, points: { show: false } }, hidden, hidden],
    bands: [{ series: [3, 2], fill }],
    hooks: { draw: [drawMarks], setCursor: [showValue] },
  };
  place.replaceChildren();
  chart = new uPlot(options, columns(), place);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  place.append(tip);
}

async function refresh() {
  const response = await fetch(place.dataset.src);
  if (!response.ok) return;
  data = await response.json();
  if (!data.points.some((point) => !point.confirmed)) return;
  if (chart) chart.setData(columns());
  else build();
}

function redraw() {
  if (!data || !chart) return;
  chart.destroy();
  build();
}

// The choice of an axis is an address; here it changes without loading the page again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-axis]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  axis = link.dataset.axis;
  history.replaceState(null, "", link.href);
  for (const other of document.querySelectorAll("a[data-axis]")) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  document.getElementById("live").setAttribute("hx-get", new URL(link.href).pathname + new URL(link.href).search);
  redraw();
});
document.addEventListener("run:changed", () => refresh().catch(() => {}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(() => {
  if (chart && chart.width !== place.clientWidth) chart.setSize({ width: place.clientWidth, height: place.clientHeight });
}).observe(place);
refresh().catch(() => {});
