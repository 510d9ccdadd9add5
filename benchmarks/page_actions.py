"""What the benchmark of the page does in it: every click and key as an event, timed where it happens."""

from __future__ import annotations

#: Makes `__timed(action, n)`: milliseconds from the event until the frame with the last pixel has been painted, null if
#: it could not be done; and `__frames(begin)`, which returns the milliseconds between frames since it began.
JAVASCRIPT = """() => {
  const frame = () => new Promise(requestAnimationFrame);
  window.__key = (key, target) =>
    (target ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  window.__list = (name) =>
    [...document.querySelectorAll("select")].find((list) => list.labels?.[0]?.innerText.trim() === name);
  window.__pick = (list, place) => {
    const options = [...list.options].filter((option) => !option.disabled);
    const option = options[place % options.length];
    if (option.value === list.value) return null;
    Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(list, option.value);
    list.dispatchEvent(new Event("change", { bubbles: true }));
  };
  window.__timed = async (action, n) => {
    await window.__endoscope.settled();
    await frame();
    const before = location.href;
    const began = performance.now();
    if ((await action(n)) === null) return null;
    await window.__endoscope.settled();
    const taken = performance.now() - began;
    return location.href === before ? null : taken;
  };
  let times = null;
  window.__frames = (begin) => {
    const found = times;
    const mine = (times = begin ? [] : null);
    const tick = (now) => {
      if (mine === null || times !== mine) return;
      mine.push(now);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    return found ? found.slice(1).map((time, i) => time - found[i]) : null;
  };
}"""

#: Name -> the body of a function of the round's number. Every round leads somewhere new.
ACTIONS = {
    "select a node": """
        const items = [...document.querySelectorAll('[role=tree][aria-label="Boxes of the dependency graph"] li')]
          .filter((item) => !item.hasAttribute("aria-expanded") && item.ariaSelected !== "true");
        if (!items.length) return null;
        items[(7 * n + 3) % items.length].click();""",
    "step before": "__key('[');",
    "ten steps before": "__key('PageDown', document.querySelector('[role=slider]'));",
    "value, gradient, update": "__key('g');",
    "type of step": "__key('y');",
    "sample": "__key('s');",
    "heat by a statistic": """
        const list = __list("show");
        return list ? __pick(list, n + 2) : null;""",
    "tab: metrics": "__key('5');",
    "tab: network": "__key('6');",
    "tab: graph": "__key('3');",
}

#: The same in layers × steps.
LAYERS_ACTIONS = {
    "select a cell": """
        const heat = document.querySelector('.layers-heat');
        const box = heat.getBoundingClientRect();
        const place = { clientX: box.left + 300 + 37 * (n % 9), clientY: box.top + 40 + 53 * (n % 7) };
        heat.dispatchEvent(new PointerEvent("pointerup", { ...place, button: 0, bubbles: true }));""",
    "step before": "__key('ArrowLeft', document.querySelector('.layers-heat'));",
    "layer below": "__key('ArrowDown', document.querySelector('.layers-heat'));",
    "statistic": """
        const list = __list("show");
        return list ? __pick(list, n + 1) : null;""",
    "against": """
        const choices = [...document.querySelectorAll('[role=radiogroup][aria-label=colour] input:not(:disabled)')];
        const next = choices[n % choices.length];
        if (next.checked) return null;
        next.click();""",
    "value or gradient": """
        const choices = [...document.querySelectorAll('[role=radiogroup][aria-label="of the"] input:not(:disabled)')];
        const next = choices.find((choice) => !choice.checked);
        if (!next) return null;
        next.click();""",
    "fold": "__key(' ', document.querySelector('.layers-heat'));",
}

#: The same in the page of a trace.
TRACE_ACTIONS = {
    "choose an operation": ACTIONS["select a node"],
    "close a module": """
        const items = [...document.querySelectorAll('[role=treeitem][aria-expanded=true]')];
        if (!items.length) return null;
        window.__closed = items[items.length - 1].dataset.key;
        items[items.length - 1].click();""",
    "open it": """
        const stage = document.querySelector('.stage-canvas');
        const item = document.querySelector(`[role=treeitem][data-key="${window.__closed}"]`);
        if (!item) return null;
        item.click();
        return new Promise((done) => requestAnimationFrame(() => done(__key('Enter', stage))));""",
    "colour": """
        const list = __list("colour");
        return list ? __pick(list, n + 1) : null;""",
    "values as": """
        const choices = [...document.querySelectorAll('[role=radiogroup][aria-label="Values as"] input')];
        const next = choices.find((choice) => !choice.checked);
        if (!next) return null;
        next.click();""",
}
