// Reads the data that map/page.py embeds, folds text for the search, and formats values.

/** Decodes {"type", "base64"} to a typed array (little-endian, as on all platforms of browsers). */
function unpack(packed) {
  const letters = atob(packed.base64);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index); // ten times as fast as Uint8Array.from
  const types = { f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
  return new types[packed.type](bytes.buffer);
}

/** Returns a function that computes its value at its first call. */
function lazily(compute) {
  let value = null;
  return () => (value ??= compute());
}

/**
 * Returns a function from a row number to the values of the row. Rows have different lengths and are decoded at the
 * first call. all() returns the offsets and the values of all rows.
 */
function unpackRows(packed) {
  const all = lazily(() => {
    const lengths = unpack(packed.lengths);
    const offsets = new Uint32Array(lengths.length + 1);
    for (let row = 0; row < lengths.length; row++) offsets[row + 1] = offsets[row] + lengths[row];
    return { offsets, values: unpack(packed.values) };
  });
  const valuesOf = (row) => all().values.subarray(all().offsets[row], all().offsets[row + 1]);
  return Object.assign(valuesOf, { all });
}

/** Sorts titles by descending airings, then by index. A radix sort processes sixteen bits per pass. */
function orderByAirings(airings) {
  let order = new Uint32Array(airings.length);
  for (let i = 0; i < order.length; i++) order[i] = i;
  for (const shift of airings.some((times) => times > 65535) ? [0, 16] : [0]) {
    const next = new Uint32Array(65537);
    for (let i = 0; i < airings.length; i++) next[65536 - ((airings[i] >>> shift) & 65535)]++;
    for (let key = 0; key < 65536; key++) next[key + 1] += next[key];
    const sorted = new Uint32Array(order.length);
    for (let index = 0; index < order.length; index++) sorted[next[65535 - ((airings[order[index]] >>> shift) & 65535)]++] = order[index];
    order = sorted;
  }
  return order;
}

/**
 * Returns the content of the map. Row i of arrays belongs to title i, and functions take the index of a title.
 *
 * neighbours(i) returns [{title, cosine, reasons}, …], the nearest title first. reasons is [{left, right, share}, …]:
 * left and right are two words, or the same other part of both titles, such as "(channel)"; share is their contribution
 * to the cosine.
 */
function readGuide(json) {
  const raw = JSON.parse(json);
  const count = raw.titles.length;
  const xy = unpack(raw.xy);
  const [x, y] = [new Float32Array(count), new Float32Array(count)];
  for (let i = 0; i < count; i++) {
    x[i] = xy[2 * i];
    y[i] = xy[2 * i + 1];
  }
  const indices = lazily(() => unpack(raw.neighbours)); // 0 is none, else title + 1
  const cosines = lazily(() => unpack(raw.cosines)); // hundredths
  const airings = unpack(raw.airings);
  const channelsOf = unpackRows(raw.channels);
  const categoriesOf = unpackRows(raw.categories);
  const heldOut = unpack(raw.heldOut);
  const isNew = raw.fresh ? unpack(raw.fresh) : null; // titles that the previous map lacks
  const minutesOf = unpackRows(raw.times.minutes);
  const timeChannelsOf = unpackRows(raw.times.channels);
  const width = raw.neighbourCount;
  const reasons = readReasons(raw.reasons);
  return {
    count,
    facts: raw.facts,
    titles: raw.titles,
    x,
    y,
    airings,
    byAirings: lazily(() => orderByAirings(airings)),
    clusters: unpack(raw.clusters),
    clusterNames: raw.clusterNames,
    clusterCategories: raw.clusterCategories,
    subclusters: unpack(raw.subclusters), // -1 is none
    subclusterNames: raw.subclusterNames,
    subclusterParents: raw.subclusterParents,
    categoryNames: raw.categoryNames,
    categoriesOf,
    clusterColours: raw.clusterColours,
    channelNames: raw.channelNames,
    channelsOf,
    languageNames: raw.languageNames,
    languagesOf: unpackRows(raw.languages),
    dayNames: raw.dayNames,
    daysOf: unpackRows(raw.days),
    kindNames: raw.kindNames,
    kindsOf: unpackRows(raw.kinds),
    isNew: (i) => isNew !== null && isNew[i] === 1,
    newTitles: Uint32Array.from((isNew ?? []).keys()).filter((i) => isNew[i]),
    categoriesIn: (i) => Array.from(categoriesOf(i), (c) => raw.categoryNames[c]),
    channelsIn: (i) => Array.from(channelsOf(i), (c) => raw.channelNames[c]),
    maxTimes: raw.times.most,
    /** The latest maxTimes airings, ascending: [{start, channel}, …]; start is in milliseconds since 1970. */
    timesOf(i) {
      const channels = timeChannelsOf(i);
      const start = (minute) => (raw.times.since + minute) * 60_000;
      return Array.from(minutesOf(i), (minute, k) => ({ start: start(minute), channel: raw.times.channelNames[channels[k]] }));
    },
    descriptionOf: (i) => raw.descriptions[i] ?? "",
    isHeldOut: (i) => heldOut[i] === 1,
    neighbours(i) {
      const result = [];
      for (let k = i * width; k < (i + 1) * width; k++) {
        const title = indices()[k] - 1;
        if (title >= 0) result.push({ title, cosine: cosines()[k] / 100, reasons: reasons(i, k - i * width, title) });
      }
      return result;
    },
  };
}

/** Returns a function from a title, the rank of a neighbour and the neighbour to the reasons of their similarity. */
function readReasons(raw) {
  if (!raw) return () => [];
  const wordsOf = unpackRows(raw.words);
  const shares = lazily(() => [unpack(raw.left), unpack(raw.right), unpack(raw.share)]);
  const name = (title, part) => {
    const words = wordsOf(title);
    return part > words.length ? raw.partNames[part - 1 - words.length] : raw.wordNames[words[part - 1]];
  };
  return (i, rank, other) => {
    const reasons = [];
    const [left, right, share] = shares();
    const first = (i * raw.neighbours + rank) * raw.pairs;
    for (let index = first; rank < raw.neighbours && index < first + raw.pairs; index++) {
      if (left[index]) reasons.push({ left: name(i, left[index]), right: name(other, right[index]), share: share[index] / 100 });
    }
    return reasons;
  };
}

const LETTERS = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", ł: "l", þ: "th", ı: "i" };

/** Returns a text in lower case without diacritics, so that "Amélie" and "AMELIE" are equal. */
function foldText(text) {
  return text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[ßæœøđðłþı]/g, (letter) => LETTERS[letter])
    .replace(/[’‘`´]/g, "'")
    .replace(/\s+/g, " ");
}

/** Returns the position [start, end) of a folded string in a text that is not folded, or null. */
function findFolded(text, part) {
  let folded = "";
  const origin = []; // start and end of the source letter of each folded letter
  let position = 0;
  for (const letter of text) {
    for (const unit of foldText(letter).split("")) {
      folded += unit;
      origin.push([position, position + letter.length]);
    }
    position += letter.length;
  }
  const start = part ? folded.indexOf(part) : -1;
  return start < 0 ? null : [origin[start][0], origin[start + part.length - 1][1]];
}

/** Returns a text such as "Sat 7 June at 18:30" in the time zone of the browser, with the year if it is another year. */
function formatTime(start) {
  const format = (form) => new Intl.DateTimeFormat("en-GB", form).format(start);
  const year = new Date(start).getFullYear() === new Date(Date.now()).getFullYear() ? {} : { year: "numeric" };
  const day = format({ weekday: "short", day: "numeric", month: "long", ...year });
  return `${day.replace(",", "")} at ${format({ hour: "2-digit", minute: "2-digit" })}`;
}

const formatCount = new Intl.NumberFormat("en-GB").format;

/** Creates an element with a class and children; strings become text, never markup. */
function element(tag, className, ...children) {
  const created = document.createElement(tag);
  if (className) created.className = className;
  created.append(...children.filter((child) => child !== null));
  return created;
}
