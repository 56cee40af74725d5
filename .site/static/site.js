// A reader's own vote, marked in what is behind the question. Nothing is kept.
addEventListener("DOMContentLoaded", () => {
  const reveals = [...document.querySelectorAll("details.reveal")];
  document.querySelectorAll(".vote").forEach((vote) => {
    const after = (node) => vote.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING;
    const reveal = reveals.find(after), choices = [...vote.querySelectorAll("[type=radio]")];
    const rows = reveal?.querySelectorAll("li") ?? [];
    vote.addEventListener("change", () => {
      choices.forEach((choice, n) => rows[n]?.classList.toggle("yours", choice.checked));
    });
  });
});

// From a file, a browser refuses to read the pages that were found: no summaries then.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// Code that is wider than its box can be scrolled with the arrow keys.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
});
addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("article :is(pre, table, .math)").forEach((box) => boxes.observe(box));
});
