/*
 * Shows a text while the kernel's model writes it; every piece of it is sent once.
 *
 * The kernel half is `ipyrefine/notebook/streaming.py`. It opens a comm with the target
 * `ipyrefine.live` and sends {at, text}: a piece, and the length of the text before it; 0 starts a
 * new text. Whatever this page sends on it is a request for the whole text. The comm's id is also
 * in the `data-stream` of every place that shows the text.
 */

const TARGET = "ipyrefine.live";

/** The animation that a place starts with, which tells that it is on the page now. */
const HERE = "rf-here";

/** How far (px) from its end a place may be scrolled and still follow the text. */
const SLACK = 24;

/** What is known of each text: its comm, and the text so far. */
const streams = new Map();

/** Bring a place up to date; it keeps its scroll position unless it is at the end. */
function fill(place) {
  const { text } = streams.get(place.dataset.stream);
  const code = place.firstElementChild;
  const follows = place.scrollHeight - place.scrollTop - place.clientHeight < SLACK;
  const shown = code.textContent;
  if (text.startsWith(shown)) {
    // As a text node: no markup in it can come to life, and a selection above it stays.
    code.append(text.slice(shown.length));
  } else {
    code.textContent = text;
  }
  if (follows) {
    place.scrollTop = place.scrollHeight;
  }
}

/** Take a piece; a page that has missed the one before it asks for the whole text. */
function take(id, { at, text }) {
  const stream = streams.get(id);
  const known = stream.text.length;
  if (at > known) {
    stream.comm.send({});
    return;
  }
  if (at === 0) {
    stream.text = text;
  } else if (at === known) {
    stream.text += text;
  }
  document.querySelectorAll(`.rf-stream[data-stream="${CSS.escape(id)}"]`).forEach(fill);
}

/** Keep the text that comes over a comm, and ask for what there is of it. */
function join(comm) {
  const id = comm.commId;
  streams.set(id, { comm, text: "" });
  comm.onMsg = (message) => take(id, message.content.data);
  comm.onClose = () => streams.delete(id);
  comm.send({});
}

/** The connection to the kernel behind a place that may have comms: one per kernel has. */
function connectionOf(tracker, place) {
  const connections = [];
  let home = null;
  tracker.forEach((panel) => {
    const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
    if (kernel) {
      connections.push(kernel);
      home = panel.node.contains(place) ? kernel : home;
    }
  });
  return home && connections.find((kernel) => kernel.id === home.id && kernel.handleComms);
}

/** Fill every place that comes up: drawn anew, in a second view, or on a page opened since. */
export function watch(tracker) {
  document.addEventListener("animationstart", (event) => {
    if (event.animationName !== HERE) {
      return;
    }
    const place = event.target;
    const id = place.dataset.stream;
    const known = streams.get(id);
    // A notebook that is closed takes its connection along, and every comm of it.
    if (!known || known.comm.isDisposed) {
      const kernel = connectionOf(tracker, place);
      if (!kernel || kernel.hasComm(id)) {
        return;
      }
      join(kernel.createComm(TARGET, id));
    }
    fill(place);
  });
}

/** Listen on a kernel connection; registering again on the same one changes nothing. */
export function listen(kernel) {
  kernel.registerCommTarget(TARGET, join);
}
