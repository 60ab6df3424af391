/*
 * Hides a panel that a saved notebook has no kernel for: the record beside it says it all.
 *
 * Such a view holds nothing but a line of text ("model not found"); a live one holds elements.
 */
const STYLE =
  ".jp-OutputArea:has(.rf-record) > .jp-OutputArea-child:has(> .jp-OutputArea-output)" +
  ":not(:has(> .jp-OutputArea-output > *)){display:none}";

/** Hide them on this page from now on. */
export function hideLostPanels() {
  const sheet = document.createElement("style");
  sheet.textContent = STYLE;
  document.head.append(sheet);
}
