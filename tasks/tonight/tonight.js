// Draws the timeline, the programmes with their reasons, and the viewer's choices. Times are in the time zone of the viewer
// if it is stored in the home, else in that of the browser. Minutes are counted from 1970-01-01 UTC.

const evening = JSON.parse(document.getElementById("data").textContent);
const programmes = evening.programmes;
const votes = programmes.map(() => 0); // by index of the programme: 1 for a like, -1 for a dislike, 0 for neither
const toDate = (minute) => new Date(minute * 60000);
const timeZone = evening.zone || undefined; // undefined: the time zone of the browser
const formatTime = (minute) => toDate(minute).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", timeZone });
const stopOf = (programme) => programme.stop ?? programme.start + 30; // if the stop is unknown, half an hour is drawn

/** Creates an HTML element with a class, a text and children. */
function make(tag, className = "", text = "", ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

/** Draws the hours of the evening, and a bar for each programme in the first lane that is free. */
function drawTimeline() {
  const line = document.getElementById("line");
  const lineStart = Math.floor(Math.min(evening.begin, ...programmes.map((programme) => programme.start)) / 60) * 60;
  const lineEnd = Math.ceil(Math.max(...programmes.map(stopOf)) / 60) * 60;
  const position = (minute) => `${(100 * (minute - lineStart)) / (lineEnd - lineStart)}%`;
  for (let minute = lineStart; minute < lineEnd; minute += 60) {
    const hour = make("span", "hour", formatTime(minute));
    hour.style.insetInlineStart = position(minute);
    line.append(hour);
  }
  const laneEnds = []; // end of the last bar of each lane
  const indicesByStart = programmes.map((_, index) => index).sort((a, b) => programmes[a].start - programmes[b].start);
  for (const index of indicesByStart) {
    const programme = programmes[index];
    // a bar takes at least an eighth of the timeline, so that its title is readable
    const barEnd = Math.max(stopOf(programme), programme.start + (lineEnd - lineStart) / 8);
    let lane = laneEnds.findIndex((end) => end <= programme.start);
    if (lane < 0) lane = laneEnds.push(0) - 1;
    laneEnds[lane] = barEnd;
    const slot = make("a", "slot", "", make("span", "rank", String(programme.rank)), programme.title);
    slot.href = `#programme-${programme.rank}`;
    slot.title = `${formatTime(programme.start)} ${programme.title}, ${programme.channel}`;
    slot.style.insetInlineStart = position(programme.start);
    slot.style.width = `min(${position(barEnd - programme.start + lineStart)}, 100% - ${position(programme.start)})`;
    slot.style.top = `${26 + lane * 38}px`;
    slot.addEventListener("click", (event) => {
      event.preventDefault(); // the fragment of the URL contains the choices
      document.getElementById(`programme-${programme.rank}`).scrollIntoView({ block: "start" });
      highlight(index);
    });
    line.append(slot);
    programme.slot = slot;
  }
  line.style.setProperty("--lanes", laneEnds.length);
}

function drawReasons(programme) {
  const hasLikes = programme.why.some(([, , liked]) => liked);
  const why = make("div", "why", "", hasLikes ? "Because you like" : "Popular, but similar to none of your likes");
  for (const [title, share, liked] of programme.why) {
    const bar = make("span", "bar", "", make("span"));
    bar.firstChild.style.width = `${Math.round(share * 100)}%`;
    const name = make("span", liked ? "" : "disliked", title);
    name.dir = "auto";
    why.append(make("div", "reason", "", bar, make("span", "share", `${Math.round(share * 100)} %`), name));
  }
  if (programme.change) why.append(make("p", "change", programme.change));
  return why;
}

function drawVoteButtons(index) {
  const buttons = make("div", "votes");
  const iconPaths = { 1: "M6.5 9v7.5H3.5V9zM6.5 9l3.2-6c1.4 0 2.2 1 1.9 2.4L11 8h4.6c1 0 1.7.9 1.5 1.9l-1 5.2c-.2.8-.8 1.4-1.6 1.4H6.5", "-1": "M6.5 11V3.5H3.5V11zM6.5 11l3.2 6c1.4 0 2.2-1 1.9-2.4L11 12h4.6c1 0 1.7-.9 1.5-1.9l-1-5.2c-.2-.8-.8-1.4-1.6-1.4H6.5" };
  for (const value of [1, -1]) {
    const button = make("button", "round vote");
    button.type = "button";
    button.dataset.value = String(value);
    button.setAttribute("aria-label", `${value > 0 ? "Like" : "Dislike"} ${programmes[index].title}`);
    button.title = value > 0 ? "Like: more of this" : "Dislike: less of this";
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 20 20");
    icon.setAttribute("class", "icon");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", iconPaths[value]);
    icon.append(path);
    button.append(icon);
    button.addEventListener("click", () => vote(index, votes[index] === value ? 0 : value));
    buttons.append(button);
  }
  return buttons;
}

function drawProgramme(programme, index) {
  const heading = make("h2", "", "", make("span", "rank", String(programme.rank)), programme.title);
  heading.dir = "auto";
  const about = make("div", "about", "", heading);
  if (programme.subTitle) about.append(make("p", "sub", programme.subTitle));
  if (programme.description) about.append(make("p", "description", programme.description));
  const categoryChips = programme.categories.map((name) => make("span", "chip", name));
  const chips = [...categoryChips, ...programme.marks.map((name) => make("span", "chip state", name))];
  if (chips.length) about.append(make("div", "chips", "", ...chips));
  for (const [name, role, title] of programme.people) {
    const person = make("p", "people", `${role === "director" ? "Directed by" : "With"} ${name}, as in ${title}`);
    person.dir = "auto";
    about.append(person);
  }
  if (programme.icon) {
    const picture = make("a", "picture", "Picture");
    Object.assign(picture, { href: programme.icon, target: "_blank", rel: "noopener noreferrer" });
    about.append(picture);
  }
  about.append(drawReasons(programme));
  const otherAirings = programme.also.map((airing) => `${formatTime(airing.start)} ${airing.channel}`);
  if (otherAirings.length) about.append(make("p", "also", `Also ${otherAirings.join(", ")}`));
  const when = make("div", "when", "", make("div", "time", formatTime(programme.start)), make("div", "channel", programme.channel));
  const item = make("li", "programme panel", "", when, about, drawVoteButtons(index));
  item.id = `programme-${programme.rank}`;
  item.addEventListener("pointerenter", () => highlight(index));
  return item;
}

/** Highlights a programme in the timeline and in the list. */
function highlight(index) {
  programmes.forEach((programme, i) => {
    programme.slot.classList.toggle("lit", i === index);
    programme.item.classList.toggle("lit", i === index);
  });
}

function vote(index, value) {
  votes[index] = value;
  showChoices();
  try {
    history.replaceState(null, "", link());
  } catch {
    // a sandboxed frame has no URL to change
  }
}

/** Returns the likes and dislikes in the format that `guidespace like --from` reads. */
function savedLikes() {
  const time = new Date().toISOString();
  const likes = programmes.map((programme, index) => ({ title: programme.title, sub_title: programme.subTitle, episode: programme.episode, liked: votes[index] > 0, time }));
  return likes.filter((_, index) => votes[index]).map((like) => (evening.viewer ? { viewer: evening.viewer, ...like } : like));
}

/** Returns the fragment of the URL: the ranks of liked programmes and of disliked programmes. */
function link() {
  const ranks = (value) => programmes.filter((_, index) => votes[index] === value).map((programme) => programme.rank).join(".");
  const parameters = { like: ranks(1), dislike: ranks(-1) };
  return `#${new URLSearchParams(Object.entries(parameters).filter(([, text]) => text))}`;
}

/** Sets the votes according to the fragment of the URL. */
function readLink() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of [["like", 1], ["dislike", -1]]) {
    for (const rank of (parameters.get(name) ?? "").split(".")) {
      const index = programmes.findIndex((programme) => String(programme.rank) === rank);
      if (index >= 0) votes[index] = value;
    }
  }
}

/** Updates the pressed buttons, the number of choices, and the command that stores them. */
function showChoices() {
  programmes.forEach((programme, index) => {
    for (const button of programme.item.querySelectorAll(".vote")) button.setAttribute("aria-pressed", String(Number(button.dataset.value) === votes[index]));
  });
  const count = votes.filter(Boolean).length;
  document.getElementById("choices").hidden = !count;
  document.getElementById("count").textContent = `${count} choice${count === 1 ? "" : "s"}.`;
  document.getElementById("command").textContent = `guidespace like --from likes.json${evening.viewer ? "" : " --viewer NAME"}`;
}

function save() {
  const address = URL.createObjectURL(new Blob([JSON.stringify(savedLikes(), null, 1)], { type: "application/json" }));
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

const day = toDate(evening.begin).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone });
document.getElementById("when").textContent = `${day}, ${formatTime(evening.begin)} to ${formatTime(evening.end)}`;
document.getElementById("empty").hidden = programmes.length > 0;
document.getElementById("evening").hidden = !programmes.length;
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.getElementById("save").addEventListener("click", save);
document.getElementById("clear").addEventListener("click", () => programmes.forEach((_, index) => vote(index, 0)));
if (programmes.length) drawTimeline();
programmes.forEach((programme, index) => {
  programme.item = drawProgramme(programme, index);
  document.getElementById("list").append(programme.item);
});
readLink();
showChoices();

globalThis.guidespace = { handBack: savedLikes, link }; // for tests and scripts
