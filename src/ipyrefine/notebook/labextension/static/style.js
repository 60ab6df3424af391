/*
 * The rules that this page needs beside the panel's own.
 *
 * A panel that a saved notebook has no kernel for is hidden: the record beside it says it all. Such
 * a view holds nothing but a line of text ("model not found"); a live one holds elements. And the
 * Fix button stands below the output, which has no prompt beside it in a narrow window.
 */
const STYLE =
  ".jp-OutputArea:has(.rf-record) > .jp-OutputArea-child:has(> .jp-OutputArea-output)" +
  ":not(:has(> .jp-OutputArea-output > *)){display:none}" +
  ".ipyrefine-fix{margin:4px 0 8px var(--jp-cell-prompt-width)}" +
  "@media (width <= 760px){.ipyrefine-fix{margin-left:0}}";

/** Apply them on this page from now on. */
export function addStyle() {
  const sheet = document.createElement("style");
  sheet.textContent = STYLE;
  document.head.append(sheet);
}
