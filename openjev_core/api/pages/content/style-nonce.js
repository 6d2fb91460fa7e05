// Scalar writes its theme into style elements. They get the page's nonce, without which the page's policy refuses them.
const nonce = document.querySelector("meta[property=csp-nonce]").content;
const createElement = document.createElement;

document.createElement = function (name, options) {
  const element = createElement.call(document, name, options);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
};
