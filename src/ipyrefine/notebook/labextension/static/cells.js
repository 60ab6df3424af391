/*
 * Puts a text into a notebook cell, or reads one, when the kernel asks: `ipyrefine/notebook/cell_target.py`.
 *
 * The kernel opens a comm with the target `ipyrefine.cells` and this data:
 *
 *   {op: "insert" | "replace", op_id, cell_id, text, cell_type: "code" | "markdown", expected_source, run}
 *   {op: "read", op_id, cell_id}
 *   {op: "settings", op_id, settings}
 *
 * It is answered with one message, and the kernel then closes the comm:
 *
 *   {op_id, ok, how: "inserted" | "replaced" | "already" | "read" | "refused", cell_id, reason, text?,
 *    cells?: [text], errors?: [{ename, evalue}]}
 *
 * With `run`, the cell that holds the text then is run.
 */
import * as settings from "./settings.js";

const TARGET = "ipyrefine.cells";

const RUN = "application/vnd.ipyrefine.run+json";

/** How long (ms) a page that is not the likely one lets another page answer first. */
const DEFERENCE = 500;

/** How long (ms) outputs may take to find their new size. */
const SETTLE = [400, 1500];

/** Cells of a panel's notebook, as the shared model that undo and collaboration work on. */
function sharedNotebook(panel) {
  return panel.content.model.sharedModel;
}

function indexOf(panel, matches) {
  return sharedNotebook(panel).cells.findIndex(matches);
}

function hasId(cellId) {
  return (cell) => cell.getId() === cellId;
}

function hasMark(opId) {
  return (cell) => (cell.getMetadata("ipyrefine") || {}).op_id === opId;
}

/**
 * Choose where a request is carried out.
 *
 * Several notebooks may share one kernel, while only one of their connections is given the comm;
 * so every panel on that kernel is looked at, the one in front first.
 */
function findPlace(tracker, kernel, request) {
  const panels = tracker.filter((panel) => {
    const session = panel.sessionContext.session;
    return Boolean(panel.content.model && session && session.kernel && session.kernel.id === kernel.id);
  });
  panels.sort((a, b) => (b === tracker.currentWidget) - (a === tracker.currentWidget));
  const find = (matches) => panels.find((panel) => indexOf(panel, matches) >= 0);
  const done = find(hasMark(request.op_id));
  const home = find(hasId(request.cell_id));
  return { done, home, panel: done || home || panels[0] };
}

/** A cell's text as its editor shows it: Windows' line ends are ends of lines. */
function textOf(cell) {
  return cell.getSource().replaceAll("\r\n", "\n");
}

/**
 * Take the \r of Windows' line ends out of a cell's text, with nothing to undo.
 *
 * The cell's editor has none: it would refuse to replace a text that is longer than its own. So it
 * is not told, as nothing of its own changes.
 */
function dropReturns({ undoManager, ymodel, ysource }) {
  const origins = undoManager?.trackedOrigins;
  const editor = [...(origins || [])].find((one) => one?.ytext === ysource);
  if (!editor) return;
  const found = [...ysource.toString().matchAll(/\r(?=\n)/g)].reverse();
  origins.delete(editor);
  ymodel.doc.transact(() => found.forEach(({ index }) => ysource.delete(index, 1)), editor);
  origins.add(editor);
}

/** Whether the keyboard is with a panel, a cell that nobody types in, or nothing. */
function isFree(panel) {
  const held = document.activeElement;
  if (!held || held === document.body) return true;
  const idle = held.matches(".jp-Cell") || held.closest(".jp-OutputArea");
  return panel.content.node.contains(held) && Boolean(idle);
}

/** Make a cell the active one and bring it into view; the keyboard follows where it is free. */
function reveal(panel, index) {
  const notebook = panel.content;
  const free = isFree(panel);
  notebook.deselectAll();
  notebook.mode = "command";
  notebook.activeCellIndex = index;
  const cell = notebook.activeCell;
  const show = (follows) => {
    if (notebook.isDisposed || notebook.activeCell !== cell) return;
    if (follows && panel.isVisible) notebook.activate();
    Promise.resolve(notebook.scrollToItem(index, "auto")).catch(() => undefined);
  };
  show(free);
  // Again when the panel that closes after this has given up its room.
  for (const wait of SETTLE) setTimeout(() => show(free && isFree(panel)), wait);
}

/** Run the active cell; if it succeeds and the reader is still there, at rest, go on to the next one. */
async function runAndGoOn(app, panel) {
  const cell = panel.content.activeCell;
  const succeeded = await app.commands.execute("notebook:run-cell");
  if (!succeeded || panel.isDisposed || panel.content.activeCell !== cell || !isFree(panel)) return;
  const made = (one) => (one.getMetadata("ipyrefine") || {}).refines; // holds a panel, no code
  const next = sharedNotebook(panel).cells.findIndex(
    (one, n) => n > panel.content.activeCellIndex && !made(one),
  );
  if (next > 0) reveal(panel, next);
}

function refused(reason) {
  return { ok: false, how: "refused", cell_id: null, reason };
}

function insert(place, request) {
  const { panel, home } = place;
  if (panel.content.model.readOnly) {
    return refused("read-only");
  }
  const notebook = sharedNotebook(panel);
  const above = home ? indexOf(home, hasId(request.cell_id)) : panel.content.activeCellIndex;
  const index = Math.min(above + 1, notebook.cells.length);
  const isCode = request.cell_type !== "markdown";
  const mark = { op_id: request.op_id };
  notebook.transact(() => {
    notebook.insertCell(index, {
      cell_type: isCode ? "code" : "markdown",
      source: request.text,
      // As the application's own commands mark a new code cell.
      metadata: isCode ? { ipyrefine: mark, trusted: true } : { ipyrefine: mark },
    });
  });
  reveal(panel, index);
  const cellId = notebook.cells[index].getId();
  return { ok: true, how: "inserted", cell_id: cellId, reason: home ? "" : "no-cell" };
}

function replace(place, request) {
  const { panel, home } = place;
  if (!home) {
    return refused("no-cell");
  }
  const index = indexOf(panel, hasId(request.cell_id));
  const cell = sharedNotebook(panel).cells[index];
  if (panel.content.model.readOnly || cell.getMetadata("editable") === false) {
    return refused("read-only");
  }
  if (textOf(cell) !== request.expected_source) {
    return refused("changed");
  }
  // Else an edit made half a second ago would be undone together with this one. It is the last step of
  // the cell, and of the notebook, too, which undoes in command mode.
  const notebook = sharedNotebook(panel);
  for (const one of [cell, notebook]) one.undoManager?.stopCapturing();
  dropReturns(cell);
  const { trackedOrigins: origins } = cell.undoManager ?? {};
  const isNew = origins && !origins.has(notebook);
  origins?.add(notebook);
  notebook.transact(() => {
    cell.setSource(request.text);
    const { skips } = cell.getMetadata("ipyrefine") || {};
    cell.setMetadata("ipyrefine", { op_id: request.op_id, ...(skips && { skips }) });
  });
  if (isNew) origins.delete(notebook);
  for (const one of [cell, notebook]) one.undoManager?.stopCapturing();
  reveal(panel, index);
  return { ok: true, how: "replaced", cell_id: request.cell_id, reason: "" };
}

const EXCERPT = 4000;

function read(place, request) {
  const { panel, home } = place;
  if (!home) {
    return refused("no-cell");
  }
  const index = indexOf(panel, hasId(request.cell_id));
  const text = textOf(sharedNotebook(panel).cells[index]);
  const cells = sharedNotebook(panel).cells.map((one) => (one.cell_type === "code" ? textOf(one) : ""));
  const outputs = panel.content.model.cells.get(index).outputs?.toJSON() ?? [];
  const errors = outputs.filter(({ output_type }) => output_type === "error");
  const cut = ({ ename, evalue }) => {
    return { ename: String(ename).slice(0, EXCERPT), evalue: String(evalue).slice(0, EXCERPT) };
  };
  return { ok: true, how: "read", cell_id: request.cell_id, reason: "", text, cells, errors: errors.map(cut) };
}

/** Carry out a request at a place; once per `op_id`, however often it is asked. */
function perform(place, request) {
  if (place.done) {
    const index = indexOf(place.done, hasMark(request.op_id));
    const cellId = sharedNotebook(place.done).cells[index].getId();
    return { ok: true, how: "already", cell_id: cellId, reason: "" };
  }
  if (!place.panel) {
    return refused("no-notebook");
  }
  if (request.op === "insert") {
    return insert(place, request);
  }
  if (request.op === "read") {
    return read(place, request);
  }
  return request.op === "replace" ? replace(place, request) : refused("unknown-op");
}

/**
 * Answer a request from the kernel.
 *
 * Every open page on the kernel is asked. One that is out of sight, or has not got the cell, waits
 * a moment: when another page has answered meanwhile, the kernel has closed the comm.
 */
async function serve(tracker, kernel, comm, request, app) {
  if (request.op === "settings") {
    const ok = await settings.keep(request.settings);
    const how = ok ? "already" : "refused";
    if (!comm.isDisposed) comm.send({ op_id: request.op_id, ok, how, cell_id: null, reason: "" });
    return;
  }
  if (!document.hasFocus() || !findPlace(tracker, kernel, request).home) {
    await new Promise((resolve) => setTimeout(resolve, DEFERENCE));
    if (comm.isDisposed) {
      return;
    }
  }
  let answer;
  try {
    const place = findPlace(tracker, kernel, request);
    answer = perform(place, request);
    // The command is about the notebook in front.
    if (request.run && ["inserted", "replaced"].includes(answer.how) && place.panel === tracker.currentWidget) {
      void runAndGoOn(app, place.panel);
      answer.reason = "ran";
    }
  } catch (error) {
    console.error("ipyrefine: the text could not be put into a cell", error);
    answer = refused("error");
  }
  if (!comm.isDisposed) {
    comm.send({ op_id: request.op_id, ...answer });
  }
}

/** Whether an output is a record of ours, or the panel beside it. */
function isOurs({ data = {} }) {
  const panel = "application/vnd.jupyter.widget-view+json" in data;
  return RUN in data || (panel && String(data["text/plain"]).startsWith("The panel needs"));
}

/** Take the record that an element is in out of its cell; a cell that was made for it goes, too. */
function removeRecord(tracker, element) {
  const panel = tracker.find((one) => one.content.node.contains(element));
  const cells = panel ? panel.content.widgets : [];
  const index = cells.findIndex((one) => one.node.contains(element));
  if (index < 0 || panel.content.model.readOnly) {
    return;
  }
  const { model } = cells[index];
  if ((model.getMetadata("ipyrefine") || {}).refines) {
    sharedNotebook(panel).deleteCell(index);
    reveal(panel, Math.min(index, panel.content.widgets.length - 1));
  } else {
    model.outputs.fromJSON(model.outputs.toJSON().filter((output) => !isOurs(output)));
    reveal(panel, index);
  }
}

export function removeRecords(tracker) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove-record]");
    if (button) {
      removeRecord(tracker, button);
    }
    for (const menu of document.querySelectorAll(".rf-record .rf-remove[open]")) {
      menu.open = menu.contains(event.target) && menu.open;
    }
  });
}

/** What nbclient, nbconvert and papermill pass over. */
const SKIP = "skip-execution";

/** Return the data of a cell's decided record, if it has one. */
function decided({ outputs, type }) {
  const data = type === "code" && outputs.toJSON().find((one) => RUN in (one.data || {}))?.data;
  return data && ["accepted", "overridden"].includes(data[RUN].stop_reason) ? data : null;
}

/** Give the decided records that the stars made to the cells with their texts, once these have run. */
function keepRecords(panel) {
  const notebook = sharedNotebook(panel);
  for (const { model, node } of [...panel.content.widgets]) {
    const data = decided(model);
    const { refines } = model.getMetadata("ipyrefine") || {};
    const home = data && refines && notebook.cells.find(hasId(data[RUN].cell || refines));
    const isDue = home && (home.cell_type !== "code" || home.execution_count > model.executionCount);
    if (!isDue || node.querySelector(".rf-panel, .rf-decided[open]")) continue; // in use
    const html = [data["text/html"]].flat().join("").replace(/<style>[^]*?<\/style>/g, "");
    notebook.transact(() => {
      home.setMetadata("ipyrefine", { ...home.getMetadata("ipyrefine"), record: { ...data, "text/html": html } });
      notebook.deleteCell(indexOf(panel, (one) => one === model.sharedModel));
    }, false);
  }
}

export function keptRecord({ model }) {
  const { record } = model.getMetadata("ipyrefine") || {};
  return record && record[RUN] && typeof record["text/html"] === "string" ? record : null;
}

/** Show the record that a cell keeps, and whether it still holds its text; or take it away. */
export async function showRecord(panel, cell) {
  const shown = cell.node.querySelector(".ipyrefine-kept");
  if (shown) return void shown.remove();
  const data = keptRecord(cell);
  const { decisions = [], iterations = [], best } = data[RUN];
  const accepted = decisions.findLast?.(({ kind }) => kind === "accept")?.iteration ?? best;
  const bare = (text = "") => text.replace(/\s+/g, " ").trim();
  const text = bare(iterations.find(({ number }) => number === accepted)?.text);
  const renderer = panel.content.rendermime.createRenderer("text/html");
  await renderer.renderModel({ data, metadata: {}, trusted: false, setData: () => undefined });
  const row = document.createElement("div");
  row.className = "ipyrefine-kept";
  row.dataset.lmSuppressShortcuts = "true"; // else the keys would be the notebook's
  const keep = document.createElement("button");
  Object.assign(keep, { type: "button", textContent: "Keep the record as a cell" });
  keep.addEventListener("click", () => {
    const folded = { cell_type: "markdown", source: data["text/html"], metadata: {} };
    sharedNotebook(panel).insertCell(panel.content.widgets.indexOf(cell) + 1, folded);
    row.remove();
  });
  const isHeld = bare(textOf(cell.model.sharedModel)).endsWith(text);
  row.append(isHeld ? "" : "The cell holds another text now.", renderer.node, keep);
  cell.node.querySelector(".jp-Cell-inputWrapper").after(row);
  row.querySelector(".rf-decided")?.setAttribute("open", "");
}

/** Keep records and tag the decided cells of a panel as its notebook is saved; a user's own tag stays. */
export function tagDecided(panel) {
  keepRecords(panel);
  for (const model of panel.content.model.cells) {
    const cell = model.sharedModel;
    const ours = cell.getMetadata("ipyrefine") || {};
    const asks = /^(?:\s|#.*\n)*%%?refine\b/.test(cell.getSource()); // not where a text took its place
    const skips = Boolean(asks && decided(model));
    const tags = cell.getMetadata("tags") || [];
    if (skips ? !tags.includes(SKIP) : ours.skips) {
      cell.transact(() => {
        cell.setMetadata("tags", skips ? [...tags, SKIP] : tags.filter((one) => one !== SKIP));
        cell.setMetadata("ipyrefine", { ...ours, skips });
      }, false);
    }
  }
}

/** Listen on a kernel connection; registering again on the same one changes nothing. */
export function listen(tracker, kernel, app) {
  kernel.registerCommTarget(TARGET, (comm, message) => {
    // Not awaited: the connection handles no further message until this function returns.
    void serve(tracker, kernel, comm, message.content.data, app);
  });
}
