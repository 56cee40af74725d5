// A question that waits for an answer, and what is behind it once the answer is known.

function question(model) {
  const vote = (text) => save(model, { vote: text });
  const legend = [element("b", { textContent: "Predict: " }), model.get("question")];
  const options = model.get("options"), read = () => model.get("vote");
  let [group, check] = choices(legend, options, read, vote);
  if (!options.length) {
    const placeholder = "a number, then Enter", ariaLabel = model.get("question");
    const field = element("input", { type: "text", placeholder, ariaLabel });
    field.addEventListener("change", () => vote(field.value));
    check = () => { if (document.activeElement !== field) field.value = read(); };
    group.append(field);
  }
  // It stays in place, so that a screen reader hears each change.
  const note = element("p", { className: "note", role: "status" });
  const show = () => {
    check();
    group.disabled = model.get("kernel_gone");
    note.textContent = model.get("kernel_gone") ? GONE : model.get("note");
  };
  model.on("change:vote change:note change:kernel_gone", show);
  show();
  return [group, note];
}

function reveal(model) {
  const anyway = button("Show anyway", () => save(model, { revealed: true }));
  const waiting = element("p", { className: "note" }, "Vote above first. ", anyway);
  const content = element("div", { className: "reveal", ariaLive: "polite" });
  const show = () => {
    waiting.hidden = model.get("revealed");
    content.hidden = !model.get("revealed");
    if (model.get("revealed")) content.innerHTML = model.get("content"); // escaped by the Python side
  };
  model.on("change:revealed change:content", show);
  show();
  return [waiting, content];
}

function render({ model, el }) {
  el.classList.add("attnlab", "attnlab-own", "attnlab-prediction");
  el.append(...(model.get("question") ? question : reveal)(model));
}

export default { initialize, render };
