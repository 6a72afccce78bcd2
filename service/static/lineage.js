// Draws the lineage list as a tree; the list stays for readers without a screen or without scripts.
const list = document.getElementById("lineage");
const place = document.getElementById("tree");
const SVG = "http://www.w3.org/2000/svg";
const ROW = 26;
const COLUMN = 150;

function read(items) {
  return [...items].map((item) => ({
    ...item.dataset,
    others: item.dataset.others.split(" ").filter(Boolean),
    children: read(item.querySelectorAll(":scope > ul > li")),
  }));
}

function make(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

// A label is the number, then the speed: how far right of its circle each of them begins or ends, in pixels.
const CHARACTER = 7.4;
const speedAt = (node) => 16 + CHARACTER * (node.data.number.length + 1);
const labelEnd = (node) => speedAt(node) + CHARACTER * node.data.speed.length;

function curve(from, to) {
  const start = from.y + Math.max(86, labelEnd(from));
  const end = to.y - 7;
  const middle = (start + end) / 2;
  return `M${start} ${from.x}C${middle} ${from.x} ${middle} ${to.x} ${end} ${to.x}`;
}

function draw() {
  const root = d3.hierarchy({ id: "", children: read(list.children) });
  d3.tree().nodeSize([ROW, COLUMN]).separation(() => 1)(root);
  const nodes = root.descendants().filter((node) => node.depth > 0);
  const top = Math.min(...nodes.map((node) => node.x)) - ROW;
  const height = Math.max(...nodes.map((node) => node.x)) - top + ROW;
  const width = Math.max(...nodes.map((node) => node.y)) + COLUMN;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `${COLUMN / 2 + 40} ${top} ${width} ${height}`);
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", `Lineage of ${nodes.length} candidates, given as a list below`);
  const byId = new Map(nodes.map((node) => [node.data.id, node]));
  for (const node of nodes) {
    if (node.depth > 1) make("path", { d: curve(node.parent, node) }, svg);
    for (const id of node.data.others) if (byId.has(id)) make("path", { class: "other", d: curve(byId.get(id), node) }, svg);
  }
  for (const node of nodes) {
    const link = make("a", { href: `/candidates/${node.data.id}`, class: node.data.kind, tabindex: "-1" }, svg);
    make("circle", { cx: node.y, cy: node.x, r: 5 }, link);
    make("text", { x: node.y + 10, y: node.x + 0.5 }, link).textContent = `#${node.data.number}`;
    if (node.data.speed) make("text", { x: node.y + speedAt(node), y: node.x + 0.5, class: "speed-label" }, link).textContent = node.data.speed;
  }
  place.replaceChildren(svg);
}

if (list && window.d3) {
  draw();
  document.addEventListener("htmx:after:swap", draw);
}
