/*
 * Panels in sight and in reach, and what their text changes in the cell that it is from.
 *
 * A panel says with an event on the document that it opened, changed or closed (`panel.js`, `tell`),
 * and what its text would change in which cell (`in_cell.py`). The document of that cell's editor
 * stays as it is: what would be added stands below the lines that it replaces, and goes as soon as
 * the cell holds anything but what the text was written for.
 */

const EVENT = "ipyrefine:panel";

/** What of a panel (px) below its first line has to be in sight when it opens. */
const IN_SIGHT = 200;

/** Where the first line of a panel that is scrolled to stands, as a part of the window's height. */
const UPPER = 0.3;

/** A traceback of no more lines is not folded. */
const SHORT = 3;

/** What moves a notebook, or shows that a person is at work in it. */
const INPUTS = ["keydown", "pointerdown", "touchmove", "wheel"];

const REFINES = /^(?:\s|#.*\n)*(?:%%(?:refine|look)\b|%refine fix\b)/;
const FIXES = /^(?:\s|#.*\n)*%refine fix\b/;

const settled = (act) => requestAnimationFrame(() => requestAnimationFrame(act));

function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

function scrollerOf(node) {
  for (let one = node.parentElement; one; one = one.parentElement) {
    const { overflowY } = getComputedStyle(one);
    if (/auto|scroll/.test(overflowY) && one.scrollHeight > one.clientHeight) return one;
  }
  return document.scrollingElement;
}

/** Change the page above a node that is in view, and leave the node where it is in the window. */
function inPlace(node, change) {
  const top = () => node.getBoundingClientRect().top;
  const before = top();
  const scroller = scrollerOf(node);
  change();
  const isSeen = before > 0 && before < window.innerHeight;
  const correct = () => {
    if (node.isConnected && isSeen) scroller.scrollTop += top() - before;
  };
  correct();
  settled(correct);
}

/** Return the extension that shows a difference in an editor, and the effect that sets it. */
function makeDifference({ StateEffect, StateField }, { Decoration, EditorView, WidgetType }) {
  const set = StateEffect.define();

  class Added extends WidgetType {
    constructor(lines) {
      super();
      this.lines = lines;
    }

    toDOM() {
      const block = document.createElement("div");
      block.className = "ipyrefine-added";
      block.setAttribute("role", "group");
      block.setAttribute("aria-label", `${count(this.lines.length, "line")} to add`);
      for (const pieces of this.lines) {
        const line = document.createElement("div");
        line.className = "cm-line";
        pieces.forEach((piece, n) => {
          const part = document.createElement(n % 2 ? "b" : "span");
          part.textContent = piece;
          line.append(part);
        });
        if (!line.textContent) line.append(document.createElement("br"));
        block.append(line);
      }
      return block;
    }
  }

  const line = Decoration.line({ class: "ipyrefine-gone", attributes: { role: "deletion" } });
  const struck = Decoration.mark({ class: "ipyrefine-struck" });
  const mark = Decoration.mark({ class: "ipyrefine-gone-part" });

  function draw({ doc }, difference) {
    const found = [];
    for (const { at, gone, added } of difference.hunks) {
      gone.forEach((pieces, n) => {
        const { from, to, text } = doc.line(at + n + 1);
        const indent = text.search(/\S/);
        found.push(line.range(from));
        if (indent >= 0) found.push(struck.range(from + indent, to));
        let start = from;
        pieces.forEach((piece, k) => {
          const stop = Math.min(start + piece.length, to);
          if (k % 2 && start < stop) found.push(mark.range(start, stop));
          start = stop;
        });
      });
      const above = at + gone.length;
      if (added.length) {
        const side = above ? 1 : -1; // of where the lines above end
        const widget = new Added(added);
        found.push(Decoration.widget({ widget, block: true, side }).range(above ? doc.line(above).to : 0));
      }
    }
    return Decoration.set(found, true);
  }

  const field = StateField.define({
    create: () => null,
    update: (before, { effects }) => effects.reduce((now, one) => (one.is(set) ? one.value : now), before),
  });
  const isDue = (state) =>
    state.field(field) && state.doc.toString() === state.field(field).base.replaceAll("\r\n", "\n");
  const shown = EditorView.decorations.compute([field, "doc"], (state) =>
    isDue(state) ? draw(state, state.field(field)) : Decoration.none,
  );
  // A difference stands in one place: the panel shows it where the cell does not.
  const told = EditorView.updateListener.of(({ startState, state }) => {
    startState.field(field, false)?.element.removeAttribute("data-in-cell");
    state.field(field)?.element.toggleAttribute("data-in-cell", isDue(state));
  });
  return { field, extension: [field, shown, told], set };
}

/** Fold the tracebacks of a cell to their last lines, one click opens each; return what unfolds them. */
function fold(cell) {
  const buttons = [];
  cell.outputArea.widgets.forEach((child, n) => {
    const output = child.node.querySelector(".jp-OutputArea-output");
    const isError = cell.model.outputs.get(n)?.type === "error";
    const lines = isError && output ? output.textContent.trim().split("\n") : [];
    if (lines.length <= SHORT) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ipyrefine-trace";
    button.setAttribute("aria-expanded", "false");
    button.title = "Show the traceback";
    button.textContent = lines.at(-1);
    button.addEventListener("click", () => button.remove());
    output.prepend(button);
    buttons.push(button);
  });
  return () => buttons.forEach((button) => button.remove());
}

/** How long (ms) the page says that a cell starts, which the kernel says as soon as it can. */
const STARTING = 5000;

/** Say that a cell starts until its first output comes. */
function start({ outputArea }) {
  if (!outputArea || outputArea.node.querySelector(":scope > .ipyrefine-starting")) return;
  const row = document.createElement("div");
  row.className = "ipyrefine-starting";
  row.setAttribute("role", "status");
  row.textContent = "Starting\u2026";
  outputArea.node.append(row);
  const { model } = outputArea;
  const end = () => {
    model.changed.disconnect(update);
    row.remove();
  };
  const update = () => void (model.length && end()); // it is cleared as the cell starts
  model.changed.connect(update);
  setTimeout(end, STARTING);
}

/**
 * Watch the panels of this page, and add the command that reaches the newest.
 *
 * `host` holds the application's own NotebookActions; `editing` its CodeMirror classes, or null.
 */
export function watchPanels(app, tracker, palette, host, editing) {
  const difference = editing && makeDifference(...editing);
  const panels = new Map(); // what is known of each, by its element
  const scheduled = new WeakMap(); // when cells were last told to run
  let touched = 0; // when a person last did anything, or was shown a panel

  host.NotebookActions.executionScheduled.connect((_, { notebook, cell }) => {
    scheduled.set(cell, performance.now());
    const { session } = tracker.find((one) => one.content === notebook)?.sessionContext || {};
    if (session?.kernel?.status === "idle" && REFINES.test(cell.model.sharedModel.source)) start(cell);
  });
  for (const name of INPUTS) {
    const note = () => {
      touched = performance.now();
    };
    document.addEventListener(name, note, { capture: true, passive: true });
  }

  /** Return the notebook and the cell that hold an element, which may be out of the page. */
  function placeOf(element) {
    let cell;
    const holds = (one) => one.node.contains(element);
    const found = tracker.find(({ content }) => Boolean((cell = content.widgets.find(holds))));
    return cell ? { notebook: found.content, cell } : {};
  }

  /** Bring a panel into sight that has just opened in a cell, unless the person went on. */
  async function bring(element, { notebook, cell }) {
    if (!(scheduled.get(cell) >= touched)) return;
    if (!element.isConnected) await notebook.scrollToItem(notebook.widgets.indexOf(cell), "center");
    const scroller = scrollerOf(cell.node);
    const view = scroller.getBoundingClientRect();
    const { top, bottom, height } = element.getBoundingClientRect();
    const first = element.querySelector("header")?.offsetHeight || 0;
    touched = performance.now(); // the next one of the same press is not scrolled to
    if (top >= view.top && view.bottom - top >= Math.min(height, first + IN_SIGHT)) return;
    scroller.scrollTop += top - view.top - UPPER * view.height;
  }

  /** Show in a cell's editor what a panel's text changes, or take that away. */
  function show(panel, change) {
    const { cell } = panel;
    const view = cell && !cell.isDisposed && cell.editor?.editor;
    if (!view || !difference) return;
    if (view.state.field(difference.field, false) === undefined) {
      if (!change) return;
      cell.editor.injectExtension(difference.extension);
    }
    const before = view.state.field(difference.field);
    if (!change && before?.element !== panel.element) return; // another panel's
    if (change && cell.rendered) {
      cell.rendered = false; // the difference is one of its source
      panel.renders = true;
    } else if (!change && panel.renders) {
      cell.rendered = true;
    }
    view.dispatch({ effects: difference.set.of(change) });
  }

  function close(panel) {
    panel.unfold?.();
    show(panel, null);
  }

  function changeOf({ element, origin, cell }) {
    const fits = origin && cell.model.type === origin.type && cell.model.getMetadata("editable") !== false;
    return fits && origin.hunks.length ? { ...origin, element } : null;
  }

  async function update({ el, origin, closed, resumes }) {
    const known = panels.get(el) || {};
    const own = known.own || placeOf(el);
    if (resumes !== undefined && own.cell) {
      own.notebook.activeCellIndex = own.notebook.widgets.indexOf(own.cell);
      await app.commands.execute("ipyrefine:resume", { run: resumes });
      el.replaceChildren(); // the record beside it stays
      return;
    }
    if (closed || !own.cell) {
      panels.delete(el);
      inPlace(own.cell && !own.cell.isDisposed ? own.cell.node : el, () => close(known));
      settled(() => {
        const isLost = document.activeElement === document.body && own.notebook?.isVisible;
        if (isLost) own.notebook.activate(); // the keyboard was in the panel
      });
      return;
    }
    const panel = { ...known, element: el, origin, own };
    panel.cell = own.notebook.widgets.find((one) => one.model.id === origin?.cell);
    panels.set(el, panel);
    if (panel.cell) await panel.cell.ready;
    if (panels.get(el) !== panel) return;
    inPlace(el, () => {
      if (known.cell !== panel.cell) close(known);
      if (panel.cell) show(panel, changeOf(panel));
      if (panel.cell?.outputArea && !known.own && FIXES.test(own.cell.model.sharedModel.source)) {
        panel.unfold = fold(panel.cell);
      }
    });
    if (!known.own) settled(() => void bring(el, own));
  }

  document.addEventListener(EVENT, ({ detail }) => void update(detail));

  /** Return the newest panel of a notebook that waits for a decision, else the newest one. */
  function newest(notebook) {
    const found = [];
    for (const cell of notebook.widgets) {
      const element = cell.node.querySelector(".rf-panel");
      const order = cell.model.executionCount ?? Infinity; // it has none while it runs
      const accept = element && element.querySelector('[data-action="accept"]');
      if (element) found.push({ cell, element, accept, order });
    }
    found.sort((a, b) => Boolean(a.accept) - Boolean(b.accept) || a.order - b.order);
    return found.at(-1);
  }

  async function focusNewest() {
    const notebook = tracker.currentWidget.content;
    const { cell, element, accept } = newest(notebook);
    if (!element.isConnected) await notebook.scrollToItem(notebook.widgets.indexOf(cell), "center");
    const target = accept || element.querySelector("section");
    notebook.deselectAll();
    notebook.mode = "command";
    notebook.activeCellIndex = notebook.widgets.indexOf(cell);
    target.focus({ preventScroll: true });
    element.scrollIntoView({ block: element.offsetHeight < window.innerHeight / 2 ? "center" : "start" });
    target.scrollIntoView({ block: "nearest" });
  }

  app.commands.addCommand("ipyrefine:focus-panel", {
    label: "Focus the Panel",
    caption: "Go to Accept in the newest refinement of this notebook",
    isEnabled: () => {
      const notebook = tracker.currentWidget === app.shell.currentWidget && tracker.currentWidget?.content;
      return Boolean(notebook && newest(notebook));
    },
    execute: focusNewest,
  });
  palette?.addItem({ command: "ipyrefine:focus-panel", category: "Notebook Cell Operations" });
}
