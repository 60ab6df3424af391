/*
 * Starts a refinement from a cell: the commands behind the button in a cell's toolbar, the palette
 * and the shortcuts, which `schemas/ipyrefine/cells.json` lists.
 *
 * The run lives in a cell of its own below, whose source is hidden. Its text is an ordinary
 * `%%refine --set cell=ID …` cell, or `%refine fix --set cell=ID …` below a cell that failed, so that it says
 * how to do the same by hand. A cell that failed has a Fix button below its outputs, too. Of any other
 * cell with a text, one line asks first what should change, or offers to look at it. The form that sets
 * up a model stands in the same place.
 */
import { keptRecord, showRecord } from "./cells.js";
import * as settings from "./settings.js";

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M9.5 3l2.2 6.3L18 11.5l-6.3 2.2L9.5 20l-2.2-6.3L1 11.5l6.3-2.2z"/>
    <path d="M18.5 14l1.3 3.2 3.2 1.3-3.2 1.3-1.3 3.2-1.3-3.2-3.2-1.3 3.2-1.3z"/>
    <path d="M18.5 1l1.1 2.9 2.9 1.1-2.9 1.1-1.1 2.9-1.1-2.9L14.5 5l2.9-1.1z"/>
  </g>
</svg>`;
const EYE = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M12 5C7 5 2.7 8 1 12c1.7 4 6 7 11 7s9.3-3 11-7c-1.7-4-6-7-11-7zm0 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10z"/>
    <circle cx="12" cy="12" r="2.6"/>
  </g>
</svg>`;

/** How a cell begins that needs the magics. */
const MAGIC = /^(?:[^\S\n]*(?:#.*)?\n)*[^\S\n]*(?:%{1,2}refine|%%look)\b/;

const CATEGORY = "Refine";
const COMMANDS = ["refine-cell", "refine-selection", "look", "record", "fix", "accept", "resume", "set-up"];

/** The comm on which the kernel sends the form that sets up a model; see notebook/setup.py. */
const SETUP = "ipyrefine.setup";

/** What is asked for where nothing is to change. */
const LOOK = Symbol("look");

/** Where a page keeps what was asked for, and how much of it. */
const WISHES = "ipyrefine:wishes";
const MOST_WISHES = 20;

/** Loads the magic where it is not loaded; with the package missing, its error says so. */
const LOAD =
  "__import__('ipyrefine'); get_ipython().extension_manager.load_extension('ipyrefine')";

/** How long (ms) a kernel may take to begin, while it answers a widget for one. */
const PATIENCE = 1500;

/** Ids of cells. One from a file may hold anything, also further options for the magic. */
const CELL_ID = /^[a-zA-Z0-9_-]{1,64}$/;

/** The refining cells written since the page was opened; all others may be somebody else's. */
const written = new WeakSet();

const STARTING = ["unknown", "starting", "restarting", "autorestarting"];

/** A sentence for the user: why nothing was started. */
class Refusal extends Error {}

/** Return what a promise gives, or undefined once the patience is over. */
function soon(promise) {
  return Promise.race([promise, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

/** Load ipyrefine in a kernel with the user's settings, before whatever is sent to it next. */
function load(kernel) {
  const values = JSON.stringify(JSON.stringify(settings.read())); // as Python writes a text, too
  const take = "get_ipython().magics_manager.registry['Refine'].take_settings";
  return kernel.requestExecute({
    code: `${LOAD}; ${take}(__import__('json').loads(${values}))`,
    silent: true,
    store_history: false,
    allow_stdin: false,
    stop_on_error: false,
  });
}

/**
 * Load ipyrefine before a cell runs that begins with one of its magics.
 *
 * The notebook need not say `%load_ext ipyrefine`, and the kernel may be a new one.
 */
function loadBefore(tracker, { notebook, cell }) {
  const panel = tracker.find((one) => one.content === notebook);
  const session = panel && panel.sessionContext.session;
  const refines = cell.model.type === "code" && MAGIC.test(cell.model.sharedModel.source);
  if (refines && session && session.kernel) {
    load(session.kernel);
  }
}

async function prepare(panel) {
  const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
  if (!kernel || kernel.status === "dead" || kernel.status === "terminating") {
    throw new Refusal("This notebook has no kernel. Start one, then refine the cell.");
  }
  const notReady = new Refusal("The kernel is not ready yet. Try again in a moment.");
  const info = await soon(kernel.info);
  if (!info || kernel.connectionStatus !== "connected") {
    throw notReady;
  }
  const language = info.language_info.name;
  if (language !== "python") {
    throw new Refusal(`Refining needs a Python kernel. This one runs ${language}.`);
  }
  // Whether a kernel is busy is seen by whether it begins: its status may say idle in a long
  // run, where something asked beside that run has ended.
  const loading = load(kernel);
  const begun = new Promise((resolve) => {
    loading.onIOPub = resolve;
  });
  if (!(await soon(begun))) {
    throw STARTING.includes(kernel.status)
      ? notReady
      : new Refusal("The kernel is busy. Wait until it is idle, or interrupt it.");
  }
  const { content } = await loading.done;
  if (content.status === "ok") {
    return;
  }
  if (content.ename === "ModuleNotFoundError") {
    throw new Refusal("This kernel lacks ipyrefine. Run %pip install ipyrefine, then try again.");
  }
  throw new Refusal(`ipyrefine could not be loaded. ${content.ename}: ${content.evalue}`);
}

/** Return the selected lines of a cell, as {first, last} from 1; null without a selection. */
function selectedLines(cell) {
  const selection = cell.editor && cell.editor.getSelection();
  if (!selection) {
    return null;
  }
  const [start, end] = [selection.start, selection.end].sort(
    (a, b) => a.line - b.line || a.column - b.column,
  );
  if (start.line === end.line && start.column === end.column) {
    return null;
  }
  // A selection that ends before a line's first character does not touch that line.
  const last = end.column === 0 && end.line > start.line ? end.line : end.line + 1;
  return { first: start.line + 1, last };
}

/** Whether the last run of a cell failed, and neither an interrupt nor a cell of ours did. */
function hasFailed(cell) {
  if (cell.model.type !== "code" || /^\s*(?:%%?refine|%%look)\b/.test(cell.model.sharedModel.getSource())) {
    return false;
  }
  const error = cell.model.outputs.toJSON().find((output) => output.output_type === "error");
  return Boolean(error) && !["KeyboardInterrupt", "Interrupted", "SystemExit"].includes(error.ename);
}

/** The line of the magic in a cell that refines, or looks at, its own text, with what stands above it. */
const OWN_MAGIC = /^(?:[^\S\n]*(?:#.*)?\n)*[^\S\n]*%%(?:refine|look)\b.*\n?/;

function magicOf(cell, failed) {
  if (!failed && OWN_MAGIC.test(cell.model.sharedModel.getSource())) {
    return "%%refine";
  }
  return `${failed ? "%refine fix" : "%%refine"} --set cell=${cell.model.id}`;
}

function optionsOf(cell, lines) {
  const words = cell.model.type === "markdown" ? ["--draft", "-p", "prose"] : [];
  return words.concat(lines ? ["--lines", `${lines.first}-${lines.last}`] : []);
}

/** Return the options of an earlier run of the same cell, which the user may have changed. */
function keptOptions(source, lines) {
  const line = source
    .split("\n", 1)[0]
    .replace(/ --change="(?:[^"\\]|\\.)*"/g, "")
    .replace(/ --(lines[ =]\S+|again)(?= |$)/g, "");
  return lines ? `${line} --lines ${lines.first}-${lines.last}` : line;
}

/** Return the option that says what should change; empty for nothing in particular. */
function changeOf(wish) {
  return wish ? ` --change="${wish.replace(/["\\]/g, "\\$&")}"` : "";
}

/** Whether a cell holds nothing but comments: they say what to write, and there is no text yet. */
function isTask(cell, source) {
  const lines = source.split("\n").map((line) => line.trim());
  return cell.model.type === "code" && lines.every((line) => !line || line.startsWith("#"));
}

function earlierWishes() {
  try {
    return JSON.parse(localStorage.getItem(WISHES)) || [];
  } catch {
    return []; // not kept, or not ours
  }
}

function keepWish(wish) {
  const wishes = [wish, ...earlierWishes().filter((one) => one !== wish)];
  try {
    localStorage.setItem(WISHES, JSON.stringify(wishes.slice(0, MOST_WISHES)));
  } catch {
    // A page that may keep nothing has no history.
  }
}

/**
 * Ask in one line below a cell's text what should change.
 *
 * Returns a promise of the words, empty for nothing in particular, or null when the user leaves; and
 * a function that takes the line away.
 */
function openLine(notebook, cell, lines) {
  const row = document.createElement("div");
  row.className = "ipyrefine-ask";
  // Else the keys would be the notebook's.
  row.dataset.lmSuppressShortcuts = "true";
  const field = document.createElement("input");
  field.type = "text";
  const place = lines ? (lines.first === lines.last ? `Line ${lines.first}` : `Lines ${lines.first}–${lines.last}`) : "";
  const question = place ? `${place}: what should change?` : "What should change?";
  field.setAttribute("aria-label", question);
  field.placeholder = `${question}  Enter alone improves it.`;
  const look = document.createElement("button");
  Object.assign(look, { type: "button", textContent: "Look only", title: "See what this cell gives and does, without a model" });
  row.append(field, ...(cell.model.type === "code" ? [look] : []));
  cell.node.querySelector(".jp-Cell-inputWrapper").after(row);
  const earlier = ["", ...earlierWishes()];
  let at = 0;
  const { mode } = notebook;
  const answer = new Promise((resolve) => {
    cell.disposed.connect(() => resolve(null));
    look.addEventListener("click", () => resolve(LOOK));
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.isComposing) {
        return;
      }
      if (["Enter", "Escape"].includes(event.key)) {
        event.preventDefault(); // else it goes on in the editor, which has the focus by then
        resolve(event.key === "Enter" ? field.value.trim() : null);
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        if (at === 0) {
          earlier[0] = field.value;
        }
        at = Math.min(earlier.length - 1, Math.max(0, at + (event.key === "ArrowUp" ? 1 : -1)));
        field.value = earlier[at];
      }
    });
  });
  field.focus();
  const close = () => {
    row.remove();
    if (!notebook.isDisposed && !cell.isDisposed) {
      notebook.mode = mode;
      notebook.activate();
    }
  };
  return { answer, close };
}

/**
 * Put the refining cell below its source: the one that is there already, or a new one.
 *
 * Returns its index.
 */
function placeCell(notebook, cell, { lines = null, failed = false, wish = "", looks = null }) {
  const shared = notebook.model.sharedModel;
  const sources = (looks || [cell]).map((one) => one.model.sharedModel.getSource().replace(OWN_MAGIC, ""));
  const source = sources.join("\n\n").replaceAll("\r\n", "\n");
  const id = cell.model.id;
  if (!CELL_ID.test(id)) {
    throw new Refusal("This cell's id is not valid. Copy the cell's text into a new cell.");
  }
  const above = shared.cells.findIndex((one) => one.getId() === id);
  const below = shared.cells[above + 1];
  const earlier = (below && below.getMetadata("ipyrefine")) || {};
  const isOurs = earlier.refines === id;
  // Each press asks anew; the cell, when it is run again later, is known by the press.
  const mark = { refines: id, press: `${Date.now()}` };
  const magic = looks ? `%%look${looks.length > 1 ? "" : ` --set cell=${id}`}` : magicOf(cell, failed);
  const again = isOurs && below.getSource().startsWith(magic);
  const options =
    again && written.has(below) && !looks
      ? keptOptions(below.getSource(), lines)
      : [magic, ...(looks ? [] : optionsOf(cell, lines))].join(" ");
  const text = failed ? options : `${options}${changeOf(wish)}\n${source}`;
  if (isOurs && MAGIC.test(below.getSource())) {
    below.transact(() => {
      below.setSource(text);
      below.setMetadata("ipyrefine", mark);
    });
  } else {
    shared.transact(() => {
      shared.insertCell(above + 1, {
        cell_type: "code",
        source: text,
        metadata: { ipyrefine: mark, jupyter: { source_hidden: true }, trusted: true },
      });
    });
  }
  written.add(shared.cells[above + 1]);
  return above + 1;
}

/** Select a cell, run it without waiting for its end, and bring it into view. */
function run(app, notebook, index) {
  notebook.deselectAll();
  notebook.mode = "command";
  notebook.activeCellIndex = index;
  const { node, model } = notebook.widgets[index];
  // Its source says what stands above it; a cell from a file shows at least that there is one.
  node.classList.toggle("ipyrefine-own", written.has(model.sharedModel));
  void app.commands.execute("notebook:run-cell");
  Promise.resolve(notebook.scrollToItem(index, "smart")).catch(() => undefined);
}

async function refine(app, panel, { selection }) {
  const notebook = panel.content;
  const cell = notebook.activeCell;
  if (!cell || cell.model.type === "raw") {
    throw new Refusal("Only code and Markdown cells can be refined.");
  }
  if (notebook.model.readOnly) {
    throw new Refusal("This notebook is read-only. Save a copy to refine its cells.");
  }
  const source = cell.model.sharedModel.getSource();
  if (!source.trim()) {
    throw new Refusal("This cell is empty. Write a task or a draft first.");
  }
  let lines = null;
  if (selection) {
    lines = selectedLines(cell);
    if (!lines) {
      throw new Refusal("Nothing is selected. Select the lines to refine first.");
    }
    if (lines.first === 1 && lines.last === source.split("\n").length) {
      lines = null;
    }
  }
  const ready = prepare(panel);
  ready.catch(() => undefined); // told below, unless the user leaves first
  if (/^\s*%%refine\b/.test(source)) {
    await ready;
    if (cell.inputHidden && !written.has(cell.model.sharedModel)) {
      cell.inputHidden = false;
      throw new Refusal("This cell's code was hidden. Read it, then press again to run it.");
    }
    run(app, notebook, notebook.widgets.indexOf(cell));
  } else {
    const failed = !selection && hasFailed(cell) && !cell.model.isDirty;
    let wish = "";
    if (!failed && !isTask(cell, source)) {
      const line = openLine(notebook, cell, lines);
      try {
        // Why nothing can start is said at once, and not only after the answer.
        wish = await Promise.race([line.answer, ready.then(() => line.answer)]);
      } finally {
        line.close();
      }
      if (wish === null) {
        return;
      }
      if (wish === LOOK) {
        return lookAt(app, panel, [cell]);
      }
    }
    await ready;
    if (lines && cell.model.sharedModel.getSource() !== source) {
      throw new Refusal("The cell has changed. Select the lines again.");
    }
    if (wish) {
      keepWish(wish);
    }
    run(app, notebook, placeCell(notebook, cell, { lines, failed, wish }));
  }
}

/** Show what cells give and do, without a model; of one that refines, what it refines. */
async function lookAt(app, panel, cells) {
  const notebook = panel.content;
  const refined = cells.map((one) => (one.model.getMetadata("ipyrefine") || {}).refines || one.model.id);
  const code = notebook.widgets.filter((one) => one.model.type === "code" && refined.includes(one.model.id));
  const looks = code.filter((one) => one.model.sharedModel.getSource().trim());
  if (!code.length) {
    throw new Refusal("Only code cells can be looked at.");
  }
  if (notebook.model.readOnly) {
    throw new Refusal("This notebook is read-only. Save a copy to look at its cells.");
  }
  if (!looks.length) {
    throw new Refusal("This cell is empty. There is nothing to look at.");
  }
  await prepare(panel);
  run(app, notebook, placeCell(notebook, looks.at(-1), { looks }));
}

async function fix(app, panel, cell) {
  if (panel.content.model.readOnly) {
    throw new Refusal("This notebook is read-only. Save a copy to fix its cells.");
  }
  if (!hasFailed(cell)) {
    throw new Refusal("This cell has not failed. Refine it instead.");
  }
  await prepare(panel);
  run(app, panel.content, placeCell(panel.content, cell, { failed: true }));
}

/** Show a Fix button below a cell's outputs for as long as they hold an error. */
async function offerFix(panel, cell, press) {
  const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
  if (!kernel || !hasFailed(cell) || cell.node.querySelector(".ipyrefine-fix")) {
    return;
  }
  const { language_info: language } = await kernel.info;
  if (language.name !== "python" || cell.isDisposed || !hasFailed(cell)) {
    return;
  }
  const title = "Fix this cell with a language model, on copies of its variables";
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "jp-mod-styled jp-mod-reject", title });
  button.textContent = "Fix";
  button.addEventListener("click", press);
  const row = document.createElement("div");
  row.className = "ipyrefine-fix";
  // Else Enter on the button would edit the cell.
  row.dataset.lmSuppressShortcuts = "true";
  row.append(button);
  cell.outputArea.node.prepend(row); // a traceback may be long
  const outputs = cell.model.outputs;
  const update = () => {
    if (cell.isDisposed || !hasFailed(cell)) {
      outputs.changed.disconnect(update);
      row.remove();
    }
  };
  outputs.changed.connect(update);
}

/** Return the button that accepts the text of the active cell's panel, or of the last one. */
function acceptButton({ content: notebook }) {
  const own = notebook.activeCell ? notebook.activeCell.node.querySelectorAll(".rf-panel") : [];
  const panels = [...notebook.node.querySelectorAll(".rf-panel"), ...own];
  const found = panels.map((one) => one.querySelector('[data-part="top"] [data-action="accept"]'));
  return found.filter(Boolean).pop();
}

function accept(panel) {
  const button = acceptButton(panel);
  if (!button) {
    throw new Refusal("There is no text to accept. Refine a cell first.");
  }
  button.click();
}

/** Resume the latest run of the journal in a cell of its own below the active one. */
async function resume(app, panel, name = "") {
  const notebook = panel.content;
  if (notebook.model.readOnly) {
    throw new Refusal("This notebook is read-only. Save a copy to resume a run in it.");
  }
  await prepare(panel);
  const index = notebook.activeCellIndex + 1;
  notebook.model.sharedModel.insertCell(index, {
    cell_type: "code",
    source: `%refine resume ${name}`.trim(),
    metadata: { ipyrefine: { press: `${Date.now()}` }, trusted: true },
  });
  run(app, notebook, index);
}

/**
 * Show the form that sets up a model below the active cell's text, until it is done or left.
 *
 * The kernel sends the form with its script over a comm, as it sends a panel to a widget.
 */
async function setUp(panel, done) {
  const open = panel.node.querySelector(".ipyrefine-setup input");
  if (open) {
    open.focus();
    return;
  }
  const cell = panel.content.activeCell;
  if (!cell) {
    throw new Refusal("This notebook has no cell. Add one first.");
  }
  await prepare(panel);
  const row = document.createElement("div");
  row.className = "ipyrefine-setup";
  row.dataset.lmSuppressShortcuts = "true"; // else the keys would be the notebook's
  cell.node.querySelector(".jp-Cell-inputWrapper").after(row);
  const { kernel } = panel.sessionContext.session;
  const comm = kernel.createComm(SETUP);
  const heard = new Set();
  const model = {
    send: (message) => void (comm.isDisposed || comm.send(message)),
    on: (_, hear) => heard.add(hear),
    off: (_, hear) => heard.delete(hear),
  };
  let [stop, closed] = [() => undefined, false];
  const close = () => {
    if (closed) return;
    closed = true;
    stop();
    row.remove();
    if (!comm.isDisposed) void comm.close();
    kernel.statusChanged.disconnect(watch);
    if (!panel.isDisposed) panel.content.activate();
  };
  const watch = (_, status) => {
    if (["dead", "restarting", "autorestarting", "terminating"].includes(status)) close();
  };
  kernel.statusChanged.connect(watch);
  cell.disposed.connect(close);
  comm.onClose = close;
  comm.onMsg = async ({ content: { data } }) => {
    if (data.script) {
      const sheet = document.createElement("style");
      sheet.textContent = data.style;
      const body = document.createElement("div");
      row.append(sheet, body);
      const address = URL.createObjectURL(new Blob([data.script], { type: "text/javascript" }));
      const { default: page } = await import(address);
      stop = page.render({ model, el: body });
    } else if ("said" in data) {
      close();
      if (data.said) done(data.said, cell);
    } else {
      for (const hear of heard) hear(data);
      if ("page" in data) row.querySelector("button").focus();
    }
  };
  const code = cell.model.type === "code" && cell.model.sharedModel.getSource().trim();
  comm.open({ looks: Boolean(code) && !MAGIC.test(code) });
}

/**
 * Add the commands.
 *
 * `host` holds the application's own copies of NotebookActions, LabIcon, Notification, showDialog
 * and Dialog.
 */
export function addCommands(app, tracker, palette, host) {
  host.NotebookActions.executionScheduled.connect((_, ran) => loadBefore(tracker, ran));
  const icon = new host.LabIcon({ name: "ipyrefine:refine", svgstr: ICON });
  const starting = new WeakSet();

  const say = (message) => {
    if (app.commands.hasCommand("apputils:notify")) {
      host.Notification.warning(message, { autoClose: 8000 });
    } else {
      void host.showDialog({
        title: "Refine",
        body: message,
        buttons: [host.Dialog.okButton()],
      });
    }
  };

  const start = async (act) => {
    const panel = tracker.currentWidget;
    // A second click while the first still asks the kernel would start a second run.
    if (!panel || starting.has(panel)) {
      const field = panel && panel.node.querySelector(".ipyrefine-ask input");
      if (field) {
        field.focus();
      }
      return;
    }
    starting.add(panel);
    try {
      await act(panel);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        console.error("ipyrefine: the cell could not be refined", error);
      }
      say(error instanceof Refusal ? error.message : `The cell could not be refined. ${error}`);
    } finally {
      starting.delete(panel);
    }
  };

  const isEnabled = () =>
    Boolean(tracker.currentWidget) && tracker.currentWidget === app.shell.currentWidget;
  const isActive = (matches) => {
    const cell = tracker.currentWidget && tracker.currentWidget.content.activeCell;
    return Boolean(cell) && matches(cell);
  };
  const isRefinable = () => isActive((cell) => cell.model.type !== "raw");

  const finish = (said, cell) => {
    if (said === "look") {
      void start((panel) => lookAt(app, panel, [cell]));
    } else if (app.commands.hasCommand("apputils:notify")) {
      host.Notification.success(said, { autoClose: 5000 });
    }
  };

  host.NotebookActions.executed.connect((_, { notebook, cell }) => {
    const panel = tracker.find((one) => one.content === notebook);
    if (panel) {
      void offerFix(panel, cell, () => start((front) => fix(app, front, cell)));
    }
  });

  app.commands.addCommand("ipyrefine:refine-cell", {
    label: "Refine Cell",
    caption: "Refine this cell with a language model",
    icon,
    isEnabled,
    isVisible: isRefinable,
    execute: () => start((panel) => refine(app, panel, { selection: false })),
  });
  app.commands.addCommand("ipyrefine:refine-selection", {
    label: "Refine Selection",
    caption: "Refine the selected lines of this cell; the other lines stay as they are",
    icon,
    isEnabled,
    isVisible: isRefinable,
    execute: () => start((panel) => refine(app, panel, { selection: true })),
  });
  app.commands.addCommand("ipyrefine:look", {
    label: "Look Before You Run",
    caption: "Show what the selected cells give and do to your data, on copies, without a model",
    icon: new host.LabIcon({ name: "ipyrefine:look", svgstr: EYE }),
    isEnabled,
    isVisible: () => isActive((cell) => cell.model.type === "code"),
    execute: () =>
      start((panel) => {
        const { content } = panel;
        return lookAt(app, panel, content.widgets.filter((one) => content.isSelectedOrActive(one)));
      }),
  });
  app.commands.addCommand("ipyrefine:record", {
    label: "Show the Record",
    caption: "Show how this cell's text came about",
    icon: host.listIcon,
    isVisible: () => isActive(keptRecord),
    execute: () => start((panel) => showRecord(panel, panel.content.activeCell)),
  });
  app.commands.addCommand("ipyrefine:fix", {
    label: "Fix Failed Cell",
    caption: "Fix this cell with a language model, on copies of its variables",
    icon,
    isEnabled: () => isEnabled() && isActive(hasFailed),
    isVisible: () => isActive(hasFailed),
    execute: () => start((panel) => fix(app, panel, panel.content.activeCell)),
  });
  app.commands.addCommand("ipyrefine:accept", {
    label: "Accept Refined Text",
    caption: "Accept the text of this cell's panel, or of the last one",
    icon,
    isEnabled: () => isEnabled() && Boolean(acceptButton(tracker.currentWidget)),
    isVisible: () => isEnabled() && Boolean(acceptButton(tracker.currentWidget)),
    execute: () => start(accept),
  });
  app.commands.addCommand("ipyrefine:resume", {
    label: "Resume Latest Run",
    caption: "Resume the latest refinement, also after the kernel has restarted",
    icon,
    isEnabled,
    execute: (args) => start((panel) => resume(app, panel, args.run)),
  });
  app.commands.addCommand("ipyrefine:set-up", {
    label: "Set Up a Model…",
    caption: "Choose the model that refines, its server and the key",
    icon,
    isEnabled,
    execute: () => start((panel) => setUp(panel, finish)),
  });
  if (palette) {
    for (const name of COMMANDS) {
      palette.addItem({ command: `ipyrefine:${name}`, category: CATEGORY });
    }
  }
}
