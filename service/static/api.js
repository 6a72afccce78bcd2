// Send what a form of the API's page says, show the answer, and keep the line for curl up to date.
const MOST = 200000; // characters shown
const STREAM_MS = 10000; // a stream is watched for so long
const token = document.querySelector('meta[name="csrf-token"]')?.content;

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function read(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, field.value ? encodeURIComponent(field.value) : `{${field.name}}`);
    else if (field.value) query.append(field.name, field.value);
  }
  const body = form.querySelector("textarea")?.value;
  return { method: form.dataset.method, url: path + (query.size ? `?${query}` : ""), body };
}

function curl(form) {
  const { method, url, body } = read(form);
  const parts = ["curl"];
  if ("streams" in form.dataset) parts.push("-N -H 'Accept: text/event-stream'");
  if ("keyed" in form.dataset) parts.push('-H "Authorization: Bearer $WARPWRIGHT_API_KEY"');
  if (method !== "GET") parts.push(`-X ${method}`);
  parts.push(quoted(location.origin + url));
  if (body) parts.push(`-H 'Content-Type: application/json' -d ${quoted(body)}`);
  return parts.join(" ");
}

async function text(response, stop) {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return await response.text();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const timer = setTimeout(() => stop.abort(), STREAM_MS);
  let found = "";
  try {
    for (let part = await reader.read(); !part.done && found.length < MOST; part = await reader.read()) found += part.value;
  } catch { /* it was watched for long enough */ }
  clearTimeout(timer);
  return found;
}

async function send(form) {
  const { method, url, body } = read(form);
  const box = form.querySelector(".answer");
  const [line, shown] = [box.querySelector("p"), box.querySelector("pre")];
  const headers = { accept: "streams" in form.dataset ? "text/event-stream" : "application/json, */*" };
  if (method !== "GET" && token) headers["x-csrf-token"] = token;
  if (body) headers["content-type"] = "application/json";
  box.hidden = false;
  line.textContent = "Sent.";
  shown.textContent = "";
  const stop = new AbortController();
  const began = performance.now();
  try {
    const response = await fetch(url, { method, headers, body: body || undefined, signal: stop.signal });
    const found = await text(response, stop);
    line.textContent = `${response.status} ${response.statusText}, ${Math.round(performance.now() - began)} ms`;
    let pretty = found;
    try { pretty = JSON.stringify(JSON.parse(found), null, 2); } catch { /* not JSON */ }
    shown.textContent = pretty.slice(0, MOST) || "(empty)";
  } catch (error) {
    line.textContent = `No answer: ${error.message}`;
  }
}

for (const form of document.querySelectorAll("form.try")) {
  form.querySelector("button").hidden = false;
  form.addEventListener("input", () => { form.querySelector(".curl").textContent = curl(form); });
  form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
}
function unfold() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!wanted?.matches("details")) return;
  wanted.open = true;
  wanted.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();
