// Small helpers for the document. Received texts are never parsed as HTML.

export const byId = (id) => document.getElementById(id);

// Writes only changed texts: the layout of an unchanged text is not computed again.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// One child for each item; created once, and updated in place.
export function keep(parent, items, create, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => {
    if (i >= parent.children.length) parent.append(create(item));
    update(parent.children[i], item, i);
  });
}
