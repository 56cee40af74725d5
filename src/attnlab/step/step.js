// One step of attention on one to four words, computed and drawn in the page. The same file serves
// a notebook, where anywidget calls `render`, and a page without a kernel, which calls `mount`.

// --- The arithmetic: arrays in, arrays out; tested against attnlab.attention ---

const product = (A, B) =>
  A.map((row) => B[0].map((_, j) => row.reduce((sum, a, k) => sum + a * B[k][j], 0)));

function softmax(row) {
  const largest = Math.max(...row);
  const exps = row.map((score) => Math.exp(score - largest)); // exp(-Infinity) is 0
  const total = exps.reduce((sum, e) => sum + e, 0);
  return exps.map((e) => e / total);
}

/** Every stage for X (S, D): Q, K, V, raw, scaled, masked, weights, output and X + output. */
export function attend({ X, W_Q, W_K, W_V, temperature = 1, causal = true }) {
  const [Q, K, V] = [W_Q, W_K, W_V].map((W) => product(X, W));
  const raw = Q.map((q) => K.map((k) => q.reduce((sum, a, d) => sum + a * k[d], 0)));
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
    const words = phrase.split(" ");
    const at = words.lastIndexOf(state.query);
    const X = words.map((word) => state.embeddings[word]);
    return { phrase, words, query: at < 0 ? words.length - 1 : at, ...attend({ ...state, X }) };
  });

// --- Words: AttentionStep.sentence in Python has the same templates ---

// Halves are rounded away from zero, and 1e-6 of a digit decides what rounding errors may not.
export function fixed(x, digits) {
  if (!Number.isFinite(x)) return "−∞";
  const size = (Math.floor(Math.abs(x) * 10 ** digits + 0.5 + 1e-6) / 10 ** digits).toFixed(digits);
  return (x < 0 && Number(size) ? "−" : "") + size;
}

const STAGES = ["project", "score", "scale", "mask", "softmax", "mix", "add"];

/** What a state shows, in one sentence for each phrase. */
export function sentence(state, all = parts(state)) {
  const shows = (...names) => names.some((name) => state.show.includes(name));
  const weighs = shows("words", "weights");
  const stages = STAGES.filter((stage) => state.step ? stage === state.step : {
    project: !weighs && shows("Q", "K", "V"), score: !weighs && shows("raw"), softmax: weighs,
    mix: shows("output", "plane"), add: shows("sum"),
  }[stage]); // prettier-ignore
  const said = all.map(({ phrase, words, query, ...steps }) => {
    const pairs = (name, i, digits) =>
      words.map((word, j) => `${word} ${fixed(steps[name][i][j], digits)}`).join(", ");
    const vector = (name, digits = 4) =>
      `[${steps[name][query].map((x) => fixed(x, digits)).join(", ")}]`;
    const word = words[query], whose = weighs && !state.step ? "" : `${word}’s `;
    const rows = state.step ? [query] : words.map((_, i) => i);
    const clauses = {
      project: () => `${word} has query ${vector("Q", 2)}, key ${vector("K", 2)}, value ${vector("V", 2)}`,
      score: () => rows.map((i) => `${words[i]} scores ${pairs("raw", i, 2)}`).join("; "),
      scale: () => `${whose}scaled scores: ${pairs("scaled", query, 4)}`,
      mask: () => `${whose}masked scores: ${pairs("masked", query, 4)}`,
      softmax: () => `${word} gives ${pairs("weights", query, 4)}`,
      mix: () => `${whose}output ${vector("output")}`,
      add: () => `${whose}X + output ${vector("sum")}`,
    };
    const text = stages.map((stage) => clauses[stage]()).join("; ");
    return `${all.length > 1 ? `In “${phrase}”, ` : ""}${text}.`;
  });
  return said.join(" ") + (reached(state, all) ? " Goal reached." : "");
}

/** Whether every condition [stage, word, word or index, "<", ">" or "=", number] holds. */
export function reached(state, all = parts(state)) {
  return state.when.length > 0 && state.when.every(([name, row, column, sign, value]) => {
    const numbered = typeof column === "number";
    const part = all.find(({ words }) => words.includes(row) && (numbered || words.includes(column)));
    if (!part) return false;
    const j = numbered ? column : part.words.lastIndexOf(column);
    const difference = part[name][part.words.lastIndexOf(row)][j] - value;
    return sign === "=" ? Math.abs(difference) < 0.005 : difference * (sign === ">" ? 1 : -1) > 0;
  });
}

const short = (x) => (Number.isFinite(x) ? `${Math.round(x * 1e4) / 1e4}`.replace("-", "−") : "−∞");
const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));
const terms = (left, right) => left.map((x, k) => `${factor(x)} × ${factor(right[k])}`).join(" + ");
const column = (A, j) => A.map((row) => row[j]);

/** Where entry (i, j) of a stage comes from, as a formula, and which entries went into it. */
export function explain(state, part, name, i, j) {
  const { words } = part, [word, other] = [words[i], words[j]];
  const x = short(part[name][i][j]), scaled = short(part.scaled[i][j]);
  if (name === "X") return [`x_${word}[${j}] = ${x}: the embedding of ${word}, a row of the table`, []];
  if ("QKV".includes(name)) {
    const W = state[`W_${name}`];
    return [`${name.toLowerCase()}_${word}[${j}] = x_${word} · column ${j} of W_${name} = `
      + `${terms(part.X[i], column(W, j))} = ${x}`, [["X", i], [`W_${name}`, undefined, j]]];
  } // prettier-ignore
  if (name === "raw") return [`score(${word}, ${other}) = q_${word} · k_${other} = `
    + `${terms(part.Q[i], part.K[j])} = ${x}`, [["Q", i], ["K", j]]]; // prettier-ignore
  if (name === "scaled") {
    const heat = state.temperature === 1 ? "√2" : `(√2 × ${short(state.temperature)})`;
    return [`score / √d_k = ${short(part.raw[i][j])} / ${heat} = ${x}`, [["raw", i, j]]];
  }
  if (name === "masked") {
    const hidden = `${other} stands after ${word}: masked, −∞, so its attention weight will be 0`;
    const seen = `${state.causal ? `${other} does not stand after ${word}` : "no mask"}: the score stays ${scaled}`;
    return [state.causal && j > i ? hidden : seen, [["scaled", i, j]]];
  }
  if (name === "weights") {
    const exps = part.masked[i].map((score) => `exp(${short(score)})`);
    return [`weight(${word}, ${other}) = ${exps[j]} / (${exps.join(" + ")}) = ${x}`, [["masked", i]]];
  }
  const [from, z] = [short(part.X[i][j]), factor(part.output[i][j])];
  if (name === "sum") return [`x_${word}[${j}] + z_${word}[${j}] = ${from} + ${z} = ${x}`, [["X", i, j], ["output", i, j]]];
  return [`z_${word}[${j}] = ${terms(part.weights[i], column(part.V, j))} = ${x}`,
    [["weights", i], ["V", undefined, j]]]; // prettier-ignore
}

/** The formula of a stage, or of the whole, for one word. */
function formula(stage, { words, weights, query }) {
  const word = words[query];
  const mix = words.map((other, j) => `${short(weights[query][j])} v_${other}`).join(" + ");
  return {
    project: `q_${word} = x_${word} W_Q,  k_${word} = x_${word} W_K,  v_${word} = x_${word} W_V`,
    score: `the score of ${word} for each word: q_${word} · k_word`,
    scale: "score / √d_k, so that wide vectors do not make large scores",
    mask: `a word after ${word} would get −∞`,
    softmax: "exp(score) / sum of exp(scores): shares that add up to 1",
    mix: `z_${word} = ${mix}`,
    add: `x_${word} + z_${word}: the residual connection`,
  }[stage || "mix"];
}

// --- Building blocks of the page ---

function element(tag, properties = {}, ...children) {
  const { dataset, ...others } = properties;
  const node = Object.assign(document.createElement(tag), others);
  Object.assign(node.dataset, dataset);
  node.append(...children);
  return node;
}

function draw(parent, tag, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  parent.append(node);
  return node;
}

const NAMES = ["phrase", "phrases", "beside", "query", "embeddings", "W_Q", "W_K", "W_V", "temperature",
  "causal", "step", "show", "goal", "when", "colours", "start"]; // prettier-ignore
const KNOBS = ["phrase", "query", "W_Q", "W_K", "W_V", "temperature", "causal"]; // what Undo restores
const LIMIT = 3; // of an entry
const PRESETS = {
  identity: [[1, 0], [0, 1]], zero: [[0, 0], [0, 0]], swap: [[0, 1], [1, 0]],
  "rotation by 90°": [[0, 1], [-1, 0]], "scale by 2": [[2, 0], [0, 2]],
}; // prettier-ignore
const PANELS = { // title, how it is made, the stage it belongs to
  X: ["X", "", 0], Q: ["Q", "= X W_Q", 0], K: ["K", "= X W_K", 0], V: ["V", "= X W_V", 0],
  raw: ["scores", "= Q Kᵀ", 1], scaled: ["scaled", "÷ √d_k", 2], masked: ["masked", "", 3],
  weights: ["attention weights", "", 4], words: ["who attends to whom", "", 4],
  output: ["output", "", 5], plane: ["output", "= Σ weight · value", 5], sum: ["X + output", "", 6],
}; // prettier-ignore
const SQUARE = ["raw", "scaled", "masked", "weights"];
const ROW = 28, HEAD = 21; // pixels
const unique = () => `attnlab-${Math.random().toString(36).slice(2)}`;

/** A number as somebody may type it, with a comma too; undefined if it is none. */
export function parse(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : undefined;
}

// --- The view ---

function render({ model, el, history }) {
  const read = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
  let state = read(), all = parts(state), quiet = false, dragging = false;
  const has = (name) => state.show.includes(name);
  const colour = (word) => state.colours[word] ?? state.colours[""];
  const ink = (word, alphas = ["", ""]) =>
    `light-dark(${colour(word).map((hex, n) => hex + alphas[n]).join(", ")})`;
  const tint = (word) => ink(word, ["73", "52"]);
  const shown = (panel) => !state.step || PANELS[panel][2] <= STAGES.indexOf(state.step);

  // Words in their colours, numbers bold, x_word with an index; the text itself stays as it is.
  function write(node, text) {
    const words = [...new Set(all.flatMap((part) => part.words))];
    const pieces = text.split(/([xqkvzWd]_[^\s[\],·+:]+|[−-]?(?:\d+(?:\.\d+)?|∞)|[\p{L}\p{M}]+)/u);
    node.replaceChildren(...pieces.map((piece) => {
      const [letter, index] = /^[xqkvzWd]_/.test(piece) ? piece.split("_") : ["", piece];
      const known = words.includes(index);
      if (letter) {
        const sub = element("sub", { textContent: index, style: known ? `color: ${ink(index)}` : "" });
        return element("span", {}, element("i", { textContent: letter }),
          element("span", { className: "spoken", textContent: "_" }), sub); // prettier-ignore
      }
      if (known) return element("b", { textContent: piece, style: `color: ${ink(piece)}` });
      return /^[−-]?[\d∞]/.test(piece) ? element("b", { textContent: piece }) : piece;
    }));
  }

  // --- State, history, announcements ---

  function put(values, settled = true) {
    quiet = true;
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    quiet = false;
    dragging = !settled;
    changed();
    model.save_changes();
  }
  const snapshot = () => Object.fromEntries(KNOBS.map((name) => [name, model.get(name)]));
  history.last ??= snapshot();
  function record() {
    const now = snapshot();
    if (dragging || JSON.stringify(now) === JSON.stringify(history.last)) return;
    history.past.push(history.last);
    history.last = now;
  }
  let timer;
  function announce(text) {
    clearTimeout(timer);
    timer = setTimeout(() => { status.textContent = text.replace(/_/g, " "); }, 400);
  }
  function warn(text) {
    note.textContent = text;
    announce(text);
  }

  // --- Knobs ---

  function choices(label, options, get, choose, className = "") {
    const name = unique();
    const group = element("fieldset", { className }, element("legend", { textContent: label }));
    const inputs = options.map((option) => {
      const input = element("input", { type: "radio", name, value: option });
      input.addEventListener("change", () => choose(option));
      group.append(element("label", { style: `--word: ${ink(option)}` }, input, element("span", { textContent: option })));
      return input;
    });
    const show = () => inputs.forEach((input) => { input.checked = input.value === get(); });
    return { node: group, show };
  }
  function range(label, low, high, get, set) {
    const input = element("input", { type: "range", min: low, max: high, step: 0.1, ariaLabel: label });
    let before;
    input.addEventListener("pointerdown", () => { before = get(); });
    // A swipe that scrolls the page starts on the slider and is cancelled: the value goes back.
    input.addEventListener("pointercancel", () => set(before, true));
    input.addEventListener("input", () => set(Number(input.value), false));
    input.addEventListener("change", () => set(Number(input.value), true));
    return { input, show() { if (Number(input.value) !== get()) input.value = get(); } };
  }
  const editors = {};
  function editor(name) {
    const shows = [], cells = [0, 1].map((i) => [0, 1].map((j) => {
      const label = `${name} row ${i} column ${j}`, get = () => model.get(name)[i][j];
      const set = (x, settled) => {
        const next = model.get(name).map((row) => [...row]);
        next[i][j] = Math.min(Math.max(Math.round(x * 1e9) / 1e9, -LIMIT), LIMIT);
        put({ [name]: next }, settled);
      };
      const field = element("input", { type: "text", inputMode: "decimal", autocomplete: "off", ariaLabel: label,
        role: "spinbutton", ariaValueMin: -LIMIT, ariaValueMax: LIMIT }); // prettier-ignore
      const slider = range(`${label}, slider`, -LIMIT, LIMIT, get, set);
      const box = element("div", { className: "entry" }, field, slider.input);
      field.addEventListener("focus", () => field.select());
      field.addEventListener("keydown", ({ key }) => {
        if (key === "ArrowUp" || key === "ArrowDown") set(get() + (key === "ArrowUp" ? 0.1 : -0.1), true);
      });
      field.addEventListener("change", () => {
        const [text, x] = [field.value, parse(field.value)];
        if (x !== undefined) set(x, true);
        display();
        if (x === undefined) warn(`“${text}” is not a number: ${name}[${i}, ${j}] stays ${short(get())}.`);
        else if (Math.abs(x) > LIMIT) warn(`${text} is out of range: ${name}[${i}, ${j}] is now ${short(get())}.`);
      });
      const display = () => {
        const x = get();
        field.value = `${Math.round(x * 100) / 100}`.replace("-", "−");
        field.ariaValueNow = x;
        field.ariaValueText = short(x);
        slider.show();
        box.style.setProperty("--tint", `var(${x < 0 ? "--negative" : "--positive"})`);
        box.style.setProperty("--strength", `${Math.min(Math.abs(x) / LIMIT, 1) * 100}%`);
      };
      shows.push(display);
      return box;
    }));
    const preset = element("select", { ariaLabel: `set ${name} to` }, element("option", { value: "", textContent: "set to …" }),
      ...Object.keys(PRESETS).map((value) => element("option", { value, textContent: value }))); // prettier-ignore
    preset.addEventListener("change", () => {
      put({ [name]: PRESETS[preset.value] });
      preset.value = ""; // the same one can be chosen again
    });
    const title = element("b", { className: "name" });
    write(title, name);
    const node = element("div", { className: "editor", role: "group", ariaLabel: name },
      element("div", { className: "head" }, title, preset), element("div", { className: "entries" }, ...cells.flat())); // prettier-ignore
    return { node, cells, show: () => shows.forEach((show) => show()) };
  }
  const knobs = [];
  const board = element("div", { className: "board" }), note = element("p", { className: "note" });
  const says = element("p", { className: "sentence" }), status = element("div", { className: "spoken", role: "status" });
  const goal = element("p", { className: "goal" }, element("b", { textContent: "Try: " }), state.goal);
  const done = element("span", { className: "reached", textContent: "✓ Goal reached" });
  goal.append(" ", done);
  goal.hidden = !state.goal;
  for (const name of ["W_Q", "W_K", "W_V"]) if (has(name)) knobs.push(editors[name] = editor(name));
  const bar = element("div", { className: "knobs" });
  const add = (knob) => { knobs.push(knob); bar.append(knob.node); };
  if (has("phrase")) add(choices("phrase", state.phrases, () => state.phrase, (phrase) => put({ phrase })));
  const asks = element("div"), corner = element("div", { className: "knobs" });
  if (has("query")) bar.append(asks);
  let asking = { show() {} };
  const aside = (knob) => { knobs.push(knob); corner.append(knob.node); };
  if (has("temperature")) {
    const knob = range("temperature", 0.1, 5, () => model.get("temperature"), (temperature, settled) => put({ temperature }, settled));
    const value = element("output");
    aside({ node: element("label", {}, "temperature", knob.input, value),
      show() { knob.show(); value.textContent = fixed(state.temperature, 1); } }); // prettier-ignore
  }
  if (has("causal")) {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => put({ causal: box.checked }));
    aside({ node: element("label", {}, box, "causal mask"), show() { box.checked = state.causal; } });
  }
  let playing;
  if (has("step")) {
    const play = element("button", { type: "button", textContent: "▶ Play" });
    const halt = () => { clearInterval(playing); playing = undefined; play.textContent = "▶ Play"; };
    const next = () => {
      const at = STAGES.indexOf(state.step) + 1;
      if (at < STAGES.length) put({ step: STAGES[at] });
      if (at >= STAGES.length - 1) halt();
    };
    play.addEventListener("click", () => {
      if (playing) return halt();
      if (state.step === STAGES.at(-1)) put({ step: STAGES[0] }); else next();
      if (state.step === STAGES.at(-1)) return;
      playing = setInterval(next, 1800);
      play.textContent = "❙❙ Pause";
    });
    add(choices("step", STAGES, () => state.step, (step) => { halt(); put({ step }); }, "steps"));
    bar.append(play);
  }
  const undo = element("button", { type: "button", textContent: "↶ Undo" });
  undo.addEventListener("click", () => {
    history.last = history.past.pop();
    put(history.last);
  });
  const again = element("button", { type: "button", textContent: "⟲ Start again" });
  again.addEventListener("click", () => put(state.start));
  corner.append(undo, again);

  // --- Pictures: built for a phrase, then only changed ---

  let cells, lines, updates, built, marked = [];

  // Pointing and focusing say where a number comes from; what has the focus comes back afterwards.
  let focused = null, pointed = null;
  function look() {
    for (const node of marked) node.classList.remove("at", "from");
    marked = [];
    const mark = (name, p, i, j, className) => {
      const rows = editors[name]?.cells ?? cells[p]?.[name] ?? [];
      const links = name === "weights" ? (lines[p] ?? []) : [];
      for (const table of [rows, links])
        table.forEach((row, n) => row.forEach((node, m) => {
          if ((i !== undefined && n !== i) || (j !== undefined && m !== j)) return;
          node.classList.add(className);
          marked.push(node);
        }));
    };
    const spot = pointed ?? focused, part = all[spot?.p];
    if (!part) return write(note, formula(state.step, all[0]) ?? "");
    const { p, name, i, j } = spot;
    const [text, from] = j === undefined ? [formula("mix", { ...part, query: i }), [["weights", i]]]
      : explain(state, part, name, i, j); // prettier-ignore
    write(note, text);
    for (const [source, row, entry] of from) mark(source, p, row, entry, "from");
    if (j !== undefined) mark(name, p, i, j, "at");
  }
  function point(node, spot) {
    node.addEventListener("pointerenter", () => { pointed = spot; look(); });
    node.addEventListener("pointerleave", () => { pointed = null; look(); });
    node.addEventListener("focus", () => { focused = spot; look(); announce(note.textContent); });
    node.addEventListener("blur", () => { focused = null; look(); });
  }
  // One cell of a grid is in the tab order; arrow keys move on from there.
  function rove(table) {
    table.forEach((row, i) => row.forEach((node, j) => {
      node.setAttribute("tabindex", i + j ? -1 : 0);
      node.addEventListener("keydown", (event) => {
        const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
        const next = table[i + down]?.[j + right];
        if (down === undefined) return;
        event.preventDefault();
        if (!next) return;
        table.flat().forEach((other) => other.setAttribute("tabindex", other === next ? 0 : -1));
        next.focus();
      });
    }));
    return table;
  }
  function picture(width, height, role, label) {
    const svg = draw(element("div"), "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role });
    svg.setAttribute("aria-label", label);
    return svg;
  }
  const cut = (word) => (word.length > 9 ? `${word.slice(0, 8)}…` : word);
  const pen = document.createElement("canvas").getContext("2d");
  function wide(word, size = 15) {
    // The font of step.css: a widget is drawn before it is in the page, where it has none.
    const family = getComputedStyle(document.documentElement).getPropertyValue("--jp-ui-font-family");
    pen.font = `600 ${size}px ${family || "system-ui"}, "DejaVu Sans", sans-serif`;
    return pen.measureText(cut(word)).width;
  }

  function grid(p, name) {
    const { words } = all[p], square = SQUARE.includes(name);
    const side = Math.max(...words.map((word) => wide(word))) + 12, across = square ? words : ["0", "1"];
    const width = square ? Math.max(50, side - 7) : 50;
    const svg = picture(side + width * across.length, HEAD + ROW * words.length, "grid", PANELS[name][0]);
    svg.style.setProperty("--side", `${side}px`);
    const defs = draw(svg, "pattern", { id: unique(), width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    draw(defs, "rect", { width: 2, height: 7, class: "hatch" });
    const head = draw(svg, "g", { role: "row" });
    across.forEach((word, j) => {
      const label = draw(head, "text", { x: side + (j + 0.5) * width, y: HEAD - 7, role: "columnheader", class: "across" }, cut(word));
      if (square) label.style.fill = ink(word);
    });
    const table = words.map((word, i) => {
      const row = draw(svg, "g", { role: "row" });
      const label = draw(row, "text", { x: side - 8, y: HEAD + i * ROW + 19, role: "rowheader", class: "down" }, cut(word));
      label.style.fill = ink(word);
      point(label, { p, i });
      label.addEventListener("click", () => put({ query: word }));
      return across.map((other, j) => {
        const cell = draw(row, "g", { role: "gridcell", class: "cell" });
        const place = { x: side + j * width + 1, y: HEAD + i * ROW + 1, width: width - 2, height: ROW - 2, rx: 4 };
        const back = draw(cell, "rect", { ...place, class: "back" }), front = draw(cell, "rect", { ...place, class: "front" });
        const number = draw(cell, "text", { x: side + (j + 0.5) * width, y: HEAD + i * ROW + 19 });
        point(cell, { p, name, i, j });
        updates.push(() => {
          const part = all[p], x = part[name][i][j], hidden = name === "weights" && state.causal && j > i;
          const masked = hidden || !Number.isFinite(x), strength = Math.min(Math.abs(x) / { weights: 1, raw: 8 }[name] || Math.abs(x) / 5, 1);
          back.style.fill = masked && shown(name) ? `url(#${defs.id})` : "";
          front.style.fill = name === "weights" ? tint(other) : x < 0 ? "var(--negative)" : "var(--positive)";
          front.setAttribute("fill-opacity", masked || !shown(name) ? 0 : strength);
          const text = hidden ? "–" : fixed(x, Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2);
          number.textContent = shown(name) ? text : "";
          cell.setAttribute("aria-label", !shown(name) ? "not yet" : hidden ? "masked" : text);
          cell.classList.toggle("asks", i === part.query && (name !== "X" || state.step === "add"));
        });
        return cell;
      });
    });
    cells[p][name] = rove(table);
    return svg.parentNode;
  }

  function links(p) {
    const { words } = all[p], gap = Math.max(...words.map((word) => wide(word, 19))) + 30;
    const x = (i) => (i + 0.5) * gap, top = 40, bottom = 148;
    const svg = picture(gap * words.length, 200, "grid", "who attends to whom");
    const table = words.map((word, i) => {
      const row = draw(svg, "g", { role: "row", class: "links" });
      return words.map((other, j) => {
        const d = `M${x(i)} ${top}C${x(i)} ${top + 55} ${x(j)} ${bottom - 55} ${x(j)} ${bottom}`;
        const link = draw(row, "g", { role: "gridcell", class: "link" });
        const line = draw(link, "path", { d, class: "line" });
        draw(link, "path", { d, class: "reach" });
        line.style.stroke = ink(other);
        point(link, { p, name: "weights", i, j });
        updates.push(() => {
          const { weights, query } = all[p], w = weights[i][j];
          line.setAttribute("stroke-width", shown("words") ? (w * 18).toFixed(2) : 0);
          link.classList.toggle("asks", i === query);
          link.setAttribute("aria-label", `${word} gives ${other} ${fixed(w, 4)}`);
          row.style.pointerEvents = i === query ? "" : "none";
        });
        return link;
      });
    });
    const row = draw(svg, "g", { role: "row" });
    words.forEach((word, i) => {
      const asks = draw(row, "g", { role: "gridcell", class: "asking", tabindex: 0 });
      const pill = draw(asks, "rect", { x: x(i) - wide(word, 19) / 2 - 13, y: 6, width: wide(word, 19) + 26, height: 34, rx: 17 });
      const label = draw(asks, "text", { x: x(i), y: 29, class: "word" }, cut(word));
      const key = draw(svg, "text", { x: x(i), y: bottom + 22, class: "word", "aria-hidden": true }, cut(word));
      const share = draw(svg, "text", { x: x(i), y: bottom + 44, class: "share", "aria-hidden": true });
      key.style.fill = ink(word);
      point(asks, { p, i });
      const choose = () => put({ query: word });
      asks.addEventListener("click", choose);
      asks.addEventListener("keydown", ({ key }) => { if (key === "Enter" || key === " ") choose(); });
      updates.push(() => {
        const { query, weights } = all[p], chosen = i === query;
        asks.setAttribute("aria-label", `${word} asks`);
        asks.setAttribute("aria-selected", chosen);
        pill.style.fill = chosen ? ink(word) : "";
        label.style.fill = chosen ? "var(--paper)" : ink(word);
        const hidden = state.causal && i > query;
        share.textContent = shown("words") ? (hidden ? "masked" : fixed(weights[query][i], 2)) : "";
      });
    });
    lines[p] = rove(table);
    return svg.parentNode;
  }

  function plane(p) {
    const { words } = all[p], size = 200, centre = size / 2;
    const svg = picture(size, size, "img", "");
    const frame = draw(svg, "path", { class: "axes", d: `M${centre} 0V${size}M0 ${centre}H${size}` });
    const marks = draw(svg, "path", { class: "ticks" });
    const values = words.map((word) => {
      const line = draw(svg, "line", { x1: centre, y1: centre, class: "value" }), dot = draw(svg, "circle", { r: 5 });
      line.style.stroke = dot.style.fill = ink(word);
      return [line, dot];
    });
    const steps = words.map((word) => {
      const step = draw(svg, "line", { class: "share" });
      step.style.stroke = ink(word);
      return step;
    });
    const labels = words.map((word) => draw(svg, "text", { class: "tip", style: `fill: ${ink(word)}` }, cut(word)));
    const end = draw(svg, "circle", { r: 7, class: "end" }), name = draw(svg, "text", { class: "tip" }, "output");
    updates.push(() => {
      const { V, weights, output, query } = all[p], mixed = shown("plane");
      const largest = Math.max(...V.flat().map(Math.abs));
      const reach = [2.5, 5, 10, 20].find((limit) => largest <= limit) ?? largest, unit = (centre - 4) / reach;
      const at = ([x, y]) => [centre + x * unit, centre - y * unit];
      const [cx, cy] = at(output[query]), placed = [{ x: cx, y: cy, half: 8 }]; // each name beside its point, inside, and not on another
      const place = (label, text, [px, py]) => {
        const half = wide(text) / 2 + 2, inside = (x, room) => Math.min(Math.max(x, room), size - room);
        const spots = [[0, -18], [0, 18], [0, -36], [0, 36], [half + 10, 0], [-half - 10, 0]]
          .map(([dx, dy]) => ({ x: inside(px + dx, half), y: inside(py + dy, 9), half })); // prettier-ignore
        const free = ({ x, y }) => placed.every((o) => Math.abs(o.x - x) > o.half + half || Math.abs(o.y - y) > 18);
        const spot = spots.find(free) ?? spots[0];
        placed.push(spot);
        set(label, { x: spot.x, y: spot.y + 5 });
      };
      marks.setAttribute("d", [-2, -1, 1, 2].map((n) => (n * reach) / 2.5 * unit + centre)
        .map((x) => `M${x} 0V${size}M0 ${x}H${size}`).join("")); // prettier-ignore
      const set = (node, attributes) => Object.entries(attributes).forEach(([key, x]) => node.setAttribute(key, x));
      place(name, "output", at(output[query]));
      set(name, { visibility: mixed ? "visible" : "hidden" });
      let from = [0, 0];
      V.forEach((v, j) => {
        const [x, y] = at(v), [line, dot] = values[j];
        set(line, { x2: x, y2: y });
        set(dot, { cx: x, cy: y });
        place(labels[j], words[j], [x, y]);
        const to = from.map((f, d) => f + weights[query][j] * v[d]);
        const [[x1, y1], [x2, y2]] = [at(from), at(to)];
        set(steps[j], { x1, y1, x2, y2, visibility: mixed ? "visible" : "hidden" });
        from = to;
      });
      set(end, { cx, cy, visibility: mixed ? "visible" : "hidden" });
      svg.setAttribute("aria-label", `values ${words.map((word, j) => `${word} [${V[j].map(short)}]`).join(", ")}; output [${output[query].map(short)}]`);
    });
    frame.ariaHidden = true;
    return svg.parentNode;
  }

  function build() {
    [cells, lines, updates] = [all.map(() => ({})), [], []];
    focused = pointed = null;
    const panels = state.show.filter((name) => name in PANELS);
    const columns = panels.map((name) => {
      const [title, made] = PANELS[name];
      const kind = { words: links, plane }[name] ?? ((p) => grid(p, name));
      const caption = element("span", { className: "made" });
      write(caption, made);
      const box = element("section", { className: `panel ${name}` },
        element("div", { className: "title" }, title, " ", caption),
        element("div", { className: "pictures" }, ...all.map((_, p) => kind(p)))); // prettier-ignore
      const stage = PANELS[name][2];
      updates.push(() => {
        box.classList.toggle("later", !shown(name));
        box.classList.toggle("now", STAGES[stage] === state.step && name !== "X");
      });
      const above = editors[`W_${name}`] ?? (name === "X" && panels.some((other) => editors[`W_${other}`]) ? { node: corner } : undefined);
      return element("div", { className: `column ${SQUARE.includes(name) || name === "output" || name === "sum" ? "chain" : ""}` },
        ...(above ? [above.node] : []), box); // prettier-ignore
    });
    const loose = Object.keys(editors).filter((name) => !panels.includes(name[2])).map((name) => editors[name].node);
    const chain = columns.filter((node) => node.classList.contains("chain"));
    const first = [...loose, ...columns.filter((node) => !chain.includes(node) || chain.length < 4)];
    if (!panels.includes("X") || !panels.some((name) => editors[`W_${name}`])) bar.append(corner);
    board.replaceChildren(element("div", { className: "band" }, ...first));
    if (chain.length > 3) board.append(element("div", { className: "band" }, ...chain));
    asking = choices("who asks", [...new Set(all.flatMap((part) => part.words))], () => all[0].words[all[0].query], (query) => put({ query }), "words");
    asks.replaceChildren(asking.node);
  }

  function changed() {
    if (quiet) return;
    state = read();
    all = parts(state);
    record();
    const structure = JSON.stringify(all.map((part) => part.words));
    if (built !== structure) build();
    built = structure;
    for (const knob of knobs) knob.show();
    asking.show();
    for (const update of updates) update();
    undo.disabled = history.past.length === 0;
    const text = sentence(state, all);
    done.hidden = !reached(state, all);
    if (says.textContent !== text) {
      write(says, text);
      announce(text);
    }
    look();
  }

  const gone = element("p", { className: "gone", textContent:
    "The kernel has gone: the page still computes, but Python no longer follows. Run this cell again." }); // prettier-ignore
  const root = element("div", { className: "attnlab-step", role: "group", ariaLabel: "one step of attention", tabIndex: -1 },
    goal, says, bar, board, note, gone, status); // prettier-ignore
  root.addEventListener("keydown", (event) => event.stopPropagation()); // Lab has one-key shortcuts
  el.append(root);
  for (const name of NAMES) model.on(`change:${name}`, changed);
  changed();
  clearTimeout(timer); // nothing to announce yet
  return () => {
    for (const name of NAMES) model.off(`change:${name}`, changed);
    clearInterval(playing);
    clearTimeout(timer);
    root.remove();
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
      heard[`change:${name}`]?.forEach((callback) => callback());
    },
    save_changes() {},
    on(event, callback) { (heard[event] ??= new Set()).add(callback); },
    off(event, callback) { heard[event]?.delete(callback); },
  }; // prettier-ignore
  render({ model, el, history: { past: [] } });
  return model;
}

// One history per model, as its views share it.
export default () => {
  const history = { past: [] };
  return { render: (context) => render({ ...context, history }) };
};
