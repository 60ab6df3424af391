/*
 * The page's half of the panel; the kernel's is panel.py, which says what the messages hold.
 *
 * It puts HTML that the kernel rendered in place, keeping what the reader did to the page (focus,
 * typed words, scroll positions, open folds), appends the text that streams as text, and sends each
 * click on a `data-action` back with its `data-` attributes and the fields of its form.
 */

/** How far (px) from its end a text may be scrolled and still follow what is written. */
const SLACK = 24;
/** How long (ms) the kernel may take to answer before the panel says so. */
const PATIENCE = 3000;
/** What of an element the reader changes: whether a fold or menu is open, and what a field holds. */
const READERS = new Set(["open", "value"]);
const NUMBERS = new Set(["iteration", "choice", "revisions", "target"]);
const TYPING = "input:not([type=checkbox]), textarea, select";
/** What arrows go through: lines that can be answered or acted on, then the texts; and the heads. */
const LINES = ".rf-res[data-row], .rf-finding[tabindex], .rf-texts .rf-step";
const HEADS = "thead .rf-step";
const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE && node.dataset.key) || null;
const isSeen = (node) => node.checkVisibility(); // not in a closed fold
const isMenu = (node) => Boolean(node) && node.matches(".rf-menu");
const isSame = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

function morph(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  const isOwn = (name) => !READERS.has(name) && !(name === "aria-expanded" && isMenu(from.parentElement));
  for (const { name, value } of [...to.attributes]) {
    if (isOwn(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (isOwn(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  }
  if (from.nodeName !== "TEXTAREA" && !from.matches("[data-stream], [data-gutter], [data-rest]")) {
    morphChildren(from, to);
  }
}

function morphChildren(from, to) {
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let match = next;
    while (match && !isSame(match, wanted)) match = match.nextSibling;
    if (!match) {
      from.insertBefore(wanted, next);
      continue;
    }
    while (next !== match) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
    next = match.nextSibling;
    morph(match, wanted);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // rendered and escaped by the kernel
  return template.content;
}

function duration(seconds) {
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/** Put a text on the clipboard, which a page that is not served securely is not given. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // Not allowed, or not there: the old way needs no permission.
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function render({ model, el }) {
  let text = "";
  let asked = null; // the timer of a click that is not answered yet
  let watched = null; // the line of the check that the header shows
  let isAway = false; // whether that is out of sight
  const bases = new WeakMap(); // what each clock showed when, as the kernel last said

  const find = (selector) => el.querySelector(selector);

  function setMenu(menu, isOpen) {
    menu.toggleAttribute("open", isOpen);
    menu.firstElementChild.setAttribute("aria-expanded", isOpen);
  }

  /** Tell the application what the panel is about, where that listens (incell.js). */
  function tell(told) {
    document.dispatchEvent(new CustomEvent("ipyrefine:panel", { detail: { el, ...told } }));
  }

  // The first check that asks stands in the header, too, while its line is out of sight.
  const sight = new IntersectionObserver((entries) => {
    isAway = !entries.at(-1).isIntersecting;
    remind();
  });

  const lineAsked = () => {
    const question = find(".rf-asked");
    return question && find(`.rf-res[data-row="${question.dataset.row}"]`);
  };

  function remind() {
    const line = lineAsked();
    if (line !== watched) {
      sight.disconnect();
      isAway = false;
      watched = line;
      if (line) sight.observe(line);
    }
    if (line) find(".rf-asked").hidden = !isAway;
  }

  function send(message) {
    clearTimeout(asked);
    asked = setTimeout(() => {
      const busy = find(".rf-busy");
      if (busy) busy.hidden = false;
    }, PATIENCE);
    model.send(message);
  }

  /** Bring the streamed text up to date; it follows its end unless the reader scrolled up. */
  function fill() {
    const code = find("[data-stream]");
    if (!code) return;
    const box = code.closest(".rf-stream");
    const end = () => code.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
    const follows = end() < SLACK;
    const shown = code.textContent;
    const written = code.dataset.stream && text; // before its first piece, this is the text before
    if (written.startsWith(shown)) {
      code.append(written.slice(shown.length)); // as text: no markup in it can come to life
    } else {
      code.textContent = written;
    }
    const gutter = find("[data-gutter]");
    const rest = find("[data-rest]"); // what is left of the text that is revised
    let lines = written.split("\n").length;
    if (rest) {
      const isText = code.dataset.stream === "text" && !/<find>|^<{5}/m.test(written);
      const left = rest.dataset.rest.split("\n").slice(isText ? lines : 0);
      rest.textContent = left.join("\n");
      lines = left.length + (written ? lines : 0);
    }
    if (gutter && Number(gutter.dataset.gutter) !== lines) {
      gutter.dataset.gutter = lines;
      gutter.textContent = Array.from({ length: lines }, (_, n) => n + 1).join("\n");
    }
    if (follows && end() > 0) box.scrollTop += end() + 6;
  }

  function tick() {
    const now = performance.now();
    for (const clock of el.querySelectorAll("[data-clock]")) {
      const { clock: value } = clock.dataset;
      if (bases.get(clock)?.value !== value) bases.set(clock, { value, at: now });
      clock.textContent = duration(Number(value) + (now - bases.get(clock).at) / 1000);
    }
  }

  /** Say that the kernel is gone, and offer to go on from what its journal keeps. */
  function die() {
    const row = find(".rf-top .rf-row:not(.rf-receipt)");
    if (!row || !find("template")) return; // a decided run lacks nothing
    clearTimeout(asked);
    const gone = find("template").content.cloneNode(true);
    const { kept, run } = row.dataset;
    gone.querySelector("[data-resume]").dataset.resume = run;
    const what = kept ? `${kept} is kept.` : "No text was finished.";
    gone.querySelector(".rf-basis").textContent = `The kernel restarted. ${what}`;
    find(".rf-top").replaceChildren(gone);
    const rest = find("[data-rest]");
    if (rest) { // the text that is kept, and not what was written over it
      find("[data-stream]").textContent = "";
      rest.textContent = rest.dataset.rest;
    }
    for (const part of el.querySelectorAll(".rf-form, .rf-ask, .rf-notices, .rf-guide")) part.replaceChildren();
    for (const button of el.querySelectorAll("[data-action]")) button.remove();
    find("section.rf").removeAttribute("style");
  }

  function take(message) {
    clearTimeout(asked);
    asked = null;
    const busy = find(".rf-busy");
    if (busy) busy.hidden = true;
    for (const button of el.querySelectorAll(".rf-sent")) button.classList.remove("rf-sent");
    const held = el.contains(document.activeElement) ? document.activeElement : null;
    const row = held && held.closest(".rf-res[data-row]");
    const texts = held && held.closest("thead, .rf-texts");
    if ("page" in message) morphChildren(el, parse(message.page));
    const height = find('[data-part="text"]')?.offsetHeight;
    for (const [name, html] of Object.entries(message.parts || {})) {
      const part = find(`[data-part="${name}"]`);
      if (part) morphChildren(part, parse(html));
    }
    // A revision is written in the place of the text, and nothing moves until the run ends.
    const words = find('[data-part="text"]');
    if (!find("[data-rest]")) words.removeAttribute("style");
    else if (!words.style.height) words.style.height = `${Math.max(height, 120)}px`;
    const panel = find("section.rf");
    const title = find("[data-title]");
    if (title) panel.setAttribute("aria-label", `Refinement: ${title.dataset.title}`);
    panel.style.minHeight = find(".rf-bar") ? `${panel.offsetHeight}px` : "";
    if ("text" in message) {
      if (message.at > text.length) {
        model.send({ action: "hello" }); // a piece is missing
      } else {
        text = text.slice(0, message.at) + message.text;
      }
    }
    fill();
    tick();
    remind();
    if ("copy" in message) void copy(message.copy);
    if ("origin" in message) tell({ origin: message.origin });
    const field = message.focus && find(`[data-form="${message.focus}"] [data-focus]`);
    if (field) {
      field.focus();
    } else if (held && !held.isConnected) {
      // The next question of the same form, with an empty field, takes the place of one answered.
      const next = held.matches("input[data-focus]") && find(`input[data-focus="${held.dataset.focus}"]`);
      const awaited = find(".rf-checks [data-row]");
      const shown = texts && texts.isConnected && texts.querySelector("[aria-current]");
      const near = next || shown || (row && row.isConnected ? row : awaited || find("section.rf"));
      if (near) near.focus({ preventScroll: true });
    }
  }

  function fieldsOf(form) {
    const fields = {};
    for (const field of form ? form.querySelectorAll("[name]") : []) {
      if (field.matches("details")) continue;
      if (field.type === "checkbox") {
        fields[field.name] = fields[field.name] || [];
        if (field.checked) fields[field.name].push(field.value);
      } else if (!NUMBERS.has(field.name)) {
        fields[field.name] = field.value;
      } else if (field.value !== "") {
        fields[field.name] = Number(field.value);
      }
    }
    return fields;
  }

  function closeMenus(except) {
    for (const menu of el.querySelectorAll(".rf-menu[open]")) {
      if (menu === except) continue;
      if (menu.contains(document.activeElement)) menu.firstElementChild.focus(); // else it is lost
      setMenu(menu, false);
    }
  }

  function press(button) {
    const { action, fields, hotkey, submit, ...data } = button.dataset;
    for (const name of Object.keys(data)) if (NUMBERS.has(name)) data[name] = Number(data[name]);
    const own = button.closest("[data-form]");
    const forms = fields ? [...el.querySelectorAll(`[data-form="${fields}"]`)] : [own];
    closeMenus(null);
    if (data.row) button.classList.add("rf-sent"); // shown as taken until the kernel says so
    send({ action, fields: { ...Object.assign({}, ...forms.map(fieldsOf)), ...data } });
  }

  /** Act on a key that answers a check, and return whether it was one. */
  function answer(key, row, isFocused) {
    const controls = [...row.querySelectorAll(".rf-b:not([data-submit]), input")].filter(isSeen);
    const [yes, no] = [row.querySelector(".rf-yes, .rf-said"), row.querySelector(".rf-no")];
    const isAsked = Boolean(no);
    const after = isFocused && [...el.querySelectorAll(".rf-res[data-row]")].filter(isSeen);
    const next = after && after.slice(after.indexOf(row) + 1).find((one) => one.querySelector(".rf-no"));
    let chosen = null;
    if (key === "y") chosen = yes || controls[0];
    else if (key === "n") chosen = no && no.matches("details") ? no.firstElementChild : no;
    else if (key >= "1" && key <= "9") chosen = controls[Number(key) - 1];
    else if (key !== "?" || !isFocused) return false;
    if (!chosen && key !== "?") return false;
    if (!chosen) {
      if (next) next.focus();
    } else if (chosen.matches("summary")) {
      chosen.parentElement.open = true;
      row.querySelector("input").focus(); // before the next key
    } else if (!chosen.matches("[data-action]") || (key === "y" && chosen !== yes)) {
      chosen.focus();
    } else {
      press(chosen);
      if (next && isAsked) next.focus(); // not where an answer is taken back
    }
    return true;
  }

  /** Move the focus among the lines or the texts, and return whether a key was one for that. */
  function move(key, target) {
    const [head, line] = [target.closest(HEADS), target.closest(LINES)];
    const sideways = key === "ArrowLeft" || key === "ArrowRight";
    const text = line && line.matches(".rf-step");
    if (!(key in STEPS) || !(head || line) || (sideways && line && !text)) return false;
    const isVertical = key === "ArrowUp" || key === "ArrowDown";
    let among = LINES;
    if (head && key !== "ArrowDown") among = HEADS;
    else if (text && !isVertical) among = ".rf-texts .rf-step";
    const stops = [...el.querySelectorAll(among)].filter(isSeen);
    const at = stops.indexOf(head || line) + STEPS[key];
    stops[Math.max(0, Math.min(stops.length - 1, at))]?.focus();
    return true;
  }

  function onClick(event) {
    const resume = event.target.closest("[data-resume]");
    if (resume) tell({ resumes: resume.dataset.resume });
    const button = event.target.closest("[data-action]");
    if (button && el.contains(button)) press(button);
    const menu = event.target.closest(".rf-menu");
    closeMenus(menu);
    if (menu && menu.firstElementChild.contains(event.target)) openMenu(menu, menu.hasAttribute("open"));
  }

  function onOutside(event) {
    if (!el.contains(event.target)) closeMenus(null);
  }

  function onToggle(event) {
    const { target } = event;
    if (target.matches(".rf-no") && target.open) {
      target.closest("[data-row]").querySelector("input").focus();
    }
  }

  function onInput(event) {
    const field = event.target;
    if (field.matches(".rf-guide-row textarea")) {
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight + 2}px`;
    }
  }

  /** Act on a key. Heard before the application, whose shortcuts would change the notebook. */
  function onKey(event) {
    const { key, target } = event;
    if (!el.contains(target) || event.ctrlKey || event.metaKey || event.altKey || key === "Tab") return;
    const typing = target.closest(TYPING);
    const row = target.closest(".rf-res[data-row], .rf-finding[tabindex]");
    if (key === "Escape") {
      const menu = find(".rf-menu[open]");
      const no = row && row.querySelector(".rf-no[open]");
      if (menu || no) {
        if (menu) setMenu(menu, false);
        else no.open = false;
        (menu || no).firstElementChild.focus();
      } else {
        const cancel = find('[data-hotkey="Escape"]');
        if (cancel) press(cancel);
        else if (!typing) return; // the notebook's own
      }
      event.stopPropagation();
      return;
    }
    if (typing) {
      event.stopPropagation();
      if (key === "Enter" && !event.shiftKey && "enter" in target.dataset) {
        event.preventDefault();
        const form = target.closest("[data-form]");
        const submit = form && form.querySelector("[data-submit]");
        if (submit) press(submit);
      }
      return;
    }
    if (key === "Enter" && event.shiftKey) return; // runs the cell
    event.stopPropagation();
    if (move(key, target) || (row && answer(key, row, true))) {
      event.preventDefault();
      return;
    }
    if (key === "Enter" && target.matches(LINES) && !target.matches("button")) {
      event.preventDefault();
      [...target.querySelectorAll(".rf-b, input")].find(isSeen)?.focus();
      return;
    }
    if (key === ".") {
      const stops = [...el.querySelectorAll(".rf-finding[tabindex]")];
      const at = stops.findIndex((stop) => stop.contains(document.activeElement));
      if (stops.length) stops[(at + 1) % stops.length].focus();
      return;
    }
    if (asked !== null) return; // meant for the field that is about to open
    const line = lineAsked();
    if (line && answer(key, line, false)) {
      event.preventDefault();
      return;
    }
    if (key === "g") {
      const words = find('[data-focus="words"]');
      if (words) {
        event.preventDefault();
        words.focus();
      }
      return;
    }
    const button = [...el.querySelectorAll("[data-hotkey]")].find((b) => b.dataset.hotkey === key);
    if (button) {
      event.preventDefault();
      if (isMenu(button.parentElement)) openMenu(button.parentElement);
      else press(button);
    }
  }

  function openMenu(menu, isOpen) {
    closeMenus(menu);
    setMenu(menu, !isOpen);
    if (!isOpen && menu.matches(".rf-override")) menu.querySelector("input").focus();
  }

  el.addEventListener("click", onClick);
  el.addEventListener("toggle", onToggle, true);
  el.addEventListener("input", onInput);
  window.addEventListener("keydown", onKey, true);
  document.addEventListener("pointerdown", onOutside);
  model.on("msg:custom", take);
  model.on("comm_live_update", die);
  const ticking = setInterval(tick, 1000);
  model.send({ action: "hello" });

  return () => {
    clearInterval(ticking);
    sight.disconnect();
    clearTimeout(asked);
    model.off("msg:custom", take);
    model.off("comm_live_update", die);
    tell({ closed: true });
    window.removeEventListener("keydown", onKey, true);
    document.removeEventListener("pointerdown", onOutside);
  };
}

export default { render };
