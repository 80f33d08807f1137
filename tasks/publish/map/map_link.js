// Stores the view in the URL fragment, so that a link reopens the view. A sandboxed frame may forbid this.

/** Returns the parameters in the URL fragment. */
function readLink() {
  try {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  } catch {
    return {};
  }
}

/** Writes the view, which describe() returns, to the URL without a history entry. The delay makes a drag write once. */
function createLinkWriter(describe) {
  let waiting = 0;
  const link = () => {
    const text = new URLSearchParams(describe()).toString();
    return text ? `#${text}` : "#";
  };
  return {
    link,
    later() {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        try {
          if (location.hash !== link()) history.replaceState(null, "", link());
        } catch {
          // a sandboxed frame has no URL to change
        }
      }, 250);
    },
  };
}
