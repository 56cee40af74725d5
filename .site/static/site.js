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
