// A question that waits for an answer, and what is behind it once the answer is known. The inputs are the
// browser's own: radio buttons that share a name, a text field, a button.

function question(model, el) {
  const group = `question-${Math.random()}`; // each widget has its own copy of this module
  const options = model.get("options");
  const note = element("p", { className: "note" });
  note.setAttribute("role", "status"); // stays in place, so that a screen reader hears each change
  const say = (vote) => {
    model.set("vote", vote);
    model.save_changes();
  };
  const inputs = options.length
    ? options.map((value) => element("input", { type: "radio", name: group, value }))
    : [element("input", { type: "text", placeholder: "a number, then Enter" })];
  for (const input of inputs) input.addEventListener("change", () => say(input.value));
  const labels = options.length
    ? inputs.map((input, i) => element("label", {}, [input, element("span", { textContent: options[i] })]))
    : inputs;
  const legend = element("legend", {}, [element("b", { textContent: "Predict: " }), model.get("question")]);
  if (!options.length) inputs[0].setAttribute("aria-label", model.get("question"));
  el.append(element("fieldset", {}, [legend, ...labels]), note);

  const show = () => {
    const vote = model.get("vote");
    for (const input of inputs) {
      if (options.length) input.checked = input.value === vote;
      else if (document.activeElement !== input) input.value = vote;
    }
    for (const input of inputs) input.disabled = model.get("kernel_gone");
    note.textContent = model.get("kernel_gone") ? GONE : model.get("note");
  };
  model.on("change:vote change:note change:kernel_gone", show);
  show();
  return () => model.off("change:vote change:note change:kernel_gone", show);
}

function reveal(model, el) {
  const waiting = element("p", { className: "note", textContent: "Vote above first. " });
  const button = element("button", { textContent: "Show anyway" });
  const content = element("div", { className: "reveal" });
  content.setAttribute("aria-live", "polite");
  button.addEventListener("click", () => {
    model.set("revealed", true);
    model.save_changes();
  });
  waiting.append(button);
  el.append(waiting, content);

  const show = () => {
    waiting.hidden = model.get("revealed");
    content.hidden = !model.get("revealed");
    if (model.get("revealed")) content.innerHTML = model.get("content"); // escaped by the Python side
  };
  model.on("change:revealed change:content", show);
  show();
  return () => model.off("change:revealed change:content", show);
}

function render({ model, el }) {
  el.classList.add("attnlab", "attnlab-prediction");
  return (model.get("question") ? question : reveal)(model, el);
}

export default { initialize, render };
