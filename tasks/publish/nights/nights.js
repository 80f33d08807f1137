const { nights, metrics, shown } = JSON.parse(document.getElementById("data").textContent);
const names = Object.keys(metrics), labels = new Map(shown.map(([name, text]) => [name, text]));
const byId = (id) => document.getElementById(id);

// Creates an element of HTML or SVG.
function make(tag, attributes = {}, text = "") {
  const svg = ["svg", "path", "line", "circle", "rect", "text", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== "") element.textContent = text;
  return element;
}

// Formats a metric for reading; "–" if it is missing.
function format(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 0.001 ? value.toFixed(3) : value.toPrecision(2);
}

// Returns about four round numbers that span the values.
function ticks(low, high) {
  const span = high - low || Math.abs(high) || 1, raw = span / 4, ten = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * ten).find((candidate) => candidate >= raw);
  const first = Math.floor(low / step) * step, marks = [];
  for (let mark = first; marks.length < 8; mark += step) {
    marks.push(+mark.toPrecision(10));
    if (mark >= high - step / 1e6) break;
  }
  return marks.length > 1 ? marks : [first, first + step];
}

// Draws the chart of a metric; only the large chart has axes, promotions as lines, and tooltips.
function draw(values, width, height, large) {
  const chart = make("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" });
  const present = values.filter((value) => value !== null);
  if (!present.length) return chart;
  const marks = ticks(Math.min(...present), Math.max(...present)), low = marks[0], high = marks.at(-1);
  const left = large ? 56 : 4, right = width - (large ? 12 : 6), top = large ? 22 : 6, bottom = height - (large ? 26 : 6);
  const step = (right - left) / Math.max(1, nights.length - 1);
  const x = (night) => (nights.length > 1 ? left + night * step : (left + right) / 2);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  if (large) {
    for (const mark of marks) {
      chart.append(make("line", { class: "grid", x1: left, x2: right, y1: y(mark), y2: y(mark) }));
      chart.append(make("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, format(mark)));
    }
    const every = Math.ceil(nights.length / Math.max(1, Math.floor((right - left) / 90)));
    nights.forEach((night, index) => {
      if (index % every === 0) chart.append(make("text", { x: x(index), y: height - 6, "text-anchor": "middle" }, night.at.slice(5, 10)));
    });
    nights.forEach((night, index) => {
      if (!night.promoted) return;
      chart.append(make("line", { class: "move", x1: x(index), x2: x(index), y1: top - 6, y2: bottom }));
      chart.append(make("text", { x: x(index), y: top - 10, "text-anchor": "middle" }, `v${night.version}`));
    });
  }
  let path = "", down = false; // a night without the metric leaves a gap
  values.forEach((value, index) => {
    if (value !== null) path += `${down ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    down = value !== null;
  });
  chart.append(make("path", { class: "line", d: path }));
  values.forEach((value, index) => {
    if (value === null || !(large || nights[index].promoted || index === nights.length - 1)) return;
    const size = large ? 4.5 : 3.2, place = `${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    if (nights[index].promoted) {
      const d = size * 1.35;
      chart.append(make("path", { class: "promotion", d: `M${place}m0 ${-d}l${d} ${d}l${-d} ${d}l${-d} ${-d}Z` }));
    } else chart.append(make("circle", { class: "night", cx: x(index), cy: y(value), r: size }));
  });
  if (large) nights.forEach((night, index) => {
    const wide = nights.length > 1 ? step : right - left;
    const hit = make("rect", { class: "hit", x: x(index) - wide / 2, y: top, width: wide, height: bottom - top, tabindex: 0 });
    const text = `${night.at} UTC: ${format(values[index])}${night.promoted ? `, version ${night.version} promoted` : ""}`;
    hit.append(make("title", {}, text));
    hit.addEventListener("pointerenter", () => describe(index));
    hit.addEventListener("focus", () => describe(index));
    chart.append(hit);
  });
  return chart;
}

// Shows the metric and the gate decision of a night below the large chart.
function describe(index) {
  const night = nights[index], value = metrics[chosen]?.[index];
  const verdict = night.promoted ? `version ${night.version} promoted: ${night.reason}` : night.reason;
  byId("status").textContent = `${night.at} UTC, ${night.name}: ${format(value)}. ${verdict}`;
}

let chosen = shown.length ? shown[0][0] : names[0];

// Shows a metric in the large chart.
function choose(name) {
  chosen = name;
  byId("metric").value = name;
  const width = Math.max(320, byId("large").clientWidth);
  byId("large").replaceChildren(draw(metrics[name] || [], width, 280, true));
  for (const card of byId("small").children) card.setAttribute("aria-pressed", card.dataset.name === name);
  describe(nights.length - 1);
}

// Returns the card of a metric with its last value, the change since the night before, and a small chart.
function card([name, text, better]) {
  const values = metrics[name], last = values.at(-1), before = values.at(-2);
  const box = make("button", { class: "card panel", type: "button", "data-name": name, "aria-pressed": "false" });
  const value = make("span", { class: "value" }, format(last));
  if (last !== null && before !== null && before !== undefined) {
    const change = last - before, good = better === null || !change ? "" : change > 0 === better ? " good" : " bad";
    value.append(make("span", { class: `change${good}` }, `${change > 0 ? "+" : change < 0 ? "−" : "±"}${format(Math.abs(change))}`));
  }
  box.append(make("span", { class: "what" }, text), value, draw(values, 260, 56, false));
  box.addEventListener("click", () => choose(name));
  return box;
}

if (nights.length) {
  const quality = metrics["at_a_glance/quality"] || [];
  const promotions = nights.filter((night) => night.promoted).length;
  byId("span").textContent = `${nights.length} night${nights.length > 1 ? "s" : ""}, ${nights[0].at.slice(0, 10)} to ${nights.at(-1).at.slice(0, 10)}, ${promotions} promotion${promotions === 1 ? "" : "s"}`;
  const groups = { "At a glance": shown.map(([name]) => name), "All metrics": names };
  for (const [label, members] of Object.entries(groups)) {
    const group = make("optgroup", { label });
    for (const name of members) group.append(make("option", { value: name }, label === "At a glance" ? labels.get(name) : name));
    byId("metric").append(group);
  }
  byId("small").append(...shown.map(card));
  for (let index = nights.length - 1; index >= 0; index -= 1) {
    const night = nights[index], row = make("tr"), version = make("td", {}, night.version);
    if (night.promoted) version.append(make("span", { class: "badge" }, "promoted"));
    row.append(make("td", {}, night.at), make("td", { dir: "auto" }, night.name), version, make("td", {}, format(quality[index])), make("td", {}, night.reason));
    byId("rows").append(row);
  }
  byId("metric").addEventListener("change", (event) => choose(event.target.value));
  addEventListener("resize", () => choose(chosen));
  choose(chosen);
} else document.querySelector("main").replaceChildren(make("p", { class: "empty" }, "No night has finished yet."));

byId("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme !== "dark";
  root.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
});
if (matchMedia("(prefers-color-scheme: dark)").matches) byId("theme").click();
