const RUNS = D.runs, N = D.cases.tail.length, PAGE = 50, BAD = new Set(["fail", "error", "crash", "timeout", "xpass", "notrun"]);
const severity = D.statuses.map((name) => D.order.indexOf(name));

// What the columns say of a row.
const idOf = (row) => D.prefixes[D.cases.prefix[row]] + D.cases.tail[row];
const statusOf = (run, row) => (run.status[row] < 0 ? "absent" : D.statuses[run.status[row]]);
const number = (value) => (value === null ? null : typeof value === "number" ? value : value === "nan" ? NaN : value === "inf" ? Infinity : -Infinity);
const reasonOf = (run, row) => (run.reason[row] < 0 ? "" : D.reasons[run.reason[row]]);
const rowOf = new Map();
for (let row = 0; row < N; row++) rowOf.set(idOf(row), row);
const lower = { op: D.ops, dtype: D.dtypes, family: D.families };
for (const key in lower) lower[key] = lower[key].map((text) => text.toLowerCase());
const words = Array.from({ length: N }, (_, row) => (idOf(row) + " " + D.ops[D.cases.op[row]]).toLowerCase());
const labels = RUNS.map((run) => run.label.toLowerCase());
const reasons = D.reasons.map((text) => text.toLowerCase());

function percent(value) {
  if (value === null) return "–";
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (Math.abs(value) >= 10) return (Math.abs(value) < 1e7 ? Number(value.toPrecision(3)).toLocaleString("en-US") : value.toPrecision(3)) + "×";
  const p = 100 * value;
  if (p > 0 && p < 0.1) return "<0.1 %";
  let rounded = Number(p.toPrecision(3));
  if (rounded === 100 && p !== 100) rounded = p < 100 ? 99.9 : 100.1;
  return rounded + " %";
}
function duration(ms) {
  if (ms === null || !Number.isFinite(ms)) return "–";
  return ms < 1 ? Math.round(ms * 1000) + " µs" : ms < 1000 ? Number(ms.toPrecision(3)) + " ms" : Number((ms / 1000).toPrecision(3)) + " s";
}

// The filter: atoms about the case, atoms about one run's result, and free text.
const COMPARE = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };
const ATOMS = ["op", "dtype", "family", "status", "layer", "cluster", "run", "is"];
const TOKEN = /-?count(?:<=|>=|<|>|=)\d+\([^)]*\)|(?:[^\s"]|"[^"]*"?)+/g;
const STATUS_OF = new Map(D.statuses.flatMap((name) => [[name, name], [D.names[name].zh, name]])); // in either language
function parse(text) {
  const tests = [], unknown = [];
  let missing = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const not = token.startsWith("-") && token.length > 1, body = not ? token.slice(1) : token;
    const named = /^([A-Za-z]+):/.exec(body);
    if (named && !ATOMS.includes(named[1])) { missing ||= named[1]; continue; }
    const test = read(body);
    if (test) tests.push(not ? (row, run) => !test(row, run) : test);
    else unknown.push(token);
  }
  return { tests, unknown, missing };
}
function read(body) {
  const counted = /^count(<=|>=|<|>|=)(\d+)\(([^)]*)\)$/.exec(body);
  if (counted) return counting(counted);
  const limit = /^(err|share|time)(<=|>=|<|>|=)(.+)$/.exec(body), atom = /^([a-z]+):(.*)$/.exec(body);
  return limit ? compare(limit) : atom ? matching(atom) : free(body.replaceAll('"', "").toLowerCase());
}
function counting([, operator, figure, inner]) {
  const { tests, unknown, missing } = parse(inner);
  if (unknown.length || missing || !tests.length) return null;
  return (row) => COMPARE[operator](RUNS.filter((run) => tests.every((test) => test(row, run))).length, Number(figure));
}
const FIGURES = { err: (run, row) => run.err[row], share: (run, row) => run.share[row] ?? null, time: (run, row) => run.ms[row] };
function compare([, name, operator, figure]) {
  const limit = figure.endsWith("%") ? Number(figure.slice(0, -1)) / 100 : Number(figure), test = COMPARE[operator];
  if (Number.isNaN(limit)) return null;
  return (row, run) => {
    const value = number(FIGURES[name](run, row));
    if (value === null) return false;
    if (Number.isNaN(value)) return operator.startsWith(">"); // not a number is worse than any bound
    return test(name === "time" ? value / 1000 : value, limit);
  };
}
function matching([, name, list]) {
  const values = [...list.toLowerCase().matchAll(/"([^"]*)"?|[^,"]+/g)].map((m) => m[1] ?? m[0]);
  if (!values.length) return null;
  if (name === "is") return values.every((v) => v === "different") ? (row) => new Set(RUNS.map((run) => run.status[row])).size > 1 : null;
  if (name === "status") {
    if (!values.every((v) => v === "bad" || v === "absent" || STATUS_OF.has(v))) return null;
    const wanted = new Set(values.flatMap((v) => (v === "bad" ? [...BAD] : [STATUS_OF.get(v) ?? v])));
    return (row, run) => wanted.has(statusOf(run, row));
  }
  if (name === "layer") {
    if (!values.every((v) => D.layers.includes(v))) return null;
    const bits = values.reduce((sum, v) => sum | (1 << D.layers.indexOf(v)), 0);
    return (row, run) => (run.layers[row] & bits) !== 0;
  }
  if (name === "cluster") return (row, run) => values.includes(String(run.cluster[row]));
  if (name === "run") return (row, run) => values.some((v) => (labels.includes(v) ? run.label.toLowerCase() === v : run.label.toLowerCase().includes(v)));
  // A whole name means that name (float16 is not bfloat16); anything else is a part of one.
  const hit = lower[name].map((text) => values.some((v) => (v === "" || lower[name].includes(v) ? text === v : text.includes(v))));
  return (row) => hit[D.cases[name][row]];
}
const free = (text) => (row, run) => words[row].includes(text) || (run.reason[row] >= 0 && reasons[run.reason[row]].includes(text));

// State: what is asked for, mirrored in the address so that it can be shared.
const state = { q: "", sort: "status", page: 0, open: null };
let found = [], shown = [];
const rank = (value) => (value === null ? -1 : Number.isNaN(value) ? Infinity : value);
const keys = {
  status: (row) => Math.min(...RUNS.map((run) => (run.status[row] < 0 ? 99 : severity[run.status[row]]))),
  case: (row) => words[row],
  dtype: (row) => D.cases.dtype[row],
  err: (row) => -Math.max(...RUNS.map((run) => rank(number(run.err[row])))),
  share: (row) => -Math.max(...RUNS.map((run) => rank(number(run.share[row] ?? null)))),
  time: (row) => -Math.max(...RUNS.map((run) => number(run.ms[row]) ?? -1)),
};
function select() {
  const { tests, unknown, missing } = parse(state.q);
  found = [];
  for (let row = 0; row < N; row++) {
    if (RUNS.some((run) => tests.every((test) => test(row, run)))) found.push(row);
  }
  const back = state.sort.startsWith("-"), key = keys[back ? state.sort.slice(1) : state.sort], value = new Map();
  for (const row of found) value.set(row, key(row));
  found.sort((a, b) => { const x = value.get(a), y = value.get(b); return (x < y ? -1 : x > y ? 1 : 0) * (back ? -1 : 1) || a - b; });
  shown = [
    [{ found: many(found.length), all: many(N) }, "{found} of {all} cases"],
    ...(unknown.length ? [[{ words: unknown.join(" ") }, ". Not understood: {words}"]] : []),
    ...(missing ? [[{ atom: missing, known: ATOMS.map((name) => name + ":").join(" ") }, ". There is no “{atom}:”; known: {known}. Put free text with a colon in quotes"]] : []),
  ];
}
const many = (n) => n.toLocaleString("en-US");

// Drawing one page. With several runs the case comes first, then a column for what each run found.
const TEXT = { status: "status", case: "case", dtype: "type", err: "error / allowed", share: "share", time: "time" };
const SHARES = RUNS.some((run) => run.share.length), SEVERAL = RUNS.length > 1;
const columns = SEVERAL
  ? [["case"], ["dtype"], ...RUNS.map((run) => ["run", run])]
  : [["status", RUNS[0]], ["case"], ["dtype"], ["err", RUNS[0]], ...(SHARES ? [["share", RUNS[0]]] : []), ["time", RUNS[0]]];
const NUMERIC = new Set(["err", "share", "time"]);
function sorter(key, place) {
  const asked = state.sort.replace("-", ""), back = state.sort.startsWith("-");
  const button = make("button", { type: "button", textContent: say(TEXT[key]) + (key === asked ? (back ? " ↑" : " ↓") : "") });
  button.dataset.key = `column ${place} ${key}`;
  button.onclick = () => update({ sort: state.sort === key ? "-" + key : key, page: 0 });
  return button;
}
function heads() {
  const row = make("tr"), asked = state.sort.replace("-", ""), back = state.sort.startsWith("-");
  for (const [place, [key, run]] of columns.entries()) {
    const keys = key === "run" ? ["status", "err", "time"] : [key];
    const th = make("th", { scope: "col", className: NUMERIC.has(key) ? "n" : key === "run" ? "in" : "" });
    if (keys.includes(asked)) th.setAttribute("aria-sort", back ? "descending" : "ascending");
    if (key === "run") th.append(make("div", { textContent: run.label, className: "runname" }));
    th.append(...keys.map((key) => sorter(key, place)));
    row.append(th);
  }
  $("list").tHead.replaceChildren(row);
}
const chip = (status) => make("span", { className: "chip s-" + status, textContent: D.names[status][language] });
const over = (used) => (used === null || used <= 1 ? "" : " t-fail");
const cells = {
  status: (row, run) => make("td", {}, chip(statusOf(run, row))),
  dtype: (row) => make("td", { textContent: D.dtypes[D.cases.dtype[row]] }),
  time: (row, run) => make("td", { className: "n", textContent: duration(number(run.ms[row])) }),
  share: (row, run) => make("td", { className: "n" + over(number(run.share[row] ?? null)), textContent: percent(number(run.share[row] ?? null)) }),
  err(row, run) {
    const used = number(run.err[row]);
    return make("td", { className: "n" + over(used), textContent: percent(used) });
  },
  run(row, run) {
    const used = number(run.err[row]), figures = make("span", { className: "in" + over(used), textContent: percent(used) });
    return make("td", { className: "in" }, chip(statusOf(run, row)), figures, make("span", { className: "in muted", textContent: duration(number(run.ms[row])) }));
  },
  case(row) {
    const id = idOf(row), open = state.open === id, head = make("span", { className: "head", textContent: D.prefixes[D.cases.prefix[row]] });
    const button = make("button", { type: "button" }, head, D.cases.tail[row]);
    button.setAttribute("aria-expanded", String(open));
    button.dataset.key = "row " + row;
    button.onclick = () => update({ open: open ? null : id });
    return make("td", { className: "id" }, button);
  },
};
const line = (row) => make("tr", { className: state.open === idOf(row) ? "opened" : "" }, ...columns.map(([key, run]) => cells[key](row, run)));
function views(row) {
  const cell = make("td", { colSpan: columns.length });
  RUNS.forEach((run, number) => {
    if (SEVERAL) cell.append(make("p", { className: "label", textContent: run.label }));
    const source = document.querySelector(`[data-run="${number}"][data-row="${row}"]`);
    cell.append(source ? (source.content ?? source.firstElementChild).cloneNode(true) : plain(run, row));
  });
  if (language !== D.base) exchange(cell);
  return make("tr", { className: "open" }, cell);
}
function plain(run, row) {
  const view = $("plain").content.cloneNode(true), status = statusOf(run, row), id = idOf(row);
  const quoted = /^[\w@%+=:,./-]+$/.test(id) ? id : "'" + id.replaceAll("'", `'"'"'`) + "'";
  const command = `aclnn-oracle replay ${quoted} ${run.replay}`.trim(), reason = reasonOf(run, row);
  view.querySelector(".reason").textContent = (language === "zh" ? phrase(reason) : null) ?? reason;
  view.querySelector(".absent").textContent = status === "absent" ? say("This run has no line for the case.") :
    BAD.has(status) ? say("The full view of this case is left out to keep the file small; the record has it.") : "";
  view.querySelector("code").textContent = view.querySelector("button").dataset.copy = command;
  return view;
}
function draw() {
  const last = Math.max(0, Math.ceil(found.length / PAGE) - 1), from = (state.page = Math.min(state.page, last)) * PAGE;
  const body = $("list").tBodies[0];
  body.replaceChildren();
  for (const row of found.slice(from, from + PAGE)) {
    body.append(line(row));
    if (idOf(row) === state.open) body.append(views(row));
  }
  $("found").textContent = shown.map(([values, text]) => say(text, values)).join("");
  $("page").textContent = found.length ? say("{from}–{to} of {all}", { from: from + 1, to: Math.min(from + PAGE, found.length), all: many(found.length) }) : say("no case");
  $("previous").disabled = state.page === 0;
  $("next").disabled = state.page === last;
}
function update(change) {
  const before = state.q + "\n" + state.sort, old = found, focus = document.activeElement?.dataset.key;
  Object.assign(state, change);
  if (before !== state.q + "\n" + state.sort || !old.length) select();
  heads();
  draw();
  if (focus) document.querySelector(`[data-key="${focus}"]`)?.focus(); // the button that was pressed was drawn anew
  const hash = new URLSearchParams();
  if (state.q) hash.set("q", state.q);
  if (state.sort !== "status") hash.set("sort", state.sort);
  if (state.page) hash.set("page", state.page + 1);
  if (state.open) hash.set("case", state.open);
  history.replaceState(null, "", "#" + (String(hash) || "cases"));
}

// The address: "#q=...&sort=...&page=...&case=..."; any other is a place in the page.
function fromAddress() {
  const hash = location.hash.slice(1);
  if (!/^(q|sort|page|case)=/.test(hash)) return;
  const given = new URLSearchParams(hash.replaceAll("+", "%20")), open = given.get("case");
  Object.assign(state, { q: given.get("q") ?? "", page: Math.max(0, (Number.parseInt(given.get("page"), 10) || 1) - 1), open });
  state.sort = (given.get("sort") ?? "").replace("-", "") in keys ? given.get("sort") : "status";
  $("q").value = state.q;
  select();
  if (open !== null && rowOf.has(open)) {
    let place = found.indexOf(rowOf.get(open));
    if (place < 0) { state.q = $("q").value = ""; select(); place = found.indexOf(rowOf.get(open)); }
    state.page = Math.floor(place / PAGE);
  }
  heads();
  draw();
  clear();
  ((open !== null && document.querySelector("#list tr.opened")) || $("cases")).scrollIntoView({ behavior: "instant" });
}

let waiting;
$("q").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => update({ q: $("q").value, page: 0, open: null }), 80); };
$("filter").onsubmit = (event) => event.preventDefault();
$("previous").onclick = () => update({ page: state.page - 1, open: null });
$("next").onclick = () => update({ page: state.page + 1, open: null });
addEventListener("hashchange", fromAddress);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea")) { event.preventDefault(); $("q").focus(); }
});

redraw.push(() => { heads(); draw(); });
select();
speak(preferred());
fromAddress();
