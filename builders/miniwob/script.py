"""The script that a page is read with: MiniWoB++'s own list of elements, and what of them can be touched."""

LOOK = """
const [width, height] = arguments;
const dom = core.getDOMInfo();
const places = {};
const touches = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]];

function shown(element) {
  const whole = element.getBoundingClientRect();
  let [left, top, right, bottom] = [whole.left, whole.top, whole.right, whole.bottom];
  for (let above = element.parentElement; above; above = above.parentElement) {
    if (above === document.body || above === document.documentElement) break;
    if (getComputedStyle(above).overflow === "visible") continue;
    const frame = above.getBoundingClientRect();
    const [x, y] = [frame.left + above.clientLeft, frame.top + above.clientTop];
    left = Math.max(left, x), right = Math.min(right, x + above.clientWidth);
    top = Math.max(top, y), bottom = Math.min(bottom, y + above.clientHeight);
  }
  left = Math.max(left, 0), right = Math.min(right, width);
  top = Math.max(top, 0), bottom = Math.min(bottom, height);
  return right - left >= 1 && bottom - top >= 1 ? [left, top, right, bottom] : null;
}

function touch(element, [left, top, right, bottom]) {
  for (const [across, down] of touches) {
    const point = [left + across * (right - left), top + down * (bottom - top)];
    const hit = document.elementFromPoint(...point);
    if (hit && element.contains(hit)) return point;
  }
  return null;
}

function scrolls(element) {
  const hidden = element.scrollHeight - element.clientHeight;
  const style = getComputedStyle(element).overflowY;
  const able = element === document.scrollingElement || style === "scroll" || style === "auto";
  return able && hidden > 1 ? [element.scrollTop, hidden] : null;
}

for (const [ref, element] of Object.entries(core.previousDOMInfo)) {
  const box = shown(element);
  const point = box && touch(element, box);
  places[ref] = { box: point ? box : null, point, scroll: scrolls(element) };
}
return { goal: core.getUtterance(), dom, places, page: scrolls(document.scrollingElement) };
"""
"""Returns what can be seen now; takes the width and height of the task area in the page's pixels. The elements
are ``core.getDOMInfo``'s. Added are, for each, the part that is cut off neither by the screen nor by a scroller,
a point that touches it, and how far it scrolls."""
