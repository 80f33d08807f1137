"use strict";
// Shows every path of the OpenAPI document with its description, its schemas and a form to try it.
const api = JSON.parse(document.getElementById("api").textContent);
const main = document.querySelector("main");
const EXAMPLE = JSON.stringify({ titles: ["Cooking with Nigella"] }, null, 1);

function add(parent, tag, text = "", properties = {}) {
  const element = Object.assign(document.createElement(tag), { textContent: text }, properties);
  parent.append(element);
  return element;
}

// Replaces the references in a schema.
function resolve(schema) {
  if (Array.isArray(schema)) return schema.map(resolve);
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.$ref) return resolve(schema.$ref.split("/").slice(1).reduce((node, key) => node[key], api));
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolve(value)]));
}

function details(parent, name, schema) {
  const element = add(parent, "details");
  add(element, "summary", name);
  add(element, "pre", JSON.stringify(resolve(schema), null, 1));
}

add(main, "h1", api.info.title);
add(main, "p", api.info.description);
const token = add(main, "input", "", { placeholder: "token, if the server requires one", type: "password" });
token.setAttribute("aria-label", "token");
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const section = add(main, "section", "", { className: "panel" });
    add(section, "h2", `${method.toUpperCase()} ${path}`);
    add(section, "p", operation.description);
    const requestSchema = operation.requestBody?.content["application/json"].schema;
    const field = requestSchema && add(section, "textarea", EXAMPLE, { ariaLabel: `body of ${path}` });
    const button = add(section, "button", "Send");
    const answer = add(section, "pre", "", { hidden: true });
    if (requestSchema) details(section, "request", requestSchema);
    const responseSchema = operation.responses["200"].content?.["application/json"]?.schema;
    if (responseSchema) details(section, "answer", responseSchema);
    button.addEventListener("click", async () => {
      const headers = { "Content-Type": "application/json" };
      if (token.value) headers.Authorization = `Bearer ${token.value}`;
      const response = await fetch(path.slice(1), { method, headers, body: field && field.value });
      const text = await response.text();
      answer.hidden = false;
      answer.textContent = `${response.status}\n${text.startsWith("{") ? JSON.stringify(JSON.parse(text), null, 1) : text}`;
    });
  }
}
