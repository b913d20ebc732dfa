// Draws the formulas of a page with KaTeX, which is shipped with the site.
for (const element of document.querySelectorAll(".math")) {
  const source = element.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
  const displayMode = element.tagName === "DIV";
  katex.render(source, element, { displayMode, throwOnError: false });
}
