// Small helpers for the document. Nothing that came from elsewhere is ever read as HTML.

export const byId = (id) => document.getElementById(id);

// Writes only what changes: a text that stays is not laid out again.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// As many children as items; made once, and updated in place.
export function keep(parent, items, create, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => {
    if (i >= parent.children.length) parent.append(create(item));
    update(parent.children[i], item, i);
  });
}
