"use strict";
// Every path of the OpenAPI document: what it does, its schemas, and a field to try it.
const api = JSON.parse(document.getElementById("api").textContent);
const main = document.querySelector("main");
const EXAMPLE = JSON.stringify({ titles: ["Cooking with Nigella"] }, null, 1);

function add(parent, name, text = "", more = {}) {
  const made = Object.assign(document.createElement(name), { textContent: text }, more);
  parent.append(made);
  return made;
}

// A schema with its references replaced.
function whole(schema) {
  if (Array.isArray(schema)) return schema.map(whole);
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.$ref) return whole(schema.$ref.split("/").slice(1).reduce((place, key) => place[key], api));
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, whole(value)]));
}

function details(parent, name, schema) {
  const made = add(parent, "details");
  add(made, "summary", name);
  add(made, "pre", JSON.stringify(whole(schema), null, 1));
}

add(main, "h1", api.info.title);
add(main, "p", api.info.description);
const token = add(main, "input", "", { placeholder: "token, where the server asks for one", type: "password" });
token.setAttribute("aria-label", "token");
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const section = add(main, "section", "", { className: "panel" });
    add(section, "h2", `${method.toUpperCase()} ${path}`);
    add(section, "p", about.description);
    const asked = about.requestBody?.content["application/json"].schema;
    const field = asked && add(section, "textarea", EXAMPLE, { ariaLabel: `body of ${path}` });
    const button = add(section, "button", "Send");
    const answer = add(section, "pre", "", { hidden: true });
    if (asked) details(section, "request", asked);
    const told = about.responses["200"].content?.["application/json"]?.schema;
    if (told) details(section, "answer", told);
    button.addEventListener("click", async () => {
      const headers = { "Content-Type": "application/json" };
      if (token.value) headers.Authorization = `Bearer ${token.value}`;
      const found = await fetch(path.slice(1), { method, headers, body: field && field.value });
      const text = await found.text();
      answer.hidden = false;
      answer.textContent = `${found.status}\n${text.startsWith("{") ? JSON.stringify(JSON.parse(text), null, 1) : text}`;
    });
  }
}
