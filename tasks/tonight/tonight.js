// Draws the time line, the programmes with their reasons, and the viewer's choices. Times are in the zone of the viewer if
// one is stored, else in that of the browser.

const evening = JSON.parse(document.getElementById("data").textContent);
const programmes = evening.programmes;
const votes = programmes.map(() => 0); // 1 like, -1 dislike
const at = (minute) => new Date(minute * 60000);
const timeZone = evening.zone || undefined; // undefined: the browser's
const clock = (minute) => at(minute).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", timeZone });
const stopOf = (one) => one.stop ?? one.start + 30; // without a stop, half an hour, for the name

/** Creates an element with a class, a text and children. */
function make(tag, name = "", text = "", ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

function drawLine() {
  const line = document.getElementById("line");
  const first = Math.floor(Math.min(evening.begin, ...programmes.map((one) => one.start)) / 60) * 60;
  const last = Math.ceil(Math.max(...programmes.map(stopOf)) / 60) * 60;
  const share = (minute) => `${(100 * (minute - first)) / (last - first)}%`;
  for (let minute = first; minute < last; minute += 60) {
    const hour = make("span", "hour", clock(minute));
    hour.style.insetInlineStart = share(minute);
    line.append(hour);
  }
  const ends = []; // end of the last bar of each lane
  const inTime = programmes.map((one, i) => i).sort((a, b) => programmes[a].start - programmes[b].start);
  for (const i of inTime) {
    const one = programmes[i];
    const shown = Math.max(stopOf(one), one.start + (last - first) / 8); // at least an eighth of the line, so that the name is readable
    let lane = ends.findIndex((end) => end <= one.start);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = shown;
    const slot = make("a", "slot", "", make("span", "rank", String(one.rank)), one.title);
    slot.href = `#programme-${one.rank}`;
    slot.title = `${clock(one.start)} ${one.title}, ${one.channel}`;
    slot.style.insetInlineStart = share(one.start);
    slot.style.width = `min(${share(shown - one.start + first)}, 100% - ${share(one.start)})`;
    slot.style.top = `${26 + lane * 38}px`;
    slot.addEventListener("click", (event) => {
      event.preventDefault(); // the URL fragment holds the choices
      document.getElementById(`programme-${one.rank}`).scrollIntoView({ block: "start" });
      light(i);
    });
    line.append(slot);
    one.slot = slot;
  }
  line.style.setProperty("--lanes", ends.length);
}

function drawReasons(one) {
  const why = make("div", "why", "", one.why.some((reason) => reason[2]) ? "Because you like" : "Popular; no match with your likes");
  for (const [title, share, liked] of one.why) {
    const bar = make("span", "bar", "", make("span"));
    bar.firstChild.style.width = `${Math.round(share * 100)}%`;
    const name = make("span", liked ? "" : "disliked", title);
    name.dir = "auto";
    why.append(make("div", "reason", "", bar, make("span", "share", `${Math.round(share * 100)} %`), name));
  }
  if (one.change) why.append(make("p", "change", one.change));
  return why;
}

function drawVotes(i) {
  const box = make("div", "votes");
  const paths = { 1: "M6.5 9v7.5H3.5V9zM6.5 9l3.2-6c1.4 0 2.2 1 1.9 2.4L11 8h4.6c1 0 1.7.9 1.5 1.9l-1 5.2c-.2.8-.8 1.4-1.6 1.4H6.5", "-1": "M6.5 11V3.5H3.5V11zM6.5 11l3.2 6c1.4 0 2.2-1 1.9-2.4L11 12h4.6c1 0 1.7-.9 1.5-1.9l-1-5.2c-.2-.8-.8-1.4-1.6-1.4H6.5" };
  for (const value of [1, -1]) {
    const button = make("button", "round vote");
    button.type = "button";
    button.dataset.value = String(value);
    button.setAttribute("aria-label", `${value > 0 ? "Like" : "Dislike"} ${programmes[i].title}`);
    button.title = value > 0 ? "Like: more of this" : "Dislike: less of this";
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 20 20");
    icon.setAttribute("class", "icon");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", paths[value]);
    icon.append(path);
    button.append(icon);
    button.addEventListener("click", () => vote(i, votes[i] === value ? 0 : value));
    box.append(button);
  }
  return box;
}

function drawProgramme(one, i) {
  const heading = make("h2", "", "", make("span", "rank", String(one.rank)), one.title);
  heading.dir = "auto";
  const about = make("div", "about", "", heading);
  if (one.subTitle) about.append(make("p", "sub", one.subTitle));
  if (one.description) about.append(make("p", "description", one.description));
  const chips = [...one.categories.map((name) => make("span", "chip", name)), ...one.marks.map((name) => make("span", "chip state", name))];
  if (chips.length) about.append(make("div", "chips", "", ...chips));
  for (const [name, role, title] of one.people) {
    const person = make("p", "people", `${role === "director" ? "Directed by" : "With"} ${name}, as in ${title}`);
    person.dir = "auto";
    about.append(person);
  }
  if (one.icon) {
    const picture = make("a", "picture", "Picture");
    Object.assign(picture, { href: one.icon, target: "_blank", rel: "noopener noreferrer" });
    about.append(picture);
  }
  about.append(drawReasons(one));
  if (one.also.length) about.append(make("p", "also", `Also ${one.also.map((each) => `${clock(each.start)} ${each.channel}`).join(", ")}`));
  const when = make("div", "when", "", make("div", "time", clock(one.start)), make("div", "channel", one.channel));
  const item = make("li", "programme panel", "", when, about, drawVotes(i));
  item.id = `programme-${one.rank}`;
  item.addEventListener("pointerenter", () => light(i));
  return item;
}

function light(i) {
  programmes.forEach((one, j) => {
    one.slot.classList.toggle("lit", i === j);
    one.item.classList.toggle("lit", i === j);
  });
}

function vote(i, value) {
  votes[i] = value;
  showChoices();
  try {
    history.replaceState(null, "", link());
  } catch {
    // a sandboxed frame has no URL to change
  }
}

/** Returns the choices in the format of `guidespace like --from`. */
function handBack() {
  const now = new Date().toISOString();
  const chosen = programmes.map((one, i) => ({ title: one.title, sub_title: one.subTitle, episode: one.episode, liked: votes[i] > 0, time: now }));
  return chosen.filter((_, i) => votes[i]).map((one) => (evening.viewer ? { viewer: evening.viewer, ...one } : one));
}

/** Returns the URL fragment with the ranks of liked and of disliked programmes. */
function link() {
  const numbers = (value) => programmes.filter((_, i) => votes[i] === value).map((one) => one.rank).join(".");
  const parts = { like: numbers(1), dislike: numbers(-1) };
  return `#${new URLSearchParams(Object.entries(parts).filter(([, text]) => text))}`;
}

function readLink() {
  const choices = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of [["like", 1], ["dislike", -1]]) {
    for (const rank of (choices.get(name) ?? "").split(".")) {
      const i = programmes.findIndex((one) => String(one.rank) === rank);
      if (i >= 0) votes[i] = value;
    }
  }
}

function showChoices() {
  programmes.forEach((one, i) => {
    for (const button of one.item.querySelectorAll(".vote")) button.setAttribute("aria-pressed", String(Number(button.dataset.value) === votes[i]));
  });
  const count = votes.filter(Boolean).length;
  document.getElementById("choices").hidden = !count;
  document.getElementById("count").textContent = `${count} choice${count === 1 ? "" : "s"}.`;
  document.getElementById("command").textContent = `guidespace like --from likes.json${evening.viewer ? "" : " --viewer NAME"}`;
}

function save() {
  const address = URL.createObjectURL(new Blob([JSON.stringify(handBack(), null, 1)], { type: "application/json" }));
  const anchor = make("a");
  anchor.href = address;
  anchor.download = "likes.json";
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
}

const day = at(evening.begin).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone });
document.getElementById("when").textContent = `${day}, ${clock(evening.begin)} to ${clock(evening.end)}`;
document.getElementById("empty").hidden = programmes.length > 0;
document.getElementById("evening").hidden = !programmes.length;
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.getElementById("save").addEventListener("click", save);
document.getElementById("clear").addEventListener("click", () => programmes.forEach((_, i) => vote(i, 0)));
if (programmes.length) drawLine();
programmes.forEach((one, i) => {
  one.item = drawProgramme(one, i);
  document.getElementById("list").append(one.item);
});
readLink();
showChoices();

globalThis.guidespace = { handBack, link }; // for tests and scripts
