// Put a chosen file into the form, where the reader can see and change it before sending.
const file = document.getElementById("file");
const source = document.getElementById("source");
const name = document.getElementById("name");

file.addEventListener("change", async () => {
  const chosen = file.files[0];
  if (!chosen) return;
  source.value = await chosen.text();
  if (!name.value) name.value = chosen.name.replace(/\.py$/, "");
  source.dispatchEvent(new Event("input", { bubbles: true }));
});
source.addEventListener("dragover", (event) => event.preventDefault());
source.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  file.files = event.dataTransfer.files;
  file.dispatchEvent(new Event("change"));
});
// Also check text that the browser restored, or that was typed while the page was loading.
window.addEventListener("load", () => {
  if (source.value !== source.defaultValue) source.dispatchEvent(new Event("input", { bubbles: true }));
});
