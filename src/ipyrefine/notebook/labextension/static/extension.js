/*
 * ipyrefine's front-end half: text into cells (cells.js), refinements from cells (refine.js), its
 * settings (settings.js), what a panel's text changes in its cell (incell.js), and what the page
 * looks like (style.js).
 *
 * A prebuilt ("federated") extension of JupyterLab 4 and Notebook 7, written by hand, so that what is
 * shipped is what is read: the host asks for nothing but `init` and `get` of a module-federation
 * container.
 */
(() => {
  "use strict";

  /** Where this file came from; the other ones lie beside it. */
  const HERE = document.currentScript.src;

  let sharedScope = null;

  /**
   * Load a package of the host application from the webpack share scope.
   *
   * It must be the host's own copy: plugins are wired by the identity of their tokens.
   */
  async function hostPackage(name) {
    const versions = Object.values((sharedScope && sharedScope[name]) || {});
    const entry = versions.find((version) => version.loaded) || versions[0];
    if (!entry) {
      throw new Error(`ipyrefine: this application does not share ${name}`);
    }
    const factory = await entry.get();
    return factory();
  }

  /** Load one of the files beside this one. */
  function beside(name) {
    return import(new URL(name, HERE));
  }

  /** Listen on the kernel a panel has now and on every one it gets later, and to its file's saves. */
  function follow(panel, listen, tagDecided) {
    panel.context.saveState.connect((_, state) => state === "started" && tagDecided(panel));
    const context = panel.sessionContext;
    context.kernelChanged.connect((_, change) => {
      if (change.newValue) {
        listen(change.newValue);
      }
    });
    if (context.session && context.session.kernel) {
      listen(context.session.kernel);
    }
  }

  /** Return the application's CodeMirror classes; null where it does not share them. */
  async function editorPackages() {
    try {
      return await Promise.all(["state", "view"].map((name) => hostPackage(`@codemirror/${name}`)));
    } catch (error) {
      console.warn(error.message);
      return null;
    }
  }

  function plugin(host, editing, cells, refine, settings, style, incell) {
    return {
      id: "ipyrefine:cells",
      description: "Refines notebook cells, and puts the text into them.",
      autoStart: true,
      requires: [host.INotebookTracker],
      optional: [host.ICommandPalette, host.ISettingRegistry],
      activate: (app, tracker, palette, registry) => {
        if (registry) void settings.follow(registry, "ipyrefine:cells");
        refine.addCommands(app, tracker, palette, host);
        incell.watchPanels(app, tracker, palette, host, editing);
        style.addStyle();
        cells.removeRecords(tracker);
        const listen = (kernel) => cells.listen(tracker, kernel, app);
        tracker.forEach((panel) => follow(panel, listen, cells.tagDecided));
        tracker.widgetAdded.connect((_, panel) => follow(panel, listen, cells.tagDecided));
      },
    };
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB.ipyrefine = {
    init(scope) {
      sharedScope = scope;
    },
    async get(module) {
      if (module !== "./extension") {
        throw new Error(`ipyrefine: there is no module ${module}`);
      }
      const names = ["notebook", "apputils", "ui-components", "settingregistry"];
      const packages = names.map((name) => hostPackage(`@jupyterlab/${name}`));
      const host = Object.assign({}, ...(await Promise.all(packages)));
      const editing = await editorPackages();
      const files = await Promise.all(
        ["cells.js", "refine.js", "settings.js", "style.js", "incell.js"].map(beside),
      );
      return () => ({ __esModule: true, default: plugin(host, editing, ...files) });
    },
  };
})();
