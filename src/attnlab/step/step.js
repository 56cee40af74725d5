// One step of attention on one to four words, computed and drawn in the page. The same code serves a
// notebook, where anywidget calls `render`, and a page without a kernel, which calls `mount`. The
// functions of lab/page.js stand before it.

// --- The arithmetic: arrays in, arrays out; tested against attnlab.attention ---

const dot = (a, b) => a.reduce((sum, x, d) => sum + x * b[d], 0);
const column = (A, j) => A.map((row) => row[j]);
const product = (A, B) => A.map((row) => B[0].map((_, j) => dot(row, column(B, j))));

function softmax(row) {
  const largest = Math.max(...row);
  const exps = row.map((score) => Math.exp(score - largest)); // exp(-Infinity) is 0
  const total = exps.reduce((sum, e) => sum + e, 0);
  return exps.map((e) => e / total);
}

/** Every stage for X (S, D): Q, K, V, raw, scaled, masked, weights, output and X + output. */
export function attend({ X, W_Q, W_K, W_V, temperature = 1, causal = true }) {
  const [Q, K, V] = [W_Q, W_K, W_V].map((W) => product(X, W));
  const raw = Q.map((q) => K.map((k) => dot(q, k)));
  const divisor = Math.sqrt(K[0].length) * temperature;
  const scaled = raw.map((row) => row.map((score) => score / divisor));
  const masked = scaled.map((row, i) => row.map((s, j) => (causal && j > i ? -Infinity : s)));
  const weights = masked.map(softmax);
  const output = product(weights, V);
  const sum = output.map((row, i) => row.map((z, d) => z + X[i][d]));
  return { X, Q, K, V, raw, scaled, masked, weights, output, sum };
}

/** The phrases of a state (one, or two to compare), each with its words and its stages. */
export const parts = (state) =>
  [state.phrase, state.beside].filter(Boolean).map((phrase) => {
    const words = phrase.split(" "), at = words.lastIndexOf(state.query);
    const X = words.map((word) => state.embeddings[word]);
    return { phrase, words, query: at < 0 ? words.length - 1 : at, ...attend({ ...state, X }) };
  });

// --- Words: AttentionStep.sentence in Python fills the same templates ---

const STAGES = ["project", "score", "scale", "mask", "softmax", "mix", "add"];
const SQUARE = ["raw", "scaled", "masked", "weights"]; // a row and a column for each word

// Halves are rounded away from zero, and 1e-6 of a digit decides what rounding errors may not.
export function fixed(x, digits) {
  if (!Number.isFinite(x)) return "−∞";
  const size = (Math.floor(Math.abs(x) * 10 ** digits + 0.5 + 1e-6) / 10 ** digits).toFixed(digits);
  return (x < 0 && Number(size) ? "−" : "") + size;
}

/** What a state shows, in one sentence for each phrase. */
export function sentence(state, all = parts(state)) {
  const shows = (...names) => names.some((name) => state.show.includes(name));
  const weighs = shows("words", "weights");
  const told = { project: !weighs && shows("Q", "K", "V"), score: !weighs && shows("raw"), softmax: weighs,
    mix: shows("output", "plane"), add: shows("sum") };
  const stages = STAGES.filter((stage) => (state.step ? stage === state.step : told[stage]));
  const said = all.map(({ phrase, words, query, ...steps }) => {
    const clause = (stage, i) => state.sentences[stage].replace(/\{(\w+)\}/g, (_, name) => {
      if (name === "word") return words[i];
      if (name === "whose") return weighs && !state.step ? "" : `${words[i]}’s `;
      const digits = ["Q", "K", "V", "raw"].includes(name) ? 2 : 4;
      const numbers = steps[name][i].map((x) => fixed(x, digits));
      if (!SQUARE.includes(name)) return `[${numbers.join(", ")}]`;
      return numbers.map((x, j) => `${words[j]} ${x}`).join(", ");
    });
    const rows = (stage) => (stage === "score" && !state.step ? words.map((_, i) => i) : [query]);
    const text = stages.flatMap((stage) => rows(stage).map((i) => clause(stage, i))).join("; ");
    return `${all.length > 1 ? `In “${phrase}”, ` : ""}${text}.`;
  });
  return said.join(" ") + (reached(state, all) ? " Goal reached." : "");
}

/** Whether every condition [stage, word, word or index, "<", ">" or "=", number] holds. */
export function reached(state, all = parts(state)) {
  return state.when.length > 0 && state.when.every(([name, row, key, sign, value]) => {
    const place = (part) => (typeof key === "number" ? key : part.words.lastIndexOf(key));
    const part = all.find((one) => one.words.includes(row) && place(one) >= 0);
    if (!part) return false;
    const difference = part[name][part.words.lastIndexOf(row)][place(part)] - value;
    return sign === "=" ? Math.abs(difference) < 0.005 : difference * (sign === ">" ? 1 : -1) > 0;
  });
}

const short = (x) => (Number.isFinite(x) ? `${Math.round(x * 1e4) / 1e4}`.replace("-", "−") : "−∞");
const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));
const terms = (left, right) => left.map((x, k) => `${factor(x)} × ${factor(right[k])}`).join(" + ");

/** Where entry (i, j) of a stage comes from: a formula, and the entries [name, row, column] in it. */
export function explain(state, part, name, i, j) {
  const [word, other] = [part.words[i], part.words[j]];
  const at = (stage) => short(part[stage][i][j]), x = at(name);
  if (["Q", "K", "V"].includes(name)) {
    const W = `W_${name}`, left = `${name.toLowerCase()}_${word}[${j}] = x_${word} · column ${j} of ${W}`;
    return [`${left} = ${terms(part.X[i], column(state[W], j))} = ${x}`, [["X", i], [W, undefined, j]]];
  }
  const exps = part.masked[i].map((score) => `exp(${short(score)})`);
  const divisor = state.temperature === 1 ? "√2" : `(√2 × ${short(state.temperature)})`;
  const why = state.causal ? `${other} does not stand after ${word}` : "no mask";
  return {
    X: () => [`x_${word}[${j}] = ${x}: the embedding of ${word}, a row of the table`, []],
    raw: () => [`score(${word}, ${other}) = q_${word} · k_${other} = ${terms(part.Q[i], part.K[j])} = ${x}`,
      [["Q", i], ["K", j]]],
    scaled: () => [`score / √d_k = ${at("raw")} / ${divisor} = ${x}`, [["raw", i, j]]],
    masked: () => [state.causal && j > i
      ? `${other} stands after ${word}: masked, −∞, so its attention weight will be 0`
      : `${why}: the score stays ${at("scaled")}`, [["scaled", i, j]]],
    weights: () => [`weight(${word}, ${other}) = ${exps[j]} / (${exps.join(" + ")}) = ${x}`, [["masked", i]]],
    output: () => [`z_${word}[${j}] = ${terms(part.weights[i], column(part.V, j))} = ${x}`,
      [["weights", i], ["V", undefined, j]]],
    sum: () => [`x_${word}[${j}] + z_${word}[${j}] = ${at("X")} + ${factor(part.output[i][j])} = ${x}`,
      [["X", i, j], ["output", i, j]]],
  }[name]();
}

/** The formula of a stage for one word. */
function formula(stage, { words, weights }, i) {
  const word = words[i], mix = words.map((other, j) => `${short(weights[i][j])} v_${other}`).join(" + ");
  return {
    project: `q_${word} = x_${word} W_Q,  k_${word} = x_${word} W_K,  v_${word} = x_${word} W_V`,
    score: `the score of ${word} for each word: q_${word} · k_word`,
    scale: "score / √d_k, so that wide vectors do not make large scores",
    mask: `a word that stands after ${word} gets −∞`,
    softmax: "exp(score) / sum of exp(scores): shares that add up to 1",
    mix: `z_${word} = ${mix}`,
    add: `x_${word} + z_${word}: the residual connection`,
  }[stage];
}

// --- Building blocks of the page ---

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

function draw(parent, tag, attributes = {}, text = "") {
  const node = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
  set(node, attributes);
  node.textContent = text;
  return node;
}

// What Undo restores.
const KNOBS = ["phrase", "beside", "query", "W_Q", "W_K", "W_V", "temperature", "causal"];
const NAMES = [...KNOBS, "phrases", "embeddings", "step", "show", "goal", "when", "colours", "sentences"];
const PRESETS = { identity: [[1, 0], [0, 1]], zero: [[0, 0], [0, 0]], swap: [[0, 1], [1, 0]],
  "rotation by 90°": [[0, 1], [-1, 0]], "scale by 2": [[2, 0], [0, 2]] };
const PANELS = { // title, how it is made, its stage
  X: ["X", "", 0], Q: ["Q", "= X W_Q", 0], K: ["K", "= X W_K", 0], V: ["V", "= X W_V", 0],
  raw: ["scores", "= Q Kᵀ", 1], scaled: ["scaled", "÷ √d_k", 2], masked: ["masked", "", 3],
  weights: ["attention weights", "", 4], words: ["who attends to whom", "", 4],
  output: ["output", "", 5], plane: ["output", "= Σ weight · value", 5], sum: ["X + output", "", 6],
};
const LIMITS = [-3, 3, 0.1], [low, high] = LIMITS; // of an entry
const ROW = 28, HEAD = 21; // pixels
/** A number as somebody may type it, with a comma too; undefined if it is none. */
export function parse(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : undefined;
}

// --- The view ---

function render({ model, el, history }) {
  const read = (names) => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  let state = read(NAMES), all = parts(state), quiet = false;
  const has = (name) => state.show.includes(name);
  const shown = (panel) => !state.step || PANELS[panel][2] <= STAGES.indexOf(state.step);
  const ink = (word, alphas = ["", ""]) =>
    `light-dark(${(state.colours[word] ?? state.colours[""]).map((hex, n) => hex + alphas[n]).join(", ")})`;

  // Words in their colours, numbers bold, x_word with an index; the text itself stays as it is.
  function write(node, text) {
    const words = all.flatMap((part) => part.words);
    const pieces = text.split(/([xqkvzWd]_[^\s[\],·+:]+|[−-]?(?:\d+(?:\.\d+)?|∞)|[\p{L}\p{M}]+)/u);
    node.replaceChildren(...pieces.map((piece) => {
      const [letter, index] = /^[xqkvzWd]_/.test(piece) ? piece.split("_") : ["", piece];
      const style = words.includes(index) ? `color: ${ink(index)}` : "";
      const [i, unseen] = [element("i", {}, letter), element("span", { className: "unseen" }, "_")];
      if (letter) return element("span", {}, i, unseen, element("sub", { style }, index));
      return style || /[\d∞]$/.test(piece) ? element("b", { style }, piece) : piece;
    }));
  }

  // --- State, history, announcements ---

  function put(values, settled = true) {
    quiet = true;
    history.dragging = !settled;
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    quiet = false;
    changed();
    model.save_changes(); // which fails if the kernel has gone
  }
  function record() {
    const now = read(KNOBS);
    history.last ??= now;
    if (history.dragging || JSON.stringify(now) === JSON.stringify(history.last)) return;
    history.past.push(history.last);
    history.last = now;
  }
  let timer;
  function announce(text) {
    clearTimeout(timer);
    timer = setTimeout(() => { status.textContent = text.replaceAll("_", " "); }, 400);
  }

  // --- Knobs ---

  const knobs = []; // what each does to show the state
  const bar = element("div", { className: "knobs" }), corner = element("div", { className: "knobs" });
  function number(name, i, j) {
    const read = () => model.get(name)[i][j];
    const choose = (x, settled) => {
      const next = model.get(name).map((row) => [...row]);
      next[i][j] = Math.min(Math.max(Math.round(x * 1e9) / 1e9, low), high);
      put({ [name]: next }, settled);
    };
    const made = entry(`${name} row ${i} column ${j}`, LIMITS, read, {
      drag: (x) => choose(x, false),
      settle: () => put({}),
      type: (text) => {
        const x = parse(text);
        if (x !== undefined) choose(x);
        made.show();
        if (Math.abs(x) <= high) return;
        note.textContent = x === undefined
          ? `“${text}” is not a number: ${name}[${i}, ${j}] stays ${short(read())}.`
          : `${text} is out of range: ${name}[${i}, ${j}] is now ${short(read())}.`;
        announce(note.textContent);
      },
    });
    knobs.push(() => made.show());
    return made.box;
  }
  const editors = {};
  function editor(name) {
    const cells = [0, 1].map((i) => [0, 1].map((j) => number(name, i, j)));
    const preset = element("select", { ariaLabel: `set ${name} to` }, new Option("set to …", ""),
      ...Object.keys(PRESETS).map((value) => new Option(value)));
    preset.addEventListener("change", () => {
      put({ [name]: PRESETS[preset.value] });
      preset.value = ""; // the same one can be chosen again
    });
    const title = element("b");
    write(title, name);
    const head = element("div", { className: "head" }, title, preset);
    const entries = element("div", { className: "entries" }, ...cells.flat());
    const node = element("div", { className: "editor", role: "group", ariaLabel: name }, head, entries);
    editors[name] = { node, cells };
  }
  function add(to, [node, show]) {
    to.append(node);
    knobs.push(show);
  }
  ["W_Q", "W_K", "W_V"].filter(has).forEach(editor);
  if (has("phrase")) {
    add(bar, choices(["phrase"], state.phrases, () => state.phrase, (phrase) => put({ phrase })));
  }
  const asks = element("div"); // whose choices follow the phrase
  let showAsks;
  if (has("query")) bar.append(asks);
  if (has("temperature")) {
    const [slider, slide] = range("temperature", [0.1, 5, 0.1], () => model.get("temperature"), {
      drag: (temperature) => put({ temperature }, false),
      settle: () => put({}),
    });
    const value = element("b"), label = element("label", {}, "temperature", slider, value);
    add(corner, [label, () => {
      slide();
      value.textContent = fixed(state.temperature, 1);
    }]);
  }
  if (has("causal")) {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => put({ causal: box.checked }));
    add(corner, [element("label", {}, box, "causal mask"), () => { box.checked = state.causal; }]);
  }
  let playing;
  if (has("step")) {
    const halt = () => {
      playing = clearInterval(playing);
      play.textContent = "▶ Play";
    };
    const next = () => {
      const at = (STAGES.indexOf(state.step) + 1) % STAGES.length;
      put({ step: STAGES[at] });
      if (at === STAGES.length - 1) halt();
    };
    const play = button("▶ Play", () => {
      if (playing) return halt();
      playing = setInterval(next, 1800);
      play.textContent = "❙❙ Pause";
      next();
    });
    add(bar, choices(["step"], STAGES, () => state.step, (step) => {
      halt();
      put({ step });
    }));
    bar.append(play);
  }
  const undo = button("↶ Undo", () => put(history.last = history.past.pop()));
  corner.append(undo, button("⟲ Start again", () => put(model.get("start"))));

  // --- Pictures: built for a phrase, then only changed ---

  let cells, lines, updates, built, marked = [];

  // Pointing and focusing say where a number comes from; what has the focus comes back afterwards.
  let focused, pointed;
  const whole = ["words", "weights", "output", "plane"].some(has) ? "mix" : "score";
  function look() {
    for (const node of marked) node.classList.remove("at", "from");
    marked = [];
    const { p = 0, name, i, j } = pointed ?? focused ?? {}, part = all[p];
    const mark = (className, source, row, entry) => {
      const table = editors[source]?.cells ?? cells[p][source] ?? [];
      const curves = source === "weights" ? lines[p] ?? [] : [];
      for (const rows of [table, curves]) rows.forEach((nodes, n) => nodes.forEach((node, m) => {
        if ((row ?? n) !== n || (entry ?? m) !== m) return;
        node.classList.add(className);
        marked.push(node);
      }));
    };
    const [text, from] = name ? explain(state, part, name, i, j)
      : i === undefined ? [formula(state.step || whole, part, part.query), []]
        : [formula(whole, part, i), [["weights", i]]];
    write(note, text);
    for (const source of from) mark("from", ...source);
    if (name) mark("at", name, i, j);
  }
  function point(node, spot) {
    node.addEventListener("pointerenter", () => { pointed = spot; look(); });
    node.addEventListener("pointerleave", () => { pointed = undefined; look(); });
    node.addEventListener("focus", () => { focused = spot; look(); announce(note.textContent); });
    node.addEventListener("blur", () => { focused = undefined; look(); });
  }
  // One cell of a grid is in the tab order; arrow keys move on from there.
  const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  function rove(table) {
    table.forEach((row, i) => row.forEach((node, j) => {
      set(node, { tabindex: i + j ? -1 : 0 });
      node.addEventListener("keydown", (event) => {
        const [down, right] = moves[event.key] ?? [], next = table[i + down]?.[j + right];
        if (down !== undefined) event.preventDefault();
        if (!next) return;
        for (const other of table.flat()) set(other, { tabindex: other === next ? 0 : -1 });
        next.focus();
      });
    }));
    return table;
  }
  const picture = (width, height, role, label = "") => draw(element("div"), "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, role, "aria-label": label });
  const cut = (word) => (word.length > 9 ? `${word.slice(0, 8)}…` : word);
  const pen = document.createElement("canvas").getContext("2d");
  function wide(word, size = 15) {
    // The font of step.css: a widget is drawn before it is in the page, where it has none.
    const family = getComputedStyle(document.documentElement).getPropertyValue("--jp-ui-font-family");
    pen.font = `600 ${size}px ${family || "system-ui"}, "DejaVu Sans", sans-serif`;
    return pen.measureText(cut(word)).width;
  }

  function grid(p, name) {
    const { words } = all[p], square = SQUARE.includes(name), across = square ? words : ["0", "1"];
    const side = Math.max(...words.map((word) => wide(word))) + 11;
    const width = square ? Math.max(50, side - 14) : 50;
    const svg = picture(side + width * across.length, HEAD + ROW * words.length, "grid", PANELS[name][0]);
    svg.style.setProperty("--side", `${side}px`);
    const id = `hatch-${Math.random()}`, pattern = { patternUnits: "userSpaceOnUse", width: 7, height: 7 };
    const hatch = draw(svg, "pattern", { ...pattern, id, patternTransform: "rotate(45)" });
    draw(hatch, "rect", { width: 2, height: 7, class: "hatch" });
    const head = draw(svg, "g", { role: "row" }), middle = (j) => side + (j + 0.5) * width;
    across.forEach((word, j) => {
      const style = square ? `fill: ${ink(word)}` : "";
      draw(head, "text", { x: middle(j), y: HEAD - 7, role: "columnheader", style }, cut(word));
    });
    const table = words.map((word, i) => {
      const row = draw(svg, "g", { role: "row" }), top = HEAD + i * ROW;
      const place = { x: side - 8, y: top + 19, class: "down", style: `fill: ${ink(word)}` };
      const label = draw(row, "text", { ...place, role: "rowheader" }, cut(word));
      point(label, { p, i });
      label.addEventListener("click", () => put({ query: word }));
      return across.map((other, j) => {
        const cell = draw(row, "g", { role: "gridcell", class: "cell" });
        const place = { x: side + j * width + 1, y: top + 1 };
        const box = draw(cell, "rect", { ...place, width: width - 2, height: ROW - 2, rx: 4 });
        const number = draw(cell, "text", { x: middle(j), y: top + 19 });
        point(cell, { p, name, i, j });
        updates.push(() => {
          const x = all[p][name][i][j], hidden = name === "weights" && state.causal && j > i;
          const sign = x < 0 ? "negative" : "positive";
          const tint = name === "weights" ? ink(other, ["73", "52"]) : `var(--${sign})`;
          const strength = 100 * Math.min(Math.abs(x) / { weights: 1, raw: 8 }[name] || Math.abs(x) / 5, 1);
          const text = hidden ? "–" : fixed(x, Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2);
          box.style.fill = !shown(name) ? "" : hidden || !Number.isFinite(x) ? `url(#${id})`
            : `color-mix(in srgb, ${tint} ${strength}%, var(--cell))`;
          number.textContent = shown(name) ? text : "";
          set(cell, { "aria-label": !shown(name) ? "not yet" : hidden ? "masked" : text });
          cell.classList.toggle("asks", i === all[p].query && !"XKV".includes(name));
        });
        return cell;
      });
    });
    cells[p][name] = rove(table);
    return svg.parentNode;
  }

  function links(p) {
    const { words } = all[p], gap = Math.max(...words.map((word) => wide(word, 19))) + 24;
    const x = (i) => (i + 0.5) * gap, top = 40, bottom = 148, bend = 55;
    const svg = picture(gap * words.length, 200, "grid", "who attends to whom");
    lines[p] = rove(words.map((word, i) => {
      const row = draw(svg, "g", { role: "row" });
      return words.map((other, j) => {
        const d = `M${x(i)} ${top}C${x(i)} ${top + bend} ${x(j)} ${bottom - bend} ${x(j)} ${bottom}`;
        const link = draw(row, "g", { role: "gridcell", class: "link" });
        const line = draw(link, "path", { d, class: "line", style: `stroke: ${ink(other)}` });
        draw(link, "path", { d, class: "reach" });
        point(link, { p, name: "weights", i, j });
        updates.push(() => {
          const weight = all[p].weights[i][j];
          set(line, { "stroke-width": shown("words") ? (weight * 18).toFixed(2) : 0 });
          set(link, { "aria-label": `${word} gives ${other} ${fixed(weight, 4)}` });
          link.classList.toggle("asks", i === all[p].query);
        });
        return link;
      });
    }));
    const row = draw(svg, "g", { role: "row" });
    words.forEach((word, i) => {
      const asking = draw(row, "g", { role: "gridcell", class: "asking", tabindex: 0 });
      const half = wide(word, 19) / 2 + 11, style = `fill: ${ink(word)}`;
      const pill = draw(asking, "rect", { x: x(i) - half, y: 6, width: 2 * half, height: 34, rx: 17 });
      const label = draw(asking, "text", { x: x(i), y: 29, class: "word" }, cut(word));
      draw(svg, "text", { x: x(i), y: bottom + 22, class: "word", "aria-hidden": true, style }, cut(word));
      const share = draw(svg, "text", { x: x(i), y: bottom + 44, class: "share", "aria-hidden": true });
      point(asking, { p, i });
      const choose = () => put({ query: word });
      asking.addEventListener("click", choose);
      asking.addEventListener("keydown", ({ key }) => { if (key === "Enter" || key === " ") choose(); });
      updates.push(() => {
        const { query, weights } = all[p];
        set(asking, { "aria-label": `${word} asks`, "aria-selected": i === query });
        pill.style.fill = i === query ? ink(word) : "";
        label.style.fill = i === query ? "var(--paper)" : ink(word);
        const weight = state.causal && i > query ? "masked" : fixed(weights[query][i], 2);
        share.textContent = shown("words") ? weight : "";
      });
    });
    return svg.parentNode;
  }

  function plane(p) {
    const { words } = all[p], size = 200, centre = size / 2;
    const svg = picture(size, size, "img");
    const lattice = [-0.8, -0.4, 0.4, 0.8].map((n) => centre + n * (centre - 4));
    draw(svg, "path", { class: "ticks", d: lattice.map((x) => `M${x} 0V${size}M0 ${x}H${size}`).join("") });
    draw(svg, "path", { class: "axes", d: `M${centre} 0V${size}M0 ${centre}H${size}` });
    const many = (tag, kind, paint, text = () => "") => words.map((word) => {
      const style = `${paint}: ${ink(word)}`;
      return draw(svg, tag, { x1: centre, y1: centre, r: 5, class: kind, style }, text(word));
    });
    const values = many("line", "value", "stroke"), dots = many("circle", "", "fill");
    const shares = many("line", "share", "stroke"), end = draw(svg, "circle", { r: 7, class: "end" });
    const labels = many("text", "tip", "fill", cut), name = draw(svg, "text", { class: "tip" }, "output");
    updates.push(() => {
      const { V, weights, output, query } = all[p], visibility = shown("plane") ? "visible" : "hidden";
      const largest = Math.max(...V.flat().map(Math.abs));
      const unit = (centre - 4) / ([2.5, 5, 10, 20].find((limit) => largest <= limit) ?? largest);
      const at = ([x, y]) => [centre + x * unit, centre - y * unit], [cx, cy] = at(output[query]);
      const placed = [{ x: cx, y: cy, half: 8 }]; // each name beside its point, inside, not on another
      const place = (label, text, [px, py]) => {
        const half = wide(text) / 2 + 2, inside = (x, room) => Math.min(Math.max(x, room), size - room);
        const spots = [[0, -18], [0, 18], [0, -36], [0, 36], [half + 10, 0], [-half - 10, 0]]
          .map(([dx, dy]) => ({ x: inside(px + dx, half), y: inside(py + dy, 9), half }));
        const apart = (a, b) => Math.abs(a.x - b.x) > a.half + b.half || Math.abs(a.y - b.y) > 18;
        placed.push(spots.find((spot) => placed.every((other) => apart(spot, other))) ?? spots[0]);
        set(label, { x: placed.at(-1).x, y: placed.at(-1).y + 5 });
      };
      place(name, "output", [cx, cy]);
      for (const node of [...shares, end, name]) set(node, { visibility });
      set(end, { cx, cy });
      let from = [0, 0]; // the mixture, share by share
      V.forEach((v, j) => {
        const [x2, y2] = at(v), to = from.map((x, d) => x + weights[query][j] * v[d]);
        set(values[j], { x2, y2 });
        set(dots[j], { cx: x2, cy: y2 });
        place(labels[j], words[j], [x2, y2]);
        set(shares[j], { x1: at(from)[0], y1: at(from)[1], x2: at(to)[0], y2: at(to)[1] });
        from = to;
      });
      const told = words.map((word, j) => `${word} [${V[j].map(short).join(", ")}]`).join(", ");
      set(svg, { "aria-label": `values ${told}; output [${output[query].map(short).join(", ")}]` });
    });
    return svg.parentNode;
  }

  function build() {
    [cells, lines, updates] = [all.map(() => ({})), [], []];
    focused = pointed = undefined;
    const panels = state.show.filter((name) => name in PANELS);
    const above = panels.some((name) => editors[`W_${name}`]); // matrices stand above what they make
    const alone = (name) => name in editors && !panels.includes(name[2]);
    const columns = state.show.filter((name) => name in PANELS || alone(name)).map((name) => {
      if (name in editors) return editors[name].node;
      const [title, made, stage] = PANELS[name], caption = element("span", { className: "made" });
      write(caption, made);
      const make = { words: links, plane }[name] ?? ((p) => grid(p, name));
      const panel = element("section", { className: `panel ${name}` },
        element("div", { className: "title" }, title, " ", caption),
        element("div", { className: "pictures" }, ...all.map((_, p) => make(p))));
      updates.push(() => {
        panel.classList.toggle("later", !shown(name));
        panel.classList.toggle("now", STAGES[stage] === state.step && name !== "X");
      });
      const upper = editors[`W_${name}`]?.node ?? (name === "X" && above ? corner : "");
      const late = [...SQUARE, "output", "sum"].includes(name);
      return element("div", { className: late ? "column late" : "column" }, upper, panel);
    });
    if (!above || !panels.includes("X")) bar.append(corner);
    const late = columns.filter((node) => node.classList.contains("late"));
    const bands = late.length < 4 ? [columns] : [columns.filter((node) => !late.includes(node)), late];
    const band = (nodes, n) => element("div", { className: n ? "band chain" : "band" }, ...nodes);
    board.replaceChildren(...bands.map(band));
    const words = [...new Set(all.flatMap((part) => part.words))];
    const asked = () => all[0].words[all[0].query];
    const [group, show] = choices(["who asks"], words, asked, (query) => put({ query }));
    group.className = "words";
    group.querySelectorAll("span").forEach((span, n) => span.style.setProperty("--word", ink(words[n])));
    asks.replaceChildren(group);
    showAsks = show;
  }

  function changed() {
    if (quiet) return;
    state = read(NAMES);
    all = parts(state);
    record();
    const structure = JSON.stringify(all.map((part) => part.words));
    if (built !== structure) build();
    built = structure;
    for (const update of [...knobs, showAsks, ...updates]) update();
    undo.disabled = history.past.length === 0;
    done.hidden = !reached(state, all);
    gone.hidden = !model.get("kernel_gone");
    const text = sentence(state, all);
    if (says.textContent !== text) {
      write(says, text);
      announce(text);
    }
    look();
  }

  const board = element("div", { className: "board" }), says = element("p", { className: "sentence" });
  const note = element("p", { className: "note" });
  const status = element("div", { className: "unseen", role: "status" });
  const aim = element("span"), done = element("span", { className: "reached" }, "✓ Goal reached");
  const goal = element("p", { className: "goal", hidden: !state.goal }, element("b", {}, "Try: "), aim, done);
  const gone = element("p", { className: "note" },
    "The kernel has gone: the page still computes, but Python no longer follows. Run this cell again.");
  const className = "attnlab attnlab-own attnlab-step";
  const root = element("div", { className, role: "group", ariaLabel: "one step of attention", tabIndex: -1 },
    goal, says, bar, board, note, gone, status);
  write(aim, state.goal);
  el.append(root);
  for (const name of [...NAMES, "kernel_gone"]) model.on(`change:${name}`, changed);
  changed();
  clearTimeout(timer); // nothing to announce yet
  return () => {
    clearInterval(playing);
    clearTimeout(timer);
  };
}

/** The same on a page without a kernel; returns its model, which has `get` and `set`. */
export function mount(el, options) {
  const values = { start: Object.fromEntries(KNOBS.map((name) => [name, options[name]])), ...options };
  const heard = {};
  const model = {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      heard[`change:${name}`]?.();
    },
    save_changes() {},
    on(event, callback) { heard[event] = callback; },
  };
  render({ model, el, history: { past: [] } });
  return model;
}

// One history per model, as its views share it.
export default () => {
  const history = { past: [] };
  return { initialize, render: (context) => render({ ...context, history }) };
};
