/*
 * The rules that this page needs beside the panel's own.
 *
 * A panel that a saved notebook has no kernel for is hidden: the record beside it says it all. Such
 * a view holds nothing but a line of text ("model not found"); a live one holds elements. The
 * Fix button stands below the output, which has no prompt beside it in a narrow window. And a record
 * has a menu, by which the page takes it away. A refining cell of this page's shows its hidden source
 * nowhere: the panel stands right below the text that it is about. In a cell's editor a difference has
 * the application's colours for one, without those of its language, which are too faint on them.
 */
const STYLE =
  ".jp-OutputArea:has(.rf-record) > .jp-OutputArea-child:has(> .jp-OutputArea-output)" +
  ":not(:has(> .jp-OutputArea-output > *)){display:none}" +
  ".ipyrefine-ask{display:flex;flex-wrap:wrap;gap:8px;align-items:center;padding:4px 0 4px calc(var(--jp-cell-prompt-width) + 7px)}" +
  ".ipyrefine-ask input{flex:1;font:13px var(--jp-ui-font-family);padding:3px 8px;border-radius:5px;" +
  "color:var(--jp-ui-font-color1);background:var(--jp-layout-color0);border:1px solid var(--jp-brand-color1)}" +
  ".ipyrefine-ask input:focus{outline:1px solid var(--jp-brand-color1)}" +
  ":is(.ipyrefine-ask,.ipyrefine-kept)>button{border:0;background:none;padding:0;font:inherit;color:var(--jp-ui-font-color2);cursor:pointer}" +
  ":is(.ipyrefine-setup,.ipyrefine-kept){padding:4px 0 4px calc(var(--jp-cell-prompt-width) + 7px)}" +
  ".ipyrefine-own .jp-Cell-inputWrapper:has(.jp-InputPlaceholder){display:none}" +
  ".ipyrefine-fix{margin:4px 0 8px var(--jp-cell-prompt-width)}" +
  ".jp-Cell:has(+ .jp-Cell .rf-panel) .ipyrefine-fix{display:none}" +
  ".rf-record .rf{position:relative}.ipyrefine.rf-record .rf-decided>summary{padding-right:46px}" +
  ".ipyrefine.rf-record .rf-remove{display:block;position:absolute;right:10px;top:9px}" +
  ".rf-remove>summary{padding:0 6px}" +
  ".ipyrefine.rf-record .rf-remove>ul{position:absolute;right:0;top:100%;z-index:5;margin:0;padding:4px;" +
  "width:max-content;border:1px solid var(--jp-border-color1);border-radius:6px;background:var(--jp-layout-color1);" +
  "box-shadow:0 4px 14px rgba(0,0,0,.22)}" +
  ".rf-remove button{font:inherit;color:inherit;border:0;background:none;padding:2px 10px;cursor:pointer}" +
  ".jp-OutputArea-output:has(>.rf-record){overflow:visible}" +
  ".ipyrefine-starting{padding:5px 0 3px;margin-left:var(--jp-cell-prompt-width);font:13px system-ui,sans-serif}" +
  ".ipyrefine-gone{--at:var(--jp-error-color1)}" +
  ".ipyrefine-struck{text-decoration:line-through 1px var(--at)}" +
  ".ipyrefine-added{--at:var(--jp-success-color1);color:var(--jp-content-font-color1)}" +
  ".ipyrefine-gone,.ipyrefine-gone span{color:var(--jp-content-font-color1)!important;font-weight:inherit}" +
  ":is(.ipyrefine-gone,.ipyrefine-added){background:color-mix(in srgb,var(--at) 13%,transparent)}" +
  ":is(.ipyrefine-gone-part,.ipyrefine-added b){background:color-mix(in srgb,var(--at) 26%,transparent);" +
  "font-weight:inherit;border-radius:2px}" +
  ".ipyrefine-trace{display:block;width:100%;padding:0 0 4px;border:0;background:none;cursor:pointer;" +
  "font:var(--jp-code-font-size)/var(--jp-code-line-height) var(--jp-code-font-family);text-align:left;" +
  "color:var(--jp-content-font-color1);overflow-wrap:anywhere}" +
  ".ipyrefine-trace::before{content:'\\25b8\\00a0'}.ipyrefine-trace~*{display:none}" +
  "@media (width <= 760px){:is(.ipyrefine-fix,.ipyrefine-starting){margin-left:0}.ipyrefine-ask,.ipyrefine-setup,.ipyrefine-kept{padding-left:0}}";

/** Apply them on this page from now on, and the records' own, which untrusted notebooks lose. */
export function addStyle() {
  const records = document.createElement("link");
  records.rel = "stylesheet";
  records.href = new URL("run.css", import.meta.url);
  document.head.append(records);
  const sheet = document.createElement("style");
  sheet.textContent = STYLE;
  document.head.append(sheet);
}
