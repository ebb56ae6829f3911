document.documentElement.classList.add("js");
const D = JSON.parse(document.getElementById("data").textContent);
for (const texts of [D.words, D.swap, D.phrases]) Object.setPrototypeOf(texts, null); // a text may read "constructor"
const $ = (id) => document.getElementById(id);
const make = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
};

// Language: the page is written in D.base; <i-t> and data-t say what to exchange, D.swap with what. What was chosen is
// remembered where the browser allows it; else the browser's own language decides.
const LANGUAGES = { en: { tag: "en", name: "English" }, zh: { tag: "zh-CN", name: "中文" } };
const FIGURE = /\[[^\]]*\]|\b\d+(?:st|nd|rd|th)\b|(?<![\w.])[-+]?(?:0x[0-9a-fA-F]+|\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf|[K-N])(?!\w)/g;
const store = {
  get() { try { return localStorage.getItem("aclnn-oracle language"); } catch { return null; } },
  set(value) { try { localStorage.setItem("aclnn-oracle language", value); } catch { /* a file:// page may not */ } },
};
let language = D.base;
function say(text, values = {}) {
  const form = language === "zh" ? D.words[text] ?? text : text;
  return form.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}
function phrase(text) { // what a record says in English, by parts where the whole is not known
  const form = D.phrases[text.replace(FIGURE, "#")];
  if (form !== undefined) {
    const figures = text.match(FIGURE) ?? [];
    return form.replace(/\{(\d+)\}/g, (_, place) => figures[place]);
  }
  for (const [mark, separator] of [["; ", "；"], [": ", "："]]) {
    const place = text.indexOf(mark);
    if (place < 0) continue;
    const first = text.slice(0, place), rest = text.slice(place + mark.length), parts = [phrase(first), phrase(rest)];
    if (parts[0] ?? parts[1]) return (parts[0] ?? first) + separator + (parts[1] ?? rest);
  }
  return null;
}
function exchange(root) {
  for (const node of root.querySelectorAll("i-t")) {
    const here = node.getAttribute("b") ?? node.textContent;
    if (language === D.base) { node.textContent = here; continue; }
    node.setAttribute("b", here);
    node.textContent = node.getAttribute("o") ?? (node.hasAttribute("p") ? phrase(here) : D.swap[here]) ?? here;
  }
  for (const node of root.querySelectorAll("[data-t]")) {
    const name = node.dataset.t, here = node.dataset.b ?? node.getAttribute(name);
    node.dataset.b = here;
    node.setAttribute(name, language === D.base ? here : D.swap[here] ?? here);
  }
}
const redraw = []; // what to draw anew when the language changes
function speak(wanted) {
  language = wanted in LANGUAGES ? wanted : D.base;
  const other = LANGUAGES[language === "en" ? "zh" : "en"];
  document.documentElement.lang = LANGUAGES[language].tag;
  $("language").textContent = other.name;
  $("language").lang = other.tag;
  exchange(document);
  for (const draw of redraw) draw();
}
$("language").onclick = () => {
  const wanted = language === "en" ? "zh" : "en";
  store.set(wanted);
  speak(wanted);
};
const preferred = () => store.get() ?? (D.base === "zh" || navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

// What the address names must not hide behind the bar that stays at the top.
const bar = document.querySelector("nav");
const clear = () => document.documentElement.style.setProperty("--bar", bar.offsetHeight + 8 + "px");
new ResizeObserver(clear).observe(bar);
clear();

// Copying works from file:// too, where the clipboard may be closed to scripts.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await copy(button.dataset.copy);
  button.textContent = say("copied");
  setTimeout(() => { button.textContent = say("copy"); }, 1500);
});
